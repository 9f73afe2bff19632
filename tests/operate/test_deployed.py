"""What AWS tells of a deployment: the runs of its jobs and what they cost, alarms that ring, and what was deployed when."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.aws.prices import Prices, read_prices
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.events import metric_name
from forebay.lake.health import Health, HealthRecords
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.history import history_of
from forebay.operate.looking.report import report_of
from forebay.operate.looking.status import status_of
from forebay.operate.page.content import Run
from forebay.operate.stack import deployed
from forebay.operate.stack.cost import Hours, cost_of, hours_of, month_of
from forebay.operate.stack.deployment import Deployment, Resource
from lambdas.job_ended.events import JobEnded
from tests.operate.ledger import entry, write_ledger, write_tables

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MONTH = datetime(2026, 11, 1, tzinfo=UTC)
SNS = ["arn:aws:sns:eu-west-1:1:games-alarms"]


def run(name: str, began: datetime, hours: float, state: str = "SUCCEEDED", **more: Any) -> dict[str, Any]:
    ended = began + timedelta(hours=hours)
    return {
        "Id": name,
        "JobRunState": state,
        "StartedOn": began,
        "CompletedOn": ended,
        "ExecutionTime": int(hours * 3600),
        "MaxCapacity": 2.0,
        **more,
    }


class Aws:
    """Glue, CloudWatch and CloudFormation of one deployment, two runs a page."""

    def __init__(self, *runs: dict[str, Any]) -> None:
        self.runs = runs
        self.pages = 0

    def get_job_runs(self, *, JobName: str, NextToken: str = "0") -> dict[str, Any]:  # noqa: N803
        self.pages += 1
        began = int(NextToken)
        page = {"JobRuns": list(self.runs[began : began + 2])}
        return {**page, "NextToken": str(began + 2)} if began + 2 < len(self.runs) else page

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0"}}

    def get_metric_statistics(self, **_: Any) -> dict[str, Any]:
        return {"Datapoints": []}

    def get_paginator(self, name: str) -> Any:
        rings: dict[str, Any] = {
            "AlarmName": "games-files-wait",
            "AlarmDescription": "A file waits. Runbook: x",
            "AlarmActions": SNS,
            "StateValue": "ALARM",
        }
        wakes = {"AlarmName": "games-many-wait", "AlarmActions": [], "StateValue": "ALARM"}
        said = {
            "describe_alarms": {"MetricAlarms": [rings, wakes, {**rings, "StateValue": "OK"}]},
            "describe_alarm_history": {
                "AlarmHistoryItems": [
                    {"AlarmName": name, "Timestamp": NOW, "HistorySummary": "Alarm updated from OK to ALARM"}
                    for name in ("games-files-wait", "games-eu-files-wait", "another-alarm")
                ]
            },
            "describe_stack_events": {
                "StackEvents": [
                    event("UPDATE_COMPLETE", NOW),
                    event("UPDATE_COMPLETE", NOW, kind="AWS::S3::Bucket"),
                    event("UPDATE_IN_PROGRESS", NOW - timedelta(minutes=3), why="User Initiated"),
                    event("CREATE_COMPLETE", NOW - timedelta(days=9)),
                ]
            },
        }[name]
        return type("Pages", (), {"paginate": staticmethod(lambda **_: [said])})()


def event(status: str, at: datetime, *, kind: str = "AWS::CloudFormation::Stack", why: str = "") -> dict[str, Any]:
    own = "arn:stack" if kind.endswith("Stack") else "a-bucket"
    told = {"Timestamp": at, "ResourceType": kind, "PhysicalResourceId": own, "StackId": "arn:stack"}
    return {**told, "ResourceStatus": status, "ResourceStatusReason": why}


def deployment(aws: Aws) -> Deployment:
    outputs = dict.fromkeys(("LandingBucket", "LandingPrefix", "LakeUri", "AlarmTopicArn"), "-")
    outputs |= {"IngestJob": "games-ingest", "QueueUrl": "https://sqs/q", "DeadUrls": "d,u"}
    alarm = Resource("CloudWatch::Alarm", "AlarmsFilesWait", "games-files-wait")
    jobs = (Resource("Glue::Job", "Job", "games-ingest"), alarm)
    return Deployment(lambda _: aws, "games", "1", "eu-west-1", "CREATE_COMPLETE", outputs, jobs, lambda: NOW)


def test_runs_are_read_back_to_the_moment_and_no_further() -> None:
    runs = [run(str(n), NOW - timedelta(days=7 * n, hours=2), 1) for n in range(6)]
    aws = Aws(*runs)
    found = deployed.runs_since(deployment(aws), MONTH)
    assert [one.began_at for one in found] == [one["StartedOn"] for one in runs[:3]]
    assert (aws.pages, found[0].job, found[0].dpu_seconds) == (2, "ingest", 7200)


class Emr:
    """EMR Serverless, with these runs."""

    def __init__(self, *runs: dict[str, Any]) -> None:
        self.runs = runs

    def get_paginator(self, name: str) -> Any:
        assert name == "list_job_runs"
        return self

    def paginate(self, *, applicationId: str, createdAtAfter: datetime) -> list[dict[str, Any]]:  # noqa: N803
        assert applicationId == "00app"
        return [{"jobRuns": [one for one in self.runs if one["createdAt"] > createdAtAfter]}]


def emr_run(name: str, began: datetime, hours: float, state: str, details: str = "") -> dict[str, Any]:
    ended = began + timedelta(hours=hours)
    return {"id": "1", "name": name, "state": state, "createdAt": began, "updatedAt": ended, "stateDetails": details}


def on_emr(emr: Emr, aws: Aws | None = None) -> Deployment:
    glue = deployment(aws or Aws())
    application = Resource("EMRServerless::Application", "Application", "00app")
    clients = {"emr-serverless": emr}
    client = glue.client
    return replace(
        glue, client=lambda name: clients.get(name) or client(name), resources=(application, *glue.resources[1:])
    )


def test_runs_of_emr_serverless_are_those_of_the_service_in_glues_words() -> None:
    emr = Emr(
        emr_run("games-ingest", MONTH + timedelta(days=1), 2, "FAILED", "out of memory"),
        emr_run("games-ingest (code of before)", MONTH - timedelta(days=2), 60, "SUCCESS"),
        emr_run("games-compact", MONTH - timedelta(days=3), 2, "SUCCESS"),
        emr_run("games-ingest", NOW - timedelta(hours=1), 0, "RUNNING"),
        emr_run("others-ingest", NOW - timedelta(hours=1), 1, "FAILED"),
    )
    found = [(run.job, run.state, run.seconds / 3600, run.error) for run in deployed.runs_since(on_emr(emr), MONTH)]
    assert found == [
        ("ingest", "RUNNING", 1.0, ""),
        ("ingest", "FAILED", 2.0, "out of memory"),
        ("ingest", "SUCCEEDED", 60.0, ""),
    ]


def test_a_stack_that_is_not_there_is_refused() -> None:
    class NoStack:
        meta = type("Meta", (), {"region_name": "eu-west-1"})

        def get_caller_identity(self) -> dict[str, str]:
            return {"Account": "1"}

        def describe_stacks(self, StackName: str) -> Any:  # noqa: N803
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStacks")

    with pytest.raises(Exception, match="stack gaems: has no outputs from forebay in account 1, eu-west-1"):
        deployed.deployed("gaems", lambda _: NoStack())


# --- cost ---

PRICES = Prices(
    date(2026, 1, 31),
    "eu-west-1",
    "a test",
    {
        "glue_dpu_hour": 1.0,
        "glue_flex_dpu_hour": 0.5,
        "sns_publish_million": 1.0,
        "sqs_request_million": 3.5,
        "s3_get_thousand": 0.001,
        "s3_gb_month": 30.0,
    },
)


def test_a_month_costs_what_runs_files_and_tables_took() -> None:
    half = MONTH + timedelta(days=365 / 24)
    found = cost_of(Hours(10, 4), 1_000_000, 2_000_000_000, PRICES, now=half)
    assert list(found.usd.values()) == pytest.approx([12.0, 1 + 1 + 1, 30.0])
    assert found.total == pytest.approx(45.0)
    assert "prices of 2026-01-31 in eu-west-1" in found.says


def test_of_a_run_over_midnight_only_the_part_in_this_month_counts() -> None:
    whole = Run("ingest", "SUCCEEDED", MONTH + timedelta(hours=1), 3600, "", 7200)
    quarter_in = Run("ingest", "SUCCEEDED", MONTH - timedelta(hours=3), 4 * 3600, "", 8 * 3600, is_flex=True)
    assert hours_of([whole, quarter_in], MONTH) == Hours(2.0, 2.0)
    assert month_of(NOW) == MONTH


# --- status, report and history with a deployment ---


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 3}, at=NOW - timedelta(minutes=5)))
    HealthRecords(str(tmp_path)).update("alpha", lambda was: Health(table=was.table, bytes=10**9, newest_at=MONTH))
    write_tables(tmp_path, "alpha")
    return str(tmp_path)


def test_status_knows_alarms_failed_runs_and_the_cost_of_the_month(lake: str) -> None:
    failed = run("r", NOW - timedelta(hours=2), 1, "FAILED", ErrorMessage="no such queue")
    found = status_of(LakeView(lake), on=deployment(Aws(failed)), now=NOW)
    assert found.problems == ["alarm files-wait: A file waits.", "job ingest: the last run failed: no such queue"]
    assert found.cost is not None
    assert list(found.cost.usd)[:2] == ["2.0 DPU-hours of jobs", "messages and reads of 1 file"]
    page = report_of(LakeView(lake), found, [], hours=4)
    assert (page.cost, page.runs, page.notes) == (found.cost, found.runs_of_jobs, ())


class Measured(Aws):
    """CloudWatch has what ended runs of the ingest job used, on two days."""

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        of_job = {one["Name"]: one["Value"] for one in asked["Dimensions"]} == {
            "service": "shop",
            "job": "games-ingest",
        }
        whole = (asked["Namespace"], asked["StartTime"], asked["EndTime"], asked["Period"]) == (
            "games",
            MONTH,
            NOW,
            86400,
        )
        wanted = asked["MetricName"] == metric_name(JobEnded, "dpu_seconds") and of_job and whole
        return {"Datapoints": [{"Sum": 3600.0}, {"Sum": 7200.0}] if wanted else []}


def test_status_has_the_cost_of_runs_on_emr_serverless_by_its_prices(lake: str) -> None:
    keep_in_force(lake, Service(name="shop", tables=(Table(name="orders"),)))
    emr = Emr(emr_run("games-ingest", NOW - timedelta(hours=9), 1, "SUCCESS"))
    found = status_of(LakeView(lake), on=on_emr(emr, Measured()), now=NOW).cost
    assert found is not None
    assert found.usd["3.0 DPU-hours of jobs"] == pytest.approx(3 * read_prices().dpu_hour(is_on_emr=True))
    assert found.says.endswith("A run on EMR Serverless is included when it has ended.")


def test_the_age_of_a_tables_rows_is_the_ledgers_where_it_is_newer_than_the_health_object(lake: str) -> None:
    found = status_of(LakeView(lake), now=NOW)
    assert found.lag_s == {"alpha": 240}


def test_history_tells_of_deployments_and_alarms(lake: str) -> None:
    found = history_of(LakeView(lake), since=NOW - timedelta(days=1), on=deployment(Aws()))
    told = [(one.kind, one.what) for one in found if one.kind in ("deploy", "alarm")]
    assert told == [
        ("deploy", "deploy of games: UPDATE_COMPLETE"),
        ("alarm", "alarm files-wait: Alarm updated from OK to ALARM"),
        ("deploy", "deploy of games: UPDATE_IN_PROGRESS: User Initiated"),
    ]
    assert json.dumps([one.who for one in found])


def test_what_aws_refuses_to_tell_is_said_and_the_rest_is_shown(lake: str) -> None:
    class Refusing(Aws):
        def get_paginator(self, name: str) -> Any:
            if name == "describe_alarm_history":
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeAlarmHistory")
            return super().get_paginator(name)

    untold: list[str] = []
    since = NOW - timedelta(days=1)
    found = history_of(LakeView(lake), since=since, on=deployment(Refusing()), untold=untold.append)
    assert untold == ["no alarm is shown: AccessDenied of DescribeAlarmHistory"]
    assert "deploy" in {one.kind for one in found}
