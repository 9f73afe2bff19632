"""Changes the counts of files that are already in the ledger: held records moved, or rows of a superseded file were removed
from a table. Or the time of files whose bytes were put again.

In: rows of the ledger, before and after. Out: one commit, of counts with the given transaction. Only times are written, or
counts and the reason that they explain. Other changes to a file in the meantime, such as a mark for a replay, stay. If another
writer changed one of the counts, nothing is committed, and the change is repeated. The rows travel as a table, so their number
does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay.counted import counted
from forebay.errors import Halt
from forebay.table.commit import Txn, is_conflict, until_it_commits
from forebay.table.exchange import of_session
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from delta.tables import DeltaMergeBuilder
    from pyspark.sql import DataFrame, SparkSession

Change = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A row before and after the change."""

COUNTS = ("written", "quarantined", "parked", "dropped")
COLUMNS = ", ".join(
    [
        "day date, file_id string, reason string, was_reason string, tables map<string, long>",
        *(f"{name} long, was_{name} long" for name in COUNTS),
    ]
)
KINDS = {"day": "date", "event_time": "timestamp", "tries": "long"}
"""The types of columns; the others are texts."""
OTHERWISE = "the ledger's counts have changed"
CHANGED = "was changed by other writers at each attempt"


def change_counts(
    spark: SparkSession, path: str, changes: Callable[[], Sequence[Change]], *, txn: Txn, logs: TableLogs
) -> None:
    """`changes` is asked again before each attempt. Run again, it finds its transaction and does nothing."""

    def commit() -> None:
        if not logs.has(path, txn, again=True) and (now := changes()):
            _merge_counts(spark, path, now, txn)

    until_it_commits(commit, f"{path} {CHANGED}; run the command again to finish it", _may_succeed)


def change_times(spark: SparkSession, path: str, rows: Sequence[Mapping[str, Any]], *others: str) -> None:
    """`rows` have the times, and the `others` of their columns that change with them. Run again, it changes nothing."""
    changed = ("sequencer", "event_time", *others)
    kinds = {name: KINDS.get(name, "string") for name in ("day", "file_id", *changed)}
    changed_rows = [{name: row[name] for name in kinds} for row in rows]

    def commit() -> None:
        now = spark.createDataFrame(changed_rows, ", ".join(map(" ".join, kinds.items())))
        merge = _merge_of(spark, path, now, changed_rows)
        merge.whenMatchedUpdate(set={name: f"n.{name}" for name in changed}).execute()

    until_it_commits(commit, f"{path} {CHANGED}; start the job again")


def _may_succeed(refused: Exception) -> bool:
    return is_conflict(refused) or OTHERWISE in str(refused)


def _merge_counts(spark: SparkSession, path: str, changes: Sequence[Change], txn: Txn) -> None:
    from pyspark.sql import functions as F

    changed_rows = spark.createDataFrame([_both(was, now) for was, now in changes], COLUMNS)
    same = " AND ".join(f"l.{name} = n.was_{name}" for name in COUNTS)
    refusal = F.raise_error(F.concat(F.col("n.file_id"), F.lit(f": {OTHERWISE}")))
    guarded = F.when(F.expr(same), F.col("n.written")).otherwise(refusal)
    merge = _merge_of(spark, path, changed_rows, [was for was, _ in changes])
    reason = F.when(F.expr("l.reason <=> n.was_reason"), F.col("n.reason")).otherwise(F.col("l.reason"))
    others = {name: f"n.{name}" for name in ("tables", *COUNTS) if name != "written"}
    with of_session(spark, txn):
        done = merge.whenMatchedUpdate(set={**others, "reason": reason, "written": guarded}).execute().first()
    if done is None or done["num_updated_rows"] != len(changes):
        raise Halt(f"{path}: {counted(len(changes), 'row')} should change, but Delta's commit changed {done}")


def _merge_of(
    spark: SparkSession, path: str, changed_rows: DataFrame, rows: Sequence[Mapping[str, Any]]
) -> DeltaMergeBuilder:
    """Finds the ledger's rows `l` of these rows `n`. Their days are named, so other partitions are not read."""
    from delta.tables import DeltaTable

    days = ", ".join(sorted({f"date '{row['day']}'" for row in rows}))
    same = f"l.day IN ({days}) AND l.day = n.day AND l.file_id = n.file_id"
    return DeltaTable.forPath(spark, path).alias("l").merge(changed_rows.alias("n"), same)


def _both(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    before = {f"was_{name}": was[name] for name in ("reason", *COUNTS)}
    return {**{name: now[name] for name in ("day", "file_id", "reason", "tables", *COUNTS)}, **before}
