"""Do now what CloudWatch does every minute: hold the deployed alarms against what the queues hold.

Only alarms on how many messages a queue holds are looked at; SQS tells no caller how old its oldest message is, and an
alarm over what jobs and functions publish is left as it is. A change of state does what the alarm says (see `events`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["evaluate"]

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


def evaluate(client: Client) -> dict[str, str]:
    """The state of each alarm that was looked at."""
    states = {}
    pages = client("cloudwatch").get_paginator("describe_alarms").paginate()
    for alarm in [alarm for page in pages for alarm in page["MetricAlarms"]]:
        if alarm.get("Namespace") != "AWS/SQS" or alarm["MetricName"] not in COUNTS:
            continue
        value = _measured(client("sqs"), alarm)
        state = "ALARM" if COMPARED[alarm["ComparisonOperator"]](value, alarm["Threshold"]) else "OK"
        reason = f"{alarm['MetricName']} is {value:g}, the threshold is {alarm['Threshold']:g}"
        client("cloudwatch").set_alarm_state(AlarmName=alarm["AlarmName"], StateValue=state, StateReason=reason)
        states[alarm["AlarmName"]] = state
    return states


def _measured(sqs: Any, alarm: dict[str, Any]) -> float:
    (queue,) = [dimension["Value"] for dimension in alarm["Dimensions"] if dimension["Name"] == "QueueName"]
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    name = COUNTS[alarm["MetricName"]]
    return float(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])
