"""Removes the rows of earlier files from a table in one commit, and adds new rows in the next.

In: the ids of the files whose rows leave, the rows that come, and their batch. Out: an outcome as an append has it.

Two commits, so that a stream with `skipChangeCommits` gets every new row: it skips a commit that removes anything as a whole.
Only the append carries the batch's transaction. The removal has its own, so a repeated batch, or a late driver, removes
nothing again. It never removes rows that the batch itself wrote. The new data files are written before anything is removed, so
readers miss the rows only for the time of one commit. After the earlier rows were removed, the new ones must be added, so a
failure is then a `Halt`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from datetime import datetime
from typing import TYPE_CHECKING

from forebay.aws.retrying import attempts
from forebay.errors import ForebayError, Halt
from forebay.events import Emit
from forebay.table.commit import LogFailed, Txn, is_conflict
from forebay.table.destination import AppendResult, Destination, Failed, Skipped
from forebay.table.exchange import of_session
from forebay.table.fan_out import ATTEMPTS, ChangesTooOften, commit_staged
from forebay.table.kernel import Seen, TableLogs
from forebay.table.replace import FEW_IDS, NotReplaced, texts, unanswered
from forebay.table.staging import StagedOrNot, StagingFromSpark, look

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def remove_then_append(
    spark: SparkSession,
    table: Destination,
    file_ids: Collection[str],
    rows: Callable[[Seen | None], DataFrame],
    *,
    expected: int,
    began_at: datetime,
    txn: Txn,
    logs: TableLogs,
    emit: Emit,
) -> AppendResult:
    """The table must exist. Rows of `file_ids` leave it, and `expected` rows come, with `began_at` in `_ingested_at`. They are
    made again where somebody changes the table's columns meanwhile."""
    last: ForebayError = ChangesTooOften()
    for _ in range(ATTEMPTS):
        staged = _staged(spark, table, rows, expected, txn, logs, emit)
        if isinstance(staged, Skipped):
            return staged
        if isinstance(staged, Failed):
            return _while_they_stand(spark, table, file_ids, staged)
        if (failed := remove(spark, table, file_ids, txn=txn, began_at=began_at)) is not None:
            return _while_they_stand(spark, table, file_ids, failed)
        coming = [(table, dataclasses.replace(staged, ready=None))]
        result = commit_staged(spark, coming, txn=txn, logs=logs, emit=emit, pool=1)[table.name]
        if not isinstance(result, Failed) or result.may_be_in:
            return result
        last = result.error
    raise _unfinished(table, last)


def remove(
    spark: SparkSession, table: Destination, file_ids: Collection[str], *, txn: Txn, began_at: datetime
) -> Failed | None:
    """Rows of these files leave, but for those that this very batch wrote. Run again, it does nothing."""
    for _ in attempts(ATTEMPTS if file_ids else 0):
        try:
            with of_session(spark, Txn(f"{txn.app_id}/removal", txn.version)):
                _delete(spark, table.path, file_ids, txn, began_at)
            return None
        except Exception as refused:
            if not is_conflict(refused):
                return _failed(table, refused)
    why = f"table {table.name} at {table.path} was changed by other writers {ATTEMPTS} times"
    return Failed(ChangesTooOften(why)) if file_ids else None


def _staged(
    spark: SparkSession,
    table: Destination,
    rows: Callable[[Seen | None], DataFrame],
    expected: int,
    txn: Txn,
    logs: TableLogs,
    emit: Emit,
) -> StagedOrNot:
    from pyspark.sql import functions as F

    try:
        seen = look(logs, table.path, txn, again=True)
        if isinstance(seen, Skipped):
            return seen
        named = rows(seen).withColumn("_table", F.lit(table.name))
        return StagingFromSpark(logs, named, txn, emit, {table.name: expected}).run([table], 1)[table.name]
    except LogFailed as unread:
        return Failed(unread, may_be_in=not unread.lasts)
    except Halt:
        raise
    except Exception as refused:
        return _failed(table, refused)


def _delete(spark: SparkSession, path: str, file_ids: Collection[str], txn: Txn, began_at: datetime) -> None:
    """Delta sees that nobody changed meanwhile what it rewrites, and commits nothing where it finds nothing."""
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F

    own = F.coalesce((F.col("_batch") == txn.version) & (F.col("_ingested_at") == F.lit(began_at)), F.lit(False))
    there = DeltaTable.forPath(spark, path)
    if len(file_ids) <= FEW_IDS:
        there.delete(F.expr(f"_file_id IN ({texts(file_ids)})") & ~own)
        return
    leaving = spark.createDataFrame([(one,) for one in sorted(set(file_ids))], "_leaves string")
    same = (F.col("_file_id") == F.col("_leaves")) & ~own
    there.merge(leaving, same).whenMatchedDelete().execute()


def _while_they_stand(spark: SparkSession, table: Destination, file_ids: Collection[str], failed: Failed) -> Failed:
    """The failure counts while the table has the earlier rows. An earlier try may have removed them before it died."""
    from pyspark.sql import functions as F

    if failed.may_be_in or not file_ids:
        return failed
    try:
        rows = spark.read.format("delta").load(table.path).select("_file_id")
        leaving = spark.createDataFrame([(one,) for one in sorted(set(file_ids))], "_file_id string")
        if rows.join(F.broadcast(leaving), "_file_id", "left_semi").limit(1).count():
            return failed
    except Exception:  # who cannot read the table removed nothing from it
        return failed
    raise _unfinished(table, failed.error)


def _unfinished(table: Destination, why: ForebayError) -> Halt:
    return Halt(
        f"table {table.name} at {table.path}: the rows of earlier files were removed, but their replacements "
        f"cannot be written, so the batch remains open: {why}. Repair the table and start again; nothing is lost"
    )


def _failed(table: Destination, refused: Exception) -> Failed:
    reason = (str(refused).strip().splitlines() or [type(refused).__name__])[0]
    return unanswered(refused, reason) or Failed(NotReplaced(f"table {table.name} at {table.path}: {reason}"))
