"""Decides a table's columns again from all its rows: each field gets the type that its values have, whatever arrived first.

In the stream, a column keeps its first type, and values that do not fit are rescued. `settle` corrects this: every row becomes
its record again and is conformed to columns that all rows together decide; rescued values move into them. So the same records
end in the same columns in whatever order they arrived. A column that was declared later is filled as well, from where its
values were: `promote`. The table also gets the currently declared partitions.

In: a table, and the declarations. Out: `Settled`. The whole table is rewritten in one commit, which only succeeds if no other
writer has committed in the meantime; otherwise it is repeated. The number of rows does not change, and the commit is not an
append: a streaming reader of the table must start from scratch, as with any change of a column's type.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from forebay.counted import counted
from forebay.declaration.column import Column
from forebay.declaration.properties import CHANGE_FEED
from forebay.declaration.service import Service, declaration_of
from forebay.declaration.table import Table
from forebay.declared_sql.attempt import attempt
from forebay.declared_sql.columns import OWN_COLUMNS, rules_of, spark_type
from forebay.errors import ForebayError, Halt, InvalidConfiguration
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.operate.declaring.redeclared import redeclared
from forebay.record.conform import writable
from forebay.record.growth import Rules, agrees, grown
from forebay.record.kind import Struct, leaves
from forebay.refusal import problems_of
from forebay.table.as_records import as_records
from forebay.table.commit import Committed
from forebay.table.data_files.data_file import TableFolder
from forebay.table.data_files.files import write_files
from forebay.table.data_files.storage import storage_as
from forebay.table.fan_out import ATTEMPTS
from forebay.table.from_records import shape_of
from forebay.table.kernel import Seen, TableLogs
from forebay.table.schema import nullable, type_name
from forebay.table.shaping import DOCUMENT, MISFITS, RESCUED, Shaping, fixed_columns, known_columns, spark_columns

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

EVERY = 10**9


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
        declared_anew = [f"{f.name} {type_name(f.dataType)}" for f in fixed.fields if had.get(f.name) != f.dataType]
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

        had = {name.lower() for name in rows.columns}
        others = {*(c.name.lower() for c in self.declared.columns), *OWN_COLUMNS, RESCUED, "_record"}
        came = [name for name in rows.columns if name.lower() not in others]
        records = redeclared(as_records(rows, came, {}), self.declared)
        missing = [c for c in self.declared.columns if c.expression is not None and c.name.lower() not in had]
        if not missing:
            return records
        every = F.col(DOCUMENT).isNotNull()
        tried = {c.name: attempt(str(c.expression), spark_type(c), every) for c in missing}
        failed = F.array_compact(F.array(*(F.when(made.isNull(), name) for name, made in tried.items())))
        derived = {name: made["value"] for name, made in tried.items()}
        return records.withColumns({**derived, MISFITS: _with_failed(failed)})

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
        place = TableFolder(self.seen.path, self.declared.partitions, shaping)
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


def _with_failed(names: Expression) -> Expression:
    """The misfits, and null for each of these columns, which could not be computed."""
    from pyspark.sql import functions as F

    more = F.transform(names, lambda name: F.concat(F.lit('{"'), name, F.lit('":null}')))
    rest = F.coalesce(F.concat(F.lit(","), F.substr(F.col(MISFITS), F.lit(2))), F.lit("]"))
    with_more = F.concat(F.lit("["), F.concat_ws(",", more), rest)
    return F.when(F.size(more) > 0, with_more).otherwise(F.col(MISFITS))


def _without_haste(rules: Rules) -> Rules:
    """Without the limit on the columns of one batch; the limit on all columns stays."""
    return replace(rules, new_columns=EVERY)


def _changes(before: Struct, after: Struct) -> list[str]:
    had = dict(leaves(before))
    return [f"{'.'.join(path)} {kind}" for path, kind in leaves(after) if had.get(path) != kind]


def _remove(file: LiveFile, at_ms: int) -> str:
    if file.deleted_rows:
        raise InvalidConfiguration.one(file.path, "has a deletion vector", "REORG TABLE ... APPLY (PURGE) first")
    return json.dumps(file.removal(at_ms))
