"""What the function puts on the page: queues, alarms, runs, health objects, and what was published. How the page looks is
tested in `tests/operate/test_page.py`."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.lake.health import HOUR, HOURS_KEPT, Health
from forebay.operate.page.content import Page
from forebay.operate.stack.aws_answers import Alarm, alarms_in
from infra.costs import PAGE_READS
from infra.metrics import published as all_metrics
from lambdas.status_page import published
from lambdas.status_page.looking import Settings, page_of

NOW = datetime(2026, 5, 2, 12, 30, tzinfo=UTC)
SETTINGS = Settings(
    "forebay-dev", "games", "forebay-dev", "q", "dead,undelivered", "s3://lake", "page", "forebay-dev-ingest"
)
SNS = ["arn:aws:sns:eu-west-1:1:forebay-dev-alarms"]


class Missing(Exception):
    pass


class Aws:
    """Every client in one: it answers what a test says."""

    def __init__(self, **said: Any) -> None:
        self.said, self.asked = said, list[str]()
        self.exceptions = type("Exceptions", (), {"NoSuchKey": Missing})

    def get_queue_attributes(self, *, QueueUrl: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        waiting = {"q": "1234", "dead": str(self.said.get("dead", 0))}.get(QueueUrl, "0")
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return {"Attributes": {names[0]: waiting, names[1]: "5" if QueueUrl == "q" else "0"}}

    def get_job_runs(self, *, JobName: str, MaxResults: int) -> dict[str, Any]:  # noqa: N803
        return {"JobRuns": self.said.get("runs", [])}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        health = self.said.get("health", {})
        if Key not in health:
            raise Missing
        return {"Body": io.BytesIO(health[Key].encode())}

    def get_paginator(self, name: str) -> Any:
        def paginate(**asked: Any) -> list[dict[str, Any]]:
            if name == "list_objects_v2":
                keys = self.said.get("health", {}) if "health" in asked["Prefix"] else {}
                return [{"Contents": [{"Key": key} for key in keys]}]
            if name == "describe_alarms":
                # As the twin does, it looks at the prefix alone.
                states = ("ALARM", "INSUFFICIENT_DATA", "OK")
                return [{"MetricAlarms": [{**one, "StateValue": s} for s in states for one in self.said.get(s, [])]}]
            return [{"MetricDataResults": [self._points(query, asked) for query in asked["MetricDataQueries"]]}]

        return type("Pages", (), {"paginate": staticmethod(paginate)})()

    def _points(self, query: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
        metric = query["MetricStat"]["Metric"]["MetricName"]
        self.asked.append(metric)
        found = [(at, n) for at, n in self.said.get(metric, ()) if asked["StartTime"] <= at < asked["EndTime"]]
        return {"Id": query["Id"], "Timestamps": [at for at, _ in found], "Values": [n for _, n in found]}


def page(**said: Any) -> Page:
    aws = Aws(**said)
    return page_of(SETTINGS, s3=aws, sqs=aws, glue=aws, cloudwatch=aws, now=NOW)


def run(state: str, minutes_ago: float, **more: Any) -> dict[str, Any]:
    began = NOW - timedelta(minutes=minutes_ago)
    return {"JobRunState": state, "StartedOn": began, "CompletedOn": began + timedelta(minutes=1), **more}


def test_numbers_by_the_hour_come_from_what_was_published() -> None:
    hour = NOW.replace(minute=0)
    found = page(
        BatchCommittedRecords=[(hour, 70.0), (hour - timedelta(hours=47), 5.0), (hour - timedelta(hours=48), 9.0)],
        BatchCommittedFiles=[(hour, 7.0), (hour - timedelta(days=2), 100.0)],
        RecordsQuarantinedNotJson=[(hour, 3.0)],
        RecordsQuarantinedPaused=[(hour, 8.0)],
        JobEndedDpuSeconds=[(hour, 7200.0)],
    )
    records, files, _ = found.charts
    assert (records.values[0][1], records.values[-1][1]) == (5, 70)
    assert len(files.values) == HOURS_KEPT
    assert [(one.reason, one.records) for one in found.reasons] == [("paused", 8), ("not-json", 3)]
    assert found.cost is not None
    assert list(found.cost.usd) == ["2.0 DPU-hours of jobs", "messages and reads of 7 files", "storage of the tables"]
    assert found.cost.usd["2.0 DPU-hours of jobs"] == pytest.approx(2 * 0.44)
    assert {one.name: one.number for one in found.journey} == {
        "messages in the queue": "1,234",
        "ingest job": "not running",
        "files loaded": "7",
        "records loaded": "75",
        "dead letters": "0",
    }


def test_jobs_on_emr_serverless_have_the_prices_of_its_vcpus_and_memory() -> None:
    aws = Aws(JobEndedDpuSeconds=[(NOW.replace(minute=0), 7200.0)])
    settings = replace(SETTINGS, engine="emr-serverless:00app")
    found = page_of(settings, s3=aws, sqs=aws, glue=aws, cloudwatch=aws, now=NOW)
    assert found.cost is not None
    assert found.cost.usd["2.0 DPU-hours of jobs"] == pytest.approx(2 * (4 * 0.052624 + 16 * 0.0057785))


def test_it_asks_only_for_metrics_that_are_published() -> None:
    aws = Aws()
    published.published(aws, "forebay-dev", "games", ["a"], now=NOW)
    assert set(aws.asked) - all_metrics().keys() == set()
    assert len(aws.asked) + 3 == PAGE_READS, "with four jobs; CloudWatch bills each"


def test_a_table_has_the_rows_by_hour_that_ingest_noted() -> None:
    before = Health(table="alpha").with_arrivals(1, 10, NOW - timedelta(hours=50), rows=4)
    noted = before.with_arrivals(1, 10, NOW - timedelta(hours=1), rows=5).with_arrivals(1, 10, NOW, rows=7)
    old = Health(table="beta", newest_at=NOW).as_json()
    (alpha, beta) = page(
        health={"_forebay/health/alpha.json": noted.as_json(), "_forebay/health/beta.json": old}
    ).tables
    assert (alpha.rows[-3:], sum(alpha.rows), alpha.files, alpha.newest_at) == ((0, 5, 7), 12, 3, NOW)
    assert (beta.name, beta.rows) == ("beta", ())
    assert f"{NOW:{HOUR}}" in noted.rows_by_hour


def test_what_somebody_must_look_at_comes_first_the_alarms_before_all() -> None:
    ringing = {
        "AlarmName": "forebay-dev-files-wait",
        "AlarmDescription": "A file waits. Runbook: infra/README.md#files-wait",
        "AlarmActions": SNS,
    }
    found = page(ALARM=[ringing], dead=3, runs=[run("FAILED", 5, ErrorMessage="no such queue"), run("SUCCEEDED", 50)])
    assert found.troubles == (
        "files-wait: A file waits.",
        "3 messages are dead: received too often and never finished, or never delivered.",
        "ingest: the last run failed.",
    )
    assert [one.is_bad for one in found.journey][-1]
    dead = {"AlarmName": "forebay-dev-dead-letters", "AlarmDescription": "A letter is dead.", "AlarmActions": SNS}
    assert page(ALARM=[dead], dead=3).troubles == ("dead-letters: A letter is dead.",), "dead messages are told once"


def test_a_job_that_failed_before_its_newest_run_is_no_trouble() -> None:
    assert page(runs=[run("SUCCEEDED", 5), run("FAILED", 50)]).troubles == ()


def test_an_alarm_that_only_wakes_a_function_is_no_trouble_and_one_without_data_is_told() -> None:
    woken = {"AlarmName": "forebay-dev-many-wait", "AlarmActions": ["arn:aws:lambda:eu-west-1:1:function:start"]}
    calling = {"AlarmName": "forebay-dev-no-batch", "AlarmActions": SNS}
    assert alarms_in("ALARM", "forebay-dev", Aws(ALARM=[woken, calling])) == [Alarm("no-batch")]
    assert page(OK=[calling]).troubles == ()
    assert page(INSUFFICIENT_DATA=[calling, woken]).notes == ("Alarms without data yet: 1.",)


def test_an_alarm_of_a_service_whose_name_begins_as_this_ones_is_not_ours() -> None:
    other = ["arn:aws:sns:eu-west-1:1:forebay-dev-eu-alarms"]
    ringing = {"AlarmName": "forebay-dev-eu-files-wait", "AlarmDescription": "A file waits.", "AlarmActions": other}
    assert page(ALARM=[ringing]).troubles == ()


def test_a_new_service_has_a_page_too() -> None:
    found = page()
    assert (found.tables, found.runs, found.troubles) == ((), (), ())
    assert json.dumps(found.counts) == json.dumps(
        {"quarantined, 48 h": "0", "parked, 48 h": "0", "never announced, 48 h": "0"}
    )
