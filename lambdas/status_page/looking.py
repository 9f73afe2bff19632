"""The content of the page: current queues, tables, runs and alarms, and the metrics of the last two days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forebay.aws.prices import read_prices
from forebay.counted import counted
from forebay.operate.page.content import Chart, Page, Reason, Run, Station, TableLine, age
from forebay.operate.stack.aws_answers import Alarm, alarms_in, run_of
from forebay.operate.stack.cost import Hours, cost_of
from lambdas.engine.jobs import GLUE
from lambdas.plan_compaction.health_objects import health_objects
from lambdas.publish_freshness.ledger_log import newest_commit
from lambdas.publish_freshness.measuring import counts
from lambdas.status_page.published import HOUR, HOURS, Published, published

RUNS_EACH = 5
WATCHED = ("dead-letters", "undelivered")
"""Alarms about dead messages."""


@dataclass(frozen=True)
class Settings:
    name: str
    service: str
    namespace: str
    queue_url: str
    dead_urls: str
    lake: str
    page_bucket: str
    jobs: str
    engine: str = "glue"


def page_of(settings: Settings, *, s3: Any, sqs: Any, glue: Any, cloudwatch: Any, now: datetime) -> Page:
    jobs = settings.jobs.split(",")
    found = {job: glue.get_job_runs(JobName=job, MaxResults=RUNS_EACH)["JobRuns"] for job in jobs}
    runs = [run_of(settings.name, job, run, now) for job, of_job in found.items() for run in of_job]
    flex = [job for job, of_job in found.items() if of_job and of_job[0].get("ExecutionClass") == "FLEX"]
    known = published(cloudwatch, settings.namespace, settings.service, jobs, now=now)
    health = health_objects(s3, settings.lake)
    dead = sum(sum(counts(sqs, url)) for url in settings.dead_urls.split(","))
    alarms = alarms_in("ALARM", settings.name, cloudwatch)
    silent = len(alarms_in("INSUFFICIENT_DATA", settings.name, cloudwatch))
    hours = Hours(*(sum(known.dpu_hours[job] for job in jobs if (job in flex) == is_flex) for is_flex in (False, True)))
    size = sum(int(one.get("bytes", 0)) for one in health)
    return Page(
        name=settings.name,
        at=now,
        troubles=tuple(_troubles(alarms, dead, runs)),
        notes=(f"Alarms without data yet: {silent:,}.",) if silent else (),
        journey=tuple(
            _journey(counts(sqs, settings.queue_url), dead, newest_commit(s3, settings.lake), runs, known, now)
        ),
        charts=tuple(_charts(known)),
        tables=_tables(health, now),
        reasons=tuple(Reason(reason, count) for reason, count in known.reasons.items()),
        runs=tuple(runs),
        cost=cost_of(hours, known.files_of_month, size, read_prices(), now=now, is_on_emr=settings.engine != GLUE),
        counts={
            f"{name}, {len(HOURS)} h": f"{count:,.0f}"
            for name, count in (
                ("quarantined", known.total("quarantined")),
                ("parked", known.total("parked")),
                ("never announced", known.total("missed")),
            )
        },
    )


def _troubles(alarms: list[Alarm], dead: int, runs: list[Run]) -> Iterator[str]:
    """Alarms first, then what they may not have seen yet."""
    for alarm in alarms:
        yield f"{alarm.name}: {alarm.says}".rstrip(": ")
    if dead and not any(alarm.name in WATCHED for alarm in alarms):
        yield f"{counted(dead, 'message', 'is')} dead: received too often and never finished, or never delivered."
    newest: dict[str, Run] = {}
    for run in runs:
        if run.job not in newest or newest[run.job].began_at < run.began_at:
            newest[run.job] = run
    yield from (f"{run.job}: the last run failed." for run in newest.values() if run.is_bad)


def _journey(
    queue: tuple[int, int], dead: int, batch: datetime | None, runs: list[Run], known: Published, now: datetime
) -> Iterator[Station]:
    waiting, in_flight = queue
    at_work = any(run.job == "ingest" and run.is_at_work for run in runs)
    yield Station("messages in the queue", f"{waiting:,}", f"{in_flight:,} in flight")
    yield Station(
        "ingest job", "runs" if at_work else "not running", f"last batch {age(now, batch)}" if batch else "no batch yet"
    )
    yield Station("files loaded", f"{known.total('files'):,.0f}", f"in {len(HOURS)} hours")
    yield Station("records loaded", f"{known.total('records'):,.0f}", f"in {len(HOURS)} hours")
    yield Station(
        "dead letters", f"{dead:,}", "received too often, or undelivered" if dead else "", is_bad=dead > 0, is_end=True
    )


def _charts(known: Published) -> Iterator[Chart]:
    yield Chart("Records loaded", known.by_hour("records"))
    yield Chart("Files loaded", known.by_hour("files"))
    yield Chart("Latency", known.by_hour("latency"), "{:,.0f} s", "the median of each hour's batches, on average")


def _tables(health: list[dict[str, Any]], now: datetime) -> tuple[TableLine, ...]:
    """Those with most rows first, then those with most small files."""
    tables = [_table(one, now) for one in health]
    return tuple(sorted(tables, key=lambda one: (-sum(one.rows), -(one.small_files or 0), one.name)))


def _table(health: Mapping[str, Any], now: datetime) -> TableLine:
    newest, rows = health.get("newest_at"), health.get("rows_by_hour")
    hours = [f"{now - back:{HOUR}}" for back in HOURS]
    return TableLine(
        name=str(health.get("table", "?")),
        rows=tuple(int(rows.get(hour, 0)) for hour in hours) if isinstance(rows, dict) and rows else (),
        files=int(health.get("files", 0)),
        small_files=int(health.get("small_files", 0)),
        bytes=int(health.get("bytes", 0)),
        newest_at=datetime.fromisoformat(newest) if newest else None,
    )
