"""What is wrong with held records never keeps a job from taking in new files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import forebay.jobs.retry_at_start as job
from forebay.events import Event
from forebay.jobs.retry_at_start import RecordsNotRetried
from forebay.lake.lease_holder import LeaseHeld


def batch_of(told: list[Event], catalog: Any = None) -> Any:
    service = SimpleNamespace(name="s")
    return SimpleNamespace(spark=None, service=service, lake="l", emit=told.append, logs=None, catalog=catalog)


def test_a_table_that_the_retry_makes_gets_into_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    class Tries:
        def __init__(self, *_: object, catalog: object = None, **__: object) -> None:
            given.append(catalog)

        def concerns_any(self, choice: object) -> bool:
            return False

    monkeypatch.setattr(job, "Retry", Tries)
    monkeypatch.setattr(job, "remove_leftovers", lambda *of, **more: None)
    catalog = object()
    job.retry_at_start(batch_of([], catalog))
    assert given == [catalog]


@pytest.mark.parametrize(
    ("wrong", "steps"),
    [
        (ValueError("a plan that is no JSON"), 3),
        (RuntimeError("Spark does not know a column"), 3),
        (LeaseHeld("lake/_forebay/tries/s", "process 1 on a laptop", 90), 1),
    ],
)
def test_a_retry_that_cannot_be_carried_out_is_told_and_the_job_goes_on(
    monkeypatch: pytest.MonkeyPatch, wrong: Exception, steps: int
) -> None:
    class Broken:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def concerns_any(self, choice: object) -> bool:
            raise wrong

    told: list[Event] = []
    removed: list[object] = []
    monkeypatch.setattr(job, "Retry", Broken)
    monkeypatch.setattr(job, "remove_leftovers", lambda *of, **more: removed.append(of))
    job.retry_at_start(batch_of(told))
    assert told == [RecordsNotRetried(service="s", error=str(wrong))] * min(2, steps)
    assert len(told) + len(removed) == steps, "rows of superseded files leave all the same, but beside another retry"
