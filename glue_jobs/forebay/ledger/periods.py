"""The Delta table `<lake>/_forebay/complete`: one row for each hour or day of a feed that declares when it is complete.

In: changes of rows, as pure functions. Out: commits that succeed only if no other writer committed since the rows were read.
Otherwise the change is repeated from newer rows. A batch reopens the periods of its files before it writes a plan. A job that
judges a period sets `check` first, and declares the period complete only if no batch cleared `check` in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.errors import TryAgain
from forebay.lake.log.listing import NoTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.replace_files import replace_files
from forebay.lake.log.snapshot import Followed, Snapshot
from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.ledger.data_files import plainly_typed

Key = tuple[str, str, datetime]
"""Service, feed, and the start of the period."""
Rows = Mapping[Key, "FeedPeriod"]
Change = Callable[[Rows], Iterable["FeedPeriod"]]

MONTH = "month"
ATTEMPTS = 50
REOPENED = "a file arrived: a batch is loading it"


@dataclass(frozen=True, kw_only=True)
class FeedPeriod:
    """It is complete while it has `complete_at`. `since` is when a batch first saw a file of it. `revision` counts how often it
    became complete, `why` says what it waits for, and `told` whether EventBridge knows."""

    service: str
    feed: str
    period: datetime
    ends: datetime
    files: int = 0
    rows: int = 0
    refused: int = 0
    first_arrival: datetime | None = None
    last_arrival: datetime | None = None
    complete_at: datetime | None = None
    revised_at: datetime | None = None
    revision: int = 0
    why: str = ""
    since: datetime
    check: str = ""
    told: bool = True

    @property
    def key(self) -> Key:
        return self.service, self.feed, self.period


KINDS = {"int": pa.int64(), "bool": pa.bool_(), "str": pa.string()}
SCHEMA = pa.schema([(f.name, KINDS.get(str(f.type), pa.timestamp("us", "UTC"))) for f in fields(FeedPeriod)])


def opened(
    rows: Rows, seen: Iterable[FeedPeriod], read: Collection[Key], at: datetime, *, why: str = REOPENED
) -> list[FeedPeriod]:
    """The rows that change when a batch begins that has files of these periods. Only those that it `read`s a file of are taken
    back: a marker alone opens a new one."""
    changed = []
    for one in seen:
        there = rows.get(one.key)
        if there is None or there.ends != one.ends:  # an earlier declaration had hours for days, or days for hours
            changed.append(replace(one, revision=there.revision if there else 0))
        elif one.key in read and (there.complete_at or there.check):
            if there.complete_at:
                there = replace(there, complete_at=None, revised_at=at, told=False)
            changed.append(replace(there, check="", why=why))
    return changed


class Periods:
    """One lake's. A process keeps what it read: later it reads what changed since."""

    def __init__(self, table: Objects) -> None:
        self._table, self._log = table, Followed(table)
        self._read: dict[str, list[FeedPeriod]] = {}

    def rows(self) -> dict[Key, FeedPeriod]:
        """None before the first period."""
        return self._rows(self._snapshot())

    def change(self, change: Change) -> bool:
        """Whether anything changed. It may be asked several times, each time with newer rows."""
        for _ in range(ATTEMPTS):
            snapshot = self._snapshot()
            rows = self._rows(snapshot)
            changed = {one.key: one for one in change(rows)}
            if not changed:
                return False
            months = {_month(one) for one in changed.values()}
            after = {**rows, **changed}.values()
            tables = {month: _as_table(one for one in after if _month(one) == month) for month in sorted(months)}
            if replace_files(self._table, snapshot, MONTH, tables):
                return True
        raise TryAgain(f"{self._table.place}: other writers keep changing it")

    def _snapshot(self) -> Snapshot | None:
        try:
            return self._log.newest()
        except NoTable:
            return None

    def _rows(self, snapshot: Snapshot | None) -> dict[Key, FeedPeriod]:
        files = snapshot.files if snapshot else ()
        self._read = {file.path: self._read.get(file.path) or self._rows_of(file) for file in files}
        return {one.key: one for rows in self._read.values() for one in rows}

    def _rows_of(self, file: LiveFile) -> list[FeedPeriod]:
        content = self._table.read(unquote(file.path))
        if content is None:
            raise TryAgain(f"{self._table.place}/{file.path} was deleted while it was read")
        # Threads cost more than they save: a file has some thousand rows.
        table = plainly_typed(pq.ParquetFile(pa.BufferReader(content)).read(columns=SCHEMA.names, use_threads=False))
        return [FeedPeriod(**row) for row in python_rows(table.cast(SCHEMA))]


def _month(one: FeedPeriod) -> str:
    return f"{one.period:%Y-%m}"


def _as_table(rows: Iterable[FeedPeriod]) -> pa.Table:
    plain: list[dict[str, Any]] = [asdict(one) for one in sorted(rows, key=lambda one: one.key)]
    return pa.Table.from_pylist(plain, SCHEMA)
