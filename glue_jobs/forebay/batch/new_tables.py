"""How many tables may come into being in a day: a flood of dirty names must not become a flood of tables.

The count is one driver's: it begins anew when the job is restarted, so a day with restarts may see more, by that factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

__all__ = ["NewTables"]


class NewTables:
    """Lets so many new names through each day."""

    def __init__(self) -> None:
        self._day: date | None = None
        self._made: set[str] = set()

    def refuse(self, new: Iterable[str], day: date, per_day: int) -> frozenset[str]:
        """Of these names of tables that do not exist yet, those that may not be made today. A name that it let through once, it
        lets through again."""
        if day != self._day:
            self._day, self._made = day, set()
        refused = set()
        for name in sorted(new):
            if name in self._made or len(self._made) < per_day:
                self._made.add(name)
            else:
                refused.add(name)
        return frozenset(refused)
