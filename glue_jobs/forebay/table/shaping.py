"""Turns rows with a record's text into rows with columns, for one table in one task.

In: groups of rows, one after the other. Each row has the text of its record (`DOCUMENT`) and, as JSON, what did not fit its
declared columns (`MISFITS`). Out: the same rows with the table's columns and `_rescued`. The fields of its records go back to
the driver, which sees all tasks and decides (`fan_out`). Where tasks disagree about a new column, the driver has the table's
files written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.record.arrow_parser import ParseHints
from forebay.record.conform import Records
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct, columns_of_json, json_of
from forebay.record.number import read_json, write_json
from forebay.record.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

DOCUMENT, MISFITS, RESCUED = "_document", "_misfits", "_rescued"

PARSED_BYTES = 4 << 20
"""The bytes of text that are parsed at a time: a record with thousands of fields makes that many columns for its neighbours
too."""


@dataclass(frozen=True)
class Shaping:
    """A task's knowledge of a table: the columns that it has, none of them fixed, and the rules by which it gets more.
    With `final` it gets no more: values without a column are rescued."""

    columns: Struct
    rules: Rules
    final: bool = False


def fixed_columns(rows: StructType) -> StructType:
    """For rows that carry records: the columns that do not come from the records' texts."""
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [f for f in rows.fields if f.name not in (DOCUMENT, MISFITS)]
    return StructType([*fields, StructField(RESCUED, StringType())])


def known_columns(table: StructType | None, fixed: StructType, rules: Rules) -> Struct:
    """The columns of the table that its records filled."""
    if table is None:
        return Struct()
    others = {name.lower() for name in fixed.names} | rules.reserved
    columns = columns_of_json(table.jsonValue()).fields
    return Struct({name: column for name, column in columns.items() if name not in others})


def spark_columns(columns: Struct) -> list[StructField]:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json_of(columns)).fields


class Shaper:
    """The shaper of one table, in one task."""

    def __init__(self, shaping: Shaping) -> None:
        self._known, self._rules, self._final = shaping.columns, shaping.rules, shaping.final
        self._hints = ParseHints()
        self.columns, self.seen = shaping.columns, Shape()

    def observe(self, group: pa.Table) -> None:
        """Counts what these records have, and no more."""
        for rows in some_at_a_time(group.combine_chunks()):
            self.seen.add(Records(text(rows), self._rules, self._hints).shape())

    def shaped(self, group: pa.Table) -> pa.Table:
        group = group.combine_chunks()
        records = [(rows, Records(text(rows), self._rules, self._hints)) for rows in some_at_a_time(group)]
        if not self._final:
            for _, some in records:
                self.seen.add(some.shape())
            self.columns = grown(self._known, self.seen, self._rules)
        return pa.concat_tables([with_columns(rows, some, self.columns) for rows, some in records])


def some_at_a_time(group: pa.Table) -> Iterator[pa.Table]:
    each = max(1, group.num_rows * PARSED_BYTES // max(PARSED_BYTES, group[DOCUMENT].nbytes))
    return (group.slice(at, each) for at in range(0, group.num_rows, each))


def text(rows: pa.Table) -> pa.StringArray:
    return pa.concat_arrays(rows[DOCUMENT].chunks)


def with_columns(rows: pa.Table, records: Records, columns: Struct) -> pa.Table:
    made = records.conformed(columns)
    rows = rows.drop_columns([DOCUMENT])
    rows = rows if made.in_order else rows.take(made.rows)
    rescued = with_misfits(rows[MISFITS], made.rescued)
    rows = rows.drop_columns([MISFITS]).append_column(pa.field(RESCUED, pa.string()), rescued)
    for field, values in zip(made.columns.type, made.columns.flatten() if columns.fields else (), strict=True):
        rows = rows.append_column(field, values)
    return rows


def with_misfits(misfits: pa.ChunkedArray, rescued: pa.StringArray) -> pa.StringArray:
    if misfits.null_count == len(misfits):
        return rescued
    both = zip(misfits.to_pylist(), rescued.to_pylist(), strict=True)
    return pa.array([other if one is None else _joined(one, other) for one, other in both], pa.string())


def _joined(misfits: str, rescued: str | None) -> str:
    made: dict[str, Any] = read_json(rescued) if rescued is not None else {}
    for value in read_json(misfits):
        made = nested(made, value)
    return write_json(made)


def nested(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both at once; they speak of different fields."""
    made = dict(one)
    for key, value in other.items():
        mine = made.get(key)
        made[key] = nested(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return made
