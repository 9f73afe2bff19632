"""What the topic cannot deliver ends in the queue of undelivered messages, and nothing else is disturbed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay_local.twin.sns import MOST_BYTES, RAW_ATTRIBUTES
from forebay_local.twin.twin import Twin


def test_more_attributes_than_raw_delivery_takes_end_among_the_undelivered(twin: Twin) -> None:
    topic, undelivered = wiring(twin)
    for number in (RAW_ATTRIBUTES, RAW_ATTRIBUTES + 1):
        attributes = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(number)}
        twin.client("sns").publish(TopicArn=topic, Message=f"{number} attributes", MessageAttributes=attributes)
    assert bodies(twin, twin.queue_url) == [f"{RAW_ATTRIBUTES} attributes"]
    assert bodies(twin, undelivered) == [f"{RAW_ATTRIBUTES + 1} attributes"]


@pytest.mark.parametrize("attribute", ["", "x" * 100])
@pytest.mark.parametrize("letter", ["a", "é"])
def test_the_topic_counts_bytes_of_body_and_attributes(twin: Twin, letter: str, attribute: str) -> None:
    sns = twin.client("sns")
    topic = sns.create_topic(Name="sizes")["TopicArn"]
    attributes = {"a": {"DataType": "String", "StringValue": attribute}} if attribute else {}
    rest = len("a" + "String" + attribute) if attribute else 0
    fits = letter * ((MOST_BYTES - rest) // len(letter.encode()))
    sns.publish(TopicArn=topic, Message=fits, MessageAttributes=attributes)
    with pytest.raises(sns.exceptions.InvalidParameterException, match="too long"):
        sns.publish(TopicArn=topic, Message=f"{fits}aa", MessageAttributes=attributes)


def test_more_bytes_than_the_queue_takes_end_among_the_undelivered(twin: Twin) -> None:
    """Delivered raw, the body alone counts; else what SNS wraps around it, too."""
    sns, sqs = twin.client("sns"), twin.client("sqs")
    topic = sns.create_topic(Name="large")["TopicArn"]
    undelivered = sqs.create_queue(QueueName="large-undelivered")["QueueUrl"]
    dead = {"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:large-undelivered"}
    urls = []
    for kind, raw in (("raw", {"RawMessageDelivery": "true"}), ("wrapped", {})):
        urls.append(sqs.create_queue(QueueName=f"large-{kind}", Attributes={"MaximumMessageSize": "1024"})["QueueUrl"])
        arn = f"arn:aws:sqs:eu-west-1:123456789012:large-{kind}"
        more = {"RedrivePolicy": json.dumps(dead), **raw}
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=more)
    sns.publish(TopicArn=topic, Message="a" * 1024)
    assert [len(bodies(twin, url)) for url in urls] == [1, 0]
    assert bodies(twin, undelivered) == ["a" * 1024]
    sns.publish(TopicArn=topic, Message="a" * 1025)
    assert [len(bodies(twin, url)) for url in urls] == [0, 0]
    assert bodies(twin, undelivered) == ["a" * 1025] * 2


def test_a_subscriber_that_is_gone_is_no_error_of_the_publisher(twin: Twin) -> None:
    topic, undelivered = wiring(twin)
    sns, gone = twin.client("sns"), "arn:aws:sqs:eu-west-1:123456789012:gone"
    policy = {"RedrivePolicy": f'{{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:{name(undelivered)}"}}'}
    arn = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=gone, Attributes=policy)["SubscriptionArn"]
    try:
        sns.publish(TopicArn=topic, Message="hello")
    finally:
        sns.unsubscribe(SubscriptionArn=arn)
    assert bodies(twin, twin.queue_url) == ["hello"]
    assert bodies(twin, undelivered) == ["hello"]


def wiring(twin: Twin) -> tuple[str, str]:
    """The topic of landed files, and the queue of what it cannot deliver."""
    (topic,) = [one["TopicArn"] for one in twin.client("sns").list_topics()["Topics"] if "arrivals" in one["TopicArn"]]
    return topic, twin.queue_url + "-undelivered"


def name(url: str) -> str:
    return url.rpartition("/")[2]


def bodies(twin: Twin, url: str) -> list[str]:
    sqs = twin.client("sqs")
    got: list[dict[str, Any]] = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    for message in got:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [message["Body"] for message in got]
