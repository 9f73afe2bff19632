"""Changes the counts of files that are already in the ledger: held records moved, or rows of a superseded file were removed
from a table. Or the time of files whose bytes were put again.

In: rows of the ledger, before and after. Out: one commit, of counts with the given transaction. Only counts, or times, are
written. Other changes to a file in the meantime, such as a mark for a replay, remain. If another writer changed one of the
counts, nothing is committed, and the change is repeated. The rows travel as a table, so their number does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay.aws.retrying import attempts
from forebay.counted import counted
from forebay.errors import Halt
from forebay.table.commit import Txn, is_conflict
from forebay.table.exchange import of_session
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["COUNTS", "Change", "change_counts", "change_times"]

Change = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A row before and after the change."""

COUNTS = ("written", "quarantined", "parked", "dropped")
COLUMNS = ", ".join(
    ["day date, file_id string, tables map<string, long>", *(f"{name} long, was_{name} long" for name in COUNTS)]
)
OTHERWISE = "the ledger's counts have changed"


def change_counts(
    spark: SparkSession, path: str, changes: Callable[[], Sequence[Change]], *, txn: Txn, logs: TableLogs
) -> None:
    """`changes` is asked again before each attempt. Run again, it finds its transaction and does nothing."""
    why: Exception | None = None
    for _ in attempts():
        if logs.has(path, txn, again=True):
            return
        try:
            if now := changes():
                _merge(spark, path, now, txn)
            return
        except Exception as refused:
            if not is_conflict(refused) and OTHERWISE not in str(refused):
                raise
            why = refused
    raise Halt(f"{path} was changed by other writers at each attempt; run the command again to finish it: {why}")


def change_times(spark: SparkSession, path: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """`rows` have the times. Run again, it changes nothing."""
    from delta.tables import DeltaTable

    told = [{name: row[name] for name in ("day", "file_id", "sequencer", "event_time")} for row in rows]
    days = ", ".join(sorted({f"date '{row['day']}'" for row in rows}))
    why: Exception | None = None
    for _ in attempts():
        now = spark.createDataFrame(told, "day date, file_id string, sequencer string, event_time timestamp").alias("n")
        ledger = DeltaTable.forPath(spark, path).alias("l")
        merge = ledger.merge(now, f"l.day IN ({days}) AND l.day = n.day AND l.file_id = n.file_id")
        try:
            merge.whenMatchedUpdate(set={"sequencer": "n.sequencer", "event_time": "n.event_time"}).execute()
            return
        except Exception as refused:
            if not is_conflict(refused):
                raise
            why = refused
    raise Halt(f"{path} was changed by other writers at each attempt; start the job again: {why}")


def _merge(spark: SparkSession, path: str, changes: Sequence[Change], txn: Txn) -> None:
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F

    told = spark.createDataFrame([_told(was, now) for was, now in changes], COLUMNS)
    days = ", ".join(sorted({f"date '{was['day']}'" for was, _ in changes}))
    same = " AND ".join(f"l.{name} = n.was_{name}" for name in COUNTS)
    refusal = F.raise_error(F.concat(F.col("n.file_id"), F.lit(f": {OTHERWISE}")))
    guarded = F.when(F.expr(same), F.col("n.written")).otherwise(refusal)
    ledger = DeltaTable.forPath(spark, path).alias("l")
    merge = ledger.merge(told.alias("n"), f"l.day IN ({days}) AND l.day = n.day AND l.file_id = n.file_id")
    others = {name: f"n.{name}" for name in ("tables", *COUNTS) if name != "written"}
    with of_session(spark, txn):
        done = merge.whenMatchedUpdate(set={**others, "written": guarded}).execute().first()
    if done is None or done["num_updated_rows"] != len(changes):
        raise Halt(f"{path}: {counted(len(changes), 'row')} should change, but Delta's commit changed {done}")


def _told(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    before = {f"was_{name}": was[name] for name in COUNTS}
    return {**{name: now[name] for name in ("day", "file_id", "tables", *COUNTS)}, **before}
