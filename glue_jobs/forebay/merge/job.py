"""Updates the states and rollups of a lake, each under the leases that its compaction and maintenance use.

In: declarations, and the names of tables of changes, states or rollups. Out: a `TableMerge` for each that was behind. A
failure of one does not stop the others, and the next run does the remaining work. `forebay merge` runs it, and so does the
ingest job beside its batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.client import client
from forebay.aws.preflight import check_lake
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.merge import Merge
from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.declared_sql.check import check_expressions
from forebay.errors import ForebayError, InvalidConfiguration
from forebay.events import Emit, Event
from forebay.lake.layout import TOMBSTONES, lease_of, table_path, tombstones_of
from forebay.lake.lease import Lease, hold
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.log.definition import origins_in
from forebay.lake.log.listing import NoTable, list_log
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import open_objects
from forebay.lake.safety import session_for
from forebay.merge.current import rollup_has_all, state_has_all
from forebay.merge.events import MergeEnded, TableMerged, TableNotMerged, TableRolledUp
from forebay.merge.rollup import roll_up
from forebay.merge.step import Step, step
from forebay.merge.trouble import Troubles
from forebay.settings import MergeSettings
from forebay.spark.signals import stopping_on_signals
from forebay.table.catalog import Catalog
from forebay.table.kernel import TableLogs
from forebay.threads import answers_by
from forebay.upkeep.compaction.carry_out import reason_of, sentence_of
from forebay.upkeep.run import RunResult, TableResult, over_tables, report_unfinished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILURES = (ClientError, BotoCoreError, OSError, ForebayError)
Look = tuple[int, datetime]
"""A table's version, and the time of that commit: a table that was deleted and made again may have the same version."""
UNKNOWN = -1, datetime.min.replace(tzinfo=UTC)
SAFE = {"spark.sql.files.ignoreMissingFiles": "false", "spark.sql.files.ignoreCorruptFiles": "false"}
"""A file that cannot be read must stop a merge: passed over, its changes would be lost."""


@dataclass(frozen=True, kw_only=True)
class TableMerge(TableResult):
    """The result of one state or rollup."""

    steps: tuple[Step, ...] = ()
    is_rollup: bool = False


@dataclass(frozen=True)
class Pair:
    """A state, the table of changes that it is made of, and how."""

    name: str
    log: str
    merge: Merge

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.log,)


Derivation = Pair | Rollup
"""Of the table `name`, from `tables`."""


def merge(settings: MergeSettings, *, emit: Emit, stop: threading.Event | None = None) -> RunResult[TableMerge]:
    """One run. Set `stop`, and it ends after the steps that are under way. Starts no Spark where nothing is declared."""
    service = service_for(settings.service, settings.lake, settings.deployed_service)
    check_lake(settings.lake)
    if not settings.table_names and not service.rollups and not any(table.merge for table in service.tables):
        troubles = Troubles(settings.lake)
        troubles.are_over(troubles.undeclared(service.name, ()))
        return RunResult(tables=())
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
    """One process's. It remembers what it has brought up to date, so that a look at the others costs a listing each."""

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
        self._known: dict[str, tuple[Derivation, tuple[Look | None, ...]]] = {}
        self._origins: dict[str, tuple[str, ...]] = {}
        self._troubles = Troubles(lake)

    def run(self, service: Service, names: Collection[str], stop: threading.Event) -> RunResult[TableMerge]:
        """All states that are behind, or those that are named, by their own names or by those of their changes. After them the
        rollups, by their own names or by those of their tables."""
        began = time.monotonic()
        rollups = [one for one in service.rollups if not names or {one.name, *one.tables} & set(names)]
        pairs = list(self._pairs(service, names, {name for one in rollups for name in (one.name, *one.tables)}))
        done = RunResult(tables=(*self._bring(pairs, stop), *self._bring(rollups, stop)))
        them: Sequence[Derivation] = (*pairs, *rollups)
        self._report(done, service.name, {one.name: one for one in them}, time.monotonic() - began)
        self._keep_troubles(done, service.name, None if names else {one.name for one in them})
        return done

    def _keep_troubles(self, done: RunResult[TableMerge], service: str, declared: Collection[str] | None) -> None:
        """`declared` are all states and rollups of the service, where the run was about all."""
        for ran in done.for_a_person:
            self._troubles.note(ran.table, service, ran.detail)
        over = {ran.table for ran in done.tables if not ran.reason}
        if declared is not None:
            over |= self._troubles.undeclared(service, declared)
        self._troubles.are_over(over)

    def _bring(self, them: Sequence[Derivation], stop: threading.Event) -> tuple[TableMerge, ...]:
        """Up to date, those that are behind."""
        by_name = {one.name: one for one in them}
        looked = answers_by(lambda name: (by_name[name], tuple(map(self._look_at, by_name[name].tables))), by_name)
        are_behind = answers_by(lambda name: self._is_behind(*looked[name]), looked)
        behind = {name: by_name[name] for name, is_behind in are_behind.items() if is_behind}
        if not behind:
            return ()

        def work(name: str, lease: Lease) -> TableMerge:
            return self._one(behind[name], lease, stop)

        at_once = self._at_once
        ran = over_tables(behind, self._lake, work, unfinished=TableMerge, at_once=at_once, stop=stop)
        for finished in (one for one in ran if not one.reason):
            self._known[finished.table] = looked[finished.table]
        return ran

    def _is_behind(self, it: Derivation, looks: tuple[Look | None, ...]) -> bool:
        """Perhaps. A state or rollup without any of its tables reports that each time."""
        if set(looks) == {None}:
            return self._look_at(it.name) is not None
        if it.name in self._known:
            return self._known[it.name] != (it, looks)
        if is_current := self._has_all(it, looks):
            self._known[it.name] = it, looks
        return not is_current

    def _has_all(self, it: Derivation, looks: tuple[Look | None, ...]) -> bool:
        """By its log, because a table that this process has not read yet may be up to date."""
        there = {name: look[0] for name, look in zip(it.tables, looks, strict=True) if look is not None}
        if isinstance(it, Rollup):
            return rollup_has_all(self._lake, it, there)
        return state_has_all(self._lake, it.name, it.log, it.merge, there[it.log])

    def _pairs(self, service: Service, names: Collection[str], others: Collection[str]) -> Iterator[Pair]:
        merged = any(table.merge is not None for table in service.tables)
        there = tables_of(self._lake) if merged else []
        pairs = [pair for log in there if (pair := _pair_of(service, log)) is not None]
        pairs += self._orphans(service, set(there) - {pair.name for pair in pairs}) if merged else []
        wanted = set(names) - set(others)
        for pair in pairs:
            if not names or {pair.log, pair.name} & set(names):
                wanted -= {pair.log, pair.name}
                yield pair
        if wanted:
            raise InvalidConfiguration.one(
                f"table {min(wanted)}",
                "is neither a table of changes in this lake, nor a state, nor a rollup",
                'mode = "merge" or a file in rollups/ declares one',
            )

    def _orphans(self, service: Service, tables: set[str]) -> list[Pair]:
        """The states among these tables without a folder of changes."""
        states = tables & set(open_objects(f"{self._lake}/{TOMBSTONES}").folders())
        pairs = (_pair_of(service, log) for state in sorted(states) for log in self._origins_of(state))
        return [pair for pair in pairs if pair is not None and pair.name in states]

    def _origins_of(self, table: str) -> tuple[str, ...]:
        """Looked up once, because a table's origins do not change."""
        if not self._origins.get(table):
            self._origins[table] = origins_in(open_objects(table_path(self._lake, table)))
        return self._origins[table]

    def _look_at(self, log: str) -> Look | None:
        try:
            found = list_log(open_objects(table_path(self._lake, log)))
            return found.version, found.newest
        except NoTable:
            return None
        except FAILURES:
            return UNKNOWN  # its own merge will tell, and no other one waits for it

    def _one(self, it: Derivation, lease: Lease, stop: threading.Event) -> TableMerge:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        steps: list[Step] = []
        rollup = isinstance(it, Rollup)

        def ended(reason: str, detail: str) -> TableMerge:
            return TableMerge(table=it.name, steps=tuple(steps), is_rollup=rollup, reason=reason, detail=detail)

        try:
            with _tombstones_held(self._lake, it):
                while (done := self._step(it, lease)) is not None:
                    steps.append(done)
                    if not done.behind:
                        break
                    if stop.is_set():
                        return ended("stopped", "the run was asked to stop; the next run continues")
        except LeaseHeld as taken:
            return ended("busy", f"{taken.holder} is working on the table's tombstones; the next run merges it")
        except (PySparkException, Py4JError, *FAILURES) as failure:
            return ended("conflict" if reason_of(failure) == "conflict" else "failed", sentence_of(failure))
        return ended("", "")

    def _step(self, it: Derivation, lease: Lease) -> Step | None:
        session = self._spark.newSession()
        for name, value in SAFE.items():
            session.conf.set(name, value)
        with_all: dict[str, Any] = {"logs": self._logs, "lease": lease}
        if isinstance(it, Rollup):
            done = roll_up(session, self._lake, it, **with_all)
        else:
            done = step(session, self._lake, it.log, it.name, it.merge, **with_all)
        path = table_path(self._lake, it.name)
        if self._catalog is not None and (seen := self._logs.look(path)) is not None:
            self._catalog.keep(it.name, path, seen.schema)
        return done

    def _report(self, done: RunResult[TableMerge], service: str, them: dict[str, Derivation], seconds: float) -> None:
        for ran in done.tables:
            for one in ran.steps:
                self._emit(_event(one, service, them[ran.table]))
        report_unfinished(done, service, TableNotMerged, self._emit)
        if any(ran.steps or ran.reason for ran in done.tables):
            tables = sum(bool(ran.steps) for ran in done.tables)
            left = len(done.left)
            self._emit(MergeEnded(service=service, tables=tables, tables_left=left, seconds=round(seconds, 3)))


def _pair_of(service: Service, log: str) -> Pair | None:
    declared = service.maker_of(log)
    if declared is None or declared.merge is None:
        return None
    state = declared.state_of(log)
    assert state is not None
    return Pair(state, log, declared.merge)


@contextmanager
def _tombstones_held(lake: str, it: Derivation) -> Iterator[None]:
    """The tombstones of a state, which compaction treats as a table of their own."""
    if isinstance(it, Rollup):
        yield
        return
    lease = hold(lease_of(lake, tombstones_of(it.name)), wait_s=0)
    try:
        yield
    finally:
        lease.let_go()


def _event(one: Step, service: str, it: Derivation) -> Event:
    facts: dict[str, Any] = {"service": service, "table": it.name, "version": one.version, "lag_s": one.lag_s}
    facts |= {"computed_anew": one.recomputed, "seconds": one.seconds}
    if isinstance(it, Rollup):
        return TableRolledUp(**facts, groups=one.keys)
    facts |= {"rows_inserted": one.inserted, "rows_updated": one.updated, "rows_deleted": one.deleted}
    return TableMerged(**facts, log=it.log, keys=one.keys)
