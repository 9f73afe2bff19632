"""The heart: a batch of file names becomes rows, each exactly once in the table it belongs to; the ledger says so last.

`Batch.process` is what foreachBatch calls. Spark may call it again with the same files: every commit carries the
transaction (service and checkpoint generation, batch id), so what is in stays in once, and what is not is done now. One
bad record, file or table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forebay.batch.accounting import Totals, entries_of, percentile
from forebay.batch.events import BatchCommitted, BatchRepeated, FileSetAside
from forebay.batch.new_tables import NewTables
from forebay.batch.reading import count_fates, read_routed
from forebay.batch.writing import Writing, has
from forebay.content.end import FileEnd
from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.content.source import register
from forebay.events import Emit
from forebay.landed_file import LandedFile
from forebay.ledger.entry import Entry
from forebay.ledger.ledger import Ledger, Sorted
from forebay.service import Service
from forebay.table.fan_out import Txn
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
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
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.spark, self.service, self.lake, self.ledger, self.emit = spark, service, lake, ledger, emit
        self.generation, self.limits, self.clock = generation, limits or Limits(), clock
        self.tables_at_once, self.still_ours = tables_at_once, still_ours
        self.logs = TableLogs(spark, emit=emit)
        self.new_tables = NewTables(service.new_tables_per_day)
        register(spark)

    def process(self, names: DataFrame, batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        txn = Txn(f"forebay/{self.service.name}/{self.generation}", batch_id)
        if has(self.logs, self.ledger.path, txn):
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
            return
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
        )

    def steps(self, names: DataFrame, writing: Writing, stages: Stages) -> None:
        with stages.stage("claim"):
            split = self.ledger.sort([_landed(row) for row in names.collect()])
        pieces = cut(split.fresh, self.limits)
        rows = read_routed(self.spark, self.service, self.limits, split.fresh, pieces)
        try:
            with stages.stage("read"):
                fates, ends = count_fates(rows, pieces)
            self.still_ours()
            with stages.stage("write"):
                unwritten = writing.write(rows, ends, fates)
            entries = entries_of(ends, fates, unwritten)
            self.still_ours()
            with stages.stage("ledger"):
                self.commit(writing, [*entries, *split.left_out])
        finally:
            if rows is not None:
                rows.unpersist()
        self.tell(writing.txn.version, split, ends, entries, stages)

    def commit(self, writing: Writing, entries: Sequence[Entry]) -> None:
        if entries:
            when = {
                "claimed_at": writing.began_at,
                "committed_at": self.clock(),
                "service_version": self.service.version,
            }
            writing.append_own("ledger", self.ledger.frame(entries, **writing.shared, **when), len(entries))
            self.ledger.remember(entry.file for entry in entries)

    def tell(
        self, batch: int, split: Sorted, ends: Sequence[FileEnd], entries: Sequence[Entry], stages: Stages
    ) -> None:
        for entry in entries:
            if entry.outcome not in ("loaded", "empty"):
                self.emit(
                    FileSetAside(
                        service=self.service.name,
                        batch=batch,
                        uri=entry.file.uri,
                        outcome=entry.outcome,
                        reason=entry.reason,
                        detail=entry.detail,
                    )
                )
        now, totals = self.clock(), Totals.of(entries)
        waits = [(now - e.file.event_time).total_seconds() for e in entries if e.file.event_time]
        committed = BatchCommitted(
            service=self.service.name,
            batch=batch,
            files=len(entries) + len(split.left_out),
            known_files=len(split.known),
            duplicate_files=sum(e.outcome == "duplicate" for e in split.left_out),
            missing_files=sum(e.outcome in ("missing", "denied") for e in entries),
            refused_files=sum(e.outcome == "unreadable" for e in entries),
            bytes=sum(end.bytes_read for end in ends),
            records=totals.records,
            written=totals.written,
            quarantined=totals.quarantined,
            parked=totals.parked,
            dropped=totals.dropped,
            tables=len({name for entry in entries for name in entry.tables}),
            claim_seconds=stages.seconds["claim"],
            read_seconds=stages.seconds["read"],
            write_seconds=stages.seconds["write"],
            ledger_seconds=stages.seconds["ledger"],
            seconds=stages.total,
            latency_p50_seconds=percentile(waits, 0.5),
            latency_p99_seconds=percentile(waits, 0.99),
            latency_max_seconds=max(waits, default=None),
        )
        self.emit(committed)


class Stages:
    """How long each stage of a batch took."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 3)

    @property
    def total(self) -> float:
        return round(time.monotonic() - self.began, 3)


def _landed(row: Row) -> LandedFile:
    return LandedFile(
        row.bucket, row.key, row.size, row.etag or "", row.version_id, row.sequencer, _utc(row.event_time)
    )


def _utc(moment: datetime | None) -> datetime | None:
    """Spark hands timestamps over as local time without a zone."""
    return moment.astimezone(UTC) if moment else None
