"""A twin of S3 and SQS in a process of its own, and one Spark session, for the few tests that need them."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1"}


@dataclass
class Twin:
    endpoint: str

    @property
    def env(self) -> dict[str, str]:
        return {**AWS, "AWS_ENDPOINT_URL": self.endpoint}

    def client(self, service: str) -> Any:
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=AWS["AWS_REGION"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def queue(self, **attributes: str) -> str:
        name = f"q-{uuid.uuid4().hex[:12]}"
        url: str = self.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    def send(self, url: str, bodies: list[str]) -> None:
        sqs = self.client("sqs")
        for first in range(0, len(bodies), 10):
            entries = [{"Id": str(i), "MessageBody": b} for i, b in enumerate(bodies[first : first + 10])]
            assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")

    def left(self, url: str) -> tuple[int, int]:
        """Visible and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])


@pytest.fixture(scope="session")
def twin() -> Iterator[Twin]:
    command = [sys.executable, "-m", "forebay.twin.server", "--port", "0", "--with-parent", str(os.getpid())]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "glue_jobs")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout is not None
        ready, endpoint, _ = server.stdout.readline().split()
        assert ready == "READY"
        yield Twin(endpoint)
        server.terminate()


@pytest.fixture(scope="session")
def spark(twin: Twin) -> Iterator[Any]:
    """The workers and the planner inherit the environment of the JVM, so it is set before that starts."""
    from tests.file.driver import session

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**twin.env, "PYTHONPATH": f"{ROOT / 'glue_jobs'}{os.pathsep}{ROOT}"}.items():
            patch.setenv(name, value)
        spark = session()
        yield spark
        spark.stop()
