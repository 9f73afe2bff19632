"""A person hears of what failed, with the reason and where to look, and of nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.job_ended import handler
from lambdas.job_ended.events import JobEnded
from lambdas.job_ended.handler import Settings, tell
from lambdas.job_ended.run import console

SETTINGS = Settings(
    service="games", namespace="forebay-dev", alarm_topic="arn:topic", runbook="https://example.org/runbook"
)


class Glue:
    class exceptions:  # noqa: N801
        class EntityNotFoundException(Exception):
            pass

    def __init__(self, run: dict[str, Any] | None) -> None:
        self.run = run

    def get_job_run(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"JobName": "ingest", "RunId": "jr_1"}
        if self.run is None:
            raise self.exceptions.EntityNotFoundException
        return {"JobRun": self.run}


class Sns:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def publish(self, **message: Any) -> None:
        """As who reads e-mail gets it; chat gets the same in a form of its own."""
        assert message.pop("MessageStructure") == "json"
        said = json.loads(message["Message"])
        chat = json.loads(said["https"])
        assert (chat["version"], chat["source"], chat["content"]["title"]) == ("1.0", "custom", message["Subject"])
        assert said["default"] in chat["content"]["description"]
        self.sent.append({**message, "Message": said["default"]})


class CloudWatch:
    def __init__(self) -> None:
        self.published: dict[str, float] = {}

    def put_metric_data(self, **asked: Any) -> None:
        assert asked["Namespace"] == "forebay-dev"
        for one in asked["MetricData"]:
            assert one["Dimensions"] == [{"Name": "service", "Value": "games"}, {"Name": "job", "Value": "ingest"}]
            self.published[one["MetricName"]] = one["Values"][0]


def ended(state: str, run: dict[str, Any] | None, **more: Any) -> list[dict[str, Any]]:
    return told(state, run, **more)[0]


def told(state: str, run: dict[str, Any] | None, **more: Any) -> tuple[list[dict[str, Any]], JobEnded]:
    sns, events = Sns(), list[Any]()
    detail = {"jobName": "ingest", "jobRunId": "jr_1", "state": state, **more}
    tell(detail, "eu-west-1", SETTINGS, sns=sns, glue=Glue(run), emit=events.append)
    (event,) = events
    return sns.sent, event


def test_a_failed_job_is_told_with_its_reason_and_the_runbook() -> None:
    (message,) = ended("FAILED", {"ErrorMessage": "queue q: there is no such queue"}, message="Command failed")
    assert message["TopicArn"] == "arn:topic"
    assert message["Subject"] == "forebay: ingest FAILED"
    assert "reason   queue q: there is no such queue\n" in message["Message"]
    assert "#/job/ingest/run/jr_1" in message["Message"]
    assert message["Message"].endswith("runbook  https://example.org/runbook")


@pytest.mark.parametrize(
    ("region", "home"),
    [
        ("eu-west-1", "https://eu-west-1.console.aws.amazon.com/"),
        ("cn-north-1", "https://cn-north-1.console.amazonaws.cn/"),
        ("us-gov-west-1", "https://us-gov-west-1.console.amazonaws-us-gov.com/"),
    ],
)
def test_the_message_leads_to_the_console_of_the_partition(region: str, home: str) -> None:
    for detail in ({"jobName": "ingest", "jobRunId": "jr_1"}, {"applicationId": "00f1", "jobRunId": "00a"}):
        assert console(detail, region).startswith(home)


@pytest.mark.parametrize("run", [None, {}, {"ErrorMessage": ""}])
def test_the_reason_of_the_event_does_where_the_run_has_none(run: dict[str, Any] | None) -> None:
    (message,) = ended("TIMEOUT", run, message="Job run timed out")
    assert "reason   Job run timed out\n" in message["Message"]


@pytest.mark.parametrize("state", ["SUCCEEDED", "STOPPED", "EXPIRED"])
def test_a_run_that_ended_as_it_should_wakes_nobody(state: str) -> None:
    assert ended(state, {}) == []


def test_a_state_we_do_not_know_is_told_rather_than_passed_over() -> None:
    assert len(ended("VANISHED", {})) == 1


def test_the_event_of_glue_is_understood_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    sns, glue, cloudwatch = Sns(), Glue({"ErrorMessage": "no lake", "DPUSeconds": 90.0}), CloudWatch()
    monkeypatch.setattr(handler.boto3, "client", {"sns": sns, "glue": glue, "cloudwatch": cloudwatch}.__getitem__)
    monkeypatch.setenv("SERVICE", "games")
    monkeypatch.setenv("NAMESPACE", "forebay-dev")
    monkeypatch.setenv("ALARM_TOPIC", "arn:topic")
    monkeypatch.setenv("RUNBOOK", "https://example.org/runbook")
    event = {
        "version": "0",
        "id": "abc",
        "detail-type": "Glue Job State Change",
        "source": "aws.glue",
        "account": "123456789012",
        "time": "2026-05-01T12:00:00Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": {"jobName": "ingest", "severity": "ERROR", "state": "FAILED", "jobRunId": "jr_1", "message": "x"},
    }
    handler.handle(event, None)
    assert "no lake" in sns.sent[0]["Message"]
    assert cloudwatch.published == {"JobEndedSeconds": 0.0, "JobEndedDpuSeconds": 90.0, "JobEndedFailed": 1.0}


@pytest.mark.parametrize(
    ("state", "run", "seconds", "dpu_seconds", "failed"),
    [
        ("SUCCEEDED", {"ExecutionTime": 60, "DPUSeconds": 150.5, "MaxCapacity": 4.0}, 60, 150.5, 0),
        ("FAILED", {"ExecutionTime": 60, "MaxCapacity": 4.0}, 60, 240, 1),
        ("STOPPED", {"ExecutionTime": 60}, 60, None, 0),
        ("TIMEOUT", None, 0, None, 1),
    ],
)
def test_every_end_is_measured(
    state: str, run: dict[str, Any] | None, seconds: float, dpu_seconds: float | None, failed: int
) -> None:
    _, event = told(state, run)
    assert (event.seconds, event.dpu_seconds, event.failed) == (seconds, dpu_seconds, failed)
    assert (event.service, event.job, event.state) == ("games", "ingest", state)


def test_an_event_that_comes_twice_or_late_tells_the_same_and_fails_nowhere() -> None:
    """EventBridge delivers at least once, and nobody says when; by then the run may be gone."""
    first, again, late = (ended("FAILED", run, message="no lake") for run in ({}, {}, None))
    assert first == again == late
    assert len(first) == 1
