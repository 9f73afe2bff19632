"""What goes from disk: old parts of a log by their version, old data files by what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.folder_objects import FolderObjects
from forebay.lake.listed import OldVersion
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


def purged(
    table: Path,
    since: int = 3,
    *,
    erased: Erased = ERASED,
    places: Sequence[Place] = (Place("who"),),
    objects: FolderObjects | None = None,
) -> tuple[Purged, list[int]]:
    written: list[int] = []

    def write_checkpoint(version: int) -> None:
        written.append(version)
        DeltaTable(table).create_checkpoint()

    objects = objects or FolderObjects(table)
    return purge(objects, places, erased, since=since, write_checkpoint=write_checkpoint), written


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


def test_what_is_live_stays_whatever_it_holds(table: Path) -> None:
    """A merge may have brought a row back; then it leaves by a commit, and is purged after that."""
    of_ben = replace(ERASED, tokens=frozenset({token_of("ben", b"")}))
    assert purged(table, erased=of_ben)[0].deleted > 0
    assert sorted(DeltaTable(table).to_pyarrow_table()["who"].to_pylist()) == ["ben", "cleo", "dora", "emil"]


def write(path: Path, **columns: list[str | None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_old_files_are_judged_by_their_rows_and_their_folders_and_checksums_go_with_them(table: Path) -> None:
    purged(table)
    stay = {"part-ben.parquet", ".part-ben.parquet.crc", "who=ben/part.parquet", "a=b/part-ben.parquet"}
    go = {"part-anna.parquet", ".part-anna.parquet.crc", "a=b/who=anna/part.parquet", "a=b/.part-anna-2.parquet.crc"}
    for name in ("part-ben.parquet", "part-anna.parquet", "a=b/part-ben.parquet", "a=b/part-anna-2.parquet"):
        write(table / name, who=["anna" if "anna" in name else "ben"])
    for name in ("who=ben/part.parquet", "a=b/who=anna/part.parquet"):
        write(table / name, n=["1"])
    for name in (*stay, *go):
        if name.endswith(".crc"):
            (table / name).write_bytes(b"crc")
    assert purged(table)[0] == Purged(len(go | {"a=b/part-anna-2.parquet"}), 0)
    assert {name for name in stay | go if (table / name).exists()} == stay


def test_a_file_that_goes_is_not_counted_as_one_that_nobody_can_judge(table: Path) -> None:
    purged(table)
    torn = '{"who": "an'
    write(table / "part-0.parquet", who=["anna", "ben"], _rescued=[None, torn])
    write(table / "part-1.parquet", who=["ben"], _rescued=[torn])
    places = [Place("who"), Place("_rescued", ("who",))]
    assert purged(table, places=places)[0] == Purged(1, 1)


def test_a_part_of_the_log_is_not_taken_for_a_data_file(table: Path) -> None:
    """A checkpoint may have others beside it, which are Parquet, too."""
    write(table / "_delta_log/_sidecars/part.parquet", who=["anna"])
    purged(table)
    assert (table / "_delta_log/_sidecars/part.parquet").exists()


class Versioned(FolderObjects):
    """A folder that keeps what was deleted, in another one, which has what was deleted before, too."""

    def __init__(self, root: Path, old: Path) -> None:
        super().__init__(root)
        self._old, self._now = FolderObjects(old), root

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._old.write(name, (self._now / name).read_bytes())
            super().delete([name])

    def old_versions(self) -> Iterator[OldVersion]:
        return (OldVersion(found.name, "v1") for found in self._old.found())

    def open_old(self, version: OldVersion) -> BinaryIO | None:
        return self._old.open(version.name)

    def delete_old(self, versions: Iterable[OldVersion]) -> None:
        self._old.delete(one.name for one in versions)


def test_old_versions_go_by_the_same_rules(table: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    write(old / "part-anna.parquet", who=["anna"])
    write(old / "part-ben.parquet", who=["ben"])
    write(old / "_delta_log/_sidecar.parquet", who=["anna"])
    (old / "part-torn.parquet").write_bytes(b"PAR1")
    for name in (f"{2:020}.json", f"{4:020}.json", f"{4:020}.checkpoint.parquet", "_last_checkpoint"):
        (old / "_delta_log" / name).write_bytes(b"{}")
    (table / f"_delta_log/{0:020}.json").rename(old / f"_delta_log/{0:020}.json")  # cleaned up before
    found, _ = purged(table, objects=Versioned(table, old))
    assert found.unjudged == 1
    assert found.deleted == 2 + 6, "data files of anna; commits 0 to 2, and checkpoints 1, 3 and 4: each counts once"
    left = sorted(path.name.lstrip("0") for path in old.rglob("*") if path.is_file())
    assert left == ["4.json", "_last_checkpoint", "_sidecar.parquet", "part-ben.parquet", "part-torn.parquet"]


def test_a_torn_file_is_not_judged_and_stays(table: Path) -> None:
    (table / "part-0.parquet").write_bytes(b"PAR1")
    (table / "notes.txt").write_bytes(b"PAR1")
    (table / ".part-1.parquet.crc").write_bytes(b"crc")
    assert purged(table)[0].unjudged == 1
    assert (table / "part-0.parquet").exists()
