"""Puts sample records through the `transform` of their table, without Spark, in a process of its own.

In: a table's records. Out: the columns after the function, the values that it changed, and the reason for each record that it
refuses. A function that cannot be used is `InvalidConfiguration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from forebay.declaration.column import Column
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration
from forebay.operate.trying.samples import Sample
from forebay.record.apart import ApartTransform
from forebay.record.arrow_type import arrow_type_of
from forebay.record.route import text_of
from forebay.record.typed import converted
from forebay.transforms import NoFunction, folders


@dataclass(frozen=True)
class TrialTransform:
    """By the number of a record: why it is refused, and its changed values, as text. `filled` counts the values of each column
    that the function gets."""

    refused: dict[int, str]
    changed: dict[int, str]
    filled: dict[str, int]


NOTHING = TrialTransform({}, {}, {})


def transformed(service: Service, table: Table, name: str, rows: Sequence[tuple[Sample, Any]]) -> TrialTransform:
    if table.transform is None:
        return NOTHING
    before = {
        column.name: pa.array(
            [_value(text_of(service, column.source, record, one.origin), column) for one, record in rows],
            arrow_type_of(column),
        )
        for column in service.transformed(table)
    }
    try:
        done = ApartTransform(table.transform, folders()).applied(before)
    except NoFunction as why:
        raise InvalidConfiguration.one(f"table {name}: transform", str(why), why.hint) from None
    refused = {at: why for at, why in enumerate(done.refused.to_pylist()) if why is not None}
    changed: dict[int, list[str]] = {}
    filled = {}
    for column, values in done.columns.items():
        after = [None if at in refused else value for at, value in enumerate(values.to_pylist())]
        filled[column] = sum(value is not None for value in after)
        for at, (was, now) in enumerate(zip(before[column].to_pylist(), after, strict=True)):
            if at not in refused and repr(was) != repr(now):
                changed.setdefault(at, []).append(f"{column}: {was} -> {now}")
    return TrialTransform(refused, {at: ", ".join(some) for at, some in changed.items()}, filled)


def _value(text: str | None, column: Column) -> Any:
    return None if text is None else converted(text, column)
