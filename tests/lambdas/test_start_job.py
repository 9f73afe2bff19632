"""A run that a schedule wants is started, or waits until the one at work has ended. It is never left out."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.start_job.handler import start

ORDER = {"JobName": "compact", "Arguments": {"--round": "second"}}
ASIA = {"JobName": "compact", "Arguments": {"--group": "asia"}}
VACUUM = {"JobName": "maintain", "Arguments": {"--vacuum": "full"}}

OURS: dict[str, Any] = {"artefacts": "a", "ours": ("ingest", "compact", "maintain")}


class Jobs:
    class exceptions:  # noqa: N801
        class ConcurrentRunsExceededException(Exception):
            pass

        class EntityNotFoundException(Exception):
            pass

    def __init__(self) -> None:
        self.at_work: set[str] = set()
        self.started: list[dict[str, Any]] = []

    def start_job_run(self, **asked: Any) -> dict[str, str]:
        if asked["JobName"] in self.at_work:
            raise self.exceptions.ConcurrentRunsExceededException
        self.at_work.add(asked["JobName"])
        self.started.append(asked)
        return {"JobRunId": f"jr_{len(self.started)}"}


class S3:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_object(self, **asked: Any) -> None:
        self.objects[asked["Key"]] = asked["Body"]

    def get_object(self, **asked: Any) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.objects[asked["Key"]])}

    def delete_object(self, **asked: Any) -> None:
        del self.objects[asked["Key"]]

    def get_paginator(self, _: str) -> S3:
        return self

    def paginate(self, **asked: Any) -> Any:
        found = [{"Key": key} for key in sorted(self.objects) if key.startswith(asked["Prefix"])]
        yield {"Contents": found} if found else {}


def test_a_run_is_started_at_once_where_none_is_at_work() -> None:
    jobs, s3 = Jobs(), S3()
    assert start(ORDER, jobs, s3=s3, **OURS) == "started jr_1"
    assert (jobs.started, s3.objects) == ([ORDER], {})


def test_a_run_that_finds_another_at_work_waits_and_is_started_once() -> None:
    jobs, s3 = Jobs(), S3()
    jobs.at_work.add("compact")
    for _ in range(2):
        assert "waits until that one has ended" in start({**ORDER, "Wait": True}, jobs, s3=s3, **OURS)
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "no waiting run can start"
    jobs.at_work.clear()
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "started compact"
    jobs.at_work.clear()
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "no waiting run can start"
    assert (jobs.started, s3.objects) == ([ORDER], {})


def test_runs_with_other_arguments_wait_for_each_other_and_jobs_do_not() -> None:
    jobs, s3 = Jobs(), S3()
    jobs.at_work |= {"compact", "maintain"}
    for wish in (ORDER, ASIA, VACUUM):
        start({**wish, "Wait": True}, jobs, s3=s3, **OURS)
    jobs.at_work.clear()
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "started compact, maintain"
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "no waiting run can start"
    jobs.at_work.clear()
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "started compact"
    assert all(wish in jobs.started for wish in (ORDER, ASIA, VACUUM))


def test_a_look_starts_one_run_of_a_job_even_where_nothing_refuses_a_second_one() -> None:
    """EMR Serverless allows several, and may list a run late."""

    class Late(Jobs):
        def start_job_run(self, **asked: Any) -> dict[str, str]:
            self.started.append(asked)
            return {"JobRunId": "jr"}

    s3, busy, jobs = S3(), Jobs(), Late()
    busy.at_work.add("compact")
    for wish in (ORDER, ASIA):
        start({**wish, "Wait": True}, busy, s3=s3, **OURS)
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "started compact"
    assert len(jobs.started) == 1


def test_a_run_that_aws_refuses_does_not_keep_other_jobs_waiting_and_the_refusal_is_told() -> None:
    class Refusing(Jobs):
        def start_job_run(self, **asked: Any) -> dict[str, str]:
            if asked["JobName"] == "compact":
                raise ClientError({"Error": {"Code": "InvalidInputException", "Message": "no"}}, "StartJobRun")
            return super().start_job_run(**asked)

    s3, busy, jobs = S3(), Jobs(), Refusing()
    busy.at_work |= {"compact", "maintain"}
    for wish in (ORDER, VACUUM):
        start({**wish, "Wait": True}, busy, s3=s3, **OURS)
    with pytest.raises(ClientError, match="InvalidInputException"):
        start({"waiting": True}, jobs, s3=s3, **OURS)
    assert jobs.started == [VACUUM]
    assert [key.split("/")[1] for key in s3.objects] == ["compact"]


def test_a_waiting_run_of_a_job_that_the_stack_no_longer_has_is_dropped_once_and_said_in_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    s3, busy, jobs = S3(), Jobs(), Jobs()
    busy.at_work |= {"compact", "maintain"}
    for wish in (ASIA, VACUUM):
        start({**wish, "Wait": True}, busy, s3=s3, **OURS)
    without = {**OURS, "ours": ("ingest", "maintain")}
    assert start({"waiting": True}, jobs, s3=s3, **without) == "started maintain"
    (said,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert said == {
        "level": "info",
        "message": "a waiting run is dropped: the stack no longer has its job",
        "job": "compact",
        "arguments": {"--group": "asia"},
    }
    assert (jobs.started, s3.objects) == ([VACUUM], {})


def test_a_run_waits_for_a_job_that_a_deployment_is_about_to_make() -> None:
    """With another engine, CloudFormation may change the function first: then the stack's job is not there yet."""

    class NotYet(Jobs):
        def start_job_run(self, **asked: Any) -> dict[str, str]:
            if asked["JobName"] == "compact":
                raise self.exceptions.EntityNotFoundException
            return super().start_job_run(**asked)

    s3, busy, jobs = S3(), Jobs(), NotYet()
    busy.at_work |= {"compact", "maintain"}
    for wish in (ASIA, VACUUM):
        start({**wish, "Wait": True}, busy, s3=s3, **OURS)
    with pytest.raises(NotYet.exceptions.EntityNotFoundException):
        start({"waiting": True}, jobs, s3=s3, **OURS)
    assert "waits" in start({**ORDER, "Wait": True}, jobs, s3=s3, **OURS)
    with pytest.raises(NotYet.exceptions.EntityNotFoundException):
        start(ASIA, jobs, s3=s3, **OURS)  # what somebody asks for now fails
    later = Jobs()
    for _ in range(2):
        assert start({"waiting": True}, later, s3=s3, **OURS) == "started compact"
        later.at_work.clear()
    assert (jobs.started, s3.objects) == ([VACUUM], {})
    assert [one in later.started for one in (ASIA, ORDER)] == [True, True]


@pytest.mark.parametrize("code", ["ThrottlingException", "ResourceNumberLimitExceededException"])
def test_a_run_of_a_schedule_that_aws_refuses_waits_too(code: str) -> None:
    """Lambda would repeat the call twice, within minutes; after that a weekly run would be left out."""

    class Refusing(Jobs):
        def start_job_run(self, **asked: Any) -> dict[str, str]:
            raise ClientError({"Error": {"Code": code, "Message": "too many"}}, "StartJobRun")

    s3, jobs = S3(), Jobs()
    assert start({**VACUUM, "Wait": True}, Refusing(), s3=s3, **OURS).startswith("AWS refuses it")
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "started maintain"
    assert (jobs.started, s3.objects) == ([VACUUM], {})
    with pytest.raises(ClientError, match=code):
        start(VACUUM, Refusing(), s3=s3, **OURS)
    assert s3.objects == {}, "what a person asks for now is not done later"


def test_an_object_that_is_no_waiting_run_keeps_nobody_waiting() -> None:
    """S3's console makes an empty object for a folder."""
    s3, busy, jobs = S3(), Jobs(), Jobs()
    busy.at_work.add("compact")
    start({**ORDER, "Wait": True}, busy, s3=s3, **OURS)
    s3.objects |= {"waiting-runs/": b"", "waiting-runs/compact/": b""}
    assert start({"waiting": True}, jobs, s3=s3, **OURS) == "started compact"
    assert set(s3.objects) == {"waiting-runs/", "waiting-runs/compact/"}


def test_what_a_person_wants_now_is_not_done_later() -> None:
    jobs, s3 = Jobs(), S3()
    jobs.at_work.add("compact")
    assert start(ORDER, jobs, s3=s3, **OURS) == "it is already running"
    assert s3.objects == {}
