"""The heart: a batch of file names becomes rows, each exactly once in the table it belongs to, and the ledger says so
last.

`Batch.process` is what foreachBatch calls. Spark may call it again with the same files: every commit carries the
transaction (service and checkpoint generation, batch id), so what is in stays in once, and what is not is done now. One
bad record, file or table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate, Totals, entries_of, percentile
from forebay.batch.events import BatchCommitted, BatchRepeated, FileSetAside, RowsAppended, TableFailed
from forebay.batch.routing import OWN_COLUMNS, column_of, routed
from forebay.batch.set_aside import SetAside
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.piece import Piece, cut
from forebay.content.source import read_content, register
from forebay.errors import Halt
from forebay.events import Emit
from forebay.landed_file import LandedFile
from forebay.ledger.entry import Entry
from forebay.ledger.ledger import Ledger, Sorted
from forebay.service import Service, Table
from forebay.table.fan_out import Appended, Destination, Failed, Outcome, Txn, append
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

__all__ = ["Batch", "table_path"]


def table_path(lake: str, table: str) -> str:
    return f"{lake}/{table}"


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
        register(spark)

    def process(self, names: DataFrame, batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        txn = Txn(f"forebay/{self.service.name}/{self.generation}", batch_id)
        if self.has(self.ledger.path, txn):
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
            return
        _Run(self, txn, Stages()).all_steps(names)

    def has(self, path: str, txn: Txn) -> bool:
        """Whether the table at `path` has this transaction, or a later one of this checkpoint, already."""
        seen = self.logs.look(path)
        return seen is not None and self.logs.last_version(seen, txn.app_id) >= txn.version


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


class _Run:
    """One batch on its way; what the steps hand to each other."""

    def __init__(self, batch: Batch, txn: Txn, stages: Stages) -> None:
        self.of, self.txn, self.stages = batch, txn, stages
        self.spark, self.service, self.lake = batch.spark, batch.service, batch.lake
        self.began_at = batch.clock()

    def all_steps(self, names: DataFrame) -> None:
        with self.stages.stage("claim"):
            files = [_landed(row) for row in names.collect()]
            split = self.of.ledger.sort(files)
        pieces = cut(split.fresh, self.of.limits)
        rows = self.read(split.fresh, pieces)
        try:
            with self.stages.stage("read"):
                fates, ends = self.count(rows, pieces)
            self.of.still_ours()
            with self.stages.stage("write"):
                failed = self.write(rows, ends, fates)
            entries = entries_of(ends, fates, failed)
            self.of.still_ours()
            with self.stages.stage("ledger"):
                self.commit([*entries, *split.left_out])
        finally:
            if rows is not None:
                rows.unpersist()
        self.tell(split, ends, entries)

    # --- read ---

    def read(self, files: Sequence[LandedFile], pieces: Sequence[Piece]) -> DataFrame | None:
        """The rows of the files with their fates, kept while the batch lasts, so that each file is fetched and parsed once."""
        if not files:
            return None
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        content = read_content(self.spark, files, self.of.limits)
        columns = "_piece int, _file_id string, bucket string, key string, version_id string"
        known = [(p.number, p.file.file_id, p.file.bucket, p.file.key, p.file.version_id) for p in pieces]
        of_piece = F.broadcast(self.spark.createDataFrame(known, columns))
        rows = routed(content, self.service).join(of_piece, F.col("piece") == F.col("_piece"), "left")
        return rows.persist(StorageLevel.MEMORY_AND_DISK)

    def count(self, rows: DataFrame | None, pieces: Sequence[Piece]) -> tuple[list[Fate], list[FileEnd]]:
        if rows is None:
            return [], []
        counted = rows.groupBy("piece", "_fate", "_table", "_declared").count().collect()
        fates = [
            Fate(r["piece"], r["_fate"], r["count"], r["_table"], r["_declared"])
            for r in counted
            if r["_fate"] != "end"
        ]
        said = rows.where("_fate = 'end'").select("piece", "value", "problem", "detail").collect()
        return fates, file_ends(pieces, [PieceEnd.from_row(r.piece, r.value, r.problem, r.detail) for r in said])

    # --- write ---

    def write(self, rows: DataFrame | None, ends: Sequence[FileEnd], fates: Sequence[Fate]) -> frozenset[str]:
        """Tables first, then what is set aside, which takes in the rows of tables that failed. Returns the failed ones."""
        if rows is None:
            return frozenset()
        landing = self.landing(rows, ends)
        lands = {piece for end in ends if end.lands for piece in end.lines_before}
        fates = [fate for fate in fates if fate.piece in lands]
        failed = self.failed_before() if any(f.table for f in fates) else frozenset()
        for declared, tables in self.by_declaration(fates).items():
            wanted = {table: rows for table, rows in tables.items() if table not in failed}
            failed |= self.write_tables(landing, self.service.tables[declared], wanted)
        self.set_aside(landing, ends, failed, fates)
        return failed

    @staticmethod
    def by_declaration(fates: Sequence[Fate]) -> dict[int, dict[str, int]]:
        """Rows per table, grouped by declaration: the tables of one share their columns, so one job writes them all. Where two
        declarations made the same name, the first one's columns hold: a table takes one commit a batch."""
        rows: dict[str, int] = {}
        first: dict[str, int] = {}
        for fate in fates:
            if fate.table is not None and fate.declared is not None:
                rows[fate.table] = rows.get(fate.table, 0) + fate.rows
                first[fate.table] = min(fate.declared, first.get(fate.table, fate.declared))
        grouped: dict[int, dict[str, int]] = {}
        for table, declared in sorted(first.items()):
            grouped.setdefault(declared, {})[table] = rows[table]
        return grouped

    def landing(self, rows: DataFrame, ends: Sequence[FileEnd]) -> DataFrame:
        """The rows of the files that land, with their line in the file rather than in the piece."""
        from pyspark.sql import functions as F

        left_out = [piece for end in ends if not end.lands for piece in end.lines_before]
        before = {piece: n for end in ends for piece, n in end.lines_before.items() if n}
        if left_out:
            rows = rows.where(~F.col("piece").isin(left_out))
        line = F.col("line")
        if before:
            offsets = F.create_map(*[F.lit(x) for pair in before.items() for x in pair])
            line = line + F.coalesce(offsets[F.col("piece")], F.lit(0))
        return rows.withColumn("_line", line)

    def write_tables(self, rows: DataFrame, declared: Table, wanted: dict[str, int]) -> frozenset[str]:
        if not wanted:
            return frozenset()
        from pyspark.sql import functions as F

        own = {
            "_batch": F.lit(self.txn.version).cast("long"),
            "_ingested_at": F.lit(self.began_at),
            "_record": F.rtrim("value"),
        }
        columns: list[Column] = [column_of(c) for c in declared.columns]
        columns += [own.get(name, F.col(name)).alias(name) for name in OWN_COLUMNS]
        chosen = rows.where((F.col("_fate") == "write") & F.col("_table").isin(sorted(wanted)))
        results = append(
            self.spark,
            chosen.select("_table", *columns),
            [Destination(name, table_path(self.lake, name)) for name in sorted(wanted)],
            txn=self.txn,
            pool=self.of.tables_at_once,
            logs=self.of.logs,
            emit=self.of.emit,
        )
        return frozenset(name for name, result in results.items() if self.failed(name, wanted[name], result))

    def failed(self, table: str, wanted: int, result: Outcome) -> bool:
        where: dict[str, Any] = {"service": self.service.name, "table": table, "batch": self.txn.version}
        if isinstance(result, Failed):
            if result.may_be_in:
                raise Halt(
                    f"{table}: nobody can say whether its commit arrived, so the batch is repeated: {result.error}"
                )
            self.of.emit(TableFailed(**where, rows=wanted, error=str(result.error)))
            return True
        if isinstance(result, Appended):
            if result.rows != wanted:
                raise Halt(
                    f"{table}: {wanted} rows belong there, but Delta's commit {result.version} counts {result.rows}"
                )
            self.of.emit(RowsAppended(**where, rows=result.rows, version=result.version))
        return False

    def failed_before(self) -> frozenset[str]:
        """Tables that failed when this very batch was tried before, and whose rows are in the quarantine since: they must not
        be written as well now."""
        path = f"{self.lake}/_forebay/quarantine"
        if not self.of.has(path, self.txn):
            return frozenset()
        rows = self.spark.read.format("delta").load(path)
        mine = rows.where((rows.generation == self.of.generation) & (rows.batch == self.txn.version))
        return frozenset(r.table for r in mine.where("reason = 'table-failed'").select("table").distinct().collect())

    def set_aside(
        self, rows: DataFrame, ends: Sequence[FileEnd], failed: frozenset[str], fates: Sequence[Fate]
    ) -> None:
        """Quarantine and parked: one commit each, if there is anything to keep."""
        keep = SetAside(rows, failed, {**self.shared(), "at": self.began_at})
        quarantined = sum(f.rows for f in fates if f.fate == "quarantine" or f.table in failed)
        files = [end for end in ends if end.outcome in ("unreadable", "unavailable")]
        if quarantined or files:
            self.append_own("quarantine", keep.quarantined(files), quarantined + len(files))
        parked = sum(f.rows for f in fates if f.fate == "park")
        if parked:
            self.append_own("parked", keep.parked(), parked)

    def shared(self) -> dict[str, Any]:
        """What all rows of this batch say alike, in the ledger and beside it."""
        return {"service": self.service.name, "generation": self.of.generation, "batch": self.txn.version}

    def append_own(self, name: str, rows: DataFrame, wanted: int) -> None:
        """One of our own tables; if it cannot be written, nothing may be marked as done."""
        from pyspark.sql import functions as F

        path = f"{self.lake}/_forebay/{name}"
        result = append(
            self.spark,
            rows.withColumn("_table", F.lit(name)),
            [Destination(name, path, ("day",))],
            txn=self.txn,
            logs=self.of.logs,
        )[name]
        if isinstance(result, Failed):
            raise Halt(f"{path} could not be written, so batch {self.txn.version} stays open: {result.error}")
        if isinstance(result, Appended) and result.rows != wanted:
            raise Halt(f"{path}: {wanted} rows belong there, but Delta's commit {result.version} counts {result.rows}")

    # --- ledger, and the last words ---

    def commit(self, entries: Sequence[Entry]) -> None:
        if entries:
            when = {
                "claimed_at": self.began_at,
                "committed_at": self.of.clock(),
                "service_version": self.service.version,
            }
            self.append_own("ledger", self.of.ledger.frame(entries, **self.shared(), **when), len(entries))
            self.of.ledger.remember(entry.file for entry in entries)

    def tell(self, split: Sorted, ends: Sequence[FileEnd], entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.outcome not in ("loaded", "empty"):
                self.of.emit(
                    FileSetAside(
                        service=self.service.name,
                        batch=self.txn.version,
                        uri=entry.file.uri,
                        outcome=entry.outcome,
                        reason=entry.reason,
                        detail=entry.detail,
                    )
                )
        now, totals = self.of.clock(), Totals.of(entries)
        waits = [(now - e.file.event_time).total_seconds() for e in entries if e.file.event_time]
        committed = BatchCommitted(
            service=self.service.name,
            batch=self.txn.version,
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
            claim_seconds=self.stages.seconds["claim"],
            read_seconds=self.stages.seconds["read"],
            write_seconds=self.stages.seconds["write"],
            ledger_seconds=self.stages.seconds["ledger"],
            seconds=self.stages.total,
            latency_p50_seconds=percentile(waits, 0.5),
            latency_p99_seconds=percentile(waits, 0.99),
            latency_max_seconds=max(waits, default=None),
        )
        self.of.emit(committed)


def _landed(row: Row) -> LandedFile:
    return LandedFile(
        row.bucket, row.key, row.size, row.etag or "", row.version_id, row.sequencer, _utc(row.event_time)
    )


def _utc(moment: datetime | None) -> datetime | None:
    """Spark hands timestamps over as local time without a zone."""
    return moment.astimezone(UTC) if moment else None
