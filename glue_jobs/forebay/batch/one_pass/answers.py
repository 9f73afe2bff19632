"""The answers of a batch's tasks: the ends of their pieces, the counts of records by fate, and the data files they wrote.

In: an `Answer` for each task. Out: all of them as one. `odd` has the reason why a task gave up, or why the answers of several
tasks do not come from one reading.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

from forebay.batch.accounting import Fate
from forebay.content.end import PieceEnd
from forebay.table.data_files.data_file import ANSWER, Written, collect_answers


class Judged(NamedTuple):
    """The fate of a record: `batch.accounting.Fate` without its count. A task may answer with thousands."""

    file_id: str
    fate: str
    table: str | None = None
    declared: int | None = None
    reason: str | None = None
    violated: tuple[str, ...] = ()

    def times(self, rows: int) -> Fate:
        return Fate(self.file_id, self.fate, rows, self.table, self.declared, self.violated, self.reason)


def names_of(violated: str | None) -> tuple[str, ...]:
    """The expectations that a row violates, of their JSON."""
    return () if violated is None else tuple(json.loads(violated))


@dataclass(frozen=True)
class Identified:
    """The rows of one data file, in order, as Arrow's stream: their ids, their records' places, and what they violate. They
    were meant for `table`, and `place` has the file: the table, or the quarantine. Rows that the table has already are
    in no file: they have no `path`."""

    table: str
    declared: int
    rows: bytes
    count: int
    place: str
    path: str = ""


@dataclass(frozen=True)
class Vaulted:
    """The records of one data file of the vault, in order, as Arrow's stream: their files and their places there."""

    path: str
    rows: bytes


@dataclass(frozen=True)
class Moved:
    """Held records that leave where they were, as Arrow's stream: their pieces and their places. They leave once `table` is
    written; without one, they are dropped."""

    table: str | None
    rows: bytes


@dataclass
class Answer:
    """`files` are answers as `data_file` has them. `runs` are the tasks that read for the one that wrote, each with the
    run whose records it got. `identified` are the data files of tables that leave out duplicates, and `vaulted` those of the
    vault, if a row may still leave it. `moved` are records that were held. `is_crowded`: the task had too little memory.
    `lacks_ids`: the rows have more ids than the task's share, so `identified` is empty. `read_twice` says why files were read
    once more. `broken` are tables whose `transform` cannot be used, and why."""

    ends: list[PieceEnd] = field(default_factory=list)
    fates: Counter[Judged] = field(default_factory=Counter)
    files: list[dict[str, Any]] = field(default_factory=list)
    identified: list[Identified] = field(default_factory=list)
    vaulted: list[Vaulted] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    odd: str | None = None
    is_crowded: bool = False
    lacks_ids: bool = False
    read_twice: str = ""
    runs: frozenset[tuple[int, str]] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        """A batch of small files has a fate for each file and table, and pickle takes a named tuple ten times as long as a text
        and a number."""
        files: dict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
        for (file_id, *rest), rows in self.fates.items():
            files[tuple(rest)][file_id] = rows
        return self.__dict__ | {"fates": dict(files)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.fates = Counter()
        for rest, files in state["fates"].items():
            dict.update(self.fates, {Judged(file_id, *rest): rows for file_id, rows in files.items()})

    @property
    def counted(self) -> list[Fate]:
        return [one.times(rows) for one, rows in self.fates.items() if rows]

    @property
    def written(self) -> Written:
        return collect_answers(SimpleNamespace(**(_NOTHING | one)) for one in self.files)


_NOTHING: dict[str, Any] = dict.fromkeys(ANSWER.names)


def together(answers: Sequence[Answer]) -> Answer:
    total = Answer()
    for one in answers:
        total.ends += one.ends
        total.fates.update(one.fates)
        total.files += one.files
        total.identified += one.identified
        total.vaulted += one.vaulted
        total.moved += one.moved
        total.broken |= one.broken
        total.read_twice = total.read_twice or one.read_twice
        total.lacks_ids = total.lacks_ids or one.lacks_ids
    crowded = [one for one in answers if one.is_crowded]
    others = [one.odd for one in answers if one.odd and not one.is_crowded]
    total.odd = next(iter(others), None) or _disagreement(answers)
    if crowded and total.odd is None:
        total.odd, total.is_crowded = crowded[0].odd, True
    return total


def _disagreement(answers: Sequence[Answer]) -> str | None:
    """Spark repeats a task that reads where its records are lost, and not the tasks that wrote some of them: the repeated one
    may have cut them otherwise."""
    runs = {run for one in answers for run in one.runs}
    if len(runs) > len({task for task, _ in runs}):
        return "a task read its files again after other tasks had written some of its records"
    return None
