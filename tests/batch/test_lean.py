"""A batch for which memory is short is read twice, and becomes the lake that it would be with more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import forebay.batch.one_pass.gathering as gathering
import forebay.batch.one_pass.task as task
import forebay.batch.one_pass.writer as writer
import forebay.content.reading as contents
from forebay.batch.events import BatchReadTwice
from forebay.batch.one_pass import lean
from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.lean import EndsTask, Hands, Lean
from forebay.batch.one_pass.reader import Reading
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.content.limits import Limits
from forebay.content.piece import Piece
from tests.batch.tasks import spec_of
from tests.batch.test_one_pass import ASKED, DEDUPED, WHERE_SQL, alike, lake_of, must_be_equal, record
from tests.batch.world import SERVICE, World, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def written(spec: PassSpec, hands: Hands) -> list[Answer]:
    made = [GatherTask(spec, alone=True)(ReadTask(spec, len(hands), 1)(at, [hand])) for at, hand in enumerate(hands)]
    return [answer for answers in made for answer in answers]


def lean_pass(batch: PassSpec, undone: list[Answer] | None = None) -> Answer:
    undo: Callable[[Answer], None] = ([] if undone is None else undone).append
    return Lean(batch, 2, lambda spec, hands: list(EndsTask(spec)(hands)), written, undo).answer()


def crowded_by(keys: Sequence[str], patched: pytest.MonkeyPatch, *, beside: int = 0) -> None:
    """Reading these files takes more memory than there is, where a task has more than so many pieces beside them."""
    read = Reading.__init__

    def init(self: Reading, spec: PassSpec, pieces: Sequence[Piece], sink: Any) -> None:
        if len(pieces) > beside and any(piece.file.key in keys for piece in pieces):
            raise MemoryError("no room")
        read(self, spec, pieces, sink)

    patched.setattr(Reading, "__init__", init)


def test_records_that_need_not_wait_are_written_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TASK_BYTES", 4_000)
    monkeypatch.setattr(gathering, "PARCEL_BYTES", 500)
    monkeypatch.setattr(contents, "joined", lambda batches: batches)
    files = {f"{n}.json": records(alpha=20, homeless=20, broken=5) for n in range(30)}
    batch, storage = spec_of(SERVICE, files | {"torn.json.gz": b"\x1f\x8b\x08\x00torn"}, monkeypatch)
    once = together(list(Task(batch)([list(batch.pieces)])))
    assert once.is_crowded
    answer = lean_pass(batch)
    assert answer.odd is None
    assert len(storage.rows(answer, "alpha")) == 600
    assert len(storage.rows(answer, "_forebay/parked")) == 600
    assert len(storage.rows(answer, "_forebay/quarantine")) == 150
    assert len([file for file in answer.files if file["table"] == "_forebay/parked"]) > 2
    counts = Counter[str]()
    for judged, count in answer.fates.items():
        counts[judged.fate] += count
    assert counts == {"write": 600, "park": 600, "quarantine": 150}
    assert sorted(end.outcome for end in answer.ends) == ["loaded"] * 30 + ["unreadable"]


def test_a_file_that_is_alone_and_has_no_room_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(piece_bytes=200)
    files = {"a.json": records(alpha=3), "b.json": records(alpha=20), "c.json": records(alpha=4)}
    batch, storage = spec_of(SERVICE, files, monkeypatch, limits=limits)
    assert len(batch.pieces) > 4
    crowded_by(["b.json"], monkeypatch)
    undone: list[Answer] = []
    answer = lean_pass(batch, undone)
    assert answer.odd is None
    assert len(storage.rows(answer, "alpha")) == 7
    by_key = {piece.number: piece.file.key for piece in batch.pieces}
    reasons = {(by_key[end.piece], end.reason) for end in answer.ends}
    assert ("b.json", "too-large") in reasons
    assert {("a.json", None), ("c.json", None)} <= reasons
    assert "no room" in next(end.detail or "" for end in answer.ends if end.reason)
    assert undone


def test_files_that_have_no_room_beside_others_have_a_task_each(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{n}.json": records(alpha=3) for n in range(6)}
    batch, storage = spec_of(SERVICE, files, monkeypatch)
    crowded_by([*files], monkeypatch, beside=1)
    answer = lean_pass(batch)
    assert answer.odd is None
    assert len(storage.rows(answer, "alpha")) == 18
    assert {end.outcome for end in answer.ends} == {"loaded"}


def test_large_pieces_have_a_task_each_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "LARGE_BYTES", 300_000)
    files = {"large.json": records(alpha=4_000), "a.json": records(alpha=1), "b.json": records(alpha=1)}
    batch, _ = spec_of(SERVICE, files, monkeypatch)
    given: list[Hands] = []
    jobs = Lean(
        batch,
        1,
        lambda spec, hands: list(EndsTask(spec)(hands)),
        lambda spec, hands: given.append(hands) or written(spec, hands),  # type: ignore[func-returns-value]
        [].append,
    )
    assert jobs.answer().odd is None
    assert sorted(len(hand) for hand in given[0]) == [1, 2]


def test_a_file_that_reads_differently_the_second_time_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.json": records(alpha=3)}
    batch, _ = spec_of(SERVICE, files, monkeypatch)

    def write(spec: PassSpec, hands: Hands) -> list[Answer]:
        files["a.json"] = records(alpha=2, beta=1)
        return written(spec, hands)

    answer = Lean(batch, 1, lambda spec, hands: list(EndsTask(spec)(hands)), write, [].append).answer()
    assert "a.json gave different records when it was read again" in (answer.odd or "")
    assert not answer.is_crowded


def test_records_that_wait_for_the_last_end_wait_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "SPOOL_BYTES", 100)
    batch, storage = spec_of(SERVICE, {f"{n}.json": records(alpha=9) for n in range(3)}, monkeypatch)
    sent = [one for at, piece in enumerate(batch.pieces) for one in ReadTask(batch, 3, 1)(at, [[piece]])]
    answer = together(list(GatherTask(batch)(sent)))
    assert answer.odd is None
    assert len(storage.rows(answer, "alpha")) == 27


def test_readings_after_one_for_which_memory_was_short_begin_with_little_if_they_are_as_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large, _ = spec_of(SERVICE, {f"{n}.json": records(alpha=20) for n in range(4)}, monkeypatch)
    small = replace(large, pieces=large.pieces[:1])
    logs: Any = SimpleNamespace(remembered=list)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    one_pass, tried = OnePass(spark, "file:///lake", Limits(), logs), list[int]()

    def crowded(self: Jobs, spec: PassSpec) -> list[Answer]:
        tried.append(len(spec.pieces))
        return [Answer(odd="no room", is_crowded=len(spec.pieces) > 1)]

    monkeypatch.setattr(Jobs, "of_pieces", crowded)
    monkeypatch.setattr(Jobs, "ends", lambda self, spec, hands: list(EndsTask(spec)(hands)))
    monkeypatch.setattr(Jobs, "of_hands", lambda self, spec, hands: written(spec, hands))
    whys = [one_pass._answer(large).read_twice for _ in range(lean.READINGS + 2)]
    assert whys == ["no room", *["memory ran short before"] * lean.READINGS, "no room"]
    assert tried == [4, 4]
    assert one_pass._answer(small).odd == "no room"
    assert tried == [4, 4, 1]


@pytest.mark.parametrize(
    "service",
    [pytest.param(ASKED, marks=pytest.mark.deep), WHERE_SQL, pytest.param(DEDUPED, marks=pytest.mark.deep)],
    ids=["asked", "where-sql", "deduped"],
)
def test_a_batch_in_little_memory_makes_the_lake_that_one_pass_makes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    random, lakes = Random(5), []
    lines = [alike(record(random), level=n % 4) for n in range(200)]
    files = {f"{n}.json": "\n".join([*lines[n::5], "{broken", '{"n": 1}']).encode() for n in range(5)}
    for way in ("much", "little"):
        with monkeypatch.context() as patched:
            world = World(spark, f"file://{tmp_path}/{way}", patched, service=service, answers=dict(files))
            if way == "little":
                patched.setattr(writer, "TASK_BYTES", 2_000)
                patched.setattr(contents, "joined", lambda batches: batches)
                patched.setattr(
                    Jobs, "of_pieces", lambda self, spec: [Answer(odd="memory is running short", is_crowded=True)]
                )
            world.try_batch(0, [world.file(key) for key in files])
            told_of = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
            assert told_of == ([] if way == "much" else ["memory is running short"])
            lakes.append(lake_of(world))
    must_be_equal(*lakes)
