"""The ledger's counts after rows left tables: once, whoever else writes, and never those of a file that was read again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from forebay.lake.folder_objects import FolderObjects
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.upkeep.erase.counts import change_ledger
from tests.operate.ledger import AT, entry, write_ledger

APP = "forebay/games/erase"


def file_id(key: str) -> str:
    return LandedFile("landing", key, 100, "e1").file_id


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    held: dict[str, Any] = {"records": 6, "quarantined": 1, "parked": 2}
    write_ledger(tmp_path, entry("a.json", tables={"alpha": 3}, **held), entry("b.json", tables={"alpha": 1}))
    write_ledger(tmp_path, entry("c.json", tables={"alpha": 2}, at=AT + timedelta(days=1)))
    return tmp_path


def ledger(lake: Path) -> DeltaTable:
    return DeltaTable(f"{lake}/_forebay/ledger")


def rows(lake: Path) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in ledger(lake).to_pyarrow_table().to_pylist()}


def change(lake: Path, leaving: dict[str, dict[str, int]], *, number: int = 1, as_of: int = 1) -> None:
    gone = {file_id(key): rows for key, rows in leaving.items()}
    change_ledger(str(lake), APP, number, gone, as_of=as_of, at=AT + timedelta(days=2))


def test_rows_that_left_are_dropped_once_and_nothing_else_changes(lake: Path) -> None:
    before = rows(lake)
    for _ in range(2):
        change(
            lake, {"a.json": {"alpha": 1, "_forebay/quarantine": 1}, "c.json": {"alpha": 2}, "none.json": {"alpha": 1}}
        )
    after = rows(lake)
    changed = {"written": 2, "quarantined": 0, "dropped": 2, "tables": [("alpha", 2)]}
    assert after["a.json"] == {**before["a.json"], **changed}
    assert after["b.json"] == before["b.json"]
    assert after["c.json"] == {**before["c.json"], "written": 0, "dropped": 2, "tables": []}
    assert (ledger(lake).version(), ledger(lake).transaction_version(APP)) == (2, 1)
    change(lake, {"b.json": {"alpha": 1}}, number=2, as_of=2)
    assert rows(lake)["b.json"]["dropped"] == 1
    assert read_snapshot(open_objects(f"{lake}/_forebay/ledger")).transactions == {APP: 2}


def test_a_file_that_was_read_again_since_keeps_its_counts(lake: Path) -> None:
    ledger(lake).update(updates={"batch": "2"}, predicate="key = 'a.json'")
    change(lake, {"a.json": {"alpha": 1}, "b.json": {"alpha": 1}})
    assert [(key, row["dropped"]) for key, row in sorted(rows(lake).items())] == [
        ("a.json", 0),
        ("b.json", 1),
        ("c.json", 0),
    ]


def test_a_batch_that_commits_meanwhile_loses_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once, done = FolderObjects.write_once, []

    def first_others(self: FolderObjects, name: str, content: bytes) -> bool:
        if not done:
            done.append(name)
            write_ledger(lake, entry("d.json", tables={"alpha": 1}))
            ledger(lake).optimize.compact()
        return once(self, name, content)

    monkeypatch.setattr(FolderObjects, "write_once", first_others)
    change(lake, {"a.json": {"alpha": 1}})
    assert {key: row["dropped"] for key, row in rows(lake).items()} == {
        "a.json": 1,
        "b.json": 0,
        "c.json": 0,
        "d.json": 0,
    }


@pytest.mark.parametrize("gone", ["its data files", "its commits"])
def test_after_so_long_that_the_version_is_gone_the_times_of_entries_tell(lake: Path, gone: str) -> None:
    """Otherwise an erasure that was interrupted for a week could never end, and neither could the next ones."""
    ledger(lake).update(updates={"committed_at": "committed_at + interval '3 days'"}, predicate="key = 'a.json'")
    if gone == "its data files":
        ledger(lake).optimize.compact()
        ledger(lake).optimize.z_order(["key"])
        ledger(lake).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    else:
        ledger(lake).create_checkpoint()
        for version in range(ledger(lake).version()):
            (lake / f"_forebay/ledger/_delta_log/{version:020}.json").unlink()
    change(lake, {"a.json": {"alpha": 1}, "b.json": {"alpha": 1}})
    assert [(key, row["dropped"]) for key, row in sorted(rows(lake).items())] == [
        ("a.json", 0),
        ("b.json", 1),
        ("c.json", 0),
    ]
