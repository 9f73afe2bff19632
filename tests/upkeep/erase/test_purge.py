"""What goes from disk: old parts of a log by their version, old data files by what they hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.objects import FolderObjects
from forebay.privacy.token import token_of
from forebay.upkeep.erase.places import Place
from forebay.upkeep.erase.purge import Purged, purge
from forebay.upkeep.erase.rows import Erased

ERASED = Erased(frozenset({token_of("anna", b"")}), b"")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Anna leaves in version 3; there are checkpoints of versions before, at and after that."""
    for number, who in enumerate(("anna", "ben", "cleo", "", "dora", "emil")):
        if who:
            write_deltalake(tmp_path / "t", pa.table({"who": [who]}), mode="append")
        else:
            DeltaTable(tmp_path / "t").delete("who = 'anna'")
        if number in (1, 3, 4):
            DeltaTable(tmp_path / "t").create_checkpoint()
    return tmp_path / "t"


def purged(table: Path, since: int = 3) -> tuple[Purged, list[int]]:
    written: list[int] = []

    def write_checkpoint(version: int) -> None:
        written.append(version)
        DeltaTable(table).create_checkpoint()

    objects = FolderObjects(table)
    return purge(objects, [Place("who")], ERASED, since=since, write_checkpoint=write_checkpoint), written


def log(table: Path) -> list[str]:
    return sorted(path.name.lstrip("0") for path in (table / "_delta_log").glob("0*"))


def test_of_the_log_all_before_the_erasure_goes_and_every_checkpoint_but_the_newest(table: Path) -> None:
    assert purged(table)[1] == [5]
    assert log(table) == ["3.json", "4.json", "5.checkpoint.parquet", "5.json"]
    assert DeltaTable(table).version() == 5
    assert purged(table) == (Purged(0, 0), [])


def test_only_a_commit_before_a_checkpoint_goes(table: Path) -> None:
    purged(table, since=9)
    assert log(table) == ["5.checkpoint.parquet", "5.json"]


def test_of_old_files_only_those_with_their_rows_go(table: Path) -> None:
    DeltaTable(table).delete("who = 'ben'")
    before = {path.name for path in table.glob("*.parquet")}
    live = {uri.rpartition("/")[2] for uri in DeltaTable(table).file_uris()}
    assert purged(table)[0].deleted > 1
    (gone,) = before - {path.name for path in table.glob("*.parquet")}
    assert gone not in live


def test_a_torn_file_is_not_judged_and_stays(table: Path) -> None:
    (table / "part-0.parquet").write_bytes(b"PAR1")
    (table / "notes.txt").write_bytes(b"PAR1")
    (table / ".part-1.parquet.crc").write_bytes(b"crc")
    assert purged(table)[0].unjudged == 1
    assert (table / "part-0.parquet").exists()
