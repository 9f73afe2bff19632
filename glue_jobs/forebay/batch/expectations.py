"""Checks the rows of a batch against the expectations of their tables.

In: counted fates, the declarations. Out: a `Verdict` for each expectation of each table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from forebay.batch.accounting import Fate
from forebay.declaration.service import Service
from forebay.declaration.table import Table

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, table string, expectation string, "
    "on_violation string, rows long, violated long, failed boolean"
)
USUAL_VALUES = r"[\w .:+@-]{1,100}"
"""The pattern of a text that may name a partition's folder, unless the declaration has another one."""


@dataclass(frozen=True)
class Verdict:
    """The result of one expectation for the rows of one table in one batch."""

    table: str
    expectation: str
    on_violation: str
    rows: int
    violated: int
    failed: bool
    rings: bool

    def row(self, shared: Mapping[str, Any]) -> dict[str, Any]:
        names = ("table", "expectation", "on_violation", "rows", "violated", "failed")
        return {**shared, **{name: getattr(self, name) for name in names}}


def verdicts(service: Service, fates: Sequence[Fate]) -> list[Verdict]:
    """A verdict for every expectation of every table that got rows, including those that all rows met."""
    rows: dict[tuple[str, int], int] = {}
    violated: dict[tuple[str, str], int] = {}
    for fate in fates:
        if fate.table is not None and fate.declared is not None:
            rows[fate.table, fate.declared] = rows.get((fate.table, fate.declared), 0) + fate.rows
            for name in fate.violated:
                violated[fate.table, name] = violated.get((fate.table, name), 0) + fate.rows
    return [
        _verdict(service.tables[declared], table, name, count, violated.get((table, name), 0))
        for (table, declared), count in sorted(rows.items())
        for name in service.tables[declared].expectations
    ]


def _verdict(declared: Table, table: str, name: str, rows: int, violated: int) -> Verdict:
    """A limit is the number that somebody wrote: as a float, 0.57 of 10,000 rows would be less than 57."""
    expectation = declared.expectations[name]
    fails, rings = (
        limit is not None and violated * 100 > Decimal(str(limit)) * rows
        for limit in (expectation.fails_above, expectation.alarm_above_percent)
    )
    return Verdict(table, name, expectation.on_violation, rows, violated, fails, rings or fails)
