"""A state of snapshots (`snapshot = true`): it has exactly the rows of the newest snapshot.

In: changes of keys, each with its snapshot's timestamp. Out: commits to the state, as `state` makes them. The function
`snapshot` of `tests/merge/order.py` defines it. Each step looks for the newest snapshot in the whole log. So older ones may
arrive late, files may be removed, and a snapshot may consist of several files. Its rows replace all others in one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.merge.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Snapshot(State):
    """A state whose rows are those of the newest snapshot."""

    def winners(self, changes: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        kind = changes.select("q.q0").schema[0].dataType
        # As text, because Python would take a timestamp for one of its own time zone. By a literal Delta passes over files.
        (newest,) = changes.agg(F.max("q.q0").cast("string")).collect()[0]
        return super().winners(changes.where(F.col("q.q0") == F.lit(newest).cast(kind)))
