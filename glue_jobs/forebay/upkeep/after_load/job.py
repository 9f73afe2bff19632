"""A step of maintenance: landed files that were loaded are moved or deleted, as `after_load` declares.

In: a lake, and a service. Out: `Cleared`. The ledger decides, one day of it at a time, so memory holds one day. Notes follow
each chunk of files. A run that was killed repeats at most one chunk, and finds its files gone or in the archive.
A file that S3 refuses is left for the next run, and the others continue. No run works beside a rollback: an object may be
the only copy of rows that leave.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from forebay.address import overlap
from forebay.declaration.feed import AfterLoad
from forebay.declaration.kept.in_force import kept_services
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.events import Emit
from forebay.lake.layout import AFTER_LOAD, LEDGER, after_load_of, table_path
from forebay.lake.lease import Lease, hold
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects, open_objects
from forebay.lake.rollback_plan import must_not_be_half_rolled_back
from forebay.lake.rows import python_rows
from forebay.lake.s3_objects import s3_client
from forebay.ledger.data_files import opened, rows_of
from forebay.upkeep.accounts.open_batches import open_batches
from forebay.upkeep.after_load.due import COLUMNS, DueFile, due_in
from forebay.upkeep.after_load.effect import Done, Left, Settling
from forebay.upkeep.after_load.events import LandedFilesCleared, LandedFilesLeft
from forebay.upkeep.after_load.lost import LostRows
from forebay.upkeep.after_load.notes import DAY, Notes
from forebay.upkeep.after_load.readers import Readers, readers_of

AT_ONCE = 32
CHUNK = 2000
"""Files between two commits of notes."""
SHOWN = 10


@dataclass
class Cleared:
    """`actions` counts files by what was done; `left` has the files that could not be processed, by reason: how many, and the
    first. `due` are the first files of a preview, each with the place that it would be moved to; `files` counts all of them."""

    actions: Counter[str] = field(default_factory=Counter)
    left: dict[str, tuple[int, Left]] = field(default_factory=dict)
    waiting: int = 0
    files: int = 0
    bytes: int = 0
    due: list[tuple[str, str]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return sum(files for files, _ in self.left.values())


def landed_due(lake: str, service: Service, *, now: datetime) -> Cleared:
    """The preview: asks S3 about no landed file, and changes nothing. A key has one object: of several versions that a
    day's batches loaded, only the last is due."""
    found = Cleared()
    if service.after_load is None:
        return found
    readers = _readers(lake, service, now)
    settling = Settling(None, service.after_load, readers.loads, readers.forgets)
    for of_day in _due(lake, service, now, found, readers):
        refused = {one: left for one in of_day if (left := settling.refusal(one)) is not None}
        _leave(found, refused.values())
        due = list({one.uri: one for one in of_day if one not in refused}.values())
        found.files += len(due)
        found.bytes += sum(one.size for one in due)
        for one in due[: SHOWN - len(found.due)]:
            found.due.append((one.uri, _place(service.after_load, one)))
    return found


def clear_landed(
    lake: str, service: Service, *, emit: Emit, stop: threading.Event, now: datetime, s3: Any = None
) -> Cleared | None:
    """None where nothing is declared. `LeaseHeld` where another run is at it."""
    if service.after_load is None:
        return None
    began, cleared, archive = time.monotonic(), Cleared(), service.after_load.move
    if archive and overlap(archive, lake):
        raise InvalidConfiguration.one("after_load.move", f"{archive} is in the lake", "choose a place outside of it")
    lease = hold(after_load_of(lake, service.name), wait_s=0)
    try:
        must_not_be_half_rolled_back(lake)
        _clear(lake, service, service.after_load, s3 or s3_client(), cleared, lease, now, stop)
    finally:
        lease.let_go()
        _report(cleared, service.name, time.monotonic() - began, emit)
    return cleared


def _clear(
    lake: str,
    service: Service,
    rule: AfterLoad,
    s3: Any,
    cleared: Cleared,
    lease: Lease,
    now: datetime,
    stop: threading.Event,
) -> None:
    readers = _readers(lake, service, now)
    settling = Settling(s3, rule, readers.loads, readers.forgets)
    notes = Notes(open_objects(table_path(lake, AFTER_LOAD)), service.name)
    with ThreadPoolExecutor(AT_ONCE, "after-load") as threads:
        for due in _due(lake, service, now, cleared, readers):
            for at in range(0, len(due), CHUNK):
                if stop.is_set():
                    return
                lease.check()
                chunk = due[at : at + CHUNK]
                started = notes.start((one, _place(rule, one)) for one in chunk if settling.refusal(one) is None)
                ended = list(threads.map(partial(settling.settle, started=started), chunk))
                notes.add(one for one in ended if isinstance(one, Done))
                _count(cleared, ended)


def _place(rule: AfterLoad, file: DueFile) -> str:
    bucket, key = rule.place_of(file.bucket, file.key, file.file_id)
    return f"s3://{bucket}/{key}" if bucket else ""


def _count(cleared: Cleared, ended: Sequence[Done | Left]) -> None:
    cleared.files += len(ended)
    _leave(cleared, (one for one in ended if isinstance(one, Left)))
    for one in ended:
        if isinstance(one, Done):
            cleared.actions[one.action] += 1
            cleared.bytes += one.file.size if one.action in ("moved", "deleted") else 0


def _leave(cleared: Cleared, files: Iterable[Left]) -> None:
    for one in files:
        so_far, first = cleared.left.get(one.reason, (0, one))
        cleared.left[one.reason] = so_far + 1, first


def _readers(lake: str, service: Service, now: datetime) -> Readers:
    ledger, are_lost = open_objects(table_path(lake, LEDGER)), LostRows(lake).of
    return readers_of(ledger, service, kept_services(lake), now=now, are_lost=are_lost)


def _due(lake: str, service: Service, now: datetime, cleared: Cleared, readers: Readers) -> Iterator[list[DueFile]]:
    """Day by day, the oldest first. Batches that have not ended are asked for before the ledger is read."""
    rule = service.after_load
    if rule is None:
        return
    busy = {key for one in open_batches(lake) for key in one.keys}
    ledger, notes = (open_objects(table_path(lake, name)) for name in (LEDGER, AFTER_LOAD))
    noted, needed = Notes(notes, service.name), partial(readers.wait_for, now=now)
    until = (now - timedelta(days=rule.after_days)).date().isoformat()
    for day, files in _days(ledger, until).items():
        done = noted.done(day)
        rows = _rows(ledger, files, service.name)
        due, waiting = due_in(rows, rule, now=now, done=done, busy=busy, needed=needed, day=day)
        cleared.waiting += waiting
        if due:
            yield due


def _days(ledger: Objects, until: str) -> Mapping[str, list[LiveFile]]:
    days = defaultdict[str, list[LiveFile]](list)
    for file in live_files(ledger):
        day = dict(file.partition).get(DAY)
        if day is not None and day <= until:
            days[day].append(file)
    return dict(sorted(days.items()))


def _rows(ledger: Objects, files: Sequence[LiveFile], service: str) -> Iterator[Mapping[str, Any]]:
    for file in files:
        with opened(ledger, file) as parquet:
            yield from python_rows(rows_of(parquet, (service,), COLUMNS))


def _report(cleared: Cleared, service: str, seconds: float, emit: Emit) -> None:
    for reason, (files, first) in sorted(cleared.left.items()):
        such_as = first.file.uri
        emit(LandedFilesLeft(service=service, reason=reason, detail=first.detail, files=files, such_as=such_as))
    actions = {name: cleared.actions[name] for name in ("moved", "deleted", "gone", "replaced")}
    emit(
        LandedFilesCleared(
            service=service,
            **actions,
            waiting=cleared.waiting,
            failed=cleared.failed,
            bytes=cleared.bytes,
            seconds=round(seconds, 3),
        )
    )
