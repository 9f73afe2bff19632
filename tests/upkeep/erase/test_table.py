"""Rows leave a table in one commit, however busy its other writers are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.folder_objects import FolderObjects
from forebay.lake.log.snapshot import Followed, read_snapshot
from forebay.privacy.token import token_of
from forebay.upkeep.erase.places import Place
from forebay.upkeep.erase.rows import Erased, found_in
from forebay.upkeep.erase.table import Leaving, TableErasure

ERASED = Erased(frozenset({token_of("anna", b"")}), b"")
PLACES = [Place("who")]


def append(table: Path, *who: str) -> None:
    write_deltalake(table, pa.table({"who": [*who]}), mode="append")


def names(table: Path) -> list[str]:
    return sorted(DeltaTable(table).to_pyarrow_table()["who"].to_pylist())


class Busy(FolderObjects):
    """Another writer commits as often as so many objects were read."""

    def __init__(self, root: Path, commit: Callable[[], Any], *, every: int) -> None:
        super().__init__(root)
        self._commit, self._every, self._reads = commit, every, 0

    def read(self, name: str) -> bytes | None:
        self._reads += 1
        if self._reads % self._every == 0:
            self._commit()
        return super().read(name)


def erasure(objects: FolderObjects, app_id: str = "app", number: int = 1) -> TableErasure:
    leaving = Leaving(app_id, number, lambda snapshot: lambda content, file: found_in(content, PLACES, ERASED))
    return TableErasure("t", objects, leaving, keep=timedelta(), sleep=lambda s: None)


def test_a_table_with_many_commits_does_not_starve_an_erasure(tmp_path: Path) -> None:
    for _ in range(12):
        append(tmp_path / "t", "anna", "ben")
    busy = Busy(tmp_path / "t", lambda: append(tmp_path / "t", "cleo", "anna"), every=10)
    done = erasure(busy).erase(None)
    assert done.rows == names(tmp_path / "t").count("cleo") + 12
    assert "anna" not in names(tmp_path / "t")


@pytest.mark.parametrize("others", ["append", "compact", "checkpoint"])
def test_a_table_that_is_followed_is_as_one_that_is_read_anew(tmp_path: Path, others: str) -> None:
    table, objects = tmp_path / "t", FolderObjects(tmp_path / "t")
    append(table, "anna")
    followed = Followed(objects)
    followed.newest()
    for _ in range(3):
        append(table, "ben")
        append(table, "cleo")
        if others == "compact":
            DeltaTable(table).optimize.compact()
        if others == "checkpoint":
            DeltaTable(table).create_checkpoint()
            for commit in sorted((table / "_delta_log").glob("*.json"))[:-1]:
                commit.unlink()
        now, anew = followed.newest(), read_snapshot(objects)
        assert (now.version, set(now.files), now.columns) == (anew.version, set(anew.files), anew.columns)


def test_an_erasure_whose_commit_is_gone_from_the_log_is_known_by_its_transaction(tmp_path: Path) -> None:
    """Rows that left are counted in the ledger afterwards, however late: their number must stay."""
    append(tmp_path / "t", "anna", "ben")
    done = erasure(FolderObjects(tmp_path / "t")).erase(None)
    append(tmp_path / "t", "cleo")
    DeltaTable(tmp_path / "t").create_checkpoint()
    for version in range(2):
        (tmp_path / f"t/_delta_log/{version:020}.json").unlink()
    assert (done.rows, erasure(FolderObjects(tmp_path / "t")).erase(done)) == (1, done)
    never = replace(done, version=2)
    assert erasure(FolderObjects(tmp_path / "t")).erase(never).rows == 0, "the commit of somebody else"


@pytest.mark.parametrize(("app_id", "number", "rows"), [("app", 1, 1), ("app", 2, 0), ("other", 1, 0)])
def test_a_commit_is_that_of_an_erasure_by_its_application_and_its_number(
    tmp_path: Path, app_id: str, number: int, rows: int
) -> None:
    """A run that died may have noted a version that another writer committed."""
    append(tmp_path / "t", "anna", "ben")
    objects = FolderObjects(tmp_path / "t")
    noted = erasure(objects).erase(None)
    assert erasure(objects, app_id, number).erase(noted).rows == rows


def test_an_erasure_that_found_nobody_is_done_without_a_look_at_the_log(tmp_path: Path) -> None:
    append(tmp_path / "t", "ben")
    nobody = erasure(FolderObjects(tmp_path / "t")).erase(None)
    append(tmp_path / "t", "anna")
    assert (nobody.rows, erasure(FolderObjects(tmp_path / "t")).erase(nobody)) == (0, nobody)
