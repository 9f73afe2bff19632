"""Objects below the prefix, and nothing else, come off the queue as S3 wrote them."""

from __future__ import annotations

import json

from forebay.twin.twin import Twin
from forebay.twin.wiring import Wired, Wiring, wire


def bodies(twin: Twin) -> list[str]:
    got = twin.client("sqs").receive_message(QueueUrl=twin.queue_url, MaxNumberOfMessages=10).get("Messages", [])
    return [message["Body"] for message in got]


def test_only_objects_below_the_prefix_are_announced_and_without_an_envelope(twin: Twin) -> None:
    s3 = twin.client("s3")
    s3.put_object(Bucket=twin.landing_bucket, Key="in/a.json", Body=b"{}")
    s3.put_object(Bucket=twin.landing_bucket, Key="out/b.json", Body=b"{}")
    s3.put_object(Bucket=twin.lake_bucket, Key="in/c.json", Body=b"{}")
    (body,) = bodies(twin)
    assert [record["s3"]["object"]["key"] for record in json.loads(body)["Records"]] == ["in/a.json"]


def test_wiring_again_changes_nothing_and_sends_nothing(twin: Twin) -> None:
    clients = {name: twin.client(name) for name in ("s3", "sns", "sqs")}
    wired = wire(Wiring(), **clients)
    assert wired == Wired(twin.topic_arn, twin.queue_url, twin.dlq_url)
    assert len(clients["sns"].list_subscriptions()["Subscriptions"]) == 1
    assert bodies(twin) == []


def test_the_queues_are_as_declared(twin: Twin) -> None:
    sqs = twin.client("sqs")
    queue = sqs.get_queue_attributes(QueueUrl=twin.queue_url, AttributeNames=["All"])["Attributes"]
    dead = sqs.get_queue_attributes(QueueUrl=twin.dlq_url, AttributeNames=["All"])["Attributes"]
    assert json.loads(queue["RedrivePolicy"]) == {"deadLetterTargetArn": dead["QueueArn"], "maxReceiveCount": 5}
    assert queue["VisibilityTimeout"] == "300"
    assert int(dead["MessageRetentionPeriod"]) > int(queue["MessageRetentionPeriod"])
