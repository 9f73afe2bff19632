"""An S3 and an SQS in this process, for commands that talk to AWS. No twin: nothing is deployed here."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import boto3
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from forebay_local.twin import quick
from forebay_local.twin.kept_alive import Handler


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Its connections stay open, as those of S3 and of the twin do; and as in the twin, moto finds its services at once, which
    it would look for on disk for each request."""
    quick.install()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_DISABLE_GLOBAL_CORS", "true")
        yield from served()


def served() -> Iterator[str]:
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An S3 with an empty bucket `studio-lake`, as the environment says; gives its endpoint."""
    for name, value in (("ENDPOINT_URL", endpoint), ("REGION", "eu-west-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AK")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SK")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="studio-lake")
    return endpoint
