"""A state of partial updates (`ignore_null_updates`): a change contains only the values that it changes, and the rest stays.

In: changes of keys. Out: commits to the state and its tombstones, as `state` makes them. `folded_state` of
`tests/merge/order.py` defines them.

A row of the state does not record the age of each of its values. That does not matter if all new changes of the key are newer:
their values overwrite its own. Keys with a late change are searched for in the whole log, and so are keys whose changes were
removed from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.merge.state import State
from forebay.merge.winners import ChangedKeys, newer

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class Partial(State):
    """A state whose rows combine several changes."""

    whole_rows = False

    def grows_into(self, schema: StructType) -> bool:
        """Whether the log's columns fit. Values of both go into one column, so their types must be equal, including inner
        types."""
        seen = self.table.seen()
        before = {} if seen is None else {field.name: field.dataType.simpleString() for field in seen.schema.fields}
        same = all(before.get(field.name) in (None, field.dataType.simpleString()) for field in schema.fields)
        return same and super().grows_into(schema)

    def winners(self, changes: DataFrame) -> DataFrame:
        return self._ranking.folded(changes)

    def to_merge(self, found: ChangedKeys, schema: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        fresh = self._kept(self._beside_what_is_known(found))
        touched, late = found.touched, fresh.where("late").select("k")
        if not late.isEmpty():
            touched = late if touched is None else touched.unionByName(late)
        over = F.struct(*(self._over(name).alias(name) for name in schema.names))
        row = F.when(F.col("deletes") | F.col("clears") | F.col("row").isNull(), F.col("r")).otherwise(over)
        in_order = fresh.where("not late").select("k", row.alias("r"), "deletes", "q", F.lit(False).alias("final"))
        if touched is None:
            return in_order
        folded = touched.join(self._ranking.folded(found.all_of(touched)), "k", "left")
        return in_order.unionByName(folded.select("k", "r", "deletes", "q", F.lit(True).alias("final")))

    # --- inside ---

    def _merge_tombstones(self, winners: DataFrame, version: int) -> None:
        """A delete is remembered where its key lives again, too. If the driver dies before the state is committed, the next one
        must still see which of the same changes are older than the delete."""
        super()._merge_tombstones(winners.where("deletes"), version)

    def _beside_what_is_known(self, found: ChangedKeys) -> DataFrame:
        """The new changes, a row a key, with the state's `row`. `late`: one of them may be older than it, or than a delete."""
        from pyspark.sql import functions as F

        fresh = self._ranking.folded(found.fresh)
        keys = fresh.select("k")
        rank = F.struct(*self._ranking.rank("row")).alias("state_q")
        state = self._rows_of(keys, self.table).select("k", "row", rank)
        rank = F.struct(*self._tombstone_rank("row")).alias("tombstone_q")
        tombstones = self._rows_of(keys, self._tombstones).select("k", rank)
        late = self._not_newer_than("state_q") | self._not_newer_than("tombstone_q")
        return fresh.join(state, "k", "left").join(tombstones, "k", "left").withColumn("late", late)

    def _not_newer_than(self, known: str) -> Expression:
        """A combined row does not have the hash of any of its changes, so the hash does not count."""
        from pyspark.sql import functions as F

        later = newer(self._ranking.parts_of("oldest")[:-1], self._ranking.parts_of(known)[:-1])
        return F.col(known).isNotNull() & ~later

    def _over(self, name: str) -> Expression:
        from pyspark.sql import functions as F

        value = F.col(f"r.`{name}`")
        return value if name.startswith("_") else F.coalesce(value, F.col(f"row.`{name}`"))
