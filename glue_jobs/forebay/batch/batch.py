"""The heart: a batch of file names becomes rows, each exactly once in the table it belongs to; the ledger says so last.

`Batch.process` is what foreachBatch calls. Spark may call it again with the same files: every commit carries the
transaction (service and checkpoint generation, batch id), so what is in stays in once, and what is not is done now. One
bad record, file or table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import entries_of, quarantined_by_reason
from forebay.batch.another_try import app_id
from forebay.batch.declarations import Declarations
from forebay.batch.dedupe import Dedupe, landing, tries_before
from forebay.batch.events import BatchRepeated, RecordsQuarantined
from forebay.batch.new_tables import NewTables
from forebay.batch.reading import count_fates, ends_of, read_routed
from forebay.batch.reporting import Stages, reports_of
from forebay.batch.writing import Writing
from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.content.source import register
from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.layout import IDS, table_path
from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile
from forebay.ledger.entry import COLUMNS as LEDGER_COLUMNS
from forebay.ledger.entry import Entry
from forebay.ledger.ledger import Ledger, utc
from forebay.ledger.versions import Sorted
from forebay.table.catalog import Catalog
from forebay.table.fan_out import Txn
from forebay.table.in_arrow import arrow_rows
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["Batch"]


class Batch:
    """The steps of one batch after the other, for one service and one checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        service: Service,
        *,
        lake: str,
        generation: str,
        ledger: Ledger,
        emit: Emit,
        limits: Limits | None = None,
        tables_at_once: int = 4,
        still_ours: Callable[[], None] = lambda: None,
        declarations: Declarations | None = None,
        catalog: Catalog | None = None,
        store: Objects | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.spark, self.service, self.lake, self.ledger, self.emit = spark, service, lake, ledger, emit
        self.generation, self.limits, self.clock = generation, limits or Limits(), clock
        self.tables_at_once, self.still_ours = tables_at_once, still_ours
        self.logs = TableLogs(spark, emit=emit)
        self.new_tables = NewTables()
        self.declarations, self.catalog, self.store = declarations, catalog, store
        register(spark)

    def process(self, names: DataFrame, batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        txn = Txn(f"forebay/{self.service.name}/{self.generation}", batch_id)
        if self.logs.has(self.ledger.path, txn):
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
            return
        if self.declarations is not None:
            self.service = self.declarations.of_batch(batch_id)
        self.steps(names, self.writing(txn), Stages())

    def close(self) -> None:
        """Waits for the tables' checkpoints that are under way."""
        self.logs.close()

    def writing(self, txn: Txn) -> Writing:
        return Writing(
            spark=self.spark,
            service=self.service,
            lake=self.lake,
            generation=self.generation,
            txn=txn,
            began_at=self.clock(),
            logs=self.logs,
            new_tables=self.new_tables,
            tables_at_once=self.tables_at_once,
            emit=self.emit,
            catalog=self.catalog,
        )

    def steps(self, names: DataFrame, writing: Writing, stages: Stages) -> None:
        with stages.stage("claim"):
            split = self.ledger.sort([_landed(row) for row in names.collect()], self.service.rule_of)
        pieces = cut(split.fresh, self.limits)
        with ExitStack() as cached:
            rows = read_routed(self.spark, self.service, self.limits, split.fresh, pieces, cached)
            with stages.stage("read"):
                fates, ends = count_fates(rows), ends_of(rows, pieces)
                chosen, dedupe = rows, self.dedupe(writing, split)
                if rows is not None and dedupe.wanted:
                    chosen = dedupe.without_duplicates(rows, landing(ends), cached)
                    fates = count_fates(chosen)
            self.still_ours()
            with stages.stage("write"):
                landed = {end.file.file_id for end in ends if end.lands}
                superseded = [earlier for earlier in split.superseded if earlier.by.file_id in landed]
                unwritten = writing.write(chosen, ends, fates, superseded, dedupe)
            entries = entries_of(ends, fates, unwritten)
            self.still_ours()
            with stages.stage("ledger"):
                changed = [earlier.row(unwritten) for earlier in superseded]
                self.commit(writing, [*entries, *split.left_out], changed)
        told = reports_of(
            self.service.name, writing.txn.version, split, ends, entries, len(superseded), stages, self.clock()
        )
        for event in told:
            self.emit(event)
        if reasons := quarantined_by_reason(ends, fates, unwritten):
            self.emit(RecordsQuarantined.of(self.service.name, writing.txn.version, reasons))

    def dedupe(self, writing: Writing, split: Sorted) -> Dedupe:
        """The batch's day is that of its newest file, so that a replay has the same."""
        landed = [file.event_time for file in split.fresh if file.event_time is not None]
        dedupe = Dedupe(
            spark=self.spark,
            service=self.service,
            path=table_path(self.lake, IDS),
            logs=self.logs,
            shared=writing.shared,
            day=max(landed, default=writing.began_at).date(),
            leaving=[earlier.earlier.file.file_id for earlier in split.superseded],
        )
        if self.store is None or not dedupe.wanted:
            return dedupe
        newest = self.last_try(dedupe.path)
        return replace(dedupe, tries_until=tries_before(writing.txn.version, newest, self.store))

    def last_try(self, path: str) -> int:
        """The number of the last try that left ids."""
        return self.logs.last_version_at(path, app_id(self.service), again=True)

    def commit(self, writing: Writing, entries: Sequence[Entry], changed: Sequence[dict[str, Any]]) -> None:
        if entries:
            when = {
                "claimed_at": writing.began_at,
                "committed_at": self.clock(),
                "service_version": self.service.version,
            }
            shared = {**writing.shared, **when}
            rows: DataFrame | pa.Table
            if changed:
                rows = self.ledger.frame(entries, changed, **shared)
            else:
                rows = arrow_rows((entry.row(**shared) for entry in entries), LEDGER_COLUMNS)
            leaving = [row["file_id"] for row in changed]
            writing.write_own("ledger", rows, len(entries) + len(changed), leaving)
            self.ledger.remember(entry.file for entry in entries)


def _landed(row: Row) -> LandedFile:
    return LandedFile(row.bucket, row.key, row.size, row.etag or "", row.version_id, row.sequencer, utc(row.event_time))
