"""Which files of a batch are loaded: what the ledger has of their keys, and the service's rule for keys that get other
bytes, decide. All versions of a key go by the same rule.

Pure. In: a `Claim`, which is the files of a batch, in its order, and the earlier versions of their keys, exactly as the ledger
has them. Out: `Sorted`, before the files are read and after it. Asked twice it says the same.

* `append`: other bytes are loaded beside the earlier ones.   * `ignore`: they are left out.
* `replace`: they take the place of the earlier ones, unless they are themselves the older ones, announced late.

A file that an operator wants replayed takes its own place, whatever the rule. One that he wants forgotten leaves it empty. The
same bytes stay out then, under whatever version of their key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any, Literal

from forebay.landed_file import LandedFile
from forebay.ledger.entry import (
    FORGET,
    FORGOTTEN,
    GONE_MIDWAY,
    IGNORED,
    REPLAY,
    ROLLED_BACK,
    SKIPPED_BY_OPERATOR,
    WANTED_AGAIN,
    WITHHELD,
    Entry,
    is_final,
)
from forebay.ledger.ignored import RULES
from forebay.notification.order import newer

__all__ = ["Claim", "Earlier", "Key", "Overwritten", "Sorted", "Superseded", "standing"]

Overwritten = Literal["append", "ignore", "replace"]
Key = tuple[str, str]

MARKS = (REPLAY, FORGET)
LOADED = ("loaded", "empty", *MARKS)
SAME_BYTES_FORGOTTEN = "same-key-same-bytes-forgotten"
NOT_DONE = {REPLAY: "not-replayed", FORGET: "not-forgotten"}


@dataclass(frozen=True)
class Earlier:
    """A version that the ledger has: the file, and its row."""

    file: LandedFile
    row: Mapping[str, Any]

    @property
    def loaded(self) -> bool:
        return self.row["outcome"] in LOADED

    @property
    def stands(self) -> bool:
        """Whether rows of it may be somewhere: of a superseded one, in tables that could not be written when it left."""
        return self.loaded or (self.row["outcome"] == "superseded" and bool(self.row.get("written")))

    @property
    def rolled_back(self) -> bool:
        """Whether nothing is left of it since a rollback, so that its bytes may come again under a later version."""
        left = sum(self.row.get(name) or 0 for name in ("written", "quarantined", "parked"))
        return self.row["outcome"] == "loaded" and self.row.get("reason") == ROLLED_BACK and not left

    @property
    def is_marked(self) -> bool:
        """Whether its rows make room for it: for those that it has when it is read again, or for none. Whoever announces it has
        that done."""
        torn = self.row["outcome"] == "loaded" and self.row.get("reason") == GONE_MIDWAY
        return torn or self.row["outcome"] in MARKS

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

    def is_of_another(self, service: str | None) -> bool:
        """Whether another service loaded it: a replay by these declarations would take its rows out of that one's tables."""
        return None not in (service, his := self.row.get("service")) and his != service

    @property
    def ignored(self) -> bool:
        """Not final: the rule may be another one by now."""
        return bool(self.row["outcome"] == IGNORED)

    @property
    def skipped_by_operator(self) -> bool:
        return self.row.get("reason") == SKIPPED_BY_OPERATOR


@dataclass(frozen=True)
class Superseded:
    """A loaded version that is to leave the tables, once the version `by` lands: itself, where it is replayed."""

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
        the file."""
        row = self.earlier.row
        mark = FORGET if self.earlier.wants_forgetting else REPLAY
        not_done = NOT_DONE[mark]
        if outcome in WITHHELD:
            row = {**row, "tries": (row.get("tries") or 1) + 1}
        before = mark if outcome in WITHHELD else "loaded" if row["records"] else "empty"
        if row.get("reason") in (None, *NOT_DONE.values()):
            return {**row, "outcome": before, "reason": not_done, "detail": f"{outcome}: {why}"}
        # What happened to it before, such as records that were lost, stays said.
        said = (row["detail"] or "").partition(f"; {not_done}")[0]
        return {**row, "outcome": before, "detail": f"{said}; {not_done}: {outcome}: {why}"}

    def forgotten(self, unwritten: Mapping[str, str], at: datetime) -> dict[str, Any]:
        """The ledger's row of a file that is forgotten. Where tables could not be written, that is still to be done."""
        row = {**self.row(unwritten), "superseded_by": None}
        if row["tables"]:
            return {**row, "outcome": FORGET, "reason": unwritten[next(iter(row["tables"]))], "detail": None}
        return {**row, "outcome": FORGOTTEN, "reason": None, "detail": f"its rows left at {at:%Y-%m-%d %H:%M} UTC"}

    def row(self, unwritten: Iterable[str]) -> dict[str, Any]:
        """The ledger's row as it is from now on: nothing of the file is left but in tables that could not be written."""
        row = self.earlier.row
        left = {table: rows for table, rows in self.tables.items() if table in set(unwritten)}
        written = sum(left.values())
        return {
            **row,
            "outcome": "superseded",
            "reason": "overwritten",
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
    earlier files that make room for those to load. `retried` are those whose row in the ledger makes room for a new one:
    they were not read when they came before, or are replayed. `tries` says how often they came, by file id. `released` are
    those of them that the quarantine has as whole files."""

    fresh: tuple[LandedFile, ...]
    known: tuple[LandedFile, ...]
    left_out: tuple[Entry, ...]
    superseded: tuple[Superseded, ...] = ()
    retried: tuple[LandedFile, ...] = ()
    tries: Mapping[str, int] = field(default_factory=dict)
    released: tuple[LandedFile, ...] = ()

    @property
    def skipped(self) -> tuple[str, ...]:
        """The ids of those that an operator wants left out."""
        return tuple(entry.file.file_id for entry in self.left_out if entry.reason == SKIPPED_BY_OPERATOR)

    @property
    def new(self) -> frozenset[str]:
        """The ids of the files that get an end with this batch."""
        return frozenset(file.file_id for file in self.fresh) | {entry.file.file_id for entry in self.left_out}

    @property
    def replays(self) -> dict[str, Superseded]:
        """What leaves for itself: the earlier rows of files that are replayed, or forgotten, by file id."""
        return {one.by.file_id: one for one in self.superseded if one.is_replay}

    @property
    def to_forget(self) -> dict[str, Superseded]:
        """Those of them that are not to be read."""
        return {file_id: one for file_id, one in self.replays.items() if one.earlier.wants_forgetting}

    def superseded_by(self, landed: Iterable[str]) -> list[Superseded]:
        """Those that leave, once it is known which files landed."""
        ids = set(landed)
        return [one for one in self.superseded if one.by.file_id in ids]

    def as_begun(self, file_ids: Collection[str]) -> Sorted:
        """For a batch of which a part is in: a replay that was asked for since then is none of it."""
        late = self.replays.keys() - set(file_ids)
        if not late:
            return self
        fresh, retried = (tuple(f for f in some if f.file_id not in late) for some in (self.fresh, self.retried))
        known = (*self.known, *(f for f in self.fresh if f.file_id in late))
        superseded = tuple(one for one in self.superseded if one.by.file_id not in late)
        return replace(self, fresh=fresh, known=known, retried=retried, superseded=superseded)


def standing(superseded: Iterable[Superseded]) -> dict[str, Mapping[str, int]]:
    """Rows by table of each file that is replayed, as they stand now."""
    return {one.by.file_id: one.tables for one in superseded if one.is_replay}


@dataclass(frozen=True)
class Claim:
    """The files of a batch, and all that decides which of them are loaded. `skipped` are ids of files that an operator wants
    left out. `service` is whose batch it is: what another one loaded is not replayed here. `ignored` gives the rule by which a
    file is not read, if there is one."""

    files: Sequence[LandedFile]
    earlier: Mapping[Key, Sequence[Earlier]]
    rule_of: Callable[[str], Overwritten]
    skipped: Collection[str] = ()
    service: str | None = None
    ignored: Callable[[LandedFile], str] = lambda file: ""

    def to_read(self) -> Sorted:
        """Before anything is read. Where a key has several new versions, all of them are to be read: only then is it known
        which of them is the one to load."""
        return self.decided({})

    def decided(self, readable: Mapping[str, str]) -> Sorted:
        """`readable` are the ids of the files that could be read, with the hashes of what was read. Of several new versions of
        a key, one that could not be read neither takes the place of another one nor makes it a duplicate."""
        deciding = _Deciding(self, readable)
        for file in self.files:
            deciding.take(file)
        return deciding.sorted()

    def superseded(self, fresh: Iterable[LandedFile]) -> Iterator[Superseded]:
        """The earlier versions that are to leave for these files, once they land; also those that have left all tables but
        some, which could not be written."""
        for file in fresh:
            for seen in self.earlier.get((file.bucket, file.key), ()):
                itself = seen.file.file_id == file.file_id
                if seen.stands and (itself or (self._replaces(file) and not _later(seen.file, file))):
                    yield Superseded(seen, file)

    def _replaces(self, file: LandedFile) -> bool:
        """What is forgotten brings nothing that could take the place of others."""
        his = (seen for seen in self.earlier.get((file.bucket, file.key), ()) if seen.file.file_id == file.file_id)
        return self.rule_of(file.key) == "replace" and not any(seen.wants_forgetting for seen in his)


class _Deciding:
    def __init__(self, claim: Claim, readable: Mapping[str, str]) -> None:
        self.claim, self.readable = claim, readable
        self.here: set[str] = set()
        self.hashes = {
            seen.file.file_id: seen.row.get("content_hash") for some in claim.earlier.values() for seen in some
        } | dict(readable)
        self.fresh: dict[Key, list[LandedFile]] = {}
        self.order: dict[str, LandedFile] = {}
        self.known: list[LandedFile] = []
        self.left_out: list[Entry] = []
        self.retried: dict[str, LandedFile] = {}
        self.replays: set[str] = set()
        self.asked_for: set[str] = set()
        self.tries: dict[str, int] = {}
        self.released: list[LandedFile] = []
        versions: dict[Key, set[str]] = {}
        for file in claim.files:
            versions.setdefault((file.bucket, file.key), set()).add(file.file_id)
        self.contested = {key for key, ids in versions.items() if len(ids) > 1}

    def take(self, file: LandedFile) -> None:
        his = [seen for seen in self._earlier(file) if seen.file.file_id == file.file_id]
        forget = any(seen.wants_forgetting for seen in his)
        skip, rule = file.file_id in self.claim.skipped and not forget, "" if forget else self.claim.ignored(file)
        stays = skip and any(seen.skipped_by_operator or seen.is_marked for seen in his)
        stays = stays or (bool(rule) and any(seen.ignored or seen.is_marked for seen in his))
        final = any(seen.final and not seen.ignored for seen in his) and not self._is_back(file, his)
        foreign = any(seen.is_marked and seen.is_of_another(self.claim.service) for seen in his)
        if file.file_id in self.here or stays or final or foreign:
            self.known.append(file)
            return
        self.here.add(file.file_id)
        for seen in his:
            self.retried[file.file_id] = file
            self.tries[file.file_id] = seen.row.get("tries") or 1
        if any(seen.is_marked for seen in his):
            self.replays.add(file.file_id)
        if any(seen.is_marked or seen.row.get("reason") == WANTED_AGAIN for seen in his):
            self.asked_for.add(file.file_id)
        if any(seen.row["outcome"] == "unreadable" for seen in his):
            self.released.append(file)
        if skip:
            self.left_out.append(Entry(file=file, outcome="skipped", reason=SKIPPED_BY_OPERATOR))
            return
        if rule:
            self.left_out.append(Entry(file=file, outcome=IGNORED, reason=rule, detail=RULES[rule]))
            return
        if forget or self._is_unread(file) or (file.file_id in self.replays and self._is_outdone(file)):
            self.order[file.file_id] = file
        else:
            self._decide(file)

    def _decide(self, file: LandedFile) -> None:
        rule, rivals = self.claim.rule_of(file.key), self._rivals(file)
        if self._is_duplicate(file, rivals, rule):
            self.left_out.append(Entry(file=file, outcome="duplicate", reason="same-key-same-bytes"))
        elif any(self._same_bytes(file, gone) for gone in self._forgotten(file)):
            self.left_out.append(Entry(file=file, outcome="duplicate", reason=SAME_BYTES_FORGOTTEN))
        elif rivals and rule == "ignore":
            self.left_out.append(Entry(file=file, outcome="skipped", reason="overwritten"))
        elif rule == "replace" and any(_later(one, file) for one in [*rivals, *self._gone(file)]):
            self.left_out.append(Entry(file=file, outcome="superseded", reason="announced-late"))
        else:
            if rule == "replace":
                for outdone in self.fresh.pop(self._key(file), []):
                    self._outdo(outdone)
            self.fresh.setdefault(self._key(file), []).append(file)
            self.order[file.file_id] = file

    def _outdo(self, file: LandedFile) -> None:
        """The row of a replay changes with those of the other versions that leave."""
        del self.order[file.file_id]
        if file.file_id in self.replays:
            del self.retried[file.file_id]
        else:
            self.left_out.append(Entry(file=file, outcome="superseded", reason="overwritten"))

    def _is_duplicate(self, file: LandedFile, rivals: Sequence[LandedFile], rule: Overwritten) -> bool:
        """Under `replace` only the newest version stands, so only its bytes count: A, B, A ends at A."""
        if rule == "replace" and rivals:
            rivals = [reduce(lambda a, b: a if _later(a, b) else b, rivals)]
        return any(self._same_bytes(file, rival) for rival in rivals)

    def _same_bytes(self, file: LandedFile, rival: LandedFile) -> bool:
        """Equal etags say so before anything is read. Different ones say nothing: with a KMS key, or after a multipart upload,
        a producer's retry has another etag."""
        hash_ = self.hashes.get(file.file_id)
        return bool((file.etag and file.etag == rival.etag) or (hash_ and hash_ == self.hashes.get(rival.file_id)))

    def _is_back(self, file: LandedFile, his: Sequence[Earlier]) -> bool:
        """Without versions, a key that gets its first bytes back is the same file again: under `replace` it takes the place of
        what came between. A version of its own is never back. Neither are bytes of which a table still has rows."""
        versioned = bool(file.version_id and file.version_id != "null")
        outdone = all(seen.row["outcome"] == "superseded" and not seen.stands for seen in his)
        if versioned or not outdone or self.claim.rule_of(file.key) != "replace":
            return False
        others = [seen.file for seen in self._earlier(file) if seen in his or seen.loaded]
        return all(_later(file, other) for other in others)

    def _earlier(self, file: LandedFile) -> Sequence[Earlier]:
        return self.claim.earlier.get(self._key(file), ())

    def _rivals(self, file: LandedFile) -> list[LandedFile]:
        """Of a replay there are none: it takes its own place."""
        if file.file_id in self.replays:
            return []
        loaded = [
            seen.file
            for seen in self._earlier(file)
            if seen.loaded and not (seen.rolled_back or seen.forgotten) and seen.file.file_id != file.file_id
        ]
        return loaded + self.fresh.get(self._key(file), [])

    def _gone(self, file: LandedFile) -> list[LandedFile]:
        """They are in nobody's way, but an older version does not come back for them."""
        rolled_back = [seen.file for seen in self._earlier(file) if seen.rolled_back]
        return [] if file.file_id in self.asked_for else [*rolled_back, *self._forgotten(file)]

    def _forgotten(self, file: LandedFile) -> list[LandedFile]:
        """Other versions of its key. They say nothing against one that an operator names."""
        if file.file_id in self.asked_for:
            return []
        return [seen.file for seen in self._earlier(file) if seen.forgotten and seen.file.file_id != file.file_id]

    @staticmethod
    def _key(file: LandedFile) -> Key:
        return file.bucket, file.key

    def _leave_unread_to_later_versions(self) -> None:
        """A replay, and a version that could not be read: they are outdone whether somebody can read them or not."""
        for file in [*self.order.values()]:
            if (file.file_id in self.replays or self._is_unread(file)) and self._is_outdone(file):
                self._outdo(file)

    def _is_unread(self, file: LandedFile) -> bool:
        """Of several new versions of a key, one that was not read, or could not be."""
        return self._key(file) in self.contested and file.file_id not in self.readable

    def _is_outdone(self, file: LandedFile) -> bool:
        """Of two of which nothing says which is later, what came first is the older one."""
        if self.claim.rule_of(file.key) != "replace":
            return False
        here = self.fresh.get(self._key(file), [])
        if any(_later(other, file) for other in here):
            return True
        behind = self.claim.files[self.claim.files.index(file) + 1 :]
        return any(other in behind and not _later(file, other) for other in here)

    def sorted(self) -> Sorted:
        self._leave_unread_to_later_versions()
        fresh = tuple(self.order.values())
        superseded = tuple(self.claim.superseded(fresh))
        again = (tuple(self.retried.values()), self.tries, tuple(self.released))
        return Sorted(fresh, tuple(self.known), tuple(self.left_out), superseded, *again)


def _later(a: LandedFile, b: LandedFile) -> bool:
    """Whether `a` was written after `b`: by S3's sequencer, else by its clock; else what came first is the older one. S3 lists
    objects with whole seconds, and announces them with milliseconds: so a listed one is compared by the second."""
    told = newer(a, b)
    if told is not None:
        return told
    if a.event_time is None or b.event_time is None:
        return False
    at, than = a.event_time, b.event_time
    if not (at.microsecond and than.microsecond):
        at, than = at.replace(microsecond=0), than.replace(microsecond=0)
    return at > than
