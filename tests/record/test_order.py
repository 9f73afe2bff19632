"""The same records in any order of batches: different columns on the way, the same ones once they are settled."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from forebay.record.conform import Records
from forebay.record.growth import Rules, grown
from forebay.record.kind import Kind, Many, Struct
from forebay.record.shape import Shape
from forebay.table.as_records import record_of
from tests.record.test_growth import RECORDS

Row = tuple[dict[str, Any], str | None]


def taken_in(records: list[dict[str, Any]], columns: Struct, *, final: bool = False) -> tuple[Struct, list[Row]]:
    """A batch: the columns after it, and its rows."""
    if not records:
        return columns, []
    some = Records(pa.array([json.dumps(record) for record in records]), Rules())
    if not final:
        columns = grown(columns, some.shape(), Rules())
    done = some.conformed(columns)
    return columns, list(zip(done.columns.to_pylist(), done.rescued.to_pylist(), strict=True))


def after(batches: tuple[list[dict[str, Any]], ...]) -> tuple[Struct, list[Row]]:
    """A table that took in these batches one after the other, and was settled then."""
    columns, rows = Struct(), []
    for batch in batches:
        columns, new = taken_in(batch, columns)
        rows += new
    again = [record_of(list(row), list(row.values()), rescued) for row, rescued in rows]
    shape = Shape.sum(Records(pa.array([json.dumps(r)]), Rules()).shape() for r in again)
    return taken_in(again, grown(Struct(), shape, Rules()), final=True)


def unspelled(kind: Kind) -> Any:
    """How keys are spelled in the metadata is told by the records of the first batch."""
    if isinstance(kind, Struct):
        return {name: unspelled(field.kind) for name, field in kind.fields.items()}
    return [unspelled(kind.of)] if isinstance(kind, Many) else kind


@given(st.tuples(RECORDS, RECORDS, RECORDS))
def test_any_order_of_batches_ends_in_the_same_columns(batches: tuple[list[dict[str, Any]], ...]) -> None:
    ends = [unspelled(after(order)[0]) for order in permutations(batches)]
    assert all(end == ends[0] for end in ends)
