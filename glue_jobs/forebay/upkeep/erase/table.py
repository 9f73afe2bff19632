"""Deletes rows from one table, in one commit, however many they are: those of erased subjects, or those past their time.

In: the rows to delete, and the table's place. Out: `Done`. Every live data file is read once. Those with such rows are
rewritten without them, and one commit exchanges them. Its transaction has a number of its own. The change is noted before the
commit, with its version; so after a crash the next run knows whether it arrived. If another writer commits
first, only that commit is read, and only the files that it added: so an attempt soon takes less time than the
others leave between two commits. No statement, and so no log, names a person. `Refused` where a table cannot be
rewritten here.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import BinaryIO
from urllib.parse import unquote

from forebay.aws.retrying import attempts
from forebay.errors import ForebayError, Halt
from forebay.lake.log.listing import commit_name
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import Followed, Snapshot, read_snapshot
from forebay.lake.objects import Objects
from forebay.threads import in_threads
from forebay.upkeep.erase.plan import Done
from forebay.upkeep.erase.rows import Change, Found, rewritten

ATTEMPTS = 200
"""After the first one, an attempt takes only a few requests, so a writer who always commits in between is very quick."""
FILES_AT_ONCE = 4
UNDERSTOOD = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "clustering",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "invariants",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "vacuumProtocolCheck",
    "v2Checkpoint",
}
"""Table features with which a commit may exchange files as it does here."""
SWITCHES = {
    "delta.appendOnly": "does not allow deleting rows",
    "delta.enableRowTracking": "numbers its rows",
    "delta.enableInCommitTimestamps": "keeps the time of its commits",
}


class Refused(ForebayError):
    """The table cannot be rewritten here; somebody else must."""


Find = Callable[[BinaryIO, LiveFile], Found]


@dataclass(frozen=True)
class Leaving:
    """The rows that leave a table. `finds` returns the search of its data files, or None if the table cannot have such rows;
    `changes` returns the change of rows that stay. `number` grows from one to the next under the same `app_id`."""

    app_id: str
    number: int
    finds: Callable[[Snapshot], Find | None]
    changes: Callable[[Snapshot], Change | None] = lambda snapshot: None


@dataclass(frozen=True)
class Tally:
    """The rows of a table: all of them, and those of each subject. `searched`: whether the table has a column of subjects."""

    rows: int
    by_token: Mapping[str, int]
    searched: bool = True


@dataclass(frozen=True)
class _Exchange:
    """`path` is None where nothing of a file is left."""

    found: Found
    path: str | None = None
    size: int = 0
    stats: str = ""


class TableErasure:
    """The erasure from one table, `name`, at `objects`. `keep` is how long its older versions can be read."""

    def __init__(
        self,
        name: str,
        objects: Objects,
        leaving: Leaving,
        *,
        keep: timedelta,
        note: Callable[[Done], None] = lambda done: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name, self._objects, self._what, self._keep = name, objects, leaving, keep
        self._note, self._sleep = note, sleep
        self._looked: dict[str, _Exchange] = {}

    def tally(self) -> Tally:
        """Without a change."""
        snapshot, counts = read_snapshot(self._objects), Counter[str]()
        find = self._what.finds(snapshot)
        files = snapshot.files if find else ()
        for found in in_threads(lambda file: self._found(file, find), files, FILES_AT_ONCE):
            counts.update(found.by_token)
        return Tally(_rows_of(snapshot), counts, find is not None)

    def erase(self, before: Done | None) -> Done:
        """Done again where it was done, it changes nothing."""
        if before is not None and (not before.rows or self._arrived(before)):
            return before
        table = Followed(self._objects)
        for _ in attempts(ATTEMPTS, first_s=0.05, longest_s=0.5, sleep=self._sleep):
            snapshot = table.newest()
            leaving = self._leaving(snapshot)
            done = self._judged(self._done(snapshot.version + bool(leaving), leaving), snapshot)
            self._note(done)
            if not leaving or self._objects.write_once(commit_name(done.version), self._commit(snapshot, leaving)):
                self._tidy(leaving)
                return done
        raise Halt(f"{self.name}: other writers committed {ATTEMPTS} times; run the command again later")

    def undo(self) -> None:
        """Where `note` gave it up before the commit: deletes the data files that were written for it."""
        self._tidy({})

    # --- inside ---

    def _arrived(self, before: Done) -> bool:
        """A commit that is no longer in the log has left its transaction there. One that was never made has not, although an
        earlier exchange may have had the same number."""
        content, what = self._objects.read(commit_name(before.version)), self._what
        if content is None:
            now = read_snapshot(self._objects)
            return now.version >= before.version and now.transactions.get(what.app_id) == what.number
        lines = (json.loads(line) for line in content.splitlines() if line.startswith(b'{"txn"'))
        return any(one["txn"]["appId"] == what.app_id and one["txn"]["version"] == what.number for one in lines)

    def _leaving(self, snapshot: Snapshot) -> dict[str, tuple[LiveFile, _Exchange]]:
        """The files to exchange, by path."""
        if (find := self._what.finds(snapshot)) is None:
            return {}
        change = self._what.changes(snapshot)
        new = [file for file in snapshot.files if file.path not in self._looked]
        exchanges = in_threads(lambda file: self._exchange(file, find, change, snapshot), new, FILES_AT_ONCE)
        self._looked.update(zip((file.path for file in new), exchanges, strict=True))
        looked = ((file, self._looked[file.path]) for file in snapshot.files)
        return {file.path: (file, exchange) for file, exchange in looked if exchange.found.rows}

    def _found(self, file: LiveFile, find: Find | None) -> Found:
        if file.deleted_rows:
            raise Refused("has deletion vectors: compact it first")
        content = self._objects.open(unquote(file.path))
        if content is None:
            if any(one.path == file.path for one in read_snapshot(self._objects).files):
                raise Refused(f"lacks its data file {file.path}: see docs/disasters.md")
            raise Halt(f"{self.name}: {file.path} was deleted while it was read; run the command again")
        assert find is not None
        with content:
            return find(content, file)

    def _exchange(self, file: LiveFile, find: Find, change: Change | None, snapshot: Snapshot) -> _Exchange:
        found = self._found(file, find)
        if not found.rows:
            return _Exchange(found)
        _must_be_understood(snapshot)
        content = self._objects.open(unquote(file.path))
        assert content is not None
        with content:
            made = rewritten(content, found, change)
        if not made.rows:
            return _Exchange(found)
        path = f"{file.path.rpartition('/')[0]}/part-{uuid.uuid4()}.zstd.parquet".lstrip("/")
        self._objects.write(unquote(path), made.content.to_pybytes())
        return _Exchange(found, path, made.content.size, made.stats)

    def _done(self, version: int, leaving: Mapping[str, tuple[LiveFile, _Exchange]]) -> Done:
        files, now = Counter[str](), datetime.now(UTC)
        for _, exchange in leaving.values():
            files.update(exchange.found.files)
        rows = sum(exchange.found.rows for _, exchange in leaving.values())
        due = (now + self._keep).isoformat()
        return Done(self.name, version, rows, dict(files), len(leaving), due, now.isoformat())

    def _judged(self, done: Done, snapshot: Snapshot) -> Done:
        """Adds the number of rows whose subject is unknown: all, if the table has no column of subjects."""
        if self._what.finds(snapshot) is None:
            return replace(done, searched=False, unjudged_rows=_rows_of(snapshot))
        return replace(done, unjudged_rows=sum(self._looked[file.path].found.unjudged for file in snapshot.files))

    def _commit(self, snapshot: Snapshot, leaving: Mapping[str, tuple[LiveFile, _Exchange]]) -> bytes:
        at = int(datetime.now(UTC).timestamp() * 1000)
        operation = "UPDATE" if self._what.changes(snapshot) else "DELETE"
        info_of_commit = {"timestamp": at, "operation": operation, "operationParameters": {"predicate": "[]"}}
        info = {**info_of_commit, "readVersion": snapshot.version, "isBlindAppend": False, "engineInfo": "forebay"}
        txn = {"appId": self._what.app_id, "version": self._what.number, "lastUpdated": at}
        actions = [{"commitInfo": info}, {"txn": txn}, *_actions(leaving, at)]
        return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in actions).encode()

    def _tidy(self, leaving: Mapping[str, object]) -> None:
        """Deletes files that were written to replace ones that another writer exchanged meanwhile."""
        unused = [one.path for path, one in self._looked.items() if path not in leaving]
        self._objects.delete(unquote(path) for path in unused if path is not None)


def _rows_of(snapshot: Snapshot) -> int:
    return sum((file.rows or 0) - file.deleted_rows for file in snapshot.files)


def _actions(leaving: Mapping[str, tuple[LiveFile, _Exchange]], at: int) -> Iterator[Mapping[str, object]]:
    for file, exchange in leaving.values():
        yield file.removal(at)
        if exchange.path is not None:
            added = {"path": exchange.path, "size": exchange.size, "modificationTime": at, "stats": exchange.stats}
            yield {"add": {**added, "partitionValues": dict(file.partition), "dataChange": True}}


def _must_be_understood(snapshot: Snapshot) -> None:
    if unknown := sorted(snapshot.writer_features - UNDERSTOOD):
        raise Refused(f"has the feature {unknown[0]}")
    for name, why in SWITCHES.items():
        if snapshot.configuration.get(name, "false").lower() == "true":
            raise Refused(f"{why} ({name})")
    if snapshot.configuration.get("delta.columnMapping.mode", "none") != "none":
        raise Refused("maps its columns")
