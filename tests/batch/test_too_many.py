"""A batch with more ids than the driver compares at once does not stop the stream: some of its files wait."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forebay.batch.events import BatchReadTwice
from forebay.batch.one_pass import driver
from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.outcome import TOO_MANY_IDS, too_many
from forebay.batch.one_pass.spec import PassSpec
from forebay.content.end import unread_end
from forebay.landed_file import LandedFile
from tests.batch.world import SERVICE, World, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEDUPED = SERVICE + 'dedupe = { by = ["event_id"] }\n'


def test_the_first_files_stay_and_only_one_that_is_too_large_alone_is_refused() -> None:
    files = [LandedFile("landing", f"{n}.json", 1, f"{n}", None, f"{n:016X}") for n in range(6)]
    ends = [unread_end(file, "loaded") for file in files]
    rows = Counter({file.file_id: count for file, count in zip(files, (3, 11, 6, 2, 0, 1), strict=True)})
    found = {end.file.key: (end.outcome, end.reason) for end in too_many(ends, rows, 10)}
    assert found == {"1.json": ("unreadable", "too-many-records"), "3.json": ("unavailable", TOO_MANY_IDS)}
    assert too_many(ends, rows, 100) == []


@pytest.mark.deep
def test_files_with_too_many_ids_for_one_batch_land_with_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "IDS_AT_MOST", 10)
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=DEDUPED)
    world.answers |= {"a.json": records(alpha=8), "b.json": records(alpha=9), "c.json": records(alpha=11, beta=1)}
    files = [world.file(key, version) for version, key in enumerate(world.answers, 1)]
    world.try_batch(0, files)
    (twice,) = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
    assert twice == "29 rows have ids, and the limit is 10"
    found = {key: (row["outcome"], row["reason"]) for key, row in world.ledger().items()}
    assert found == {
        "a.json": ("loaded", None),
        "b.json": ("unavailable", TOO_MANY_IDS),
        "c.json": ("unreadable", "too-many-records"),
    }
    world.try_batch(1, [files[1]])
    assert world.rows_of("alpha") == {"a.json": 8, "b.json": 1}
    assert world.ledger()["b.json"]["dropped"] == 8


def test_a_task_with_more_than_its_share_of_few_ids_reads_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=DEDUPED)
    answers = Jobs.of_pieces

    def few(self: Jobs, spec: PassSpec) -> list[Answer]:
        return answers(self, spec if spec.ids_at_most == sys.maxsize else replace(spec, ids_at_most=2))

    monkeypatch.setattr(Jobs, "of_pieces", few)
    world.answers["a.json"] = records(alpha=3)
    world.try_batch(0, [world.file("a.json")])
    assert world.rows_of("alpha") == {"a.json": 3}
    (twice,) = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
    assert twice == "one task had most of the ids"
