"""The answers of the tasks that write files, one by one and together.

In: where each table lives (`TableFolder`); the rows of a task's answer. Out: `Written`, with a `DataFile` for each file in its
folder, and the error of each table that could not be written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from forebay.record.kind import Struct, columns_of_json
from forebay.record.shape import Shape
from forebay.table.data_files.partition import Values, uri_path
from forebay.table.shaping import Shaping

ANSWER = pa.schema(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("partitions", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("modified_ms", pa.int64()),
        ("stats", pa.string()),
        ("columns", pa.string()),
        ("rescued", pa.int64()),
        ("shape", pa.string()),
        ("error", pa.string()),
    ]
)
ANSWER_DDL = (
    "table string, path string, partitions string, size long, rows long, modified_ms long, stats string, "
    "columns string, rescued long, shape string, error string"
)


@dataclass(frozen=True)
class TableFolder:
    """The folder of a table, and the columns that partition its files."""

    path: str
    partition_columns: tuple[str, ...] = ()
    shaping: Shaping | None = None


@dataclass(frozen=True)
class DataFile:
    """One Parquet file in its table's folder. `columns` are those that its records got, and `rescued` counts the rows with
    values that did not fit."""

    table: str
    path: str
    partitions: Values
    size: int
    rows: int
    modified_ms: int
    stats: str
    columns: Struct | None = None
    rescued: int = 0

    def add_action(self) -> str:
        """The line that makes it part of the table, as the Delta protocol has it."""
        add = {
            "path": uri_path(self.path),
            "partitionValues": dict(self.partitions),
            "size": self.size,
            "modificationTime": self.modified_ms,
            "dataChange": True,
            "stats": self.stats,
        }
        return json.dumps({"add": add})


@dataclass(frozen=True)
class Written:
    """The result of the job. A table is in `failed` if any of its files could not be written. `shapes` has the fields of
    the records, for tables whose columns come from them."""

    files: Mapping[str, list[DataFile]]
    failed: Mapping[str, str]
    shapes: Mapping[str, Shape] = field(default_factory=dict)


def collect_answers(answers: Iterable[Any]) -> Written:
    """The files of the tables without a failed file."""
    files: dict[str, list[DataFile]] = {}
    failed: dict[str, str] = {}
    shapes: dict[str, Shape] = {}
    for a in answers:
        if a.error is not None:
            failed[a.table] = a.error
        elif a.shape is not None:
            shapes.setdefault(a.table, Shape()).add(Shape.of_json(a.shape))
        else:
            files.setdefault(a.table, []).append(_data_file(a))
    return Written({table: found for table, found in files.items() if table not in failed}, failed, shapes)


def _data_file(a: Any) -> DataFile:
    partitions = tuple((name, value) for name, value in json.loads(a.partitions))
    columns = None if a.columns is None else columns_of_json(json.loads(a.columns))
    return DataFile(a.table, a.path, partitions, a.size, a.rows, a.modified_ms, a.stats, columns, a.rescued)


def failure_of(table: str, failure: Exception) -> dict[str, Any]:
    """The answer that fails a table."""
    return {"table": table, "error": f"{type(failure).__name__}: {failure}"}
