"""Do now what CloudWatch does every minute: hold the deployed alarms against what the queues hold.

Only alarms on how many messages a queue holds are looked at; SQS tells no caller how old its oldest message is, and an
alarm over metrics of jobs and functions is left unchanged. A change of state performs the alarm's actions (see `events`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Client = Callable[[str], Any]

COMPARED = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
COUNTS = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
}


@dataclass(frozen=True)
class Evaluation:
    """An alarm held against its queue: the state it had, the one it should have, and what the change does."""

    name: str
    before: str
    now: str
    reason: str
    does: tuple[str, ...]


def evaluations(client: Client) -> list[Evaluation]:
    """Changes nothing."""
    pages = client("cloudwatch").get_paginator("describe_alarms").paginate()
    alarms = [alarm for page in pages for alarm in page["MetricAlarms"]]
    counted = [one for one in alarms if one.get("Namespace") == "AWS/SQS" and one["MetricName"] in COUNTS]
    return [_evaluation(client, alarm) for alarm in sorted(counted, key=lambda alarm: str(alarm["AlarmName"]))]


def evaluate(client: Client) -> dict[str, str]:
    """Gives each alarm the state that it should have, which does what the alarm says; the states."""
    found = evaluations(client)
    for seen in found:
        client("cloudwatch").set_alarm_state(AlarmName=seen.name, StateValue=seen.now, StateReason=seen.reason)
    return {seen.name: seen.now for seen in found}


def _evaluation(client: Client, alarm: dict[str, Any]) -> Evaluation:
    value = _measured(client("sqs"), alarm)
    now = "ALARM" if COMPARED[alarm["ComparisonOperator"]](value, alarm["Threshold"]) else "OK"
    before = alarm["StateValue"]
    actions = alarm["AlarmActions" if now == "ALARM" else "OKActions"] if now != before else ()
    reason = f"{alarm['MetricName']} is {value:g}, the threshold is {alarm['Threshold']:g}"
    return Evaluation(alarm["AlarmName"], before, now, reason, tuple(map(_in_words, actions)))


def _in_words(action: str) -> str:
    name = action.rpartition(":")[2]
    return f"runs the function {name}" if ":lambda:" in action else f"notifies the topic {name}"


def _measured(sqs: Any, alarm: dict[str, Any]) -> float:
    (queue,) = [dimension["Value"] for dimension in alarm["Dimensions"] if dimension["Name"] == "QueueName"]
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    name = COUNTS[alarm["MetricName"]]
    return float(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])
