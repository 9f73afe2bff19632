"""One request to the engine: tasks of one table that fit one commit, and the predicate of their partitions.

In: a table's tasks, in the order of the plan. Out: `Work`, each of them one commit. Pure. Packing takes many partitions at
once, because each commit is one more file of the log. It takes no more than `BYTES_AT_ONCE`, because interrupted or
conflicting work is repeated. A rewrite is one partition: only then is `repartition(n)` n files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from forebay.lake.log.live_file import Partition
from forebay.upkeep.compaction.policy import GIB
from forebay.upkeep.compaction.task import Task

BYTES_AT_ONCE = 32 * GIB
PARTITIONS_AT_ONCE = 200


@dataclass(frozen=True)
class Work:
    """Tasks with the same engine options, for different partitions."""

    tasks: tuple[Task, ...]

    @property
    def like(self) -> Task:
        return self.tasks[0]


def works_of(tasks: Iterable[Task]) -> Iterator[Work]:
    together: list[Task] = []
    for task in tasks:
        if together and not _fits(together, task):
            yield Work(tuple(together))
            together = []
        together.append(task)
    if together:
        yield Work(tuple(together))


def _fits(together: list[Task], task: Task) -> bool:
    if task.way == "rewrite" or _asked(together[0]) != _asked(task) or len(together) >= PARTITIONS_AT_ONCE:
        return False
    return sum(t.bytes for t in together) + task.bytes <= BYTES_AT_ONCE


def _asked(task: Task) -> tuple[object, ...]:
    # Whoever is hot may meet a merge: alone, it costs the others nothing.
    hot = task.partition if task.hot else ()
    numbers = (task.target_file_bytes, task.small_below_bytes, task.max_deleted_share)
    return task.way, task.ordering, task.order_by, hot, *numbers


def predicate(partitions: Iterable[Partition], types: Mapping[str, str]) -> str:
    """SQL that is true in these partitions; empty for a table without any."""
    return " OR ".join(f"({_one(partition, types)})" for partition in partitions if partition)


def _one(partition: Partition, types: Mapping[str, str]) -> str:
    return " AND ".join(_equals(column, value, types[column]) for column, value in partition)


def _equals(column: str, value: str | None, type_: str) -> str:
    name = f"`{column.replace('`', '``')}`"
    if value is None:
        return f"{name} IS NULL"
    text = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name} = CAST('{text}' AS {SQL_TYPES.get(type_, type_)})"


SQL_TYPES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
"""Where the log's names are not SQL's."""
