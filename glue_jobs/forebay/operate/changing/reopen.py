"""Reopens hours and days whose rows were removed or restored.

In: a lake, and ids of files in its ledger. Out: their rows in the table of periods are open again. The next check, by a job or
reconcile, judges them and sends the events. A replay and a forgotten file do not need this: their rows remain until a batch
begins, and that batch opens their periods itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from forebay.declaration.kept.in_force import kept_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import LEDGER
from forebay.ledger.periods import FeedPeriod, Key, opened
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import LedgerFile
from forebay.upkeep.complete.look import periods_of, rules_of

WHY = "a rollback removed or restored rows: the next check decides again"


def reopen(view: LakeView, file_ids: Collection[str]) -> None:
    """Repeated, it changes nothing that is open."""
    periods = periods_of(view.lake)
    there = periods.rows()
    if not there:
        return
    rows = view.rows_with(LEDGER, "*", "file_id", file_ids)
    keys = {key for name in {one.service for one in there.values()} for key in _keys(view, name, rows, there)}
    now = datetime.now(UTC)

    def change(known: Mapping[Key, FeedPeriod]) -> list[FeedPeriod]:
        return opened(known, [known[key] for key in keys if key in known], keys, now, why=WHY)

    periods.change(change)


def _keys(view: LakeView, name: str, rows: Sequence[Mapping[str, Any]], there: Collection[Key]) -> set[Key]:
    """All of a service whose declarations nobody can read here: a period may be open once too often, never once too seldom."""
    service = _in_force(view, name)
    names = {name} if service is None else {name, *service.shares_files_with}
    files = [LedgerFile.of(row).landed for row in rows if row["service"] in (None, *names)]
    if service is None:
        return {key for key in there if key[0] == name} if files else set()
    rules, found = rules_of(service), set[Key]()
    for file in files:
        feed = service.feed_of(file.bucket, file.key)
        if feed is None or feed.name not in rules:
            continue
        _, rule = rules[feed.name]
        if (period := rule.period_of(file)) is not None:
            found.add((name, feed.name, period.start))
    return found


def _in_force(view: LakeView, name: str) -> Service | None:
    try:
        return kept_service(view.lake, name)
    except InvalidConfiguration:
        return None
