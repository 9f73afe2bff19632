"""The data files that a batch has written and not committed yet, as its plan keeps them. Pure.

In: the data files of its tables and of what is kept beside them, and the tables that are not written, with the reason of each.
Out: the same, as JSON has it and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from forebay.table.staged import StagedTable

QUARANTINE, PARKED, IDS, VAULT = "quarantine", "parked", "ids", "vault"
"""The places beside the tables, by their names in a plan."""


@dataclass(frozen=True)
class Staged:
    """`tables` by name, and `beside` them what is kept apart; nothing of what has no rows."""

    unwritten: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, StagedTable] = field(default_factory=dict)
    beside: Mapping[str, StagedTable] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StagedTable]:
        yield from self.tables.values()
        yield from self.beside.values()

    def as_json(self) -> dict[str, Any]:
        parts = {"tables": self.tables, "beside": self.beside}
        told = {part: {name: one.as_json() for name, one in found.items()} for part, found in parts.items()}
        return {**told, "unwritten": dict(self.unwritten)}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Staged:
        tables, beside = (
            {name: StagedTable.of_json(one) for name, one in told[part].items()} for part in ("tables", "beside")
        )
        return cls(told["unwritten"], tables, beside)
