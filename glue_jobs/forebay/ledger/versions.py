"""Which files of a batch are loaded: what the ledger has of their keys, and the service's rule for keys that get other
bytes, decide. All versions of a key go by the same rule.

Pure. In: the files of a batch, in its order, and the earlier versions of their keys, exactly as the ledger has them. Out:
`Sorted`. Asked twice it says the same, so a replayed batch does the same again.

* `append`: other bytes are loaded beside the earlier ones.   * `ignore`: they are left out.
* `replace`: they take the place of the earlier ones, unless they are themselves the older ones, announced late.

A file that an operator wants replayed takes its own place, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

from forebay.landed_file import LandedFile
from forebay.ledger.entry import REPLAY, SKIPPED_BY_OPERATOR, WITHHELD, Entry, is_final
from forebay.notification.order import newer

__all__ = ["Earlier", "Key", "Overwritten", "Sorted", "Superseded", "sort", "standing"]

Overwritten = Literal["append", "ignore", "replace"]
Key = tuple[str, str]

LOADED = ("loaded", "empty", REPLAY)
NOT_REPLAYED = "not-replayed"


@dataclass(frozen=True)
class Earlier:
    """A version that the ledger has: the file, and its row."""

    file: LandedFile
    row: Mapping[str, Any]

    @property
    def loaded(self) -> bool:
        return self.row["outcome"] in LOADED

    @property
    def wants_replay(self) -> bool:
        return bool(self.row["outcome"] == REPLAY)

    @property
    def final(self) -> bool:
        return is_final(self.row["outcome"], self.row.get("reason"))

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
        before = REPLAY if outcome in WITHHELD else "loaded" if row["records"] else "empty"
        if row.get("reason") in (None, NOT_REPLAYED):
            return {**row, "outcome": before, "reason": NOT_REPLAYED, "detail": f"{outcome}: {why}"}
        # What happened to it before, such as records that were lost, stays said.
        said = (row["detail"] or "").partition(f"; {NOT_REPLAYED}")[0]
        return {**row, "outcome": before, "detail": f"{said}; {NOT_REPLAYED}: {outcome}: {why}"}

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

    def superseded_by(self, landed: Iterable[str]) -> list[Superseded]:
        """Those that leave, once it is known which files landed."""
        ids = set(landed)
        return [one for one in self.superseded if one.by.file_id in ids]

    def as_begun(self, file_ids: Collection[str]) -> Sorted:
        """For a batch of which a part is in: a replay that was asked for since then is none of it."""
        late = {one.by.file_id for one in self.superseded if one.is_replay} - set(file_ids)
        if not late:
            return self
        fresh, retried = (tuple(f for f in some if f.file_id not in late) for some in (self.fresh, self.retried))
        known = (*self.known, *(f for f in self.fresh if f.file_id in late))
        superseded = tuple(one for one in self.superseded if one.by.file_id not in late)
        return replace(self, fresh=fresh, known=known, retried=retried, superseded=superseded)


def standing(superseded: Iterable[Superseded]) -> dict[str, Mapping[str, int]]:
    """Rows by table of each file that is replayed, as they stand now."""
    return {one.by.file_id: one.tables for one in superseded if one.is_replay}


def sort(
    files: Sequence[LandedFile],
    earlier: Mapping[Key, Sequence[Earlier]],
    rule_of: Callable[[str], Overwritten],
    same: frozenset[tuple[str, str]] = frozenset(),
    skipped: Collection[str] = (),
) -> Sorted:
    """Tells new files from known ones; `rule_of` says the rule of a key. Where several versions of a key are new and `replace`
    is the rule, only the latest of them is loaded. `same` are pairs of files that hold the same bytes, whatever their etags.
    `skipped` are ids of files that an operator wants left out."""
    fresh: dict[Key, list[LandedFile]] = {}
    order: list[LandedFile] = []
    known: list[LandedFile] = []
    left_out: list[Entry] = []
    retried: list[LandedFile] = []
    tries: dict[str, int] = {}
    released: list[LandedFile] = []
    here: set[str] = set()
    replays: set[str] = set()
    for file in files:
        key = (file.bucket, file.key)
        rule = rule_of(file.key)
        versions = earlier.get(key, [])
        his = [seen for seen in versions if seen.file.file_id == file.file_id]
        others = [seen.file for seen in versions if seen.loaded and seen not in his]
        rivals = others + fresh.get(key, [])
        skip = file.file_id in skipped
        stays = skip and any(seen.skipped_by_operator or seen.wants_replay for seen in his)
        if file.file_id in here or stays or any(seen.final for seen in his):
            known.append(file)
            continue
        here.add(file.file_id)
        if any(seen.wants_replay for seen in his):
            if rule == "replace" and any(_later(rival, file) for rival in fresh.get(key, [])):
                continue  # it leaves for the later one
            replays.add(file.file_id)
            rivals = []
        retried += [file] if his else []
        for seen in his:
            tries[file.file_id] = seen.row.get("tries") or 1
        released += [file] if any(seen.row["outcome"] == "unreadable" for seen in his) else []
        if skip:
            left_out.append(Entry(file=file, outcome="skipped", reason=SKIPPED_BY_OPERATOR))
        elif _is_duplicate(file, rivals, rule, same):
            left_out.append(Entry(file=file, outcome="duplicate", reason="same-key-same-bytes"))
        elif rivals and rule == "ignore":
            left_out.append(Entry(file=file, outcome="skipped", reason="overwritten"))
        elif rule == "replace" and any(_later(rival, file) for rival in rivals):
            left_out.append(Entry(file=file, outcome="superseded", reason="announced-late"))
        else:
            if rule == "replace":
                for outdone in fresh.pop(key, []):
                    order.remove(outdone)
                    if outdone.file_id in replays:  # its row changes with those of the other versions
                        retried.remove(outdone)
                    else:
                        left_out.append(Entry(file=outdone, outcome="superseded", reason="overwritten"))
            fresh.setdefault(key, []).append(file)
            order.append(file)
    superseded = _superseded(order, earlier, rule_of)
    again = (tuple(retried), tries, tuple(released))
    return Sorted(tuple(order), tuple(known), tuple(left_out), tuple(superseded), *again)


def _is_duplicate(
    file: LandedFile, rivals: Sequence[LandedFile], rule: Overwritten, same: frozenset[tuple[str, str]]
) -> bool:
    """Under `replace` only the newest version stands, so only its bytes count: A, B, A ends at A."""
    if rule == "replace" and rivals:
        rivals = [reduce(lambda a, b: a if _later(a, b) else b, rivals)]
    return any((file.etag and file.etag == rival.etag) or (file.file_id, rival.file_id) in same for rival in rivals)


def _superseded(
    fresh: Iterable[LandedFile], earlier: Mapping[Key, Sequence[Earlier]], rule_of: Callable[[str], Overwritten]
) -> Iterable[Superseded]:
    for file in fresh:
        for seen in earlier.get((file.bucket, file.key), []):
            itself = seen.file.file_id == file.file_id
            if seen.loaded and (itself or (rule_of(file.key) == "replace" and not _later(seen.file, file))):
                yield Superseded(seen, file)


def _later(a: LandedFile, b: LandedFile) -> bool:
    """Whether `a` was written after `b`: by S3's sequencer, else by its clock; else what came first is the older one."""
    told = newer(a, b)
    if told is not None:
        return told
    return bool(a.event_time and b.event_time and a.event_time > b.event_time)
