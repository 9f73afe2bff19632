"""A batch of many tasks: some read and others write, and the lake is what one task would make of it."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import forebay.batch.one_pass.gathering as gathering
import forebay.batch.one_pass.jobs as jobs
from forebay.batch.events import BatchReadTwice
from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.gathering import OfTable, Parcels, unpacked
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.rows import Block
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask
from forebay.content.limits import Limits
from forebay.content.piece import deal
from tests.batch.test_one_pass import SERVICE, lake_of
from tests.batch.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def gathered(readers: int, writers: int) -> Any:
    """What Spark does with the tasks, in this process."""

    def answers(self: Jobs, spec: PassSpec) -> list[Answer]:
        hands = deal(spec.pieces, readers)
        boxes = defaultdict(list)
        for number, hand in enumerate(hands):
            for writer, parcel in ReadTask(spec, len(hands), writers)(number, [hand]):
                boxes[writer].append((writer, parcel))
        made = [answer for writer in sorted(boxes) for answer in GatherTask(spec)(boxes[writer])]
        return [made[0], *(replace(one, ends=[]) for one in made[1:])]

    return answers


def content(file: int) -> bytes:
    lines = [
        json.dumps(
            {"game": f"g{n % 3}", "event": "purchase" if n % 2 else "login", "event_id": f"{file}-{n}", "price": n}
        )
        for n in range(300)
    ]
    return "\n".join([*lines, "{broken", '{"event": "no game"}', '{"game": "Bad Name"}']).encode()


DEDUPED = re.sub("(?m)^partitions", 'dedupe = { by = ["event_id"] }\npartitions', SERVICE)


def test_a_table_with_nearly_all_records_is_spread_over_the_tasks_that_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name, the largest share is not twice the median one. A table gets its first tasks one by one, so the shares
    of a small table differ more."""
    monkeypatch.setattr(gathering, "PARCEL_BYTES", 8 << 10)
    monkeypatch.setattr(gathering, "WRITER_BYTES", 48 << 10)
    tasks = 8
    text = pa.table({"piece": pa.array([0] * 20, pa.int32()), "value": ["x" * 100] * 20})
    for name in ("hot", "shop", "game_01"):
        rows = Counter[int]()
        for reader in range(tasks):
            sent = Parcels(reader, tasks, tasks)
            for _ in range(100):
                sent.take(name, 0, Block(text))
            for other in range(20):
                sent.take(f"other_{other}", 0, Block(text.slice(0, 1)))
            for writer, parcel in sent.finish():
                rows[writer] += unpacked(parcel.records).rows.num_rows if isinstance(parcel, OfTable) else 0
        assert rows.total() == tasks * (100 * 20 + 20)
        assert len(rows) == tasks
        assert max(rows.values()) < 2 * statistics.median(rows.values())


@pytest.mark.parametrize("service", [SERVICE, DEDUPED], ids=["plain", "deduped"])
def test_many_tasks_make_the_lake_that_one_makes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    lakes = []
    monkeypatch.setattr(gathering, "PARCEL_BYTES", 2000)
    monkeypatch.setattr(gathering, "WRITER_BYTES", 5000)
    for way in ("alone", "gathered"):
        with monkeypatch.context() as patched:
            world = World(spark, f"file://{tmp_path}/{way}", patched, service=service)
            if way == "gathered":
                patched.setattr(Jobs, "of_pieces", gathered(4, 3))
            world.answers |= {f"{n}.json": content(n) for n in range(5)} | {"again.json": content(0) + content(1)}
            world.answers["torn.json.gz"] = b"\x1f\x8b\x08\x00torn"
            world.try_batch(0, [world.file(key) for key in world.answers])
            assert not [event for event in world.events if isinstance(event, BatchReadTwice)]
            lakes.append(lake_of(world))
    assert lakes[0] == lakes[1]


def test_a_file_that_several_tasks_read_lands_whole_with_its_lines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes = []
    for way in ("whole", "cut"):
        with monkeypatch.context() as patched:
            declared = SERVICE.replace("keep_record = true", "")  # what white space follows a record differs
            world = World(spark, f"file://{tmp_path}/{way}", patched, service=declared)
            whole = content(0)
            world.answers |= {"a.json": whole}
            file = world.file("a.json")
            batch = world.batch()
            if way == "cut":
                patched.setattr(Jobs, "of_pieces", gathered(3, 2))
                batch.one_pass.limits = Limits(piece_bytes=len(whole) // 3)
            patched.setattr(type(world), "batch", lambda _, made=batch: made)
            world.try_batch(0, [replace(file, size=len(whole))])
            assert not [event for event in world.events if isinstance(event, BatchReadTwice)]
            lakes.append({name: rows for name, rows in lake_of(world).items() if name != "_forebay/ledger"})
    assert lakes[0] == lakes[1]


def test_a_reader_that_cannot_go_on_leaves_no_data_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=SERVICE)
    monkeypatch.setattr(Jobs, "of_pieces", gathered(2, 2))
    world.answers |= {"a.json": content(1), "b.json": b'{"game": "g1", "a": 1, "game": "g2"}'}
    monkeypatch.setattr(jobs, "READER_BYTES", 1)
    world.try_batch(0, [world.file(key) for key in world.answers])
    world.tables_agree_with_the_ledger(*(f"g{n}" for n in range(3)), *(f"g{n}_purchases" for n in range(3)))
