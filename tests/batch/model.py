"""What must become of files, in a few lines of plain Python. Histories and the soak compare the ledger with it.

In: what was put under which key, and the rows of the ledger. Out: a sentence for each file that ended otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from forebay.landed_file import LandedFile

MAY_END = ("loaded", "missing")
"""A version may be gone before it is read. What S3 withheld must not stay so, once that is mended."""


@dataclass(frozen=True)
class Put:
    """One version of a key: how many of its records belong into each table, and how many are held beside them."""

    file: LandedFile
    tables: Mapping[str, int]
    held: int
    replaces: bool = False

    @property
    def records(self) -> int:
        return sum(self.tables.values()) + self.held


@dataclass
class Model:
    """Everything that was put; `newest` is what each key has now, without those that were deleted."""

    puts: dict[str, Put] = field(default_factory=dict)
    newest: dict[str, Put] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    """By an operator, by id."""

    def put(self, put: Put) -> None:
        self.puts[put.file.file_id] = self.newest[put.file.key] = put

    def delete(self, key: str) -> None:
        self.newest.pop(key, None)

    def wrong(self, ledger: Iterable[Mapping[str, Any]], *, by_table: bool = True) -> list[str]:
        """Once everything was mended, announced again and loaded. Without `by_table`, where tables failed or duplicates were
        dropped, only the sums of files count."""
        rows = {row["file_id"]: row for row in ledger}
        said = [f"{uri} is not in the ledger" for uri in self._uris(self.puts.keys() - rows.keys())]
        said += [f"{rows[one]['key']} is in the ledger, but nobody put it" for one in rows.keys() - self.puts.keys()]
        for put in self.newest.values():
            row = rows.get(put.file.file_id)
            if row is not None and row["outcome"] != "loaded" and put.file.file_id not in self.forgotten:
                said.append(f"{put.file.uri} is there and should be loaded, but is {row['outcome']}")
        said += self._stand_beside(rows)
        return said + [
            why for one in self.puts.keys() & rows.keys() for why in self._wrong(self.puts[one], rows[one], by_table)
        ]

    def _stand_beside(self, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """Where the versions of a key replace each other, one of them stands, and none beside the newest."""
        stand: dict[str, set[str]] = {}
        for one in self.puts.keys() & rows.keys():
            if self.puts[one].replaces and rows[one]["outcome"] == "loaded":
                stand.setdefault(self.puts[one].file.key, set()).add(one)
        for key, ids in sorted(stand.items()):
            newest = self.newest.get(key)
            should = {newest.file.file_id} - self.forgotten if newest is not None else set()
            if len(ids | should) > 1:
                yield f"{key} has several versions: {sorted(self.puts[one].file.etag for one in ids | should)}"

    def _uris(self, file_ids: Iterable[str]) -> list[str]:
        return sorted(self.puts[one].file.uri for one in file_ids)

    def _wrong(self, put: Put, row: Mapping[str, Any], by_table: bool) -> Iterator[str]:
        outcome = row["outcome"]
        may_end = (*MAY_END, "superseded") if put.replaces else MAY_END
        if put.file.file_id in self.forgotten:
            left = row["written"] + row["quarantined"] + row["parked"]
            if left or outcome != "forgotten":
                yield f"{put.file.uri} is {outcome} with {left} records, but an operator wants it forgotten"
        elif outcome not in may_end:
            yield f"{put.file.uri} ended as {outcome}"
        elif outcome == "missing" and row["records"]:
            yield f"{put.file.uri} is missing, but {row['records']} records are counted"
        elif outcome == "loaded":
            found = (row["records"], dict(row["tables"] or {}), row["quarantined"] + row["parked"])
            wanted = (put.records, dict(put.tables), put.held)
            if found != wanted if by_table else found[0] != wanted[0]:
                yield f"{put.file.uri} has {put}, but the ledger says {found}"
