"""The fields that declarations read of each record, by the definitions of `forebay.record`: in Python, one record after the
other.

In: rows of content. Out: the same rows with `_read`, and expressions over it: a field as text, the value of a declared column,
and the values that did not fit. Spark reads times by their `formats`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from forebay.declaration.column import Column
from forebay.declaration.column_name import taken_key
from forebay.declaration.form import EXPLODED, ORDINAL
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.columns import spark_type, time_by_formats
from forebay.record.arrow_type import arrow_type_of
from forebay.record.declared import fits
from forebay.record.field import text_of_field, value_at
from forebay.record.number import problem_of, read_json, write_json
from forebay.record.route import Origin, text_of
from forebay.record.typed import converted
from forebay.table.data_files.in_arrow import map_in_arrow

PROBLEM = "_read.problem"
"""Why a record cannot be read."""


def read(rows: DataFrame, service: Service) -> DataFrame:
    columns = ", ".join(f"{name}: {spark_type(c)}, {name}_odd: STRING" for name, c in _columns(service))
    kind = f"_read STRUCT<problem: STRING, texts: MAP<STRING, STRING>{', ' if columns else ''}{columns}>"
    made: Any = StructType.fromDDL(kind)
    return map_in_arrow(rows, _Read(service), StructType([*rows.schema.fields, *made.fields]))


def field(path: str) -> Expression:
    """As text; an object or an array as JSON."""
    return F.col("_read.texts")[str(parse_path(path))]


def declared_column(service: Service, column: Column) -> Expression:
    """Null where the record has no value that fits."""
    if column.formats:
        return time_by_formats(field(column.source), column)
    return F.col(f"_read.{_name_of(service, column)}")


def declared_misfits(service: Service, table: Table) -> Expression:
    """As a JSON array of objects with one field each; null where all values fitted. An element of an array stays with its
    array, where that is kept."""
    odd = []
    for column in table.columns:
        stays = parse_path(column.source).has_position and table.undeclared.become != "ignored"
        if column.of_record and not stays:
            element = F.col(f"_read.{_name_of(service, column)}_odd")
            fitted = declared_column(service, column).isNotNull() if column.formats else F.lit(False)
            odd.append(F.when(~fitted, element))
    return _array(F.array_compact(F.array(*odd)) if odd else F.array().cast("array<string>"))


def with_failed(misfits: Expression, failed: Expression) -> Expression:
    """The values that did not fit, and null for each column that could not be computed."""
    more = F.transform(failed, lambda name: F.concat(F.lit('{"'), name, F.lit('":null}')))
    kept = F.when(misfits.isNull(), F.array().cast("array<string>")).otherwise(
        F.array(F.expr("substr(_misfits, 2, length(_misfits) - 2)"))
    )
    return _array(F.concat(more, kept))


def _array(elements: Expression) -> Expression:
    return F.when(F.size(elements) > 0, F.concat(F.lit("["), F.concat_ws(",", elements), F.lit("]")))


def _columns(service: Service) -> list[tuple[str, Column]]:
    """Those that are read, each once."""
    read = dict.fromkeys(column for table in service.tables for column in table.columns if column.expression is None)
    return [(f"c{number}", column) for number, column in enumerate(read)]


def _name_of(service: Service, column: Column) -> str:
    return next(name for name, one in _columns(service) if one == column)


@dataclass(frozen=True)
class _Read:
    service: Service

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read = [self._read(row) for row in batch.to_pylist()]
            yield batch.append_column("_read", self._array(read))

    def _array(self, read: Sequence[dict[str, Any]]) -> pa.StructArray:
        kinds = {"problem": pa.string(), "texts": pa.map_(pa.string(), pa.string())}
        for name, column in _columns(self.service):
            kinds |= {name: arrow_type_of(column), f"{name}_odd": pa.string()}
        arrays = [pa.array([one.get(name) for one in read], kind) for name, kind in kinds.items()]
        return pa.StructArray.from_arrays(arrays, list(kinds))

    def _read(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["problem"] is not None or row["line"] is None:
            return {}
        if problem := problem_of(row["value"]):
            return {"problem": problem}
        record = read_json(row["value"])
        origin = Origin(row.get("key") or "", row.get("bucket") or "", json.loads(row.get("metadata") or "{}"))
        named = {EXPLODED, ORDINAL}.union(*(table.named for table in self.service.tables))
        texts = {str(parse_path(path)): text_of(self.service, path, record, origin) for path in named}
        made: dict[str, Any] = {"texts": list(texts.items())}
        for name, column in _columns(self.service):
            said = texts[str(parse_path(column.source))]
            made[name] = None if said is None or column.formats else converted(said, column)
            if column.of_record:
                made[f"{name}_odd"] = self._odd(record, column)
        return made

    def _odd(self, record: dict[str, Any], column: Column) -> str | None:
        """The field alone, under the record's keys, where it does not fit the column, or where Spark must say so."""
        path = parse_path(column.source)
        found = value_at(record, path)
        said = text_of_field(found)
        if found is None:
            return None
        if said is not None and not column.formats and fits(said, column):
            return None
        keys: list[str] = []
        inner: Any = record
        for step in path.keys:
            keys.append(taken_key(inner, step) or step)
            inner = inner[keys[-1]]
        for key in reversed(keys):
            inner = {key: inner}
        return write_json(inner, bare=True)
