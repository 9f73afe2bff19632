"""The current state, and the keys that were deleted: two tables, updated to a version of the log by commits that count once.

In: winners. Out: commits that carry the log's version as their transaction. Deleted keys come first. If the driver dies between
the two commits, the next one does both again, and finds its own deletes among the deleted: equal ranks change nothing.

A state belongs to one log and one way to merge it. If the way changes, its transactions get a new name. None exists under that
name, so the state is computed from the whole log. Another log at the path of its own is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from forebay.declaration.merge import Merge
from forebay.declaration.table import RESERVED
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import table_path, tombstones_of
from forebay.lake.objects import Objects
from forebay.lake.origin import origin_replaced
from forebay.merge.derived import Derived
from forebay.merge.lag import APPS, is_of
from forebay.merge.literals import literal, to_collect
from forebay.merge.winners import RANK, ChangedKeys, Ranking, newer
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs
from forebay.table.schema import nullable

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NOTED = "_ingested_at"
"""The column with a tombstone's age."""
Places = Sequence[tuple[str, list[Any]]]
"""Partition columns, with the values that some rows have there."""
MOST_PARTITIONS = 1000
"""That a merge names. Of more it reads all."""


def way_of(merge: Merge, log_id: str) -> str:
    """Identifies the log of a state, and how it is merged. It leaves out settings that change no winner, and undeclared ones,
    so a release with new settings recomputes no state."""
    way = merge.model_dump_json(exclude={"tombstone_days", "change_feed"}, exclude_defaults=True)
    return f"{APPS}{log_id}:{hashlib.sha256(way.encode()).hexdigest()[:16]}"


class State:
    """The tables of one state, in one lake."""

    whole_rows = True
    """Whether a change says all of a row, so that the state's own row decides no more than who wins."""

    def __init__(
        self,
        session: SparkSession,
        lake: str,
        log: str,
        name: str,
        ranking: Ranking,
        logs: TableLogs,
    ) -> None:
        self._session, self._log, self.name, self._ranking, self._logs = session, log, name, ranking, logs
        self._merge, self._app_id = ranking.merge, ""
        self.table = Derived(session, logs, table_path(lake, name), log, change_feed=ranking.merge.change_feed)
        self._tombstones = Derived(session, logs, table_path(lake, tombstones_of(name)), log, beside=self.table)
        self._cached: list[DataFrame] = []
        self._fresh: Places = ()

    def version(self, way: str) -> int:
        """The version of the log that the state has, merged in this way; -1 if it must be computed from the whole log."""
        self._app_id = self.table.transactions(way)
        if self._tombstones.version_of(self._app_id) < 0:
            return -1
        return self.table.version_of(self._app_id)

    def must_be_ours(self, objects: Objects) -> None:
        """Refuses a table at the state's path that is not a state. `objects` are those at that place."""
        if self.name in RESERVED or self.name.startswith(("_", ".")):
            raise InvalidConfiguration.one(
                f"table {self.name}", "has a name that is reserved for forebay", "give the state another name"
            )
        self.table.must_be_ours(objects, f"give the state of {self._log} another name in merge.into")

    def must_be_of(self, log_id: str) -> None:
        """Refuses another table at the log's place: the state may be the only copy of its rows."""
        if not is_of(self.table.computed_by(), log_id):
            raise Halt(origin_replaced(self.name, self._log))

    def grows_into(self, schema: StructType) -> bool:
        """Whether the log has the state's columns, or more."""
        seen = self.table.seen()
        return seen is not None and _grows(self._without_own(seen.schema), schema)

    def winners(self, changes: DataFrame) -> DataFrame:
        """The changes that become rows of the state and of the tombstones."""
        return self._ranking.latest(changes)

    def compute(self, winners: DataFrame, schema: StructType, version: int) -> None:
        """Computes the state from the winners of the whole log. Readers see the old state until the commit."""
        rows = winners.where("not deletes").select(*self._values(schema))
        self.table.create(nullable(rows.schema), self._merge.partitions)
        self._tombstones.overwrite(winners.where("deletes").select(*self._tombstone_values()), (), self.txn(version))
        self.table.overwrite(rows, self._merge.partitions, self.txn(version))

    def to_merge(self, found: ChangedKeys, schema: StructType) -> DataFrame:
        """The rows to merge after these changes, with `deletes` and `final`: whether a row is a delete, and whether it holds
        without the state's own."""
        return self._competing(self._ranking.latest_of_difference(found), found.fresh)

    def change(self, winners: DataFrame, schema: StructType, version: int, *, deletes: bool, final: bool) -> None:
        """Merges the rows of `to_merge`. `deletes` and `final`: whether any of them deletes, or is final."""
        if deletes or final:
            self._merge_tombstones(winners, version)
        self._merge_rows(winners, schema, version)
        self.table.note(self.txn(version))

    @property
    def only_grows(self) -> bool:
        """Whether none of its changes deletes, so that the winners can be merged without another query."""
        return self.whole_rows and self._merge.delete_when is None

    def add(self, winners: DataFrame, schema: StructType, version: int) -> None:
        """Merges winners that delete nothing. Their changes name the partitions, so Delta computes the winners only once."""
        from pyspark.sql import functions as F

        values = {f"`{name}`": F.col(f"s.r.`{name}`") for name in schema.names}
        merge = self.table.merge(winners, self._same_row(self._fresh))
        merge = merge.whenMatchedUpdate(self._wins(self._ranking.rank("t")), values)
        self.table.execute(merge.whenNotMatchedInsert(None, values), self.txn(version))
        self.table.note(self.txn(version))

    def _competing(self, winners: DataFrame, fresh: DataFrame) -> DataFrame:
        """Changes that are not older than the deletion of their key, or than its row. MERGE rewrites each file that has a
        row of such a key, also where no row changes. Ranks of rows are compared without their last part, for which all
        columns would have to be read: MERGE compares that."""
        from pyspark.sql import functions as F

        keys = F.struct(*(F.col(f"`{name}`") for name in self._merge.keys))
        known = self._tombstones.rows().select(keys.alias("tk"), F.struct(*self._tombstone_rank("")).alias("tq"))
        rank = F.struct(*self._ranking.rank("row")[:-1]).alias("rq")
        self._fresh = self._places_of(fresh)
        rows = self._rows_of(fresh.select("k"), self.table, self._fresh).select(F.col("k").alias("rk"), rank)
        both = winners.join(known, F.col("k") == F.col("tk"), "left").join(rows, F.col("k") == F.col("rk"), "left")
        deleted = F.col("tk").isNotNull() & newer(self._ranking.parts_of("tq"), self._ranking.parts_of("q"))
        late = F.col("rk").isNotNull() & newer(self._ranking.parts_of("rq")[:-1], self._ranking.parts_of("q")[:-1])
        return both.where(F.col("final") | ~(deleted | late)).drop("tk", "tq", "rk", "rq")

    def forget(self, before: object) -> None:
        """Deletes tombstones that are older than a moment."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        table = DeltaTable.forPath(self._session, self._tombstones.path)
        table.delete(F.col(NOTED) < F.lit(before))

    def grow(self, schema: StructType) -> None:
        """Gives the state the log's new columns, in a commit without rows."""
        seen = self.table.seen()
        if seen is not None and _grows(schema, seen.schema):
            return
        nothing = self.table.nothing(schema)
        nothing.write.format("delta").mode("append").option("mergeSchema", "true").save(self.table.path)

    def txn(self, version: int) -> Txn:
        """The transaction of commits for this version of the log."""
        return Txn(self._app_id, version)

    def let_go(self) -> None:
        """Releases rows that were kept from one job to the next."""
        for rows in self._cached:
            rows.unpersist()

    # --- inside ---

    def _kept(self, rows: DataFrame) -> DataFrame:
        self._cached.append(rows.persist())
        return rows

    def _rows_of(self, keys: DataFrame, table: Derived, places: Places | None = None) -> DataFrame:
        """Rows of these keys in one of the two tables, each with its key. They are in these `places` of the state."""
        from pyspark.sql import functions as F

        rows = table.rows()
        if table is self.table:
            for here in _within(self._places_of(keys) if places is None else places):
                rows = rows.where(here)
        key = F.struct(*(F.col(f"`{name}`") for name in self._merge.keys))
        return rows.select(key.alias("k"), F.struct("*").alias("row")).join(keys, "k", "left_semi")

    def _merge_tombstones(self, winners: DataFrame, version: int) -> None:
        from pyspark.sql import functions as F

        final, wins = F.col("s.final"), self._wins(self._tombstone_rank("t"))
        values = {name: F.col(f"s.v.{name}") for name in self._tombstone_columns()}
        gone = F.col("r").isNull().alias("gone")
        source = winners.select("k", "deletes", "final", "q", gone, F.struct(*self._tombstone_values()).alias("v"))
        merge = self._tombstones.merge(source, self._same_key())
        merge = merge.whenMatchedDelete(F.col("s.gone") | (~F.col("s.deletes") & (final | wins)))
        merge = merge.whenMatchedUpdate(F.col("s.deletes") & (final | wins), values)
        self._tombstones.execute(merge.whenNotMatchedInsert(F.col("s.deletes"), values), self.txn(version))

    def _merge_rows(self, winners: DataFrame, schema: StructType, version: int) -> None:
        from pyspark.sql import functions as F

        wins = F.col("s.final") | self._wins(self._ranking.rank("t"))
        gone = F.col("s.r").isNull()
        values = {f"`{name}`": F.col(f"s.r.`{name}`") for name in schema.names}
        merge = self.table.merge(winners, self._same_row(self._places_of(winners)))
        merge = merge.whenMatchedDelete(gone | (F.col("s.deletes") & wins)).whenMatchedUpdate(~gone & wins, values)
        self.table.execute(merge.whenNotMatchedInsert(~gone & ~F.col("s.deletes"), values), self.txn(version))

    def _wins(self, others: list[Expression]) -> Expression:
        return newer(self._ranking.parts_of("s.q"), others)

    def _same_key(self) -> Expression:
        from pyspark.sql import functions as F

        return reduce(lambda a, b: a & b, (F.col(f"t.`{n}`") == F.col(f"s.k.`{n}`") for n in self._merge.keys))

    def _same_row(self, places: Places) -> Expression:
        return reduce(lambda a, b: a & b, _within(places, "t."), self._same_key())

    def _places_of(self, keys: DataFrame) -> Places:
        """Their partitions as literals, so that Delta skips the files of other partitions."""
        from pyspark.sql import functions as F

        if not self._merge.partitions:
            return ()
        found = keys.select(*(F.col(f"k.`{name}`") for name in self._merge.partitions)).distinct()
        kinds = {field.name: field.dataType for field in found.schema.fields}
        values = (to_collect(F.col(f"`{name}`"), kind).alias(name) for name, kind in kinds.items())
        rows = found.limit(MOST_PARTITIONS + 1).select(*values).collect()
        return tuple(
            (name, [literal(value, kind) for value in sorted({row[name] for row in rows})])
            for name, kind in (kinds.items() if len(rows) <= MOST_PARTITIONS else ())
        )

    def _values(self, schema: StructType) -> list[Expression]:
        """The values, keys first: Delta keeps statistics of the first columns, and a merge skips files by them."""
        from pyspark.sql import functions as F

        names = [*self._merge.keys, *(name for name in schema.names if name not in self._merge.keys)]
        return [F.col(f"r.`{name}`") for name in names]

    def _without_own(self, schema: StructType) -> StructType:
        """Its columns from the log."""
        return schema

    def _tombstone_columns(self) -> list[str]:
        return [*(f"`{name}`" for name in (*self._merge.keys, *self._ordering(), *RANK, NOTED)), "_content"]

    def _tombstone_values(self) -> list[Expression]:
        from pyspark.sql import functions as F

        of_row = [F.col(f"r.`{name}`") for name in (*self._ordering(), *RANK, NOTED)]
        return [*(F.col(f"k.`{name}`") for name in self._merge.keys), *of_row, F.col("q.content").alias("_content")]

    def _ordering(self) -> list[str]:
        """The columns that order the changes. A column may also be a key."""
        return [name for name in self._merge.sequence_by if name not in self._merge.keys]

    def _tombstone_rank(self, prefix: str) -> list[Expression]:
        from pyspark.sql import functions as F

        before = f"{prefix}." if prefix else ""
        parts = [F.col(f"{before}`{name}`").alias(f"q{at}") for at, name in enumerate(self._merge.sequence_by)]
        parts.append(F.coalesce(F.col(f"{before}_file_id"), F.lit("")).alias("file"))
        parts.append(F.coalesce(F.col(f"{before}_line").cast("long"), F.lit(-1)).alias("line"))
        return [*parts, F.col(f"{before}_content").alias("content")]


def _within(places: Places, prefix: str = "") -> Iterator[Expression]:
    from pyspark.sql import functions as F

    return (F.col(f"{prefix}`{name}`").isin(values) for name, values in places)


def _grows(before: Any, after: Any) -> bool:
    """Whether a type is the other one, with or without more fields inside."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(before, StructType) and isinstance(after, StructType):
        kinds = {field.name: field.dataType for field in after.fields}
        return all(field.name in kinds and _grows(field.dataType, kinds[field.name]) for field in before.fields)
    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return _grows(before.elementType, after.elementType)
    if isinstance(before, MapType) and isinstance(after, MapType):
        return _grows(before.valueType, after.valueType)
    return bool(before == after)
