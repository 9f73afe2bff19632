"""The records of a retry without Spark: which may stay where they are, and which leave."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from forebay.batch.accounting import Fate
from forebay.batch.one_pass.answers import Moved
from forebay.batch.one_pass.gathering import packed
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.outcome import Pass
from forebay.batch.one_pass.rows import Block
from forebay.batch.one_pass.spec import Held
from forebay.batch.retrying.chosen import HeldRecords
from forebay.content.end import PieceEnd, file_ends
from forebay.content.piece import Piece
from forebay.declaration.loading import parse_service
from forebay.table.data_files.data_file import Written
from tests.batch.tasks import AT

FILES = {HeldFile("landing", name, version_id=None, event_time=AT, held_id=name): 2 for name in ("a", "b")}
SPARK: Any = SimpleNamespace(createDataFrame=lambda table: table)
DEDUPED = 'name = "s"\n[[tables]]\nname = "alpha"\ncolumns = [{ name = "n" }]\ndedupe = { by = ["n"] }\n'


def moved(table: str | None, places: list[tuple[int, int]]) -> Moved:
    rows = pa.table(
        {
            "piece": pa.array([piece for piece, _ in places], pa.int32()),
            "byte_offset": pa.array([place for _, place in places], pa.int64()),
        }
    )
    return Moved(table, packed(Block(rows)))


class OnePass:
    """Every record of `a` is a row of alpha, the first of `b` one of beta, and its second is dropped."""

    def __init__(self) -> None:
        self.held = Held()

    def of_held(self, rows: Any, files: Any, service: Any, held: Held, **_: Any) -> Pass:
        self.held = held
        pieces = [Piece(number, file) for number, file in enumerate(files)]
        ends = file_ends(pieces, [PieceEnd(piece=number, outcome="loaded", documents=2) for number in (0, 1)])
        fates = [Fate("a", "write", 2, "alpha"), Fate("b", "write", 1, "beta"), Fate("b", "drop", 1)]
        leaving = [moved("alpha", [(0, 0), (0, 10)]), moved("beta", [(1, 0)]), moved(None, [(1, 10)])]
        return Pass(ends, fates, Written({}, {}), "file:///lake", moved=leaving)

    def without_duplicates(self, made: Pass, dedupe: Any) -> Pass:
        came_before = pa.table({"file_id": ["a"], "byte_offset": pa.array([10], pa.int64())})
        return replace(made, duplicates=lambda: came_before)


def chosen(monkeypatch: pytest.MonkeyPatch, one_pass: OnePass, only: str | None = None, service: str = "") -> Any:
    monkeypatch.setattr(HeldRecords, "_rows", lambda *_: None)  # of Spark alone
    declared = parse_service({"service.toml": service or 'name = "s"\n[[tables]]\nname = "{game}"\n'})
    elsewhere = {("a", "beta"), ("other", "beta")}
    records = HeldRecords(SPARK, SPARK, FILES, declared, only, elsewhere)
    return records.through(one_pass, lambda made: made, shared={}, known={})  # type: ignore[arg-type, return-value]


def places(gone: pa.Table) -> set[tuple[str, int]]:
    return {(row["file_id"], row["byte_offset"]) for row in gone.to_pylist()}


def test_records_leave_once_their_table_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch, OnePass())
    assert places(found.gone([])) == {("b", 10)}
    assert places(found.gone(["alpha"])) == {("a", 0), ("a", 10), ("b", 10)}
    assert places(found.gone(["alpha", "beta"])) == {("a", 0), ("a", 10), ("b", 0), ("b", 10)}


def test_records_that_came_before_leave_whatever_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places(chosen(monkeypatch, OnePass(), service=DEDUPED).gone([])) == {("a", 10), ("b", 10)}


def test_only_records_of_files_that_are_here_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    one_pass = OnePass()
    chosen(monkeypatch, one_pass)
    assert one_pass.held == Held({"beta": [0]}, None)


@pytest.mark.parametrize(
    ("only", "counted"), [(None, [("alpha", 2), ("beta", 1), (None, 1)]), ("beta", [("beta", 1)])], ids=str
)
def test_the_only_table_counts_no_other_record(monkeypatch: pytest.MonkeyPatch, only: Any, counted: Any) -> None:
    fates = chosen(monkeypatch, OnePass(), only).fates
    assert [(fate.table, fate.rows) for fate in fates] == counted
