"""The same record twice: in one file, in two files of a batch, in later batches; and a batch that is replayed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.batch import Batch
from forebay.batch.events import DuplicatesDropped
from forebay.batch.retrying.moving import Moving
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retried, Retry
from forebay.batch.writing import Writing
from forebay.declaration.loading import load_service
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay_local.fabricate import body
from tests.journey.story import Story, event, lines

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)

SERVICE = """
name = "studio"
overwritten = "replace"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }, { name = "n", type = "long" }]
dedupe = { by = ["event_id"], days = 3 }
[tables.expectations]
possible = { check = "n < 100", on_violation = "quarantine" }
"""


@pytest.fixture
def told(told: Story, spark: SparkSession, tmp_path: Path) -> Iterator[Story]:
    (tmp_path / "service.toml").write_text(SERVICE)
    told.service = str(tmp_path)
    yield told
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty(), "a job that runs for a week keeps it all"


def put(told: Story, name: str, records: list[dict[str, Any]], at: datetime = NOON) -> None:
    content = lines(records)
    answer = told.twin.client("s3").put_object(Bucket=told.bucket, Key=f"in/{name}", Body=content)
    file = LandedFile(told.bucket, f"in/{name}", len(content), answer["ETag"].strip('"'), event_time=at)
    told.twin.client("sqs").send_message(QueueUrl=told.queue_url, MessageBody=body([file]))


def ids(told: Story, table: str = "alpha") -> list[str]:
    return sorted(row["event_id"] or "-" for row in told.rows(table, "select event_id from t"))


@pytest.mark.deep
def test_of_the_same_record_one_is_there_and_the_others_are_counted(told: Story) -> None:
    put(told, "a.json", [event("alpha", 1), event("alpha", 1), event("beta", 1, event_id="alpha-1")])
    put(told, "b.json", [event("alpha", 1), event("alpha", 2), *[event("alpha", 0, event_id=None)] * 2])
    put(told, "torn.json", [event("alpha", 3)])
    told.twin.client("s3").delete_object(Bucket=told.bucket, Key="in/torn.json")
    sums = told.run()
    assert sums.differences() == []
    assert (sums.written, sums.dropped) == (5, 2)
    assert (ids(told), ids(told, "beta")) == (["-", "-", "alpha-1", "alpha-2"], ["alpha-1"])

    put(told, "c.json", [event("alpha", 2), event("alpha", 3)], NOON + timedelta(days=3))
    sums = told.run()
    assert sums.differences() == []
    assert (sums.written, sums.dropped) == (6, 3)
    assert [(e.table, e.rows) for e in told.events if isinstance(e, DuplicatesDropped)] == [("alpha", 2), ("alpha", 1)]

    put(told, "same.json", [event("alpha", 3)], NOON + timedelta(days=3))
    sums = told.run()
    assert sums.differences() == []
    assert (sums.written, sums.dropped) == (6, 4), "a batch of which nothing is left is over as well"

    put(told, "d.json", [event("alpha", 1), event("alpha", 3)], NOON + timedelta(days=4))
    sums = told.run()
    assert sums.differences() == []
    assert ids(told).count("alpha-1") == 2, "it is longer ago than the window"
    assert ids(told).count("alpha-3") == 1


@pytest.mark.deep
def test_the_rows_that_take_the_place_of_others_are_no_duplicates_of_them(told: Story) -> None:
    put(told, "a.json", [event("alpha", 1, n=1), event("alpha", 2, n=1)])
    told.run()
    put(told, "a.json", [event("alpha", 1, n=2)], NOON + timedelta(hours=1))
    sums = told.run()
    assert sums.differences() == []
    assert told.rows("alpha", "select event_id, n from t") == [{"event_id": "alpha-1", "n": 2}]


@pytest.mark.deep
def test_a_replayed_batch_does_not_take_its_own_records_for_duplicates(
    told: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(told, "a.json", [event("alpha", 1), event("alpha", 1), event("beta", 2)])

    def dies(self: Batch, *_: Any) -> None:
        raise OSError("the driver is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Batch, "commit", dies)
        with pytest.raises(Exception, match="the driver is gone"):
            told.run()
    sums = told.run()
    assert sums.differences() == []
    assert (sums.written, sums.dropped, sums.rows["alpha"], sums.rows["beta"]) == (2, 1, 1, 1)


def tried(told: Story, spark: SparkSession) -> Retried:
    (Path(told.service) / "service.toml").write_text(SERVICE.replace("n < 100", "n < 1000"))
    tries = Retry(
        spark,
        load_service(told.service),
        lake=told.lake,
        emit=told.events.append,
        clock=lambda: NOON + timedelta(hours=2),
    )
    try:
        return tries.run(Choice("quarantine"))
    finally:
        tries.logs.close()


@pytest.mark.deep
def test_what_lands_by_another_try_is_no_duplicate_of_what_came_and_what_comes_is_none_of_it(
    told: Story, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(told, "a.json", [event("alpha", 1, n=500), event("alpha", 2, n=500), event("alpha", 3, n=5000)])
    put(told, "b.json", [event("alpha", 2, n=501), event("alpha", 4, n=500)])
    put(told, "c.json", [event("alpha", 1, n=1)])
    sums = told.run()
    assert (sums.rows["alpha"], sums.quarantined) == (1, 5)

    def dies(self: Any, *_: Any) -> None:
        raise OSError("the driver is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Moving, "change_ledger", dies)
        with pytest.raises(OSError, match="gone"):
            tried(told, spark)
    assert tried(told, spark) == Retried(1), "the other four were finished first"
    sums = told.accounts()
    assert sums.differences() == []
    assert (sums.written, sums.dropped, sums.quarantined) == (3, 2, 1)
    assert ids(told) == ["alpha-1", "alpha-2", "alpha-4"]
    assert len(told.rows("_forebay/ids", "select id from t")) == 3, "the ids of records that came before are gone"

    put(told, "d.json", [event("alpha", 2, n=1), event("alpha", 5, n=1)], NOON + timedelta(hours=3))
    sums = told.run()
    assert sums.differences() == []
    assert ids(told) == ["alpha-1", "alpha-2", "alpha-4", "alpha-5"]


@pytest.mark.deep
def test_a_retry_is_refused_beside_a_batch_that_is_half_done_and_the_next_job_finishes_both(
    told: Story, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(told, "a.json", [event("alpha", 1, n=500)])
    told.run()
    put(told, "b.json", [event("alpha", 1, n=1)])

    def dies(self: Writing, *_: Any) -> None:
        raise OSError("the driver is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Writing, "remember", dies)
        with pytest.raises(Exception, match="the driver is gone"):
            told.run()
    with pytest.raises(Halt, match=r"batch .* is unfinished.*Start the job"):
        tried(told, spark)
    sums = told.run()
    assert sums.differences() == []
    assert (sums.rows["alpha"], sums.dropped) == (1, 1)
