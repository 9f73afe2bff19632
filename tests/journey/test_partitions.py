"""Partitions on the whole way: by derived days, with times that are wrong and values that may not name a folder."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from forebay.batch.attempt.ending import EndedBatches
from forebay.landed_file import LandedFile
from forebay.operate.lake_view import LakeView
from forebay_local.fabricate import body
from tests.journey.story import Story, lines

LANDED = datetime(2026, 11, 21, 12, tzinfo=UTC)

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
columns = [
  { name = "at", type = "timestamp", path = "header.at", formats = ["yyyy-MM-dd HH:mm", "dd.MM.yyyy"] },
  { name = "country" },
  { name = "day", type = "date", expression = "to_date(at)" },
]
partitions = ["day", "country"]
partition_values = { country = "[A-Z]{2}" }
event_time = { column = "at", otherwise = "landed", oldest_days = 30, ahead_hours = 24, outside = "OUTSIDE" }
"""

RECORDS = [
    ("2026-11-20 23:59", "DE"),
    ("21.11.2026", "DE"),
    ("21.11.2026", "FR"),
    ("what?", "DE"),
    (None, None),
    ("2026-01-01 00:00", "DE"),
    ("2027-01-01 00:00", "DE"),
    ("21.11.2026", "../x"),
]


def take_in(told: Story, folder: Path, outside: str) -> None:
    (folder / "service.toml").write_text(SERVICE.replace("OUTSIDE", outside))
    told.service = str(folder)
    content = lines(
        [{"game": "alpha", "n": n, "header": {"at": at}, "country": c} for n, (at, c) in enumerate(RECORDS)]
    )
    answer = told.twin.client("s3").put_object(Bucket=told.bucket, Key="in/a.json", Body=content)
    file = LandedFile(told.bucket, "in/a.json", len(content), answer["ETag"].strip('"'), event_time=LANDED)
    told.twin.client("sqs").send_message(QueueUrl=told.queue_url, MessageBody=body([file]))
    assert told.run().differences() == []


def days(told: Story) -> dict[int, tuple[str, str | None, datetime]]:
    rows = told.rows("alpha", "select n, day, country, at from t")
    return {row["n"]: (row["day"].isoformat(), row["country"], row["at"]) for row in rows}


@pytest.mark.deep
def test_each_record_is_in_its_day_or_beside_with_the_reason(told: Story, tmp_path: Path) -> None:
    take_in(told, tmp_path, "quarantine")
    found = days(told)
    assert {n: row[:2] for n, row in found.items()} == {
        0: ("2026-11-20", "DE"),
        1: ("2026-11-21", "DE"),
        2: ("2026-11-21", "FR"),
        3: ("2026-11-21", "DE"),
        4: ("2026-11-21", None),
    }
    assert found[3][2] == LANDED
    (odd,) = told.rows("alpha", "select _rescued from t where n = 3")
    assert json.loads(odd["_rescued"]) == {"header": {"at": "what?"}}
    kept = told.rows("_forebay/quarantine", "select line, reason from t order by line")
    assert [(row["line"], row["reason"]) for row in kept] == [
        (6, "event-too-old"),
        (7, "event-in-the-future"),
        (8, "bad-partition-value"),
    ]
    table = LakeView(told.lake).table("alpha")
    assert table is not None
    assert table.metadata().partition_columns == ["day", "country"]
    assert len(table.file_uris()) == 4


@pytest.mark.deep
def test_a_replayed_batch_does_not_take_a_table_for_failed_because_of_single_records(
    told: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(self: EndedBatches, *_: Any) -> None:
        raise OSError("the driver is gone")

    with monkeypatch.context() as patched:
        patched.setattr(EndedBatches, "add", dies)
        with pytest.raises(Exception, match="the driver is gone"):
            take_in(told, tmp_path, "quarantine")
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows == {"alpha": 5, "_forebay/quarantine": 3, "_forebay/parked": 0}


@pytest.mark.deep
def test_what_is_outside_can_have_a_bucket_of_its_own(told: Story, tmp_path: Path) -> None:
    take_in(told, tmp_path, "bucket")
    found = days(told)
    assert {n for n, row in found.items() if row[0] == "1970-01-01"} == {5, 6}
    assert found[6][2] - LANDED > timedelta(days=30)
