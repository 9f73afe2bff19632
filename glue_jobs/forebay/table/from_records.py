"""Turns rows with the texts of their records into rows with columns, as a DataFrame: for one table that Spark writes.

In: such rows (`shaping`), the table's schema, its rules. Out: rows with all columns, new ones included. It is two jobs, since
the columns must be known before there is a DataFrame of them; the fan-out needs one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from forebay.record.conform import writable
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct
from forebay.record.shape import Shape
from forebay.table.data_files.in_arrow import map_in_arrow
from forebay.table.schema import nullable
from forebay.table.shaping import Shaper, Shaping, fixed_columns, known_columns, spark_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def with_record_columns(rows: DataFrame, table: StructType | None, rules: Rules) -> DataFrame:
    """`table` None is one that has no columns yet."""
    from pyspark.sql.types import StructType

    fixed = fixed_columns(rows.schema)
    columns = writable(grown(known_columns(table, fixed, rules), shape_of(rows, rules), rules))
    schema = nullable(StructType([*fixed.fields, *spark_columns(columns)]))
    return map_in_arrow(rows, _Conform(Shaping(columns, rules, final=True)), schema)


def shape_of(rows: DataFrame, rules: Rules) -> Shape:
    """The fields of the records of all rows."""
    looked = map_in_arrow(rows, _Look(Shaping(Struct(), rules)), "shape string").collect()
    return Shape.sum(Shape.of_json(row.shape) for row in looked)


@dataclass(frozen=True)
class _Look:
    """The fields of the records of one task."""

    shaping: Shaping

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shaper = Shaper(self.shaping)
        for batch in batches:
            shaper.observe(pa.Table.from_batches([batch]))
        yield pa.RecordBatch.from_pydict({"shape": [shaper.seen.as_json()]})


@dataclass(frozen=True)
class _Conform:
    """The rows of one task with their columns."""

    shaping: Shaping

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shaper = Shaper(self.shaping)
        for batch in batches:
            if batch.num_rows:
                yield from shaper.shaped(pa.Table.from_batches([batch])).to_batches()
