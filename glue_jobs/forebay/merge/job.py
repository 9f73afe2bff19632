"""The states of a lake are brought up to date, each under the leases that compaction and maintenance of it take, too.

In: declarations, and the names of tables of changes or of states. Out: a `TableMerge` for each state that was behind. A failure
of one stops no other, and the next run does what is left. `forebay merge` runs it, and so does the ingest job beside its
batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.client import client
from forebay.aws.preflight import check_lake
from forebay.batch.expectations import check_expressions
from forebay.declaration.merge import Merge
from forebay.declaration.service import Service, load_service
from forebay.errors import ForebayError, InvalidConfiguration
from forebay.events import Emit
from forebay.lake.layout import lease_of, table_path, tombstones_of
from forebay.lake.lease import Lease, LeaseHeld, hold
from forebay.lake.log.listing import NoTable, list_log
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import open_objects, s3_client_for
from forebay.lake.safety import session_for
from forebay.merge.events import MergeEnded, TableMerged, TableNotMerged
from forebay.merge.step import Step, step
from forebay.settings import MergeSettings
from forebay.spark.signals import stopping_on_signals
from forebay.table.catalog import Catalog
from forebay.table.kernel import TableLogs
from forebay.upkeep.compaction.carry_out import reason_of, sentence_of
from forebay.upkeep.run import RunResult, TableResult, over_tables, report_unfinished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Merger", "TableMerge", "merge"]

ATTEMPTS = 5
SAFE = {"spark.sql.files.ignoreMissingFiles": "false", "spark.sql.files.ignoreCorruptFiles": "false"}
"""A file that cannot be read must stop a merge: passed over, its changes would be lost."""


@dataclass(frozen=True, kw_only=True)
class TableMerge(TableResult):
    """What became of one state."""

    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A table of changes, the state that it is merged into, and how."""

    log: str
    state: str
    merge: Merge


def merge(settings: MergeSettings, *, emit: Emit, stop: threading.Event | None = None) -> RunResult[TableMerge]:
    """One run. Set `stop`, and it ends after the steps that are under way."""
    service = load_service(settings.service)
    check_lake(settings.lake)
    spark = session_for(settings.lake, "forebay-merge", emit=emit)
    check_expressions(spark, service)
    logs = TableLogs(spark, emit=emit)
    try:
        with stopping_on_signals(stop := stop or threading.Event()):
            catalog = Catalog(client("glue"), settings.catalog, emit=emit) if settings.catalog else None
            at_once = settings.tables_at_once
            merger = Merger(spark, settings.lake, logs=logs, emit=emit, at_once=at_once, catalog=catalog)
            return merger.run(service, settings.table_names, stop)
    finally:
        logs.close()


class Merger:
    """One process's. It remembers which logs it has merged, so that a look at those that did not change costs a listing."""

    def __init__(
        self,
        spark: SparkSession,
        lake: str,
        *,
        logs: TableLogs,
        emit: Emit,
        at_once: int,
        catalog: Catalog | None = None,
    ) -> None:
        self._spark, self._lake, self._logs, self._emit, self._at_once = spark, lake, logs, emit, at_once
        self._catalog = catalog
        self._s3 = s3_client_for(lake)
        self._known: dict[Pair, int] = {}

    def run(self, service: Service, names: Collection[str], stop: threading.Event) -> RunResult[TableMerge]:
        """All states that are behind, or those that are named, by their own names or by those of their changes."""
        began = time.monotonic()
        looked = {pair: self._version_of(pair.log) for pair in self._pairs(service, names)}
        pairs = {pair.state: pair for pair, version in looked.items() if version not in (None, self._known.get(pair))}
        if not pairs:
            return RunResult(tables=())

        def work(state: str, lease: Lease) -> TableMerge:
            return self._one(pairs[state], lease, stop)

        at_once = self._at_once
        ran = over_tables(pairs, self._lake, work, unfinished=TableMerge, at_once=at_once, stop=stop)
        done = RunResult(tables=ran)
        for finished in (one for one in ran if not one.reason):
            version = looked[pairs[finished.table]]
            assert version is not None
            self._known[pairs[finished.table]] = max([version, *(one.version for one in finished.steps)])
        self._report(done, service.name, pairs, time.monotonic() - began)
        return done

    def _pairs(self, service: Service, names: Collection[str]) -> Iterator[Pair]:
        merged = [table for table in service.tables if table.merge is not None]
        there = tables_of(self._lake, s3=self._s3) if merged else []
        wanted = set(names)
        for log in there:
            declared = service.maker_of(log)
            if declared is None or declared.merge is None:
                continue
            state = declared.state_of(log)
            assert state is not None
            if not names or {log, state} & set(names):
                wanted -= {log, state}
                yield Pair(log, state, declared.merge)
        if wanted:
            name = min(wanted)
            raise InvalidConfiguration.one(
                f"table {name}", "is neither a table of changes in this lake nor a state", 'mode = "merge" declares one'
            )

    def _version_of(self, log: str) -> int | None:
        try:
            return list_log(open_objects(table_path(self._lake, log), s3=self._s3)).version
        except NoTable:
            return None

    def _one(self, pair: Pair, lease: Lease, stop: threading.Event) -> TableMerge:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        steps: list[Step] = []

        def left(reason: str, detail: str) -> TableMerge:
            return TableMerge(table=pair.state, steps=tuple(steps), reason=reason, detail=detail)

        try:
            with _tombstones_held(self._lake, pair.state, self._s3):
                while (done := self._step(pair, lease)) is not None:
                    steps.append(done)
                    if not done.behind:
                        break
                    if stop.is_set():
                        return left("stopped", "the run was asked to stop; the next run continues")
        except LeaseHeld as taken:
            return left("busy", f"{taken.holder} works on the table's tombstones; the next run takes it")
        except (PySparkException, Py4JError, ClientError, BotoCoreError, OSError, ForebayError) as failure:
            return left("conflict" if reason_of(failure) == "conflict" else "failed", sentence_of(failure))
        return TableMerge(table=pair.state, steps=tuple(steps))

    def _step(self, pair: Pair, lease: Lease) -> Step | None:
        session = self._spark.newSession()
        for name, value in SAFE.items():
            session.conf.set(name, value)
        done = step(
            session,
            self._lake,
            pair.log,
            pair.state,
            pair.merge,
            logs=self._logs,
            lease=lease,
            s3=self._s3,
        )
        path = table_path(self._lake, pair.state)
        if self._catalog is not None and (seen := self._logs.look(path)) is not None:
            self._catalog.keep(pair.state, path, seen.schema)
        return done

    def _report(self, done: RunResult[TableMerge], service: str, pairs: dict[str, Pair], seconds: float) -> None:
        for ran in done.tables:
            for one in ran.steps:
                self._emit(_merged(one, service, pairs[ran.table]))
        report_unfinished(done, service, TableNotMerged, self._emit)
        if any(ran.steps or ran.reason for ran in done.tables):
            tables = sum(bool(ran.steps) for ran in done.tables)
            left = len(done.left)
            self._emit(MergeEnded(service=service, tables=tables, tables_left=left, seconds=round(seconds, 3)))


@contextmanager
def _tombstones_held(lake: str, state: str, s3: Any) -> Iterator[None]:
    """Compaction takes them for a table of their own."""
    lease = hold(lease_of(lake, tombstones_of(state)), wait_s=0, s3=s3)
    try:
        yield
    finally:
        lease.let_go()


def _merged(one: Step, service: str, pair: Pair) -> TableMerged:
    told: dict[str, Any] = {"rows_inserted": one.inserted, "rows_updated": one.updated, "rows_deleted": one.deleted}
    told |= {"lag_s": one.lag_s, "computed_anew": one.anew, "seconds": one.seconds}
    return TableMerged(service=service, table=pair.state, log=pair.log, version=one.version, keys=one.keys, **told)
