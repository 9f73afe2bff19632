"""Rows that are staged and committed in one call, as a batch does in two steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from forebay.events import Emit
from forebay.table.commit import Txn
from forebay.table.destination import AppendResult, Destination
from forebay.table.fan_out import commit_staged
from forebay.table.kernel import TableLogs
from forebay.table.staged import StagedTable
from forebay.table.staging import Staging, StagingFromDriver, StagingFromSpark


def append(
    spark: SparkSession,
    rows: DataFrame | pa.Table,
    tables: Sequence[Destination],
    *,
    txn: Txn,
    pool: int = 8,
    table_column: str = "_table",
    logs: TableLogs | None = None,
    emit: Emit = lambda event: None,
    expected: Mapping[str, int] | None = None,
    gather: bool = True,
) -> dict[str, AppendResult]:
    """Rows in Arrow are of one table."""
    with ExitStack() as ending:
        if logs is None:
            ending.callback((logs := TableLogs(spark, emit=emit)).close)
        staging: Staging
        if isinstance(rows, pa.Table):
            staging = StagingFromDriver(logs, rows, txn, emit, expected)
        else:
            staging = StagingFromSpark(logs, rows, txn, emit, expected, table_column=table_column, gather=gather)
        staged = staging.run(tables, pool)
        ready = [(table, one) for table in tables if isinstance(one := staged.get(table.name), StagedTable)]
        outcomes = {name: one for name, one in staged.items() if not isinstance(one, StagedTable)}
        return outcomes | commit_staged(spark, ready, txn=txn, logs=logs, emit=emit, pool=pool)
