"""The answers of a batch's tasks: the ends of their pieces, the counts of records by fate, and the data files they wrote.

In: an `Answer` for each task. Out: all of them as one. Whatever made a task give up is in `odd`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from forebay.batch.accounting import Fate
from forebay.content.end import PieceEnd
from forebay.table.data_file import ANSWER, Written, collect_answers

__all__ = ["Answer", "Judged", "names_of", "together"]


@dataclass(frozen=True)
class Judged:
    """The fate of a record: `batch.accounting.Fate` without its count."""

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


@dataclass
class Answer:
    """`files` are answers as `table.data_file` has them."""

    ends: list[PieceEnd] = field(default_factory=list)
    fates: Counter[Judged] = field(default_factory=Counter)
    files: list[dict[str, Any]] = field(default_factory=list)
    odd: str | None = None

    @property
    def counted(self) -> list[Fate]:
        return [one.times(rows) for one, rows in self.fates.items() if rows]

    @property
    def written(self) -> Written:
        return collect_answers(SimpleNamespace(**(_NOTHING | one)) for one in self.files)


_NOTHING: dict[str, Any] = dict.fromkeys(ANSWER.names)


def together(answers: Iterable[Answer]) -> Answer:
    total = Answer()
    for one in answers:
        total.ends += one.ends
        total.fates += one.fates
        total.files += one.files
        total.odd = total.odd or one.odd
    return total
