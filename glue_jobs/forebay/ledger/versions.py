"""The versions of a batch's keys: those in the ledger, those to remove, and what a batch must do with its files.

Pure: `claim` decides, and speaks in these words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from forebay.landed_file import LandedFile
from forebay.ledger.entry import (
    DELETED,
    FORGET,
    FORGOTTEN,
    IGNORED,
    PARTLY_REPLAYED,
    PUT_AGAIN,
    REPLAY,
    ROLLED_BACK,
    SKIPPED_BY_OPERATOR,
    TABLE_DROPPED,
    WITHHELD,
    Entry,
    as_known,
    is_final,
)
from forebay.notification.order import written_later

FILE_COLUMNS = ("bucket", "key", "size", "etag", "version_id", "sequencer")
MARKS = (REPLAY, FORGET)
LOADED = ("loaded", "empty", *MARKS)
OVERWRITTEN = "overwritten"
SAME_BYTES = "same-key-same-bytes"
SAME_BYTES_FORGOTTEN = "same-key-same-bytes-forgotten"
NOT_DONE = {REPLAY: "not-replayed", FORGET: "not-forgotten"}


@dataclass(frozen=True)
class Earlier:
    """A version that the ledger has: the file, and its row. `put_again` where its bytes were put again since the row was
    written: the row here has the later time."""

    file: LandedFile
    row: Mapping[str, Any]
    put_again: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Earlier:
        """From the columns of a row of the ledger."""
        file = LandedFile(**{name: row[name] for name in FILE_COLUMNS}, event_time=row["event_time"])
        return cls(as_known(replace(file, etag=file.etag or ""), row), row)

    @property
    def times(self) -> dict[str, Any]:
        """When its bytes were put, by its row."""
        return {name: self.row[name] for name in ("sequencer", "event_time")}

    def with_time_of(self, later: LandedFile) -> dict[str, Any]:
        """The row with the time at which the same bytes were put again."""
        return {**self.row, "sequencer": later.sequencer, "event_time": later.event_time}

    @property
    def loaded(self) -> bool:
        return self.row["outcome"] in LOADED

    @property
    def stands(self) -> bool:
        """Whether rows of it may be somewhere: of a superseded one, in tables that could not be written when it left."""
        return self.loaded or (self.row["outcome"] == "superseded" and bool(self.row.get("written")))

    @property
    def unread(self) -> bool:
        """Whether it waits to be read, and has no rows yet. It will not be, once its key is deleted."""
        return self.row["outcome"] in ("missing", *WITHHELD) and not self.file.is_deletion

    @property
    def has_rows(self) -> bool:
        """Whether rows of it are in a table, in the quarantine or parked."""
        return any(self.row.get(name) for name in ("written", "quarantined", "parked"))

    @property
    def rolled_back(self) -> bool:
        """Whether nothing is left of it since a rollback, or since its tables were dropped, so that its bytes may come again
        under a later version."""
        left = self.row.get("reason") in (ROLLED_BACK, TABLE_DROPPED, PARTLY_REPLAYED)
        return bool(left and self.row["outcome"] == "loaded" and not self.has_rows)

    @property
    def came_back(self) -> bool:
        """Whether a rollback restored rows of it after a later version took its place."""
        return self.row["outcome"] in ("loaded", "empty") and bool(self.row.get("superseded_by"))

    @property
    def is_leaving(self) -> bool:
        """Whether a later version took its place, and tables that could not be written still have rows of it."""
        return self.stands and not self.loaded

    @property
    def wait(self) -> dict[str, Any]:
        """The columns of its row that change while it waits until those rows have left: its key got its bytes again. `tries`
        says how often it was announced in vain."""
        waits = self.row.get("reason") == PUT_AGAIN
        return self.times | {"reason": PUT_AGAIN, "tries": (self.row.get("tries") or 1) + 1 if waits else 1}

    @property
    def is_marked(self) -> bool:
        """Whether the next announcement removes its rows: to replace them when the file is read again, or for good."""
        return self.row["outcome"] in MARKS

    @property
    def stands_in(self) -> bool:
        """Whether it was a duplicate, and is read for the version that it equals."""
        return bool(self.row["outcome"] == REPLAY and self.row.get("reason") == SAME_BYTES)

    @property
    def wants_forgetting(self) -> bool:
        return bool(self.row["outcome"] == FORGET)

    @property
    def forgotten(self) -> bool:
        """Or as good as that. Without it, what came under its key meanwhile has no rival."""
        return self.row["outcome"] in (FORGET, FORGOTTEN)

    @property
    def final(self) -> bool:
        return is_final(self.row["outcome"], self.row.get("reason"))

    @property
    def is_duplicate(self) -> bool:
        """Whether it duplicated a version that had rows when it arrived."""
        return self.row["outcome"] == "duplicate" and self.row.get("reason") == SAME_BYTES

    @property
    def has_bytes(self) -> bool:
        """Whether its bytes are those of the key, as far as the ledger knows."""
        return self.row["outcome"] in ("loaded", "empty", "duplicate")

    @property
    def deletes(self) -> bool:
        """Whether it is a deletion that was carried out."""
        return bool(self.row["outcome"] == DELETED)

    @property
    def ignored(self) -> bool:
        """Not final: the rule may be another one by now."""
        return bool(self.row["outcome"] == IGNORED)

    @property
    def skipped_by_operator(self) -> bool:
        return self.row.get("reason") == SKIPPED_BY_OPERATOR


@dataclass(frozen=True)
class Superseded:
    """A loaded version whose rows leave the tables when the version `by` lands. A replayed file is superseded by itself."""

    earlier: Earlier
    by: LandedFile

    @property
    def tables(self) -> Mapping[str, int]:
        return dict(self.earlier.row["tables"] or {})

    @property
    def is_replay(self) -> bool:
        return self.earlier.file.file_id == self.by.file_id

    def not_replayed(self, outcome: str, why: str) -> dict[str, Any]:
        """The ledger's row of a replay that could not be read: its rows stand as before. It stays a replay where S3 withholds
        the file, which may have been put again since then: the row has the later time."""
        row = self.earlier.row
        mark = FORGET if self.earlier.wants_forgetting else REPLAY
        not_done = NOT_DONE[mark]
        if outcome in WITHHELD:
            if written_later(self.by, self.earlier.file):
                row = self.earlier.with_time_of(self.by)
            row = {**row, "tries": (row.get("tries") or 1) + 1}
        before = mark if outcome in WITHHELD else "loaded" if row["records"] else "empty"
        if outcome not in WITHHELD and (row["outcome"] == "superseded" or row.get("reason") == OVERWRITTEN):
            return {**row, "outcome": "superseded"}  # S3 withheld it before, when its bytes were put again
        if self.earlier.stands_in and outcome not in WITHHELD:
            return {**row, "outcome": "duplicate"}
        if row.get("reason") in (None, *NOT_DONE.values()):
            return {**row, "outcome": before, "reason": not_done, "detail": f"{outcome}: {why}"}
        # The earlier detail, such as a table that failed, is kept.
        detail = (row["detail"] or "").partition(f"; {not_done}")[0]
        return {**row, "outcome": before, "detail": f"{detail}; {not_done}: {outcome}: {why}"}

    def forgotten(self, unwritten: Mapping[str, str], at: datetime) -> dict[str, Any]:
        """The ledger's row of a file that is forgotten. Where tables could not be written, that is still to be done. Such a row
        names the later version, if there is one: its rows take the place of those that are left."""
        row = self.row(unwritten)
        if row["tables"]:
            later = self.earlier.row.get("superseded_by") if self.is_replay else self.by.file_id
            reason = unwritten[next(iter(row["tables"]))]
            return {**row, "outcome": FORGET, "reason": reason, "detail": None, "superseded_by": later}
        row["superseded_by"] = None
        return {**row, "outcome": FORGOTTEN, "reason": None, "detail": f"its rows left at {at:%Y-%m-%d %H:%M} UTC"}

    def left(self, unwritten: Mapping[str, str], at: datetime) -> dict[str, Any]:
        """The ledger's row of a version that another one replaced. A version that was marked to be forgotten is forgotten."""
        return self.forgotten(unwritten, at) if self.earlier.wants_forgetting else self.row(unwritten)

    def row(self, unwritten: Iterable[str]) -> dict[str, Any]:
        """The ledger's new row: the file has rows only in tables that could not be written."""
        row = self.earlier.row
        left = {table: rows for table, rows in self.tables.items() if table in set(unwritten)}
        written = sum(left.values())
        return {
            **row,
            "outcome": "superseded",
            "reason": OVERWRITTEN,
            "superseded_by": self.by.file_id,
            "tables": left,
            "written": written,
            "quarantined": 0,
            "parked": 0,
            "dropped": row["records"] - written,
        }


@dataclass(frozen=True)
class Sorted:
    """The files of a batch: those to load, those that the ledger has, and the entries of those that a rule leaves out; and the
    earlier files that the loaded ones replace. `retried` are files whose row in the ledger is replaced by a new one: they
    were not read when they came before, or are replayed. `tries` says how often they came, by file id. `released` are those
    of them that the quarantine has as whole files. `stand_ins` are duplicates of replays, by the id of the replay: they are
    read if that one is gone. `put_again` are files whose bytes were put again, with the later time in their rows. `returning`
    are those of them that wait, superseded or brought back by a rollback. `landed` are
    the ids of the files that could be read; none before anything is read. `skipped` are the ids of those that an operator wants
    left out, also if the ledger has them."""

    fresh: tuple[LandedFile, ...]
    known: tuple[LandedFile, ...]
    left_out: tuple[Entry, ...]
    superseded: tuple[Superseded, ...] = ()
    retried: tuple[LandedFile, ...] = ()
    tries: Mapping[str, int] = field(default_factory=dict)
    released: tuple[LandedFile, ...] = ()
    stand_ins: Mapping[str, Earlier] = field(default_factory=dict)
    put_again: tuple[Earlier, ...] = ()
    returning: tuple[Earlier, ...] = ()
    landed: frozenset[str] = frozenset()
    skipped: tuple[str, ...] = ()

    @property
    def new(self) -> frozenset[str]:
        """The ids of the files that get an end with this batch."""
        return frozenset(file.file_id for file in self.fresh) | {entry.file.file_id for entry in self.left_out}

    @property
    def replays(self) -> dict[str, Superseded]:
        """Files that supersede themselves: the earlier rows of replayed or forgotten files, by file id."""
        return {one.by.file_id: one for one in self.superseded if one.is_replay}

    @property
    def to_forget(self) -> dict[str, Superseded]:
        """The replays that only remove rows."""
        return {file_id: one for file_id, one in self.replays.items() if one.earlier.wants_forgetting}

    @property
    def leaving(self) -> list[Superseded]:
        """The versions that leave: a file that landed takes their place."""
        return [one for one in self.superseded if one.by.file_id in self.landed]

    @property
    def leaving_ids(self) -> list[str]:
        return [one.earlier.file.file_id for one in self.leaving]

    @property
    def leaving_quarantine(self) -> list[str]:
        """The ids of the files that leave the quarantine: their records, or the whole files."""
        held = [one.earlier.file.file_id for one in self.leaving if one.earlier.row["quarantined"]]
        return held + [file.file_id for file in self.released]

    @property
    def leaving_parked(self) -> list[str]:
        return [one.earlier.file.file_id for one in self.leaving if one.earlier.row["parked"]]

    def as_begun(self, file_ids: Collection[str]) -> Sorted:
        """The files for a batch whose commit has begun: `file_ids` get a row by its plan. Others that the ledger wants read
        again by now keep the row that they have."""
        late = {*self.replays, *(file.file_id for file in self.retried)} - {*file_ids}
        if not late:
            return self
        of_now = (self.fresh, self.retried, self.released)
        fresh, retried, released = (tuple(f for f in some if f.file_id not in late) for some in of_now)
        known = (*self.known, *(f for f in self.fresh if f.file_id in late))
        superseded = tuple(one for one in self.superseded if one.by.file_id not in late)
        return replace(self, fresh=fresh, known=known, retried=retried, superseded=superseded, released=released)


def standing(superseded: Iterable[Superseded]) -> dict[str, Mapping[str, int]]:
    """Rows by table of each file that is replayed, as they stand now."""
    return {one.by.file_id: one.tables for one in superseded if one.is_replay}
