"""What the topic cannot deliver ends in the queue of undelivered messages, and nothing else is disturbed."""

from __future__ import annotations

from typing import Any

from forebay_local.twin.sns import RAW_ATTRIBUTES
from forebay_local.twin.twin import Twin


def test_more_attributes_than_raw_delivery_takes_end_among_the_undelivered(twin: Twin) -> None:
    topic, undelivered = wiring(twin)
    for number in (RAW_ATTRIBUTES, RAW_ATTRIBUTES + 1):
        attributes = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(number)}
        twin.client("sns").publish(TopicArn=topic, Message=f"{number} attributes", MessageAttributes=attributes)
    assert bodies(twin, twin.queue_url) == [f"{RAW_ATTRIBUTES} attributes"]
    assert bodies(twin, undelivered) == [f"{RAW_ATTRIBUTES + 1} attributes"]


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
