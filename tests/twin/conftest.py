"""One twin for all tests of this folder that only need one; each test takes what it put off the queue again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forebay_local.twin import twin as local
from forebay_local.twin.twin import Twin


@pytest.fixture(scope="session")
def shared_twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    with local.running(tmp_path_factory.mktemp("twin")) as twin:
        # A look at an empty queue of ours takes its 20 s; tests look often.
        twin.client("sqs").set_queue_attributes(
            QueueUrl=twin.queue_url, Attributes={"ReceiveMessageWaitTimeSeconds": "0"}
        )
        yield twin


@pytest.fixture
def twin(shared_twin: Twin) -> Twin:
    """With nothing in its queues."""
    for url in (shared_twin.queue_url, shared_twin.dlq_url):
        shared_twin.client("sqs").purge_queue(QueueUrl=url)
    return shared_twin
