"""The winner among the changes of each key, as Spark computes it; `tests/merge/order.py` is the definition.

In: rows that were added to the log or removed from it. Out: one row for each key that may change in the state:

* `k` the key, `r` the winning row, `q` its rank, `deletes`. Without a row (`r` is null) the key is gone from the log.
* `final`: the state's own row does not compete. So it is where rows left the log, and the winner was found in all of it.

A change without a key or a sequence cannot be placed, and is skipped. Batches keep such records in the quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from forebay.declaration.merge import FOLDER_TEXTS, Merge
from forebay.declared_sql.attempt import attempt

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

OF_A_BATCH = ("_batch", "_ingested_at")
"""Own columns that say how a row came here: another attempt, or a replay, has others."""
RANK = ("_file_id", "_line")


@dataclass(frozen=True)
class ChangedKeys:
    """`fresh`: changes of keys without changes that left the log; `touched`: keys with some that left. `log`: all changes."""

    fresh: DataFrame
    log: DataFrame
    touched: DataFrame | None = None

    def all_of(self, keys: DataFrame) -> DataFrame:
        """All changes of these keys."""
        return self.log.join(keys, "k", "left_semi")


class Ranking:
    """The expressions for one table of changes."""

    def __init__(self, merge: Merge, schema: StructType) -> None:
        self.merge, self._schema = merge, schema

    def changes(self, rows: DataFrame) -> DataFrame:
        """The rows that can be placed, as changes of keys."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        needed = [F.col(f"`{name}`").isNotNull() for name in (*self.merge.keys, *self.merge.sequence_by)]
        # A row in a folder that Delta reads as null would never be found again.
        texts = [name for name in self.merge.partitions if isinstance(self._schema[name].dataType, StringType)]
        needed += [F.col(f"`{name}`").rlike(f"^(?:{FOLDER_TEXTS})\\z") for name in texts]
        placed = rows.where(reduce(lambda a, b: a & b, needed))
        deletes = F.lit(False)
        if self.merge.delete_when is not None:
            # `attempt` needs a condition that is not constant.
            tried = attempt(self.merge.delete_when, "boolean", F.col(f"`{self.merge.keys[0]}`").isNotNull())
            deletes = F.coalesce(tried["value"], F.lit(False))
        return placed.select(
            F.struct(*(F.col(f"`{name}`") for name in self.merge.keys)).alias("k"),
            F.struct(*(F.col(f"`{field.name}`") for field in self._schema.fields)).alias("r"),
            deletes.alias("deletes"),
            F.struct(*self.rank("")).alias("q"),
        )

    def latest(self, changes: DataFrame) -> DataFrame:
        """The latest change of each key. Partial results are merged, so one key may have a million changes."""
        from pyspark.sql import functions as F

        best = F.max_by(F.struct("r", "deletes", "q"), F.col("q")).alias("w")
        return changes.groupBy("k").agg(best).select("k", "w.*")

    def folded(self, changes: DataFrame) -> DataFrame:
        """The latest change of each key, in which each column has its latest value since the key was deleted. `oldest` is the
        least rank among these changes, `clears` whether one of them deletes."""
        from pyspark.sql import functions as F

        names = [field.name for field in self._schema.fields]
        valued = {name: F.col(f"r.`{name}`") for name in names if not name.startswith("_")}
        best = [
            F.max_by(F.struct(value.alias("v"), "q"), F.when(value.isNotNull(), F.col("q"))).alias(f"of {name}")
            for name, value in valued.items()
        ]
        latest = F.max_by(F.struct("r", "deletes", "q"), F.col("q")).alias("w")
        cleared = F.max(F.when(F.col("deletes"), F.col("q"))).alias("cleared")
        keys = changes.groupBy("k").agg(latest, F.min("q").alias("oldest"), cleared, *best)

        def value(name: str) -> Expression:
            if name not in valued:
                return F.col(f"w.r.`{name}`")
            since = newer(self.parts_of(f"`of {name}`.q"), self.parts_of("cleared"))
            return F.when(F.col("cleared").isNull() | since, F.col(f"`of {name}`.v"))

        row = F.struct(*(value(name).alias(name) for name in names))
        row = F.when(F.col("w.deletes"), F.col("w.r")).otherwise(row).alias("r")
        return keys.select("k", row, "w.deletes", "w.q", "oldest", F.col("cleared").isNotNull().alias("clears"))

    def versions(self, changes: DataFrame) -> DataFrame:
        """The greatest change of a key by timestamp, with its timestamp (`at`) and that of the next one (`until`)."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        best = F.max_by(F.struct("r", "deletes", "q"), F.col("q")).alias("w")
        moments = changes.groupBy("k", F.col("q.q0").alias("at")).agg(best).select("k", "at", "w.*")
        return moments.withColumn("until", F.lead("at").over(Window.partitionBy("k").orderBy("at")))

    def difference(self, log: DataFrame, came: DataFrame, left: DataFrame | None) -> ChangedKeys:
        """The keys to check after rows came to the log and, perhaps, left it."""
        fresh = self.changes(came)
        if left is None:
            return ChangedKeys(fresh, self.changes(log))
        touched = self._touched(came, left)
        return ChangedKeys(fresh.join(touched, "k", "left_anti"), self.changes(log), touched)

    def latest_of_difference(self, found: ChangedKeys) -> DataFrame:
        """The winners among these changes, one row a key."""
        from pyspark.sql import functions as F

        added = self.latest(found.fresh).withColumn("final", F.lit(False))
        if found.touched is None:
            return added
        latest = found.touched.join(self.latest(found.all_of(found.touched)), "k", "left").withColumn(
            "final", F.lit(True)
        )
        return latest.unionByName(added)

    def rank(self, prefix: str) -> list[Expression]:
        """The parts of a row's rank, in order; never null in a change that can be placed."""
        from pyspark.sql import functions as F

        def column(name: str) -> Expression:
            return F.col(f"{prefix}.`{name}`" if prefix else f"`{name}`")

        parts = [column(name).alias(f"q{at}") for at, name in enumerate(self.merge.sequence_by)]
        parts.append(F.coalesce(column("_file_id"), F.lit("")).alias("file"))
        parts.append(F.coalesce(column("_line").cast("long"), F.lit(-1)).alias("line"))
        return [*parts, hash_of(self._schema, column, without=OF_A_BATCH).alias("content")]

    def parts_of(self, rank: str) -> list[Expression]:
        """The same parts of a rank that was computed before."""
        from pyspark.sql import functions as F

        names = [*(f"q{at}" for at in range(len(self.merge.sequence_by))), "file", "line", "content"]
        return [F.col(f"{rank}.{name}") for name in names]

    def _touched(self, came: DataFrame, left: DataFrame) -> DataFrame:
        """Keys whose rows differ from before. An overwrite copies unchanged rows: these are in both, and cancel out."""
        from pyspark.sql import functions as F

        def signed(rows: DataFrame, sign: int) -> DataFrame:
            needed = reduce(lambda a, b: a & b, (F.col(f"`{name}`").isNotNull() for name in self.merge.keys))
            key = F.struct(*(F.col(f"`{name}`") for name in self.merge.keys)).alias("k")
            content = hash_of(self._schema, lambda name: F.col(f"`{name}`")).cast("decimal(38,0)") * sign
            return rows.where(needed).select(key, F.lit(sign).alias("n"), content.alias("content"))

        leaving = signed(left, -1)
        both = leaving.unionByName(signed(came, 1).join(leaving.select("k").distinct(), "k", "left_semi"))
        sums = both.groupBy("k").agg(F.sum("n").alias("n"), F.sum("content").alias("content"))
        return sums.where("n != 0 or content != 0").select("k")


def hash_of(schema: StructType, column: Callable[[str], Expression], *, without: Sequence[str] = ()) -> Expression:
    """The hash of all columns by name, so that neither their order nor new ones without a value change it."""
    from pyspark.sql import functions as F

    parts: list[Expression] = []
    for field in sorted(schema.fields, key=lambda field: field.name):
        if field.name not in without:
            value = column(field.name)
            parts += [F.when(value.isNotNull(), F.lit(field.name)), _hashable(value, field.dataType)]
    return F.xxhash64(*parts)


def _hashable(value: Expression, kind: DataType) -> Expression:
    """A hash passes over nulls in lists and structs, and refuses maps. So each element has a hash of its own."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    def hashed(one: Expression, its: DataType) -> Expression:
        return F.xxhash64(one.isNull(), _hashable(one, its))

    if isinstance(kind, StructType):
        return hash_of(kind, value.getField)
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda one: hashed(one, kind.elementType))
    if isinstance(kind, MapType):
        pair = StructType().add("key", kind.keyType).add("value", kind.valueType)
        return F.array_sort(F.transform(F.map_entries(value), lambda one: hashed(one, pair)))
    return value


def newer(one: Sequence[Expression], other: Sequence[Expression]) -> Expression:
    """Whether one rank is greater than another. Later parts, such as a hash, are computed only where the first are equal."""
    from pyspark.sql import functions as F

    found = F.lit(False)
    for a, b in reversed(list(zip(one, other, strict=True))):
        found = (a > b) | ((a == b) & found)
    return found
