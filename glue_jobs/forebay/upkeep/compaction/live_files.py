"""Reads the live files of many tables at once from their logs.

In: names of tables and their places. Out: a `TableState` for each, or an `Unreadable` that says which table it is and why:
one that is gone or broken never stops the others. No data file is opened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from forebay.errors import ForebayError
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.live_file import LiveFile, Partition
from forebay.lake.log.snapshot import Log, Snapshot, fetch_log, replay
from forebay.lake.objects import open_objects

TABLES_AT_ONCE = 16


@dataclass(frozen=True)
class TableState:
    """A table at one version. `ordered` says when a partition was last put in order (Z-order, clustering) as a whole: its
    log does not tell, whoever orders must remember."""

    name: str
    files: Sequence[LiveFile]
    version: int = 0
    clustered: bool = False
    ordered: Mapping[Partition, datetime] = field(default_factory=dict)
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class Unreadable:
    """A table that cannot be looked at. `reason`: not-found, unsupported, unreadable-log or invalid-configuration."""

    name: str
    reason: str
    detail: str


def is_no_table(state: TableState | Unreadable, asked_for: Collection[str]) -> bool:
    """A folder of the lake without a log that was not requested by name, such as a folder of declarations."""
    return isinstance(state, Unreadable) and state.reason == "not-found" and state.name not in asked_for


def read_tables(places: Mapping[str, str], *, at_once: int = TABLES_AT_ONCE) -> Iterator[TableState | Unreadable]:
    """The tables in the order given. At most `at_once` logs are under way. They are fetched side by side and replayed one
    after the other, because threads that compute wait for each other longer than for S3."""
    under_way: deque[Callable[[], TableState | Unreadable]] = deque()
    with ThreadPoolExecutor(at_once, "live-files") as pool:
        for name, place in places.items():
            if len(under_way) == at_once:
                yield under_way.popleft()()
            under_way.append(partial(_state, name, place, pool.submit(_fetch, place).result))
        while under_way:
            yield under_way.popleft()()


def read_table(name: str, place: str, *, whole_log: bool = False) -> TableState | Unreadable:
    """The live files of the newest version. A table with an error is a value, not an exception."""
    return _state(name, place, lambda: _fetch(place, whole_log=whole_log))


def _fetch(place: str, *, whole_log: bool = False) -> Log:
    return fetch_log(open_objects(place), whole_log=whole_log)


def _state(name: str, place: str, log: Callable[[], Log]) -> TableState | Unreadable:
    try:
        snapshot = replay(log())
    except NoTable as problem:
        return Unreadable(name, "not-found", str(problem))
    except UnsupportedTable as problem:
        return Unreadable(name, "unsupported", str(problem))
    except BrokenLog as problem:
        return Unreadable(name, "unreadable-log", str(problem))
    except (ForebayError, OSError) as problem:
        return Unreadable(name, "unreadable-log", f"{place}: {type(problem).__name__}: {problem}")
    return TableState(name, snapshot.files, snapshot.version, snapshot.clustered, snapshot=snapshot)
