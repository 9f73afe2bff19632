"""On paper, a key gets a version under `replace` that brings no record: nothing, or bytes that nobody can read. And a table is
deleted, and its files are replayed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import forebay.batch.staging as staging
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER, PARKED, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.entry import REPLAY
from tests.batch.model import Model, Put
from tests.batch.paper import Lake, Record, lay_out

SERVICE = parse_service({"service.toml": 'name = "s"\noverwritten = "replace"\n[[tables]]\nname = "{game}"\n'})
FIRST = LandedFile("landing", "a", 1, "first", None, "1", datetime(2026, 11, 21, 10, tzinfo=UTC))
SECOND = replace(FIRST, etag="second", sequencer="2", event_time=datetime(2026, 11, 21, 11, tzinfo=UTC))
RECORDS = [Record("alpha", "1"), Record("beta", "2"), Record(None, "", broken=True), Record(None, "")]


@pytest.mark.parametrize(
    ("answer", "outcomes", "rows_of_each"),
    [("empty", ["empty", "superseded"], 0), ("unreadable", ["loaded", "unreadable"], 1)],
)
def test_rows_leave_for_a_version_without_records_and_stay_beside_one_that_nobody_can_read(
    answer: Any, outcomes: list[str], rows_of_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "whole_files", lambda ends, shared: [{"file_id": end.file.file_id} for end in ends])
    lake = Lake(answers={FIRST.file_id: RECORDS, SECOND.file_id: answer})
    for number, file in enumerate([FIRST, SECOND]):
        lay_out(monkeypatch, lake, SERVICE, "g0").load([file], number)
    ledger = {row["file_id"]: row for row in lake.rows(LEDGER)}
    assert sorted(row["outcome"] for row in ledger.values()) == outcomes
    of_first = {name: Counter(row["_file_id"] for row in lake.rows(name))[FIRST.file_id] for name in ("alpha", "beta")}
    held = {name: Counter(row["file_id"] for row in lake.rows(name))[FIRST.file_id] for name in (QUARANTINE, PARKED)}
    assert {*of_first.values(), *held.values()} == {rows_of_each}
    told = ledger[FIRST.file_id]
    assert (told["written"], told["quarantined"], told["parked"]) == (2 * rows_of_each, rows_of_each, rows_of_each)


@pytest.mark.parametrize(
    "dedupe", ["", 'columns = [{ name = "event_id" }]\ndedupe = { by = ["event_id"], days = 3 }\n']
)
@pytest.mark.parametrize("batches", [[["a", "b"]], [["a"], ["b"]], [["b"], ["a"]]], ids=str)
def test_a_replay_brings_back_the_rows_of_a_table_that_somebody_deleted(
    dedupe: str, batches: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No new file began the table anew before. Of two copies one stands, perhaps the other one."""
    service = parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "{{game}}"\n{dedupe}'})
    files = {"a": FIRST, "b": replace(SECOND, key="b")}
    records = {"a": [Record("alpha", "1"), Record("beta", "2")], "b": [Record("alpha", "1"), Record("alpha", "3")]}
    lake = Lake(answers={files[name].file_id: some for name, some in records.items()})

    def process(number: int, names: list[str]) -> None:
        lay_out(monkeypatch, lake, service, "g0").load([files[name] for name in names], number)

    def rows() -> list[tuple[str, str]]:
        return sorted((row["_file_id"], row["id"]) for name in ("alpha", "beta") for row in lake.rows(name))

    process(0, ["a"])
    process(1, ["b"])
    before = [record for _, record in rows()]
    assert sorted(before) == (["1", "2", "3"] if dedupe else ["1", "1", "2", "3"])
    del lake.tables["alpha"]
    for row in lake.rows(LEDGER):
        row["outcome"] = REPLAY
    for number, names in enumerate(batches, 2):
        process(number, names)
    assert sorted(record for _, record in rows()) == sorted(before)
    assert {row["outcome"] for row in lake.rows(LEDGER)} == {"loaded"}
    told = {row["file_id"]: sum(row["tables"].values()) for row in lake.rows(LEDGER)}
    assert Counter(file_id for file_id, _ in rows()) == told


@pytest.mark.parametrize("deleted", [True, False])
def test_the_model_of_the_histories_finds_an_earlier_version_that_stands_beside_a_later_one(deleted: bool) -> None:
    model, row = Model(), {"outcome": "loaded", "records": 1, "tables": {"alpha": 1}, "quarantined": 0, "parked": 0}
    for file in (FIRST, SECOND):
        model.put(Put(file, {"alpha": 1}, held=0, replaces=True))
    if deleted:
        model.delete(FIRST.key)
    later = {**row, "file_id": SECOND.file_id, "key": "a"}
    assert model.wrong([{**later, "file_id": FIRST.file_id, "outcome": "superseded"}, later]) == []
    (found,) = model.wrong([{**later, "file_id": FIRST.file_id}, later])
    assert found == "a has several versions: ['first', 'second']"
