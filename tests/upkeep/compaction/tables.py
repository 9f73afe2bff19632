"""Tables to plan for, and the engine in miniature: what Delta's OPTIMIZE, its Z-order and `repartition(n)` would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from forebay.lake.log.live_file import LiveFile, Partition
from forebay.upkeep.compaction.live_files import TableState
from forebay.upkeep.compaction.plan import Plan
from forebay.upkeep.compaction.task import Task

MIB = 1 << 20
NOW = datetime(2026, 5, 20, 3, tzinfo=UTC)
DAY = (("day", "2026-05-01"),)


def files(
    *sizes: int,
    partition: Partition = DAY,
    age: timedelta = timedelta(days=2),
    deleted_rows: int = 0,
    rows: int | None = 1000,
    name: str = "f",
) -> list[LiveFile]:
    """One for each size, in MiB. Two days old: cold in both rounds, and not yet done with."""
    folder = "/".join(f"{column}={value}" for column, value in partition)
    return [
        LiveFile(f"{folder}/{name}{number}", partition, size * MIB, rows, NOW - age, deleted_rows)
        for number, size in enumerate(sizes)
    ]


def table(*live: LiveFile, name: str = "scores", clustered: bool = False) -> TableState:
    return TableState(name, live, 7, clustered)


def carried_out(tables: Sequence[TableState], plan: Plan, at: datetime) -> list[TableState]:
    """The tables after the engine did what the tasks say; it is told no more than an executor could tell it."""
    done = []
    for state in tables:
        for task in (task for task in plan.tasks if task.table == state.name):
            inside = [file for file in state.files if file.partition == task.partition]
            others = [file for file in state.files if file.partition != task.partition]
            ordered = {**state.ordered, task.partition: at} if task.ordering else state.ordered
            state = replace(state, files=[*others, *_engine(inside, task, at)], ordered=ordered)
        done.append(state)
    return done


def _engine(inside: list[LiveFile], task: Task, at: datetime) -> list[LiveFile]:
    if task.way == "rewrite":
        return _written(inside, task.into, task, at)
    if task.ordering:
        return _written(inside, max(1, sum(file.bytes for file in inside) // task.target_file_bytes), task, at)
    untouched = []
    bins: list[list[LiveFile]] = [[]]
    for file in sorted(inside, key=lambda f: f.bytes):
        if file.bytes >= task.small_below_bytes and file.deleted_share <= task.max_deleted_share:
            untouched.append(file)
            continue
        if sum(f.bytes for f in bins[-1]) + file.bytes > task.target_file_bytes:
            bins.append([])
        bins[-1].append(file)
    after = untouched
    for number, together in enumerate(bins):
        after += together if len(together) < 2 else _written(together, 1, task, at, f"bin{number}")
    return after


def _written(rewritten: list[LiveFile], count: int, task: Task, at: datetime, name: str = "new") -> list[LiveFile]:
    size, rest = divmod(sum(file.live_bytes for file in rewritten), count)
    return [
        LiveFile(f"{task.partition}/{name}{number}-{at}", task.partition, size + (number < rest), 1, at)
        for number in range(count)
    ]
