"""Adds to moto's EventBridge and CloudWatch: events are handed to functions, and alarms perform their actions.

Fixed in moto 5.2.5: an event that matches a rule with a Lambda function as its target is a server error. Its time
is a number where AWS writes text. An alarm whose state is set does nothing. An alarm that nobody evaluated yet is OK, and one
that is changed is OK again. Still missing: schedules and alarms do not run on their own; `fire` and `alarms` run both on
request.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from typing import Any

from moto.awslambda.utils import get_backend
from moto.cloudwatch import models as cloudwatch
from moto.events import models

from forebay_local.twin import clients
from forebay_local.twin.patch import Patch, apply

AGAIN_AFTER = "FOREBAY_TWIN_EVENTS_AGAIN_AFTER_S"
_endpoint = ""
_send = models.Rule.send_to_targets
_set_state = cloudwatch.CloudWatchBackend.set_alarm_state
_put_alarm = cloudwatch.CloudWatchBackend.put_metric_alarm


def install(endpoint: str) -> None:
    global _endpoint
    _endpoint = endpoint
    apply(PATCHES, relied_on)


def again_after_s() -> float | None:
    """EventBridge delivers at least once, and perhaps late; here just once, unless somebody wants to see what that does."""
    return float(os.environ[AGAIN_AFTER]) if os.environ.get(AGAIN_AFTER) else None


def send_to_targets(self: Any, original_event: Any, transform_input: bool = True) -> None:
    event = dict(original_event)
    deliver(self, original_event, transform_input)
    if (late_s := again_after_s()) is not None:
        again = threading.Timer(late_s, deliver, (self, event, transform_input))
        again.daemon = True
        again.start()


def deliver(self: Any, original_event: Any, transform_input: bool) -> None:
    functions = [target for target in self.targets if ":lambda:" in target["Arn"]]
    if functions and self.event_pattern.matches_event(original_event):
        time = datetime.fromtimestamp(float(original_event["time"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = json.dumps({**original_event, "time": time})
        for target in functions:
            get_backend(self.account_id, self.region_name).invoke(
                target["Arn"], None, target.get("Input") or event, {}, {}
            )
    others = [target for target in self.targets if target not in functions]
    if others:
        rest = _Rule(self, others)
        _send(rest, original_event, transform_input)  # type: ignore[arg-type]


class _Rule:
    """A rule with some of its targets."""

    def __init__(self, rule: Any, targets: list[Any]) -> None:
        self._rule, self.targets = rule, targets

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rule, name)


def set_alarm_state(self: Any, alarm_name: str, reason: str, reason_data: str, state_value: str) -> None:
    """A change of state does what the alarm says; the same state again does nothing."""
    known = self.alarms.get(alarm_name)
    before = known.state_value if known else ""
    _set_state(self, alarm_name, reason, reason_data, state_value)
    if state_value == before or not known.actions_enabled:
        return
    actions = {
        "ALARM": known.alarm_actions,
        "OK": known.ok_actions,
        "INSUFFICIENT_DATA": known.insufficient_data_actions,
    }
    for arn in actions[state_value] or ():
        act(self, arn, known, before, state_value, reason)


def put_metric_alarm(self: Any, name: str, *more: Any, **settings: Any) -> Any:
    """A new alarm has no data, and one that is changed keeps its state, as on AWS."""
    known = self.alarms.get(name)
    alarm = _put_alarm(self, name, *more, **settings)
    alarm.state_value = known.state_value if known else "INSUFFICIENT_DATA"
    return alarm


def act(backend: Any, arn: str, alarm: Any, before: str, now: str, reason: str) -> None:
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000+0000")
    client = partial(clients.client, endpoint=_endpoint, region=backend.region_name)
    if ":sns:" in arn:
        message = {
            "AlarmName": alarm.name,
            "AlarmDescription": alarm.description,
            "AWSAccountId": backend.account_id,
            "NewStateValue": now,
            "OldStateValue": before,
            "NewStateReason": reason,
            "StateChangeTime": time,
            "AlarmArn": alarm.alarm_arn,
        }
        client("sns").publish(TopicArn=arn, Subject=f'{now}: "{alarm.name}"', Message=json.dumps(message))
    elif ":lambda:" in arn:
        state = {"value": now, "reason": reason, "timestamp": time}
        event = {
            "source": "aws.cloudwatch",
            "alarmArn": alarm.alarm_arn,
            "accountId": backend.account_id,
            "time": time,
            "region": backend.region_name,
            "alarmData": {"alarmName": alarm.name, "state": state, "previousState": {"value": before}},
        }
        get_backend(backend.account_id, backend.region_name).invoke(arn, None, json.dumps(event), {}, {})
    else:
        print(f"the alarm {alarm.name} has an action that the local twin does not support: {arn}", file=sys.stderr)


_PUT_ALARM_TAKES = (
    *("self", "name", "namespace", "metric_name", "comparison_operator", "evaluation_periods", "period", "threshold"),
    *("statistic", "description", "dimensions", "alarm_actions", "metric_data_queries", "datapoints_to_alarm"),
    *("extended_statistic", "ok_actions", "insufficient_data_actions", "unit", "actions_enabled", "treat_missing_data"),
    *("evaluate_low_sample_count_percentile", "threshold_metric_id", "rule", "tags"),
)

PATCHES = (
    Patch(models.Rule, "send_to_targets", ("self", "original_event", "transform_input"), send_to_targets),
    Patch(
        cloudwatch.CloudWatchBackend,
        "set_alarm_state",
        ("self", "alarm_name", "reason", "reason_data", "state_value"),
        set_alarm_state,
    ),
    Patch(cloudwatch.CloudWatchBackend, "put_metric_alarm", _PUT_ALARM_TAKES, put_metric_alarm),
)


def relied_on() -> list[tuple[Any, str]]:
    return []
