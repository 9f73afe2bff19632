"""Checks that the log groups exist and that runs write to them, and the versions that jobs report there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.jobs import newest_runs
from forebay.operate.stack.deployment import Deployment
from forebay.spark import runtime

REPORT = "StockTaken"
"""The event in which a job says, at its start, what it runs on."""
AT_WORK = ("STARTING", "WAITING")


def groups(on: Deployment) -> Iterator[Finding]:
    for group in on.of("Logs::LogGroup"):
        known = on.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        found = next((one for one in known if one["logGroupName"] == group), None)
        if found is None:
            what = f"the log group {group} does not exist"
            yield error(what, "The service creates one without encryption and expiry, or none.")
        elif not found.get("retentionInDays"):
            fix = f"aws logs put-retention-policy --log-group-name {group} --retention-in-days 30"
            yield warning(f"{group} never expires", "Its cost grows with every day.", fix)
    for job in on.of("Glue::Job"):
        ours = [group for group in on.of("Logs::LogGroup") if group.startswith(f"/{on.name}/{_short(on, job)}/")]
        ran = [run for run in newest_runs(on, job) if run["JobRunState"] not in AT_WORK]
        if ran and ours and not any(_has_streams(on, group) for group in ours):
            what = f"the job {job} ran, but {' and '.join(sorted(ours))} are empty"
            why = "Its log goes elsewhere, or its role may not write there: problems would go unnoticed."
            yield warning(what, why, "see --custom-logGroup-prefix of the job; cdk deploy")


def reports(on: Deployment) -> Iterator[Finding]:
    for job in on.of("Glue::Job"):
        report = _last_report(on, _short(on, job))
        spark = (report or {}).get("spark", runtime.SPARK)  # reconcile has none
        if spark != runtime.SPARK:
            what = f"the job {job} reports Spark {spark}, but forebay is tested on {runtime.SPARK}"
            yield warning(what, "The running version is not the tested one.", "compare Glue's release notes")
        delta = (report or {}).get("modules", {}).get("delta.tables", "unknown")
        if delta not in ("unknown", runtime.DELTA):
            what = f"the job {job} reports Delta {delta}, but forebay is tested on {runtime.DELTA}"
            yield warning(what, "The running version is not the tested one.", "compare Glue's release notes")


def _last_report(on: Deployment, job: str) -> Mapping[str, Any] | None:
    found = [event for group in _groups_of(on, job) for event in _reports_in(on, group)]
    for event in sorted(found, key=lambda one: one["timestamp"], reverse=True):
        try:
            parsed = json.loads(event["message"])
        except ValueError:
            continue
        if isinstance(parsed, dict) and parsed.get("event") == REPORT:
            return parsed
    return None


def _reports_in(on: Deployment, group: str) -> list[dict[str, Any]]:
    asked = {"logGroupName": group, "filterPattern": f'"{REPORT}"', "limit": 100}
    since = int(on.now().timestamp() * 1000) - 14 * 86_400_000
    return list(on.client("logs").filter_log_events(**asked, startTime=since)["events"])


def _groups_of(on: Deployment, job: str) -> list[str]:
    return [group for group in on.of("Logs::LogGroup") if group.startswith(f"/{on.name}/{job}/")]


def _short(on: Deployment, job: str) -> str:
    return job.removeprefix(f"{on.name}-")


def _has_streams(on: Deployment, group: str) -> bool:
    return bool(on.client("logs").describe_log_streams(logGroupName=group, limit=1)["logStreams"])
