"""Replaces rows of earlier files in a table with new rows, in one commit, exactly once. It is for tables that nobody streams,
and for removals without new rows. Other tables use `removal`.

In: the table, the ids of the files whose rows leave, the rows that come (perhaps none), and the batch's transaction. Out: an
outcome as an append has it; `Skipped` where the transaction is in already.

Spark commits it, not Kernel: data files that hold other rows too are rewritten without those that leave, and Delta must
see that nobody changed them meanwhile. A few ids are a part of its condition; many take the way of `exchange`. After a
conflict (a compaction) it is tried again. The rows are a function of the table before each try: where somebody
changed its columns meanwhile (`schema settle`), they are made again. This is the rare way in: a key that got other bytes, where
the service says that they replace the earlier ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forebay.aws.retrying import attempts
from forebay.errors import ForebayError, InvalidConfiguration
from forebay.spark.java_failure import COMMIT_UNKNOWN, causes, java_exception
from forebay.table.commit import CommitUnknown, LogFailed, Txn
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped, TableLost
from forebay.table.exchange import exchange
from forebay.table.fan_out import ATTEMPTS, ChangesTooOften
from forebay.table.kernel import Seen, TableLogs
from forebay.table.ready import derived

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW_IDS = 500
ROWS_MUST_FIT = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
CONFLICTS = ("ConcurrentModification", "ConcurrentAppend", "ConcurrentDelete", "ConcurrentWrite", "MetadataChanged")


@dataclass(frozen=True)
class Staying:
    """Rows of these files stay all the same, if their column `table` names one of these."""

    file_ids: Collection[str]
    tables: Collection[str]

    def __bool__(self) -> bool:
        return bool(self.file_ids and self.tables)


class NotReplaced(ForebayError):
    """Delta refused the commit."""


def replace(
    spark: SparkSession,
    table: Destination,
    file_ids: Iterable[str],
    rows: Callable[[Seen | None], DataFrame] | None,
    *,
    txn: Txn,
    logs: TableLogs,
    id_column: str = "_file_id",
    staying: Staying | None = None,
) -> AppendResult:
    """The table must exist. Rows whose `id_column` is among `file_ids` leave it, and `rows` come."""
    began, seen, leaving = time.monotonic(), None, set(file_ids)
    try:
        for _ in attempts(ATTEMPTS):
            if logs.has(table.path, txn, again=True):
                return Skipped()
            seen = logs.look(table.path)
            if seen is None and table.if_lost:
                return Failed(TableLost(table.if_lost))
            if seen is not None and seen.derived_from:
                return Failed(InvalidConfiguration([derived(seen)]))
            try:
                coming = rows(seen) if rows else None
                stay = staying if seen and "table" in seen.schema.names else None
                if len(leaving) > FEW_IDS:
                    names: dict[str, Any] = {"staying": stay.file_ids, "in_tables": stay.tables} if stay else {}
                    exchange(spark, table.path, id_column, leaving, coming, **names, txn=txn, mark=_mark(txn))
                else:
                    _commit(spark, table, _leaves(id_column, leaving, stay), coming, txn)
                return _appended(spark, table, txn, time.monotonic() - began)
            except LogFailed:
                raise
            except Exception as refused:
                if not _may_be_tried_again(logs, table, seen, refused):
                    raise
        return Failed(
            ChangesTooOften(f"table {table.name} at {table.path} was changed by other writers {ATTEMPTS} times")
        )
    except LogFailed as failure:
        return Failed(failure, may_be_in=True)
    except Exception as failure:
        return _failed(logs, table, txn, failure)


def _may_be_tried_again(logs: TableLogs, table: Destination, seen: Seen | None, refused: Exception) -> bool:
    """After a conflict, or where the table got other columns than the rows were made for."""
    if any(word in f"{type(refused).__name__}: {refused}" for word in CONFLICTS):
        return True
    now = logs.look(table.path, again=True)
    return seen is not None and now is not None and _columns(now) != _columns(seen)


def _columns(seen: Seen) -> tuple[object, ...]:
    return seen.schema, seen.partition_columns


def _leaves(id_column: str, file_ids: Iterable[str], staying: Staying | None) -> str:
    leaves = f"{id_column} IN ({texts(file_ids)})"
    if not staying:
        return leaves
    stays = f"{id_column} IN ({texts(staying.file_ids)}) AND coalesce(`table`, '') IN ({texts(staying.tables)})"
    return f"{leaves} AND NOT ({stays})"


def texts(them: Iterable[str]) -> str:
    return ", ".join(f"'{text}'" for text in sorted(set(them)))


def _commit(spark: SparkSession, table: Destination, leaves: str, rows: DataFrame | None, txn: Txn) -> None:
    if rows is None:
        rows = spark.read.format("delta").load(table.path).where("false")
    writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", leaves)
    writer = writer.option("txnAppId", txn.app_id).option("txnVersion", txn.version).option("mergeSchema", "true")
    # The rows that come are of other files than those that leave, which Delta would take for a mistake.
    spark.conf.set(ROWS_MUST_FIT, "false")
    try:
        writer.option("userMetadata", _mark(txn)).save(table.path)
    finally:
        spark.conf.unset(ROWS_MUST_FIT)


def _mark(txn: Txn) -> str:
    return f"{txn.app_id}@{txn.version}"


def _appended(spark: SparkSession, table: Destination, txn: Txn, seconds: float) -> Appended:
    """The commit in the table's history, found by our mark: others may have committed since."""
    from delta.tables import DeltaTable

    history = DeltaTable.forPath(spark, table.path).history(100).where(f"userMetadata = '{_mark(txn)}'")
    commit = history.select("version", "operationMetrics").first()
    if commit is None:
        raise LogFailed("CommitNotFound", f"{table.path} has no commit {_mark(txn)} among its last hundred")
    counts: dict[str, Any] = commit.operationMetrics or {}
    if "numTargetRowsInserted" in counts:
        names = ("numTargetFilesAdded", "numTargetRowsInserted", "numTargetBytesAdded")
        files, rows, size = (int(counts.get(name, 0)) for name in names)
    else:
        files, rows, size = (int(counts.get(name, 0)) for name in ("numFiles", "numOutputRows", "numOutputBytes"))
        rows -= int(counts.get("numCopiedRows", 0))
    return Appended(version=commit.version, files=files, rows=rows, bytes=size, seconds=round(seconds, 3))


def _failed(logs: TableLogs, table: Destination, txn: Txn, failure: Exception) -> Failed | Skipped:
    """A commit whose answer was lost may be in, or may arrive later."""
    try:
        if logs.has(table.path, txn, again=True):
            return Skipped()
    except LogFailed as unknown:
        return Failed(unknown, may_be_in=True)
    reason = str(failure).strip().splitlines()[0]
    return unanswered(failure, reason) or Failed(NotReplaced(f"table {table.name} at {table.path}: {reason}"))


def unanswered(failure: Exception, reason: str) -> Failed | None:
    """The outcome of a commit whose answer was lost; None where it is known that it did not arrive."""
    if any(name == COMMIT_UNKNOWN for name, _ in causes(java_exception(failure))):
        return Failed(CommitUnknown("CommitUnknown", reason), may_be_in=True)
    return None
