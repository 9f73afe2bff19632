"""A table's columns, decided again from all its rows: each field gets the type that its values have, whatever came first.

In the stream a column keeps the type that it got first, and what does not fit is rescued. `settle` makes good for that: every
row becomes its record again and is conformed to columns that all rows together decide; rescued values move into them. So
the same records end in the same columns in whatever order they came. A column that was declared since then is filled as well,
from where its values were: `promote`. And the table gets the partitions that are declared of it now.

In: a table, and the declarations. Out: `Settled`. The whole table is rewritten, in one commit, which only arrives if nobody
else has committed meanwhile; otherwise it is repeated. The number of rows stays, and the commit is not an append: a streaming
reader of the table must start from scratch, as with any change of a column's type.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from forebay.batch.attempt import attempt
from forebay.batch.columns import (
    OWN_COLUMNS,
    column_of_text,
    declared_column,
    declared_misfits,
    rules_of,
    spark_type,
    with_failed,
)
from forebay.batch.fields import field, parsed
from forebay.counted import counted
from forebay.declaration.column import Column
from forebay.declaration.properties import CHANGE_FEED
from forebay.declaration.service import Service, declaration_of
from forebay.declaration.table import Table
from forebay.errors import ForebayError, Halt, InvalidConfiguration
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.record.conform import writable
from forebay.record.growth import Rules, agrees, grown
from forebay.record.kind import Struct, leaves
from forebay.refusal import problems_of
from forebay.table.as_records import as_records
from forebay.table.commit import Committed
from forebay.table.data_file import TableFolder
from forebay.table.fan_out import ATTEMPTS
from forebay.table.files import write_files
from forebay.table.from_records import shape_of
from forebay.table.kernel import Seen, TableLogs
from forebay.table.schema import nullable
from forebay.table.shaping import DOCUMENT, MISFITS, RESCUED, Shaping, fixed_columns, known_columns, spark_columns
from forebay.table.storage import storage_as

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

__all__ = ["Settled", "must_have_no_feed", "settle", "with_column"]

EVERY = 10**9
NUMBERS = ("int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class Settled:
    """The changes: columns that are new or have another type, as paths with types; rows with rescued values, before
    and after; the new `partitions`, if they changed. `version` None: there was nothing to do."""

    changed: tuple[str, ...]
    rows: int
    rescued_before: int
    rescued_after: int
    version: int | None
    partitions: tuple[str, ...] | None = None


class ChangedMeanwhile(ForebayError):
    """Somebody committed to the table each time while it was being rewritten."""


def settle(spark: SparkSession, logs: TableLogs, path: str, service: Service, declared: Table) -> Settled:
    for _ in range(ATTEMPTS):
        seen = logs.look(path, again=True)
        if seen is None:
            raise InvalidConfiguration.one(path, "is not a table")
        done = _Settling(spark, logs, seen, service, declared).run()
        if done is not None:
            return done
    raise ChangedMeanwhile(f"{path} was changed by other writers {ATTEMPTS} times; try again when less data arrives")


def with_column(service: Service, table: str, column: Mapping[str, Any]) -> Service:
    """The declarations with one more column of this table; all mistakes in it at once."""
    declared = declaration_of(service, table)
    try:
        more = Column.model_validate(column)
        changed = Table.model_validate({**declared.model_dump(), "columns": [*declared.columns, more]})
    except ValidationError as refused:
        raise InvalidConfiguration(problems_of(refused, lambda path: f"table {table}: {path}".rstrip(": "))) from None
    tables = tuple(changed if one is declared else one for one in service.tables)
    return service.model_copy(update={"tables": tables})


class _Settling:
    """One attempt, at one version of the table."""

    def __init__(self, spark: SparkSession, logs: TableLogs, seen: Seen, service: Service, declared: Table) -> None:
        self.spark, self.logs, self.seen, self.service, self.declared = spark, logs, seen, service, declared
        self.rules: Rules = rules_of(declared)

    def run(self) -> Settled | None:
        """None where somebody was quicker."""
        moves = self._moves()
        rows = self.spark.read.format("delta").option("versionAsOf", self.seen.version).load(self.seen.path)
        again = self._again(rows)
        fixed = fixed_columns(again.schema)
        known = known_columns(self.seen.schema, fixed, self.rules)
        columns = grown(Struct(), shape_of(again, self.rules), _without_haste(self.rules))
        count, rescued = self._count(rows)
        had = {f.name: f.dataType for f in self.seen.schema.fields}
        declared_anew = [f"{f.name} {f.dataType.simpleString()}" for f in fixed.fields if had.get(f.name) != f.dataType]
        changed = (*declared_anew, *_changes(known, columns))
        if not changed and not moves and (not rescued or agrees(columns, known)):
            return Settled((), count, rescued, rescued, None)
        return self._rewritten(again, columns, changed, count, rescued)

    def _moves(self) -> bool:
        """Whether the table gets other partitions."""
        if self.declared.partitions and (clustered := self.logs.cluster_columns(self.seen)):
            what = f"is clustered by {', '.join(clustered)}, which excludes the declared partitions"
            raise InvalidConfiguration.one(self.seen.path, what, "ALTER TABLE ... CLUSTER BY NONE first")
        return self.declared.partitions != self.seen.partition_columns

    def _again(self, rows: DataFrame) -> DataFrame:
        """The rows as records, with their declared columns filled where that can be done now."""
        from pyspark.sql import functions as F

        others = {*(c.name.lower() for c in self.declared.columns), *OWN_COLUMNS, RESCUED, "_record"}
        came = [name for name in rows.columns if name.lower() not in others]
        records = parsed(as_records(rows, came), F.col(DOCUMENT), self.service)
        kept = {there.name.lower(): there for there in rows.schema.fields}
        made, of_old_type = [], {}
        for column in self.declared.columns:
            old = kept.get(column.name.lower())
            if old is not None and old.dataType.simpleString() != spark_type(column).lower():
                of_old_type[column.name] = self._converted(column, old)
                value = of_old_type[column.name][1]
            elif not column.of_record:
                # Nothing of it was rescued, so its value stays. The key in the file is no longer known.
                value = F.col(old.name) if old else F.lit(None).cast(spark_type(column))
            elif old is None:
                value = declared_column(self.service, column)
            else:
                value = F.coalesce(F.col(old.name), declared_column(self.service, column))
            made.append(value.alias(column.name))
        own = [F.col(name) for name in (*OWN_COLUMNS, "_record") if name in records.columns]
        misfits = declared_misfits(self.service, self.declared, DOCUMENT, of_old_type).alias(MISFITS)
        records = records.select(*made, *own, DOCUMENT, misfits)
        missing = [c for c in self.declared.columns if c.expression is not None and c.name.lower() not in kept]
        if not missing:
            return records
        every = F.col(DOCUMENT).isNotNull()
        tried = {c.name: attempt(str(c.expression), spark_type(c), every) for c in missing}
        failed = F.array_compact(F.array(*(F.when(made.isNull(), name) for name, made in tried.items())))
        derived = {name: made["value"] for name, made in tried.items()}
        return records.withColumns({**derived, MISFITS: with_failed(F.col(MISFITS), failed)})

    def _converted(self, column: Column, old: StructField) -> tuple[Expression, Expression]:
        """A column's values of another type, as text and in the new type. Values that the new type would change are null
        there, and are rescued."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import (
            ArrayType,
            DateType,
            MapType,
            NumericType,
            StructType,
            TimestampNTZType,
            TimestampType,
        )

        had, kind = F.col(old.name), spark_type(column)
        text = F.to_json(had) if isinstance(old.dataType, ArrayType | MapType | StructType) else had.cast("string")
        numbers = isinstance(old.dataType, NumericType) and kind.lower().startswith(NUMBERS)
        times = isinstance(old.dataType, TimestampType | TimestampNTZType | DateType)
        if numbers or (times and column.type in ("timestamp", "date")):
            cast = had.try_cast(kind)
            value = F.when(cast.try_cast(old.dataType) == had, cast)
        elif isinstance(old.dataType, ArrayType | MapType | StructType) and column.type not in (
            "string",
            "json",
            "map",
        ):
            value = F.lit(None).cast(kind)
        else:
            # As of a record: Spark's cast takes any number for seconds since 1970, and refuses to make a date of a boolean.
            value = column_of_text(text, column)
        if not column.of_record:
            return text, value
        rescued = field(self.service, column.source)
        return F.coalesce(rescued, text), F.coalesce(value, column_of_text(rescued, column))

    def _count(self, rows: DataFrame) -> tuple[int, int]:
        from pyspark.sql import functions as F

        rescued = F.count(RESCUED) if RESCUED in rows.columns else F.lit(0)
        found = rows.select(F.count("*"), rescued).head()
        assert found is not None
        return found[0], found[1]

    def _rewritten(
        self, rows: DataFrame, columns: Struct, changed: Sequence[str], count: int, rescued: int
    ) -> Settled | None:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        must_have_no_feed(self.seen.path, dict(self.seen.snapshot.getTableProperties()))
        began = int(time.time() * 1000)
        old = read_snapshot(open_objects(self.seen.path))
        if old.version != self.seen.version:
            return None
        shaping = Shaping(writable(columns), self.rules, final=True)
        place = TableFolder(self.seen.path, self.declared.partitions, shaping, self.declared.salt)
        named = rows.withColumn("_table", F.lit("it"))
        written = write_files(named, {"it": place}, table_column="_table", storage=storage_as(os.environ))
        if written.failed:
            raise ForebayError(f"{self.seen.path}: {written.failed['it']}")
        files = written.files.get("it", [])
        if (made := sum(file.rows for file in files)) != count:
            raise Halt(f"{self.seen.path}: {counted(count, 'row')} became {made}; nothing was committed")
        fixed = fixed_columns(rows.schema)
        schema = nullable(StructType([*fixed.fields, *spark_columns(writable(columns))]))
        actions = [*(_remove(file, began) for file in old.files), *(file.add_action() for file in files)]
        outcome = self.logs.rewrite(self.seen, actions, schema=schema, partition_columns=place.partition_columns)
        if not isinstance(outcome, Committed):
            return None
        moved = None if place.partition_columns == self.seen.partition_columns else place.partition_columns
        return Settled(tuple(changed), count, rescued, sum(file.rescued for file in files), outcome.version, moved)


def must_have_no_feed(path: str, properties: Mapping[str, str]) -> None:
    """Kernel refuses to put rows into the place of others there: a feed would have to say which."""
    if properties.get(CHANGE_FEED) == "true":
        then = f"pause the table, set {CHANGE_FEED} to false, settle, and resume: if declared, the next rows add it"
        raise InvalidConfiguration.one(path, "has a change feed, and its rows are not rewritten", then)


def _without_haste(rules: Rules) -> Rules:
    """Without the limit on the columns of one batch; the limit on all columns stays."""
    return replace(rules, new_columns=EVERY)


def _changes(before: Struct, after: Struct) -> list[str]:
    had = dict(leaves(before))
    return [f"{'.'.join(path)} {kind}" for path, kind in leaves(after) if had.get(path) != kind]


def _remove(file: LiveFile, at_ms: int) -> str:
    if file.deleted_rows:
        raise InvalidConfiguration.one(file.path, "has a deletion vector", "REORG TABLE ... APPLY (PURGE) first")
    remove: dict[str, Any] = {
        "path": file.path,
        "deletionTimestamp": at_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": dict(file.partition),
        "size": file.bytes,
    }
    return json.dumps({"remove": remove})
