# The forebay commands, with Spark for those that start it. From package registries only:
#   make bundle && docker build -t forebay:0.1.0 . && docker run --rm -v "$PWD:/work" forebay:0.1.0 try samples/
FROM python:3.13-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
COPY dist/forebay-0.1.0-py3-none-any.whl requirements.lock /tmp/
RUN pip install --no-cache-dir uv==0.13.8 && uv pip install --system --no-cache --constraints /tmp/requirements.lock \
    "/tmp/forebay-0.1.0-py3-none-any.whl[spark]"
# The JVM libraries, each checked by its hash. Without this line the first command that starts Spark fetches them.
ENV XDG_CACHE_HOME=/opt/cache
RUN python -c "import os; from forebay.spark.session import jars; jars(os.environ)"
WORKDIR /work
ENTRYPOINT ["forebay"]
