"""The runtime for which everything is built and tested, defined once: AWS Glue 6.0.

The set-up, the tests and the infrastructure read these numbers; no other file repeats them, except `pyproject.toml`, which a
test compares. This module imports nothing, so that it can be read before anything is installed.
"""

GLUE = "6.0"
SPARK = "4.1.1"
DELTA = "4.2.0"
SCALA = "2.13"
HADOOP = "3.4.2"
JAVA = 17
PYTHON = "3.13"
PYTHON_MIN = (3, 11)
PYTHON_MAX = (3, 13)

AWS_SDK = "2.29.52"
"""The AWS SDK for Java that hadoop-aws 3.4.2 was built with. We take the few modules that S3A really calls: the
`bundle` artifact that Maven would bring is 600 MB."""

DELTA_SPARK_JAR = f"io.delta:delta-spark_4.1_{SCALA}:{DELTA}"
"""The coordinates a user of plain `spark.jars.packages` would write."""

CLASSES = "classes.jsa"
"""A class data archive, with which the JVM starts in half the time. Set-up creates it beside the JVM libraries."""

DPU_OF = {"G.025X": 0.25, "G.1X": 1, "G.2X": 2, "G.4X": 4, "G.8X": 8}
"""DPUs of one worker, by its type: the unit that Glue bills."""

GLUE_HAS = ("boto3>=1.40", "numpy==2.4.*", "pyarrow==23.*")
"""Packages that the jobs import from Glue's own Python; the cluster test runs the jobs on them."""

GLUE_LACKS = ("annotated-types", "pydantic", "pydantic-core", "typing-extensions", "typing-inspection")
"""Packages that the jobs import and Glue lacks. Jobs ship them as wheels and need no package index."""
PLATFORM = "x86_64-manylinux2014"
"""The platform of Glue's workers, as uv names it."""
