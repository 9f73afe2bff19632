"""Queues of the twin, for the few tests that need one over HTTP."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pytest

from forebay_local.twin.twin import Twin


@dataclass(frozen=True)
class Queues:
    """Queues of their own for each test, and what is in them."""

    twin: Twin

    def make(self, **attributes: str) -> str:
        name = f"q-{uuid.uuid4().hex[:12]}"
        url: str = self.twin.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    def send(self, url: str, bodies: list[str]) -> None:
        sqs = self.twin.client("sqs")
        for first in range(0, len(bodies), 10):
            entries = [{"Id": str(i), "MessageBody": b} for i, b in enumerate(bodies[first : first + 10])]
            assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")

    def left(self, url: str) -> tuple[int, int]:
        """Visible and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.twin.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])


@pytest.fixture
def queues(twin: Twin) -> Queues:
    return Queues(twin)
