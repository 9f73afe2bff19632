"""The columns of a data file whose values go into a dictionary.

In: the first rows of the file. Out: the `use_dictionary` of Arrow's Parquet writer. A dictionary of a column of many values
costs a third of the file's CPU, and makes the file larger.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

FEWEST_ROWS = 200
"""With fewer rows, each dictionary is a page more than its column needs."""
SAMPLE, LARGEST_SAMPLE, SAMPLED_PART = 128, 4096, 8


def dictionaries(rows: pa.Table) -> list[str]:
    """The columns whose values occur twice on average in a sample. Values inside structs, lists and maps always get a
    dictionary."""
    if rows.num_rows < FEWEST_ROWS:
        return []
    sample = rows.slice(0, min(LARGEST_SAMPLE, max(SAMPLE, rows.num_rows // SAMPLED_PART)))
    found: list[str] = []
    for field, values in zip(sample.schema, sample.columns, strict=True):
        if pa.types.is_nested(field.type):
            found += leaves(field.name, field.type)
        elif pa.types.is_null(field.type) or 2 * pc.count_distinct(values).as_py() <= sample.num_rows:
            found.append(field.name)
    return found


def leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """The columns of Parquet that hold a column of Arrow."""
    if pa.types.is_struct(kind):
        inner = [(field.name, field.type) for field in kind]
    elif pa.types.is_map(kind):
        inner = [("key_value.key", kind.key_type), ("key_value.value", kind.item_type)]
    elif pa.types.is_list(kind):
        inner = [("list.element", kind.value_type)]
    else:
        yield path
        return
    for name, of in inner:
        yield from leaves(f"{path}.{name}", of)
