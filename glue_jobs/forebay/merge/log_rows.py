"""Rows of a table's version, or of some data files only, read by Delta itself.

In: a session, a table and files as its log names them. Out: DataFrames. Delta makes them, so partitions, deletion vectors and
widened types are as in any other read. Reading the Parquet files directly would have to repeat all that.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from forebay.lake.layout import DERIVED_FROM
from forebay.record.kind import SPELLED
from forebay.record.name import free_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class LogVersion:
    """A table at one version. `id` is the table's own: another table at the same place has another one. `is_derived`: a merge
    or a rollup computes it. Columns whose names are `taken` have other ones here."""

    def __init__(self, session: SparkSession, path: str, version: int, *, taken: Collection[str] = ()) -> None:
        from pyspark.sql.types import StructField, StructType

        self._session: Any = session
        self.path, self.version = path, version
        self._jvm = _jvm_of(session)
        # Delta takes the session from the thread.
        self._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._session._jsparkSession)
        self._log = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._session._jsparkSession, path)
        usual = [getattr(self._log, f"getSnapshotAt$default${at}")() for at in (2, 3, 4)]
        self._snapshot = self._log.getSnapshotAt(version, *usual)
        self.id: str = str(self._snapshot.metadata().id())
        origin = self._snapshot.metadata().configuration().get(DERIVED_FROM)
        self.is_derived = bool(origin.isDefined())
        schema = StructType.fromJson(json.loads(str(self._snapshot.schema().json())))
        self._columns = _beside(schema, taken)
        """Each with the columns of the table that it is made of."""
        self.schema = StructType([StructField(name, schema[of[0]].dataType) for name, of in self._columns.items()])
        if list(self._columns) == schema.names:
            self.schema = schema

    def rows(self) -> DataFrame:
        """All rows of the version."""
        found: DataFrame = self._session.read.format("delta").option("versionAsOf", self.version).load(self.path)
        return self._named(found)

    def rows_of(self, files: Sequence[str]) -> DataFrame:
        """Rows of these files, with the columns of the version."""
        from pyspark.sql.classic.dataframe import DataFrame

        action = getattr(getattr(self._jvm.org.apache.spark.sql.delta.actions, "Action$"), "MODULE$")
        listed = self._jvm.java.util.ArrayList()
        for file in files:
            listed.add(action.fromJson(file))
        adds = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq()
        none = getattr(self._log, "createDataFrame$default$4")()
        return self._named(DataFrame(self._log.createDataFrame(self._snapshot, adds, False, none), self._session))

    def _named(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        made = (F.coalesce(*(F.col(f"`{one}`") for one in of)).alias(name) for name, of in self._columns.items())
        return rows if list(self._columns) == rows.columns else rows.select(*made)


def _beside(schema: StructType, taken: Collection[str]) -> dict[str, list[str]]:
    """Columns with names that are not `taken`, and the expression of each. A table may have a column of such a name from
    before. The field then also has a newer column, marked with `SPELLED`, which gets the values of both."""
    newer = {key.lower(): field for field in schema.fields for key in field.metadata.get(SPELLED, ())}
    columns = {field.name: [field.name] for field in schema.fields if field.name.lower() not in taken}
    for field in schema.fields:
        if field.name.lower() in taken:
            other = newer.get(field.name.lower())
            if other is None:
                columns[free_name(field.name.lower(), {*taken, *map(str.lower, columns)})] = [field.name]
            elif other.dataType == field.dataType:
                columns[other.name].append(field.name)
    return columns


def _jvm_of(session: Any) -> Any:
    return session._jvm
