"""The answers of CloudWatch and Glue, as plain values, for the commands and for the function that writes the status page.

In: a boto3 client, or a part of its answer, and the prefix of a deployment's names. Out: alarms and runs, named without that
prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forebay.operate.page.content import Run


@dataclass(frozen=True)
class Alarm:
    """`says` is a sentence for a person."""

    name: str
    says: str = ""


def alarms_in(state: str, name: str, cloudwatch: Any) -> list[Alarm]:
    """Alarms that call a person; those that wake a function are left out. By the service's own topic: another service's
    name may begin as this one's does. The twin looks at the prefix alone."""
    pages = cloudwatch.get_paginator("describe_alarms")
    found = [
        Alarm(one["AlarmName"].removeprefix(f"{name}-"), one.get("AlarmDescription", "").partition(" Runbook:")[0])
        for page in pages.paginate(AlarmNamePrefix=f"{name}-", StateValue=state)
        for one in page["MetricAlarms"]
        if one["StateValue"] == state
        and any(action.endswith(f":{name}-alarms") for action in one.get("AlarmActions", ()))
    ]
    return sorted(found, key=lambda alarm: alarm.name)


def run_of(name: str, job: str, run: Mapping[str, Any], now: datetime) -> Run:
    began, ended = run["StartedOn"], run.get("CompletedOn") or now
    seconds = max(0.0, (ended - began).total_seconds())
    return Run(
        job.removeprefix(f"{name}-"),
        run["JobRunState"],
        began,
        seconds,
        str(run.get("ErrorMessage", "")),
        _dpu_seconds(run, seconds),
        run.get("ExecutionClass") == "FLEX",
    )


def _dpu_seconds(run: Mapping[str, Any], seconds: float) -> float:
    """Glue counts them itself where workers come and go; else they are the workers' for all of the time."""
    return float(run.get("DPUSeconds") or float(run.get("ExecutionTime") or seconds) * (run.get("MaxCapacity") or 0))
