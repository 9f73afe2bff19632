"""The compaction job, as Glue, EMR and the laptop run it: a plan over the tables, carried out table by table.

In: `CompactSettings`. Out: `CompactionResult`, with the result of each table. Each table is planned again under its lease, so
nothing is done twice. The next run finds the work that a run could not finish.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forebay.aws.preflight import check_lake
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.service import Service
from forebay.errors import ForebayError
from forebay.events import Emit
from forebay.lake.lease import Lease
from forebay.lake.log.tables import own_tables, tables_of
from forebay.lake.objects import open_objects
from forebay.lake.safety import session_for
from forebay.settings import CompactSettings
from forebay.spark.signals import stopping_on_signals
from forebay.upkeep.compaction.candidates import candidates_of
from forebay.upkeep.compaction.carry_out import Commit, Engine, NotCompacted
from forebay.upkeep.compaction.declared import policy_of
from forebay.upkeep.compaction.events import CompactionEnded, TableCompacted, TableNotCompacted
from forebay.upkeep.compaction.live_files import TableState, Unreadable, is_no_table, read_table, read_tables
from forebay.upkeep.compaction.memory import Memory
from forebay.upkeep.compaction.plan import Plan, plan
from forebay.upkeep.compaction.policy import Budget, Policy
from forebay.upkeep.compaction.task import Skipped, Task
from forebay.upkeep.compaction.work import works_of
from forebay.upkeep.run import RunResult, TableResult, over_tables, report_unfinished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class TableCompaction(TableResult):
    """The result of one table, with its commits."""

    commits: tuple[Commit, ...] = ()
    conflicts: int = 0


@dataclass(frozen=True, kw_only=True)
class CompactionResult(RunResult[TableCompaction]):
    plan: Plan

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Those that are done."""
        return tuple(task for ran in self.tables for commit in ran.commits for task in commit.work.tasks)


def compact(settings: CompactSettings, *, emit: Emit, stop: threading.Event | None = None) -> CompactionResult:
    """Plans and carries out. Set `stop`, and it ends after the commits that are under way."""
    began = time.monotonic()
    service = service_for(settings.service, settings.lake, settings.deployed_service)
    check_lake(settings.lake)
    memory = Memory(settings.lake, _policy(settings, service))
    planned = plan_lake(settings, service, now=datetime.now(UTC), memory=memory)
    bad = [skip for skip in planned.skipped if skip.bad]
    tables = [TableCompaction(table=skip.table, reason=skip.reason, detail=skip.detail) for skip in bad]
    if planned.tasks:
        # Only now: without tasks, no JVM needs to start.
        spark = session_for(settings.lake, "forebay-compact", emit=emit)
        with stopping_on_signals(stop := stop or threading.Event()):
            tables += _Run(spark, settings, service, planned, memory, stop).all_tables()
    done = CompactionResult(plan=planned, tables=tuple(tables))
    memory.write(planned, done.tasks, service=service.name, emit=emit)
    _report(done, service, time.monotonic() - began, emit)
    return done


def plan_lake(settings: CompactSettings, service: Service, *, now: datetime, memory: Memory | None = None) -> Plan:
    """The plan for the tables that the settings name, or for all of the lake and our own. Needs no Spark."""
    names = settings.table_names or [*tables_of(settings.lake), *own_tables(settings.lake)]
    found = read_tables({name: f"{settings.lake}/{name}" for name in dict.fromkeys(names)})
    states = (state for state in found if not is_no_table(state, settings.table_names))
    budget = Budget(settings.budget_bytes or None, settings.budget_dpu_s or None)
    policy = _policy(settings, service)
    memory = memory or Memory(settings.lake, policy)
    return plan(memory.passing(states), policy, now=now, budget=budget)


def _policy(settings: CompactSettings, service: Service) -> Policy:
    policy = policy_of(service, round_=settings.round, only=settings.group or None)
    if settings.now:
        return policy.eager()
    return policy.heatless() if settings.hot else policy


class _Run:
    """The carrying out of one plan."""

    def __init__(
        self,
        spark: SparkSession,
        settings: CompactSettings,
        service: Service,
        planned: Plan,
        memory: Memory,
        stop: threading.Event,
    ) -> None:
        self._spark, self._settings, self._memory, self._stop = spark, settings, memory, stop
        self._policy = _policy(settings, service)
        self._tasks: dict[str, list[Task]] = {}
        for task in planned.tasks:
            self._tasks.setdefault(task.table, []).append(task)

    def all_tables(self) -> Sequence[TableCompaction]:
        return over_tables(
            self._tasks,
            self._settings.lake,
            self._under_lease,
            unfinished=TableCompaction,
            at_once=self._settings.tables_at_once,
            stop=self._stop,
        )

    def _under_lease(self, name: str, lease: Lease) -> TableCompaction:
        path = f"{self._settings.lake}/{name}"
        state = read_table(name, path)
        if isinstance(state, Unreadable) or state.snapshot is None:
            reason, detail = (state.reason, state.detail) if isinstance(state, Unreadable) else ("failed", "")
            return TableCompaction(table=name, reason=reason, detail=detail)
        types = state.snapshot.partition_types
        engine = Engine(self._spark, open_objects(path), path, types, still_ours=lease.check)
        commits: list[Commit] = []

        def result(reason: str = "", detail: str = "", conflicts: int = 0) -> TableCompaction:
            return TableCompaction(
                table=name, reason=reason, detail=detail, commits=tuple(commits), conflicts=conflicts
            )

        try:
            for commit in engine.carry_out(works_of(self._still_wanted(state))):
                commits.append(commit)
                if self._stop.is_set():
                    return result("stopped", "the run was asked to stop; the next run continues")
        except NotCompacted as stuck:
            return result(stuck.reason, stuck.detail, stuck.conflicts)
        except ForebayError as problem:
            return result("failed", str(problem))
        return result()

    def _still_wanted(self, state: TableState) -> list[Task]:
        """The plan's tasks, as they look now: somebody may have been here since, or have appended."""
        now = datetime.now(UTC)
        looked = candidates_of(self._memory.reminded(state), self._policy, now)
        fresh = {task.partition: task for task in looked if not isinstance(task, Skipped)}
        return [fresh[task.partition] for task in self._tasks[state.name] if task.partition in fresh]


def _report(done: CompactionResult, service: Service, seconds: float, emit: Emit) -> None:
    for ran in done.tables:
        if ran.commits:
            emit(_compacted(ran, service.name))
    report_unfinished(done, service.name, TableNotCompacted, emit)
    commits = [commit for ran in done.tables for commit in ran.commits]
    emit(
        CompactionEnded(
            service=service.name,
            round=done.plan.round,
            tables=sum(bool(ran.commits) for ran in done.tables),
            tables_left=len(done.left),
            **_sums(commits),
            conflicts=sum(ran.conflicts for ran in done.tables) + sum(commit.conflicts for commit in commits),
            planned_dpu_seconds=done.plan.totals()["dpu_s"],
            seconds=round(seconds, 3),
        )
    )


def _compacted(ran: TableCompaction, service: str) -> TableCompacted:
    tasks = [task for commit in ran.commits for task in commit.work.tasks]
    sums = _sums(ran.commits)
    return TableCompacted(
        service=service,
        table=ran.table,
        partitions=len(tasks),
        commits=len(ran.commits),
        version=ran.commits[-1].version,
        foretold_files=sum(task.into for task in tasks),
        bytes_written=sum(commit.effect.bytes_added for commit in ran.commits),
        conflicts=ran.conflicts + sum(commit.conflicts for commit in ran.commits),
        seconds=round(sum(commit.seconds for commit in ran.commits), 3),
        **sums,
    )


def _sums(commits: Sequence[Commit]) -> Mapping[str, int]:
    return {
        "files_removed": sum(commit.effect.files_removed for commit in commits),
        "files_added": sum(commit.effect.files_added for commit in commits),
        "bytes_read": sum(commit.effect.bytes_removed for commit in commits),
    }
