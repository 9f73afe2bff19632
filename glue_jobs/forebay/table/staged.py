"""The data files of one table, written and in no log yet: everything that a commit needs, in a form that can be kept.

In: the answers of the tasks that wrote the files. Out: add actions, and the columns of the rows. Any process that reads it back
commits the same files, so the commit does not depend on anything that is read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from forebay.record.conform import writable
from forebay.record.growth import Rules
from forebay.record.kind import Struct, columns_of_json, json_of
from forebay.table.as_records import as_records
from forebay.table.data_files.data_file import DataFile
from forebay.table.ready import Ready
from forebay.table.schema import nullable
from forebay.table.shaping import DOCUMENT, MISFITS, RESCUED, spark_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

OF_A_FILE = ("path", "size", "rows", "modified_ms", "stats", "rescued")


@dataclass(frozen=True)
class StagedTable:
    """`fixed` is the schema, as JSON, of the columns that do not come from records, and `columns` are those that do. With
    `replaces`, these rows take the place of earlier ones: Spark reads these files, and writes others that are committed."""

    name: str
    fixed: str
    columns: Struct | None
    partition_columns: tuple[str, ...]
    files: tuple[DataFile, ...]
    replaces: bool = False
    ready: Ready | None = field(default=None, compare=False, repr=False)
    """The table as this process saw it. A staged table that is read back has none, and is looked at again."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def rescued(self) -> int:
        return sum(file.rescued for file in self.files)

    @cached_property
    def fixed_schema(self) -> StructType:
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self.fixed))

    @cached_property
    def schema(self) -> StructType:
        from pyspark.sql.types import StructType

        from_records = spark_columns(writable(self.columns)) if self.columns is not None else []
        return nullable(StructType([*self.fixed_schema.fields, *from_records]))

    def with_files(self, more: StagedTable) -> StagedTable:
        """Both as one; they have the same columns."""
        return replace(self, files=(*self.files, *more.files))

    def read(self, spark: SparkSession, path: str) -> DataFrame:
        """The rows of the files, in a table at this path, with all columns."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        schema = self.schema
        kinds = {field.name: field.dataType for field in schema.fields}
        apart: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
        for file in self.files:
            apart.setdefault(file.partitions, []).append(f"{path}/{file.path}")
        parts = []
        for values, paths in apart.items():
            inside = StructType([field for field in schema.fields if field.name not in dict(values)])
            rows = spark.read.schema(inside).parquet(*paths)
            named = {name: F.lit(value).cast(kinds[name]) for name, value in values}
            parts.append(rows.withColumns(named).select(*(f"`{name}`" for name in kinds)))
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        return rows

    def records(self, spark: SparkSession, path: str, rules: Rules | None) -> DataFrame:
        """The same rows with the texts of their records, to be given other columns (`shaping`) by these rules."""
        rows, fixed = self.read(spark, path), self.fixed_schema.names
        if self.columns is None or rules is None:
            return rows
        rows = as_records(rows, [name for name in self.schema.names if name not in fixed], rules.declared)
        return rows.select(*(f"`{name}`" for name in fixed if name != RESCUED), DOCUMENT, MISFITS)

    def as_json(self) -> dict[str, Any]:
        files = [
            {**{name: getattr(file, name) for name in OF_A_FILE}, "partitions": file.partitions} for file in self.files
        ]
        columns = None if self.columns is None else json_of(self.columns)
        facts = {"name": self.name, "fixed": self.fixed, "columns": columns, "files": files}
        return {**facts, "partition_columns": self.partition_columns, "replaces": self.replaces}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> StagedTable:
        def file(one: Mapping[str, Any]) -> DataFile:
            partitions = tuple((name, value) for name, value in one["partitions"])
            return DataFile(stored["name"], partitions=partitions, **{name: one[name] for name in OF_A_FILE})

        return cls(
            stored["name"],
            stored["fixed"],
            None if stored["columns"] is None else columns_of_json(stored["columns"]),
            tuple(stored["partition_columns"]),
            tuple(file(one) for one in stored["files"]),
            stored["replaces"],
        )


def together(some: Iterable[StagedTable | None]) -> StagedTable | None:
    """All of them as one; None where there are none."""
    there = [one for one in some if one is not None]
    return reduce(StagedTable.with_files, there) if there else None
