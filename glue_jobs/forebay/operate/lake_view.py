"""Answers from the lake in a second, without a JVM, through delta-rs.

In: the lake's place; the standard AWS environment. Out: plain values. A table that is not there yet is an ordinary
answer. A place that no forebay ever wrote to is `Misdeclared`: an operator who mistyped it must not read "all is well".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from forebay.address import is_s3
from forebay.aws.delta_rs import storage_options
from forebay.aws.preflight import check_lake
from forebay.errors import Misdeclared
from forebay.lake.log.listing import LOG
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import open_objects

__all__ = ["LakeView", "TableFacts", "view_of"]

SCHEMES = ("s3://", "s3a://", "file:")


@dataclass(frozen=True)
class TableFacts:
    """What a table's log says of it."""

    name: str
    rows: int
    files: int
    bytes: int
    version: int
    newest: datetime | None = None


def view_of(lake: str) -> LakeView:
    """The view of a lake that is there, and has a ledger."""
    where = f"lake {lake}"
    if "://" in lake and not lake.startswith(SCHEMES):
        raise Misdeclared.one(where, "is no place of a lake", "write s3://bucket/prefix, or a folder")
    check_lake(lake)
    lake = lake.rstrip("/")
    if next(iter(open_objects(lake).found(f"_forebay/ledger/{LOG}")), None) is None:
        raise Misdeclared.one(
            where, "has no ledger", "is it spelled right? The first batch of `forebay ingest` makes it"
        )
    return LakeView(lake)


class LakeView:
    """Looks at the tables of one lake."""

    def __init__(self, lake: str) -> None:
        self.lake = lake.replace("s3a://", "s3://")
        self._options = storage_options() if is_s3(self.lake) else None

    def table(self, name: str) -> DeltaTable | None:
        try:
            return DeltaTable(f"{self.lake}/{name}", storage_options=self._options)
        except TableNotFoundError:
            return None

    def query(self, name: str, sql: str) -> list[dict[str, Any]]:
        """Rows of `sql`, in which the table is called `t`; none where there is no such table."""
        table = self.table(name)
        if table is None:
            return []
        answer = pa.table(QueryBuilder().register("t", table).execute(sql))
        rows: list[dict[str, Any]] = answer.to_pylist()
        return rows

    def facts(self, name: str, *, newest_by: str | None = None) -> TableFacts | None:
        """From the log alone: no data file is opened."""
        table = self.table(name)
        if table is None:
            return None
        added = pa.table(table.get_add_actions(flatten=True))
        newest = None
        if newest_by and f"max.{newest_by}" in added.column_names:
            newest = pc.max(added[f"max.{newest_by}"]).as_py()
        rows, size = (pc.sum(added[column]).as_py() or 0 for column in ("num_records", "size_bytes"))
        return TableFacts(name, rows, added.num_rows, size, table.version(), newest)

    def tables(self) -> list[str]:
        """The names of all folders that may be tables, but our own."""
        return tables_of(self.lake)
