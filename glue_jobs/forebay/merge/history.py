"""The history of each key, as slowly changing dimensions have it (type 2): a row for each version, with its time.

In: changes of keys. Out: commits to the state and its tombstones, as `state` makes them. A version is in force from
`valid_from`, its own timestamp, until `valid_to`, the timestamp of the next change; null while it is in force. The function
`history` of `tests/merge/order.py` is the definition.

The versions of a key come from all its changes. The state has those that are versions, and the tombstones those that delete.
So if rows were only added to the log, nothing else of it is read. An end that no version and no tombstone explains was a
delete whose tombstone has expired; it remains an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.declaration.merge import HISTORY_COLUMNS
from forebay.merge.state import State
from forebay.merge.winners import ChangedKeys

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NOBODYS_FILE = ""
"""The file of an end that no change explains."""


class History(State):
    """A state with the versions of each key. Each merged version and delete is identified by its key and timestamp (`k`,
    `at`)."""

    whole_rows = False

    def winners(self, changes: DataFrame) -> DataFrame:
        return self._ranking.versions(changes)

    def to_merge(self, found: ChangedKeys, schema: StructType) -> DataFrame:
        """Moments at which a version or a delete is new, is gone, or has another end. `lives`: a version is there after it;
        `final`: the tombstone of the moment must come, change or go."""
        from pyspark.sql import functions as F

        keys = found.fresh.select("k")
        if found.touched is not None:
            keys = keys.unionByName(found.touched)
        keys = keys.distinct()
        state, tombstones = self._rows_of(keys, self.table), self._rows_of(keys, self._tombstones)
        candidates = found.fresh.unionByName(self._changes_of(state, tombstones, schema, found))
        if found.touched is not None:
            candidates = candidates.unionByName(found.all_of(found.touched))
        after = self._ranking.versions(candidates)
        # An end without a row stands for a delete; it has no place among the tombstones.
        after = after.where(~F.col("deletes") | (F.col("q.file") != NOBODYS_FILE))
        both = after.join(self._known(state, tombstones), ["k", "at"], "full_outer")
        lives, dies = (F.coalesce(flag, F.lit(False)) for flag in (~F.col("deletes"), F.col("deletes")))
        same = F.col("q_row").eqNullSafe(F.col("q")) & F.col("until_row").eqNullSafe(F.col("until"))
        row_is_right = F.when(lives, same).otherwise(F.col("q_row").isNull())
        tombstone_is_right = F.when(dies, F.col("q_tombstone").eqNullSafe(F.col("q"))).otherwise(
            F.col("q_tombstone").isNull()
        )
        wrong = both.where(~row_is_right | ~tombstone_is_right)
        flags = [lives.alias("lives"), dies.alias("deletes"), (~tombstone_is_right).alias("final")]
        return wrong.select("k", "at", "until", "r", "q", *flags)

    # --- inside ---

    def _known(self, state: DataFrame, tombstones: DataFrame) -> DataFrame:
        """The current entries by timestamp: a version, a delete, or, after a crash, both."""
        from pyspark.sql import functions as F

        rank = F.struct(*self._ranking.rank("row")).alias("q_row")
        rows = state.select("k", F.col("row.valid_from").alias("at"), F.col("row.valid_to").alias("until_row"), rank)
        rank = F.struct(*self._tombstone_rank("row")).alias("q_tombstone")
        deletes = tombstones.select("k", rank).select("k", F.col("q_tombstone.q0").alias("at"), "q_tombstone")
        return rows.join(deletes, ["k", "at"], "full_outer")

    def _changes_of(self, state: DataFrame, tombstones: DataFrame, schema: StructType, found: ChangedKeys) -> DataFrame:
        """The changes that the two tables were made of, of keys that are not looked for in the whole log."""
        from pyspark.sql import functions as F

        if found.touched is not None:
            state, tombstones = (rows.join(found.touched, "k", "left_anti") for rows in (state, tombstones))
        alive = self._ranking.changes(state.select(*(F.col(f"row.`{name}`") for name in schema.names)))
        no_row = F.lit(None).cast(alive.schema["r"].dataType).alias("r")
        rank = F.struct(*self._tombstone_rank("row")).alias("q")
        dead = tombstones.select("k", no_row, F.lit(True).alias("deletes"), rank)
        kinds = alive.select("q.*").schema
        # The least rank of all: a known change or delete with the same timestamp replaces it.
        least = {"file": F.lit(NOBODYS_FILE), "line": F.lit(-1).cast("long"), "content": F.lit(-(2**63)).cast("long")}
        parts = (least.get(kind.name, F.lit(None).cast(kind.dataType)).alias(kind.name) for kind in kinds.fields[1:])
        end = F.struct(F.col("row.valid_to").alias("q0"), *parts)
        ended = state.where("row.valid_to is not null")
        ends = ended.select("k", no_row, F.lit(True).alias("deletes"), end.alias("q"))
        return alive.unionByName(dead).unionByName(ends)

    def _merge_tombstones(self, winners: DataFrame, version: int) -> None:
        from pyspark.sql import functions as F

        values = F.struct(*self._tombstone_values()).alias("v")
        source = winners.where("final").select("k", "at", "deletes", values)
        here = self._same_key() & (F.col(f"t.`{self._merge.sequence_by[0]}`") == F.col("s.at"))
        columns = {name: F.col(f"s.v.{name}") for name in self._tombstone_columns()}
        dies = F.col("s.deletes")
        merge = self._tombstones.merge(source, here).whenMatchedDelete(~dies)
        merge = merge.whenMatchedUpdate(dies, columns).whenNotMatchedInsert(dies, columns)
        self._tombstones.execute(merge, self.txn(version))

    def _merge_rows(self, winners: DataFrame, schema: StructType, version: int) -> None:
        from pyspark.sql import functions as F

        here = self._same_row(self._places_of(winners)) & (F.col("t.valid_from") == F.col("s.at"))
        lives = F.col("s.lives")
        values = {f"`{name}`": F.col(f"s.r.`{name}`") for name in schema.names}
        values |= {"valid_from": F.col("s.at"), "valid_to": F.col("s.until")}
        merge = self.table.merge(winners, here).whenMatchedDelete(~lives).whenMatchedUpdate(lives, values)
        self.table.execute(merge.whenNotMatchedInsert(lives, values), self.txn(version))

    def _values(self, schema: StructType) -> list[Expression]:
        from pyspark.sql import functions as F

        own = [F.col("at").alias("valid_from"), F.col("until").alias("valid_to")]
        return [*super()._values(schema), *own]

    def _without_own(self, schema: StructType) -> StructType:
        from pyspark.sql.types import StructType

        return StructType([field for field in schema.fields if field.name not in HISTORY_COLUMNS])
