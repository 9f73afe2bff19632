"""Limits the number of new tables per day: a flood of dirty names must not become a flood of tables.

In: names of tables that do not exist yet, and a day. Out: those that may not be created. The day's names are kept in the lake,
so a restarted driver continues the count. Without a place to keep them, this object counts alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date

from forebay.lake.objects import Objects

KEPT = "today.json"


class NewTables:
    """Lets this many new names through each day."""

    def __init__(self, store: Objects | None = None) -> None:
        self._store = store
        self._day: date | None = None
        self._made: set[str] = set()

    def refuse(self, new: Iterable[str], day: date, per_day: int) -> frozenset[str]:
        """The names, among these of tables that do not exist yet, that may not be created today. A name that was accepted once
        is accepted again."""
        names = sorted(new)
        if names and day != self._day:
            self._day, self._made = day, self._kept(day)
        before, refused = len(self._made), set()
        for name in names:
            if name in self._made or len(self._made) < per_day:
                self._made.add(name)
            else:
                refused.add(name)
        if len(self._made) > before:
            self._keep(day)
        return frozenset(refused)

    def _kept(self, day: date) -> set[str]:
        kept = json.loads((self._store.read(KEPT) if self._store else None) or b"{}")
        return set(kept["names"]) if kept.get("day") == day.isoformat() else set()

    def _keep(self, day: date) -> None:
        if self._store is not None:
            self._store.write(KEPT, json.dumps({"day": day.isoformat(), "names": sorted(self._made)}).encode())
