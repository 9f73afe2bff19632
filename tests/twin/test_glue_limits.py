"""Glue refuses runs beyond its quotas, and takes its time to start one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from moto.glue.exceptions import ConcurrentRunsExceededException, ResourceNumberLimitExceededException

from forebay_local.twin import glue


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of runs that began; none of them does anything."""
    begun: list[str] = []

    def start(job: Any) -> str:
        begun.append(f"jr_{len(begun)}")
        job.job_runs.append(SimpleNamespace(status="STARTING", job_run_id=begun[-1]))
        return begun[-1]

    monkeypatch.setattr(glue, "_start", start)
    monkeypatch.setattr(glue, "carry_out", lambda job, run: None)
    monkeypatch.setattr(glue, "_at_work", set())
    return begun


def job(at_most: int = 1) -> Any:
    return SimpleNamespace(name="ingest", execution_property={"MaxConcurrentRuns": at_most}, job_runs=[])


def test_a_second_run_of_a_job_is_refused_while_the_first_one_is_starting(started: list[str]) -> None:
    ingest = job()
    glue.start_job_run(ingest)
    with pytest.raises(ConcurrentRunsExceededException):
        glue.start_job_run(ingest)
    assert len(started) == 1


def test_the_account_has_a_quota_over_all_jobs(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glue, "RUNS_OF_ACCOUNT", 2)
    glue.start_job_run(job())
    glue.start_job_run(job())
    with pytest.raises(ResourceNumberLimitExceededException):
        glue.start_job_run(job())
    glue._at_work.discard("jr_0")
    glue.start_job_run(job())
    assert len(started) == 3


def test_a_run_is_starting_until_its_workers_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    waited, go_on = threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        assert seconds == 90
        waited.set()
        go_on.wait(10)

    def refuse(*_: Any) -> Any:
        raise OSError("no workers here")

    monkeypatch.setenv(glue.STARTS_AFTER, "90")
    monkeypatch.setattr(glue, "time", SimpleNamespace(sleep=sleep))  # not of every thread of this process
    monkeypatch.setattr(glue, "Submitted", refuse)
    monkeypatch.setattr(
        glue, "_here", SimpleNamespace(endpoint="http://127.0.0.1:9", folder=glue.Path("nowhere")), False
    )
    monkeypatch.setattr(glue, "keep_logs", lambda *_: None)
    monkeypatch.setattr(glue, "tell", lambda *_: None)
    run = SimpleNamespace(status="STARTING", job_run_id="jr_1")
    one = SimpleNamespace(name="ingest", role="role", backend=SimpleNamespace(region_name="eu-west-1"))
    thread = threading.Thread(target=glue.carry_out, args=(one, run))
    thread.start()
    assert waited.wait(10)
    assert run.status == "STARTING"
    go_on.set()
    thread.join(10)
    assert run.status == "FAILED"
