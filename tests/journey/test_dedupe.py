"""The same record twice: in one file, in two files of a batch, in later batches; and a batch that is replayed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.attempt.ending import EndedBatches
from forebay.batch.events import DuplicatesDropped
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
def test_a_replayed_batch_does_not_take_its_own_records_for_duplicates(
    told: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(told, "a.json", [event("alpha", 1), event("alpha", 1), event("beta", 2)])

    def dies(self: EndedBatches, *_: Any) -> None:
        raise OSError("the driver is gone")

    with monkeypatch.context() as patched:
        patched.setattr(EndedBatches, "add", dies)
        with pytest.raises(Exception, match="the driver is gone"):
            told.run()
    sums = told.run()
    assert sums.differences() == []
    assert (sums.written, sums.dropped, sums.rows["alpha"], sums.rows["beta"]) == (2, 1, 1, 1)
