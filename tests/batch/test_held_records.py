"""Held records in the tasks of a pass: those that a table takes become the rows of landed ones, and all others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from forebay.batch.one_pass.answers import Answer, Judged, together
from forebay.batch.one_pass.gathering import unpacked
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.spec import Held
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.content.end import PieceEnd
from forebay.content.piece import Piece
from forebay.content.rows import SCHEMA
from tests.batch.tasks import AT, InMemory, spec_of

SERVICE = """
name = "s"
[[tables]]
name = "{game}"
where = { event = "tick" }
partitions = ["day"]
columns = [
  { name = "level", type = "long" },
  { name = "at", type = "timestamp" },
  { name = "day", type = "date", expression = "to_date(at)" },
]
event_time = { column = "at", oldest_days = 7 }
dedupe = { by = ["level"] }
[[tables]]
name = "buys"
where = { event = "buy" }
"""
TICK = '{"event":"tick","game":"a","level":%d,"at":"2026-11-20T10:00:00Z","more":{"x":[%d]}}'


def held_again(
    patched: pytest.MonkeyPatch,
    service: str,
    files: dict[str, list[str]],
    held: Held | None = None,
    paused: Sequence[str] = (),
    reason: str | None = None,
) -> tuple[Answer, InMemory]:
    """What becomes of these texts, which were held of these files, for this reason."""
    batch, storage = spec_of(service, dict.fromkeys(files, b""), patched)
    pieces = tuple(
        Piece(number, HeldFile("landing", name, event_time=AT, held_id=f"id of {name}"))
        for number, name in enumerate(files)
    )
    ends = tuple(PieceEnd(piece=n, outcome="loaded", documents=len(some)) for n, some in enumerate(files.values()))
    batch = replace(batch, pieces=pieces, ends=ends, held=held or Held(), service=batch.service.with_paused(paused))
    rows = [
        (n, at, 10 * at, text, reason, None, None)
        for n, some in enumerate(files.values())
        for at, text in enumerate(some)
    ]
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    sent = ReadTask(batch, 1, 1).of_held([pa.record_batch(columns, schema=SCHEMA)])
    return together(list(GatherTask(batch, alone=True)(sent))), storage


def fates(answer: Answer) -> dict[tuple[str, str | None], int]:
    found: Counter[tuple[str, str | None]] = Counter()
    for one, rows in answer.fates.items():
        found[one.fate, one.table] += rows
    return dict(found)


def moved(answer: Answer) -> list[tuple[str | None, int, int]]:
    """By table, the pieces and the places of what leaves."""
    found = []
    for one in answer.moved:
        rows = unpacked(one.rows).rows.to_pylist()
        found += [(one.table, row["piece"], row["byte_offset"]) for row in rows]
    return sorted(found, key=str)


def tables_in(storage: InMemory) -> set[str]:
    return {place.removeprefix("file:///lake/").split("/")[0] for place in storage.files}


def without_place(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [{name: value for name, value in row.items() if name not in ("_file_id", "_line")} for row in rows]
    return sorted(kept, key=str)


def test_they_become_the_rows_that_landed_ones_become(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [TICK % (n, n) for n in range(5)] + ['{"event":"buy","price":1.50}', '{"event":"buy","Price":"x"}']
    batch, storage = spec_of(SERVICE, {"a.json": "\n".join(texts).encode()}, monkeypatch)
    landed = together(list(Task(batch)([list(batch.pieces)])))
    again, storage_again = held_again(monkeypatch, SERVICE, {"a.json": texts[::2], "b.json": texts[1::2]})
    assert (landed.odd, again.odd) == (None, None)
    for table in ("a", "buys"):
        rows = storage_again.rows(again, table)
        assert without_place(rows) == without_place(storage.rows(landed, table)) != []
        assert {row["_file_id"] for row in rows} == {"id of a.json", "id of b.json"}
    assert fates(again) == fates(landed) == {("write", "a"): 5, ("write", "buys"): 2}
    assert [one.count for one in again.identified] == [5]
    assert len(moved(again)) == len(texts)


def test_those_that_no_table_takes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    late = (TICK % (1, 1)).replace("2026-11-20", "2026-01-01")
    texts = [TICK % (1, 1), late, "{broken", '{"event":"gift"}', '{"event":"tick","game":"_x"}']
    answer, storage = held_again(monkeypatch, SERVICE, {"a.json": texts})
    reasons = {(one.fate, one.reason): rows for one, rows in answer.fates.items()}
    assert reasons == {
        ("write", None): 1,
        ("quarantine", "event-too-old"): 1,
        ("quarantine", "not-json"): 1,
        ("quarantine", "bad-table-name"): 1,
        ("park", None): 1,
    }
    assert moved(answer) == [("a", 0, 0)]
    assert tables_in(storage) == {"a"}


@pytest.mark.parametrize("text", ["null", "5", "[1]", '"x"', "[", TICK % (1, 1), '{"x":' * 9000 + "1" + "}" * 9000])
@pytest.mark.parametrize("reason", ["not-an-object", "too-deep", "record-too-large"])
def test_a_text_that_the_reader_refused_stays_and_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch, reason: str, text: str
) -> None:
    """Arrow's parser ends the process at `null`."""
    answer, storage = held_again(monkeypatch, SERVICE, {"a.json": [text]}, reason=reason)
    assert (answer.odd, fates(answer)) == (None, {("quarantine", None): 1})
    assert (moved(answer), storage.files) == ([], {})


def test_records_that_were_kept_for_other_reasons_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in ("table-failed", "paused", "expectation", "several-documents"):
        answer, _ = held_again(monkeypatch, SERVICE, {"a.json": [TICK % (1, 1)]}, reason=reason)
        assert moved(answer) == [("a", 0, 0)]


def test_an_element_of_an_array_that_no_table_wants_any_more_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    service = (
        SERVICE
        + '[[tables]]\nname = "items"\nexplode = "items"\nwhere = { sku = "x" }\n'
        + 'columns = [{ name = "of", path = "@parent.id" }]\n'
    )
    texts = [f'{{"@ordinal":0,"@exploded":"items","sku":"{sku}"}}' for sku in "xy"]
    answer, storage = held_again(monkeypatch, service, {"a.json": texts})
    assert fates(answer) == {("write", "items"): 1, ("drop", None): 1}
    assert moved(answer) == [("items", 0, 0), (None, 0, 10)]
    assert tables_in(storage) == {"items"}
    answer, _ = held_again(monkeypatch, service, {"a.json": texts}, Held(only="items"))
    assert moved(answer) == [("items", 0, 0)], "only what the table gets was chosen"


def test_only_the_table_that_adopts_gets_records(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [TICK % (1, 1), '{"event":"buy"}', '{"event":"gift"}']
    answer, storage = held_again(monkeypatch, SERVICE, {"a.json": texts}, Held(only="buys"))
    assert fates(answer) == {("superseded", "a"): 1, ("write", "buys"): 1, ("park", None): 1}
    assert moved(answer) == [("buys", 0, 10)]
    assert tables_in(storage) == {"buys"}


def test_records_of_a_file_whose_earlier_version_is_in_force_in_their_table_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {"a.json": [TICK % (1, 1), '{"event":"buy"}'], "b.json": [TICK % (2, 2)]}
    answer, _ = held_again(monkeypatch, SERVICE, files, Held(stay={"a": (0,)}))
    assert fates(answer) == {("superseded", "a"): 1, ("write", "a"): 1, ("write", "buys"): 1}
    assert moved(answer) == [("a", 1, 0), ("buys", 0, 10)]
    assert Judged("id of a.json", "superseded", "a", 0) in answer.fates


def test_rows_of_a_paused_table_have_ids_and_no_data_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that came before is a duplicate all the same."""
    answer, storage = held_again(monkeypatch, SERVICE, {"a.json": [TICK % (1, 1)] * 2}, paused=["a"])
    assert fates(answer) == {("write", "a"): 2}
    assert [(one.table, one.count, one.path) for one in answer.identified] == [("a", 2, "")]
    assert (tables_in(storage), moved(answer)) == (set(), [])
