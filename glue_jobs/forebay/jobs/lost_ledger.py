"""A lake whose ledger was lost: a job that starts would begin an empty one, and load announced files a second time.

In: a lake. Out: nothing, or `InvalidConfiguration` where a table has rows of a batch, and no ledger has the batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forebay.errors import InvalidConfiguration
from forebay.lake.layout import PLANS, application, table_path
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.log.tables import tables_of
from forebay.lake.objects import open_objects
from forebay.ledger.lost import has_ledger, lost_ledger

Transaction = tuple[str, int]
"""An application, and the number of its batch."""

LOADED = re.compile(r"forebay/[^/]+/(?!erase$)[^/]+")
"""The applications that load files. Erasures and the expiry of old rows may come before any batch."""


def must_have_its_ledger(lake: str, first: frozenset[Transaction] = frozenset()) -> None:
    """`first` is the transaction of a first batch that has not ended. It continues, even if somebody deleted its plan."""
    if (name := table_without_ledger(lake, first)) is not None:
        raise InvalidConfiguration([lost_ledger(lake, f"table {name} has rows that a job loaded")])


def table_without_ledger(lake: str, first: frozenset[Transaction] = frozenset()) -> str | None:
    """A table that jobs have filled, where there is no ledger. Batches that are half done have rows in tables before the ledger
    has them. Another service may load its first batch now: its plan stays from before the first row until the ledger has the
    batch, so tables are read first and the ledger last."""
    if has_ledger(lake):
        return None
    loaded = {name: loading_transactions(lake, name) for name in tables_of(lake)}
    half_done = frozenset(_half_done(lake)) | first
    found = next((name for name, some in loaded.items() if some - half_done), None)
    return None if has_ledger(lake) else found


def _half_done(lake: str) -> Iterator[Transaction]:
    """Batches that began before the lake had a ledger."""
    from forebay.batch.plan import Plans  # half of what `forebay status` would import

    plans = open_objects(f"{lake}/{PLANS}")
    for service in plans.folders():
        for plan in Plans(plans, service).left():
            if not plan.had_ledger:
                yield application(service, plan.generation), plan.batch


def loading_transactions(lake: str, name: str) -> frozenset[Transaction]:
    """The newest one of each stream that loads files."""
    try:
        newest = read_snapshot(open_objects(table_path(lake, name))).transactions
    except (NoTable, BrokenLog, UnsupportedTable):
        return frozenset()
    return frozenset((app_id, number) for app_id, number in newest.items() if LOADED.fullmatch(app_id))
