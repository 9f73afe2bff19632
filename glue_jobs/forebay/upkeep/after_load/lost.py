"""Rows of landed files that are lost: the object may be their only copy.

In: a lake, and rows of the ledger. Out: yes or no for each row. A table may have no Delta log. Or the job created the table
again: its metadata is then younger than the file's row in the ledger, and the table is asked for rows of this file. A retry of
held records may also create a table after their file was loaded. Each table is read once, and only if it is that young.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from forebay.lake.layout import table_path
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects, open_objects
from forebay.upkeep.accounts.in_tables import file_ids_in

EVER = datetime.min.replace(tzinfo=UTC)


class LostRows:
    """Of one lake. It remembers its tables, so one run asks each of them once."""

    def __init__(self, lake: str) -> None:
        self._lake = lake
        self._made_at, self._file_ids = cache(self._when_made), cache(self._files_in)

    def of(self, row: Mapping[str, Any]) -> bool:
        """Whether a table lacks rows that the ledger counts in it."""
        return any(rows and self._lacks(name, row) for name, rows in dict(row["tables"] or {}).items())

    def _lacks(self, table: str, row: Mapping[str, Any]) -> bool:
        made_at = self._made_at(table)
        if made_at is None:
            return True
        return made_at > row["committed_at"] and row["file_id"] not in self._file_ids(table)

    def _when_made(self, table: str) -> datetime | None:
        """None without a log. One that cannot be read says nothing, so its table counts as old."""
        try:
            return read_snapshot(self._objects(table)).created_at or EVER
        except NoTable:
            return None
        except (BrokenLog, UnsupportedTable):
            return EVER

    def _files_in(self, table: str) -> frozenset[str]:
        """None of them if the table cannot be counted: then their objects stay."""
        return file_ids_in(self._objects(table))

    def _objects(self, table: str) -> Objects:
        return open_objects(table_path(self._lake, table))
