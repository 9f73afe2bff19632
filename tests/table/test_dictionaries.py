"""The columns of a data file that get a dictionary, seen in the file itself."""

from __future__ import annotations

import io
import random
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.table.data_files.dictionaries import FEWEST_ROWS, dictionaries
from forebay.table.data_files.upload import OpenFile


def encoded(rows: pa.Table) -> set[str]:
    """The columns that have a dictionary in a file of these rows."""
    file = OpenFile("t", "t", "s3://lake/t", (), rows.schema, None)
    file.write(rows)
    content, _ = file.close()
    assert pq.read_table(io.BytesIO(content.to_pybytes())).equals(rows)
    group = pq.read_metadata(io.BytesIO(content.to_pybytes())).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def rows(count: int) -> pa.Table:
    chance = random.Random(1)
    columns: dict[str, list[Any]] = {
        "few": [f"kind-{chance.randrange(8)}" for _ in range(count)],
        "same": [7] * count,
        "id": [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(count)],
        "real": [chance.random() for _ in range(count)],
        "nothing": [None] * count,
    }
    return pa.table({**columns, "nothing": pa.array(columns["nothing"], pa.string())})


@pytest.mark.parametrize("count", [FEWEST_ROWS, 10 * FEWEST_ROWS, 40_000])
def test_only_columns_of_few_values_get_a_dictionary(count: int) -> None:
    assert encoded(rows(count)) == {"few", "same", "nothing"}


def test_a_small_file_has_no_dictionaries() -> None:
    assert encoded(rows(FEWEST_ROWS - 1)) == set()


def test_values_inside_of_others_get_one() -> None:
    count = FEWEST_ROWS
    kind = pa.struct([("a", pa.string()), ("of", pa.list_(pa.struct([("b", pa.int64())])))])
    nested = pa.table(
        {
            "s": pa.array([{"a": "x", "of": [{"b": 1}]}] * count, kind),
            "l": pa.array([["q"]] * count),
            "m": pa.array([[("k", "v")]] * count, pa.map_(pa.string(), pa.string())),
        }
    )
    assert encoded(nested) == {"s.a", "s.of.list.element.b", "l.list.element", "m.key_value.key", "m.key_value.value"}


def test_each_type_of_a_column_can_be_sampled() -> None:
    kinds = [
        pa.bool_(),
        pa.int8(),
        pa.float32(),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.binary(),
        pa.large_string(),
    ]
    kinds += [pa.decimal128(38, 10), pa.decimal256(50, 3), pa.null()]
    wide = pa.table({str(kind): pa.nulls(FEWEST_ROWS, kind) for kind in kinds})
    assert dictionaries(wide) == [str(kind) for kind in kinds]
