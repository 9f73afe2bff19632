"""Removes rows that a table no longer keeps, and counts them as dropped in the ledger.

In: a table, and the days that its rows are kept (`keep_days`). Out: how many rows left. A row's age is that of its
`_ingested_at`, whole days in UTC. Rows to delete are noted first, so the next run finishes a run that died. Older versions
of the table hold the rows until VACUUM takes their files, as with every deleted row.

A batch that replaces or replays a file goes by the ledger's row of it, from its plan to its end. So rows of files whose keys
are in an open batch stay until a later run. It looks again before the commit: a batch may have begun meanwhile.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.declaration.service import Service
from forebay.lake.layout import DERIVED_FROM, EXPIRED, LEDGER, application, table_path
from forebay.lake.log.listing import list_log
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import Snapshot
from forebay.lake.objects import open_objects
from forebay.ledger.data_files import KEY_HASH, pairs_of
from forebay.ledger.entry import key_hash
from forebay.plain import known
from forebay.upkeep.accounts.open_batches import open_batches
from forebay.upkeep.erase.counts import change_ledger
from forebay.upkeep.erase.plan import Done
from forebay.upkeep.erase.rows import MOMENT, Found
from forebay.upkeep.erase.table import Find, Leaving, TableErasure

AGE, FILE = "_ingested_at", "_file_id"
FILE_ID = "file_id"
"""The column of the ledger."""
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Expiry:
    """The expiry of one table; `number` is the first day that stays, counted from 1970. Its transactions have the number
    `ledger_version`, and not the day's: rows may come back by a rollback, and leave again on the same day. Files lose rows as
    of the ledger's version `as_of`: notes of earlier code have only the other one. `settled`: the ledger agrees."""

    number: int
    ledger_version: int
    settled: bool = False
    done: dict[str, Any] | None = None
    as_of: int | None = None


def drop_old_rows(lake: str, table: str, service: Service, *, keep: timedelta, now: datetime) -> int:
    """`keep` is how long older versions can be read. Where the declarations keep all rows, nothing is done."""
    made = service.maker_of(table)
    days = made.keep_days if made else 0
    notes, name = open_objects(lake), f"{EXPIRED}/{table}.json"
    if not days:
        return 0
    ledger, found = open_objects(table_path(lake, LEDGER)), notes.read(name)
    before = _Expiry(**known(_Expiry, json.loads(found))) if found else None
    left = (
        _Expiry((now - EPOCH) // DAY - days, list_log(ledger).version) if before is None or before.settled else before
    )

    def note(done: Done) -> None:
        nonlocal left
        if in_batches.have_any(done.files):
            raise _Busy
        # After the look: this version has the entries of a batch that has ended meanwhile.
        left = replace(left, done=asdict(done), as_of=list_log(ledger).version)
        notes.write(name, json.dumps(asdict(left)).encode())

    app_id, until = application(service.name, f"expiry/{table}"), EPOCH + left.number * DAY
    in_batches = _InOpenBatches(lake)
    if left.done and in_batches.have_any(left.done["files"]):
        return 0
    busy = in_batches.ids()
    leaving = Leaving(app_id, left.ledger_version, lambda snapshot: _finder(snapshot, until, busy))
    exchange = TableErasure(table, open_objects(table_path(lake, table)), leaving, keep=keep, note=note)
    try:
        done = exchange.erase(Done(**known(Done, left.done)) if left.done else None)
    except _Busy:
        exchange.undo()
        return 0
    leaves = {id_: {table: rows} for id_, rows in done.files.items()}
    at = datetime.fromisoformat(done.at)
    as_of = left.ledger_version if left.as_of is None else left.as_of
    change_ledger(lake, app_id, left.ledger_version, leaves, as_of=as_of, at=at)
    notes.write(name, json.dumps(asdict(replace(left, settled=True, done=None))).encode())
    return done.rows


class _Busy(Exception):
    """A batch that began meanwhile goes by files whose old rows should leave."""


class _InOpenBatches:
    """The files whose keys are in batches that have not ended, as far as the ledger has them."""

    def __init__(self, lake: str) -> None:
        self._lake, self._ledger = lake, open_objects(table_path(lake, LEDGER))
        self._hashes: dict[str, int | None] = {}

    def ids(self) -> pa.StringArray:
        """The ids of all versions of these files."""
        open_ = self._open()
        found = pairs_of(self._ledger, pa.array(open_, pa.int64()), KEY_HASH, FILE_ID) if open_ else ()
        return pa.array(sorted({file_id for _, file_id in found}), pa.string())

    def have_any(self, file_ids: Collection[str]) -> bool:
        """Each attempt at a commit asks. The ledger is read once for a file, so that writers who commit often do not win."""
        if not file_ids or not (open_ := self._open()):
            return False
        if new := [one for one in file_ids if one not in self._hashes]:
            found = dict(pairs_of(self._ledger, pa.array(new, pa.string()), FILE_ID, KEY_HASH))
            self._hashes |= {one: found.get(one) for one in new}
        return any(self._hashes[one] in open_ for one in file_ids)

    def _open(self) -> set[int]:
        return {key_hash(file) for one in open_batches(self._lake) for file in one.landed}


def _finder(snapshot: Snapshot, until: datetime, busy: pa.StringArray) -> Find | None:
    """Computed tables follow those that they are computed from."""
    if AGE not in snapshot.columns or DERIVED_FROM in snapshot.configuration:
        return None

    def find(content: BinaryIO, file: LiveFile) -> Found:
        return _older(content, until, busy)

    return find


def _older(content: BinaryIO, until: datetime, busy: pa.StringArray) -> Found:
    """The older rows of a data file, without those of `busy` files. For most files, the statistics say that there are none."""
    parquet, found = pq.ParquetFile(content), Found()
    for group in range(parquet.num_row_groups):
        if _is_young(parquet.metadata.row_group(group), until):
            found.groups.append(None)
            continue
        rows = parquet.read_row_group(group, columns=[AGE, FILE])
        age = rows[AGE].combine_chunks().cast(MOMENT)
        files = rows[FILE].combine_chunks().cast(pa.string())
        old = pc.and_not(pc.fill_null(pc.less(age, pa.scalar(until, MOMENT)), False), pc.is_in(files, busy))
        count = pc.sum(old).as_py() or 0
        found.groups.append(old if count else None)
        found.rows += count
        found.files.update(Counter(one for one in files.filter(old).to_pylist() if one is not None))
    return found


def _is_young(group: Any, until: datetime) -> bool:
    for at in range(group.num_columns):
        column = group.column(at)
        if column.path_in_schema == AGE:
            known = column.statistics
            if known is None or not isinstance(known.min, datetime):
                return False
            return bool((known.min if known.min.tzinfo else known.min.replace(tzinfo=UTC)) >= until)
    return True
