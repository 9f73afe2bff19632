"""A run's notes on tables, in their health objects: when partitions were ordered, which a log does not say, and the remaining
work. That decides when the next run starts.

In: the plan's tables; afterwards, the finished tasks. Out: the same tables with the known order of their partitions; health
objects and events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from forebay.events import Emit
from forebay.lake.health import Health, HealthMeasured, HealthRecords, seen_in
from forebay.threads import in_threads
from forebay.upkeep.compaction.live_files import TableState, Unreadable, read_table
from forebay.upkeep.compaction.plan import Plan
from forebay.upkeep.compaction.policy import Policy, Thresholds
from forebay.upkeep.compaction.task import Task

LEFT_FOR_LATER = ("too-hot", "over-budget")


class Memory:
    """The memory of one run."""

    def __init__(self, lake: str, policy: Policy) -> None:
        self._lake, self._policy = lake, policy
        self._records = HealthRecords(lake)
        self._seen: dict[str, Health] = {}

    def passing(self, tables: Iterable[TableState | Unreadable]) -> Iterator[TableState | Unreadable]:
        """Looks at the tables on their way into the plan; none of their files is kept."""
        for table in tables:
            if isinstance(table, TableState) and table.snapshot is not None:
                self._seen[table.name] = self._measured(table, Health(table=table.name))
                table = self.reminded(table)
            yield table

    def reminded(self, table: TableState) -> TableState:
        """With what is known of its order, where that counts."""
        if self._policy.round == "first":
            return table
        return replace(table, ordered=self._records.of(table.name).ordered_partitions())

    def write(self, planned: Plan, done: Sequence[Task], *, service: str, emit: Emit) -> None:
        """Writes the health of every table of the plan; changed tables are read again."""
        changed: dict[str, list[Task]] = {}
        for task in done:
            changed.setdefault(task.table, []).append(task)
        waiting = _waiting(planned, done)
        for health in in_threads(lambda name: self._write(name, changed.get(name, []), waiting[name]), self._seen):
            emit(HealthMeasured.of(health, service))

    def _write(self, name: str, done: Sequence[Task], waiting: int) -> Health:
        health, now = self._seen[name], datetime.now(UTC)
        table = read_table(name, f"{self._lake}/{name}") if done else None
        if isinstance(table, TableState):
            ordered = [task.partition for task in done if task.ordering]
            health = replace(self._measured(table, health), compacted_at=now).with_ordered(ordered, now)
        return self._records.update(name, lambda was: _over(was, health, waiting))

    def _measured(self, table: TableState, before: Health) -> Health:
        assert table.snapshot is not None
        thresholds = self._policy.group_of(table.name).thresholds
        target = thresholds.target(sum(file.bytes for file in table.files), "first")
        before = replace(before, small_below_bytes=int(target * thresholds.small_share), **_wakes(thresholds))
        return seen_in(table.snapshot, before, now=datetime.now(UTC))


def _wakes(thresholds: Thresholds) -> dict[str, Any]:
    return {
        "wakes_at": thresholds.min_small_files,
        "hot_wakes_at": thresholds.hot_small_files,
        "cold_after_s": thresholds.cold_after.total_seconds(),
    }


def _waiting(planned: Plan, done: Sequence[Task]) -> Counter[str]:
    """Small files of each table that a later run could do something about."""
    finished = {(task.table, task.partition) for task in done}
    left: Counter[str] = Counter()
    for task in planned.tasks:
        left[task.table] += 0 if (task.table, task.partition) in finished else len(task.files)
    for skip in planned.skipped:
        left[skip.table] += skip.files if skip.reason in LEFT_FOR_LATER else 0
    return left


def _over(was: Health, new: Health, waiting: int) -> Health:
    """The log's numbers replace the old ones; notes of others stay."""
    return replace(
        new,
        waiting=waiting,
        compacted_at=new.compacted_at or was.compacted_at,
        vacuumed_at=was.vacuumed_at,
        expired_before=was.expired_before,
        ordered={**was.ordered, **new.ordered},
    )
