"""Rows in Arrow: a Spark job whose tasks are Python over its batches, and the few rows that the driver makes itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.table.data_files.partition import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(rows: DataFrame, task: Task, answer: str | StructType) -> DataFrame:
    """`DataFrame.mapInArrow` without its demand that pandas be installed, which Arrow's batches never meet."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    function = UserDefinedFunction(task, returnType=answer, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    called: Any = function(*(F.col(quoted(name)) for name in rows.columns))
    classic: Any = rows
    return DataFrame(classic._jdf.mapInArrow(called._jc, False, None), rows.sparkSession)


def arrow_rows(rows: Iterable[Mapping[str, Any]], columns: str) -> pa.Table:
    """Plain rows with columns as a DDL text declares them. Moments need a zone: Arrow would take others for UTC."""
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(columns))


def arrow_schema(columns: str) -> pa.Schema:
    """The Arrow schema of columns that a DDL text declares."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(columns_of_ddl(columns))


def columns_of_ddl(columns: str) -> StructType:
    from pyspark.sql.types import StructType

    kinds = StructType.fromDDL(columns)
    assert isinstance(kinds, StructType)
    return kinds
