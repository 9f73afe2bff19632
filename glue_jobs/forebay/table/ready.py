"""A table that will get a batch's rows, at the version before anything was written.

In: a destination, the table at that version, and the columns of the rows. Out: `Ready`, or `InvalidConfiguration` with
everything that keeps the table from taking these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.errors import InvalidConfiguration, Problem
from forebay.lake.layout import DERIVED_FROM
from forebay.record.conform import writable
from forebay.record.kind import Struct
from forebay.table.data_files.data_file import TableFolder
from forebay.table.destination import Destination
from forebay.table.kernel import Seen
from forebay.table.schema import misfits, unwritable
from forebay.table.shaping import Shaping, known_columns
from forebay.table.widening import widened

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Ready:
    """A table that will get rows: at the version that was seen, or None for a new one."""

    table: Destination
    seen: Seen | None
    known: Struct | None = None
    """The columns that it has from its records; None where records are nothing to it."""

    @property
    def place(self) -> TableFolder:
        columns = self.table.partition_columns if self.seen is None else self.seen.partition_columns
        return TableFolder(self.table.path, columns, self.shaping(self.known))

    def shaping(self, columns: Struct | None, *, final: bool = False) -> Shaping | None:
        if columns is None or self.table.rules is None:
            return None
        return Shaping(writable(columns), self.table.rules, final)


def prepare(table: Destination, seen: Seen | None, columns: StructType) -> Ready:
    """The table, if it can take rows with these columns."""
    fit(table, seen, columns)
    known = None if table.rules is None else known_columns(seen.schema if seen else None, columns, table.rules)
    return Ready(table, seen, known)


def fit(table: Destination, seen: Seen | None, columns: StructType) -> None:
    """`InvalidConfiguration` where the table cannot take these rows."""
    problems = [
        Problem(f"table {table.name}, {p.where}", p.what, p.suggestion) for p in _problems(table, seen, columns)
    ]
    if problems:
        raise InvalidConfiguration(problems)


def derived(seen: Seen) -> Problem:
    """Why no rows are appended to a table that is computed: the next merge would take them for rows of its own."""
    return Problem(
        DERIVED_FROM, f"is {seen.derived_from}", "a merge or a rollup computes this table: give one another name"
    )


def with_wider_types(table: Destination, seen: Seen, columns: StructType) -> StructType | None:
    """The table's columns with the wider types that the rows have; None where it stays unchanged."""
    return widened(seen.schema, columns, seen.partition_columns) if table.type_widening else None


def _problems(table: Destination, seen: Seen | None, columns: StructType) -> Iterator[Problem]:
    yield from unwritable(columns, table.partition_columns if seen is None else seen.partition_columns)
    if seen is None:
        return
    if seen.derived_from:
        yield derived(seen)
    yield from misfits(columns, with_wider_types(table, seen, columns) or seen.schema)
    if seen.column_mapping != "none":
        yield Problem("delta.columnMapping.mode", "is on", "forebay appends by the columns' own names only")
