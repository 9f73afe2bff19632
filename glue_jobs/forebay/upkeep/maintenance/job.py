"""The maintenance job, as Glue, EMR and the laptop run it: table by table, it deletes files and rows past their retention.

In: `MaintainSettings`. Out: `MaintenanceResult`. Each table is worked on under the lease that compaction takes, too. Orphans
are looked for where all files are listed anyway (`--vacuum full`), and deleted only if the settings say so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.preflight import check_lake_and_clock
from forebay.batch.plan import files_of_open_plans
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.service import Service
from forebay.errors import ForebayError
from forebay.events import Emit
from forebay.lake.health import HealthMeasured, HealthRecords, seen_in
from forebay.lake.layout import AFTER_LOAD, PLANS
from forebay.lake.lease import Lease, hold
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.listed import Listed
from forebay.lake.log.tables import own_tables, tables_of
from forebay.lake.objects import open_objects
from forebay.lake.safety import session_for
from forebay.settings import MaintainSettings
from forebay.spark.signals import stopping_on_signals
from forebay.upkeep.after_load.job import Cleared, clear_landed
from forebay.upkeep.compaction.carry_out import sentence_of
from forebay.upkeep.compaction.live_files import TableState, Unreadable, is_no_table, read_table
from forebay.upkeep.erase.age import drop_old_rows
from forebay.upkeep.erase.due import gone_from, readable_for
from forebay.upkeep.maintenance.care import Cared, care_for, write_checkpoint
from forebay.upkeep.maintenance.events import (
    ForeignFilesFound,
    MaintenanceEnded,
    OrphansFound,
    TableMaintained,
    TableNotMaintained,
)
from forebay.upkeep.maintenance.expiry import expire, keep_days_of
from forebay.upkeep.maintenance.orphans import orphans_of, remains_of
from forebay.upkeep.maintenance.retention import Retention, retention_of
from forebay.upkeep.maintenance.vault import tend_vault
from forebay.upkeep.run import RunResult, TableResult, over_tables, report_unfinished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VAULT, MAINTAINED = "the vault", "maintained"
YOUNG = timedelta(days=7)
"""A file so young may be of a writer that has still to commit."""


@dataclass(frozen=True, kw_only=True)
class TableMaintenance(TableResult):
    cared: Cared | None = None
    retention: Retention | None = None
    orphans: tuple[Listed, ...] = ()
    seconds: float = 0


@dataclass(frozen=True, kw_only=True)
class MaintenanceResult(RunResult[TableMaintenance]):
    """`remains` are data files in folders of the lake that are not tables. `landed` says what became of landed files."""

    remains: Mapping[str, tuple[Listed, ...]]
    deleted: bool
    landed: Cleared | None = None

    @property
    def status(self) -> int:
        return 1 if self.left or (self.landed and self.landed.left) else 0

    @property
    def orphans(self) -> dict[str, tuple[Listed, ...]]:
        return {ran.table: ran.orphans for ran in self.tables if ran.orphans} | dict(self.remains)


def maintain(settings: MaintainSettings, *, emit: Emit, stop: threading.Event | None = None) -> MaintenanceResult:
    """Run again, it finds what is left to do."""
    began = time.monotonic()
    service = service_for(settings.service, settings.lake, settings.deployed_service)
    check_lake_and_clock(settings.lake, datetime.now(UTC))
    tables = tables_of(settings.lake)
    names = settings.table_names or [*tables, *own_tables(settings.lake)]
    spark = session_for(settings.lake, "forebay-maintain", emit=emit)
    with stopping_on_signals(stop := stop or threading.Event()):
        run, landed = _Run(spark, settings, service, emit), None
        ran = over_tables(
            dict.fromkeys(names),
            settings.lake,
            run.table,
            unfinished=TableMaintenance,
            at_once=settings.tables_at_once,
            stop=stop,
        )
        if not settings.table_names and not stop.is_set():
            ran = (*ran, *run.vault())
            landed, unfinished = run.landed_files(stop)
            ran = (*ran, *unfinished)
    remains = run.remains(tables) if settings.vacuum == "full" and not settings.table_names else {}
    done = MaintenanceResult(tables=ran, remains=remains, deleted=settings.delete_orphans, landed=landed)
    _report(done, service.name, time.monotonic() - began, emit)
    return done


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        settings: MaintainSettings,
        service: Service,
        emit: Emit,
    ) -> None:
        self._spark, self._settings, self._service, self._emit = spark, settings, service, emit
        self._records = HealthRecords(settings.lake)

    def table(self, name: str, lease: Lease) -> TableMaintenance:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        began, path = time.monotonic(), f"{self._settings.lake}/{name}"
        state = read_table(name, path)
        if isinstance(state, Unreadable):
            if is_no_table(state, self._settings.table_names):
                return TableMaintenance(table=name)  # `remains` sees to it
            return TableMaintenance(table=name, reason=state.reason, detail=state.detail)
        assert state.snapshot is not None
        retention = retention_of(
            state.snapshot.configuration,
            time_travel=readable_for(name, self._service),
            longest_reader=timedelta(hours=self._settings.longest_reader_hours),
        )
        try:
            lease.check()
            expire(
                self._spark,
                path,
                name,
                state.snapshot,
                service=self._service.name,
                keep_days=keep_days_of(self._service, name),
                now=datetime.now(UTC),
                records=self._records,
            )
            now, keep = datetime.now(UTC), readable_for(name, self._service)
            drop_old_rows(self._settings.lake, name, self._service, keep=keep, now=now)
            full = self._settings.vacuum == "full"
            planned = self._planned.get(name, frozenset()) if full else frozenset()
            orphans = [found for found in self._orphans(path, retention) if found.name not in planned] if full else []
            # A full VACUUM would take the orphans without asking, and files that a batch has not committed yet.
            vacuum = "lite" if planned or (orphans and not self._settings.delete_orphans) else self._settings.vacuum
            cared = care_for(
                self._spark,
                path,
                retention,
                vacuum=vacuum,
                checkpoint_after=self._settings.checkpoint_after,
                version=state.version,
            )
            # Last: it may need what is not for every upkeep to read.
            by_kernel = partial(write_checkpoint, self._spark, path)
            gone_from(self._settings.lake, name, self._service, write_checkpoint=by_kernel)
            self._remember(name, path, vacuumed=cared.vacuum != "none")
        except (PySparkException, Py4JError, ClientError, BotoCoreError, OSError, ForebayError) as failure:
            return TableMaintenance(
                table=name, reason="failed", detail=f"{type(failure).__name__}: {sentence_of(failure)}"
            )
        seconds = round(time.monotonic() - began, 3)
        return TableMaintenance(table=name, cared=cared, retention=retention, orphans=tuple(orphans), seconds=seconds)

    def vault(self) -> Iterator[TableMaintenance]:
        """The vault of this service, if it has one. It is apart from the lake, and several lakes may share it."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        if self._service.privacy is None or not self._service.privacy.vault:
            return
        began = time.monotonic()
        try:
            lease = hold(f"{self._service.privacy.vault}/{MAINTAINED}", wait_s=0)
        except LeaseHeld as taken:
            yield TableMaintenance(
                table=VAULT, reason="busy", detail=f"{taken.holder} is working on it; the next run processes it"
            )
            return
        try:
            after = self._settings.checkpoint_after
            cared = tend_vault(self._spark, self._service, now=datetime.now(UTC), checkpoint_after=after)
        except (PySparkException, Py4JError, ClientError, BotoCoreError, OSError, ForebayError) as failure:
            yield TableMaintenance(
                table=VAULT, reason="failed", detail=f"{type(failure).__name__}: {sentence_of(failure)}"
            )
        else:
            seconds = round(time.monotonic() - began, 3)
            yield TableMaintenance(table=VAULT, cared=cared, retention=Retention(None, {}), seconds=seconds)
        finally:
            lease.let_go()

    def landed_files(self, stop: threading.Event) -> tuple[Cleared | None, tuple[TableMaintenance, ...]]:
        """Landed files that were loaded, as the service declares; and why not, if another run is at it or the ledger fails."""
        lake, now = self._settings.lake, datetime.now(UTC)
        try:
            return clear_landed(lake, self._service, emit=self._emit, stop=stop, now=now), ()
        except LeaseHeld as taken:
            detail = f"{taken.holder} is working on them; the next run processes them"
            return None, (TableMaintenance(table=AFTER_LOAD, reason="busy", detail=detail),)
        except (ClientError, BotoCoreError, OSError, ForebayError) as failure:
            detail = f"{type(failure).__name__}: {sentence_of(failure)}"
            return None, (TableMaintenance(table=AFTER_LOAD, reason="failed", detail=detail),)

    def remains(self, tables: Sequence[str]) -> dict[str, tuple[Listed, ...]]:
        """The remains of dropped tables."""
        found = {}
        for name in (name for name in tables if name not in self._planned):
            folder = open_objects(f"{self._settings.lake}/{name}")
            if left := remains_of(folder, not_before=datetime.now(UTC) - YOUNG):
                found[name] = tuple(left)
                if self._settings.delete_orphans:
                    folder.delete(f.name for f in left)
        return found

    # --- inside ---

    @cached_property
    def _planned(self) -> dict[str, frozenset[str]]:
        """The files that batches are still to commit, by table. Read once: files of later plans are too young to be orphans."""
        return files_of_open_plans(open_objects(f"{self._settings.lake}/{PLANS}"))

    def _orphans(self, path: str, retention: Retention) -> list[Listed]:
        """Old enough for VACUUM to take them."""
        not_before = datetime.now(UTC) - max(YOUNG, retention.keep or YOUNG)
        return orphans_of(open_objects(path), not_before=not_before)

    def _remember(self, name: str, path: str, *, vacuumed: bool) -> None:
        state = read_table(name, path, whole_log=True)
        if not isinstance(state, TableState) or state.snapshot is None:
            return
        snapshot, now = state.snapshot, datetime.now(UTC)

        def change(was: Any) -> Any:
            seen = seen_in(snapshot, was, now=now)
            return replace(seen, vacuumed_at=now if vacuumed else was.vacuumed_at)

        self._emit(HealthMeasured.of(self._records.update(name, change), self._service.name))


def _report(done: MaintenanceResult, service: str, seconds: float, emit: Emit) -> None:
    report_unfinished(done, service, TableNotMaintained, emit)
    for ran in done.tables:
        if ran.cared is not None and ran.retention is not None:
            emit(_maintained(ran, ran.cared, ran.retention, service))
            if strange := ran.cared.unknown:
                emit(ForeignFilesFound(service=service, table=ran.table, files=len(strange), such_as=strange[0]))
    for place, found in done.orphans.items():
        emit(
            OrphansFound(
                service=service,
                place=place,
                files=len(found),
                bytes=sum(f.bytes for f in found),
                such_as=found[0].name,
                deleted=done.deleted,
            )
        )
    orphans = [f for found in done.orphans.values() for f in found]
    emit(
        MaintenanceEnded(
            service=service,
            tables=sum(ran.cared is not None for ran in done.tables),
            tables_left=len(done.left),
            files_deleted=sum(ran.cared.files_deleted for ran in done.tables if ran.cared),
            orphans=len(orphans),
            orphan_bytes=sum(f.bytes for f in orphans),
            seconds=round(seconds, 3),
        )
    )


def _maintained(ran: TableMaintenance, cared: Cared, retention: Retention, service: str) -> TableMaintained:
    return TableMaintained(
        service=service,
        table=ran.table,
        vacuum=cared.vacuum,
        kept_hours=retention.keep_hours,
        files_deleted=cared.files_deleted,
        checkpoint=cared.checkpoint,
        properties=tuple(retention.properties),
        seconds=ran.seconds,
    )
