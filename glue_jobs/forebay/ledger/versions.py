"""Which files of a batch are loaded: what the ledger has of their keys, and the service's rule for keys that get other
bytes, decide. All versions of a key go by the same rule.

Pure. In: the files of a batch, in its order, and the earlier versions of their keys, exactly as the ledger has them. Out:
`Sorted`. Asked twice it says the same, so a replayed batch does the same again.

* `append`: other bytes are loaded beside the earlier ones.   * `ignore`: they are left out.
* `replace`: they take the place of the earlier ones, unless they are themselves the older ones, announced late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

from forebay.landed_file import LandedFile
from forebay.ledger.entry import NOT_FINAL, Entry
from forebay.notification.order import newer

__all__ = ["Earlier", "Key", "Overwritten", "Sorted", "Superseded", "sort"]

Overwritten = Literal["append", "ignore", "replace"]
Key = tuple[str, str]

LOADED = ("loaded", "empty")


@dataclass(frozen=True)
class Earlier:
    """A version that the ledger has: the file, and its row."""

    file: LandedFile
    row: Mapping[str, Any]

    @property
    def loaded(self) -> bool:
        return self.row["outcome"] in LOADED

    @property
    def final(self) -> bool:
        return self.row["outcome"] not in NOT_FINAL


@dataclass(frozen=True)
class Superseded:
    """A loaded version that is to leave the tables, once the version `by` lands."""

    earlier: Earlier
    by: LandedFile

    @property
    def tables(self) -> Mapping[str, int]:
        return dict(self.earlier.row["tables"] or {})

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
    they were not read when they came before. `tries` says how often they came, by file id."""

    fresh: tuple[LandedFile, ...]
    known: tuple[LandedFile, ...]
    left_out: tuple[Entry, ...]
    superseded: tuple[Superseded, ...] = ()
    retried: tuple[LandedFile, ...] = ()
    tries: Mapping[str, int] = field(default_factory=dict)


def sort(
    files: Sequence[LandedFile],
    earlier: Mapping[Key, Sequence[Earlier]],
    rule_of: Callable[[str], Overwritten],
    same: frozenset[tuple[str, str]] = frozenset(),
) -> Sorted:
    """Tells new files from known ones; `rule_of` says the rule of a key. Where several versions of a key are new and `replace`
    is the rule, only the latest of them is loaded. `same` are pairs of files that hold the same bytes, whatever their etags."""
    fresh: dict[Key, list[LandedFile]] = {}
    order: list[LandedFile] = []
    known: list[LandedFile] = []
    left_out: list[Entry] = []
    retried: list[LandedFile] = []
    tries: dict[str, int] = {}
    here: set[str] = set()
    for file in files:
        key = (file.bucket, file.key)
        rule = rule_of(file.key)
        versions = earlier.get(key, [])
        rivals = [seen.file for seen in versions if seen.loaded] + fresh.get(key, [])
        his = [seen for seen in versions if seen.file.file_id == file.file_id]
        if file.file_id in here or any(seen.final for seen in his):
            known.append(file)
            continue
        here.add(file.file_id)
        retried += [file] if his else []
        for seen in his:
            tries[file.file_id] = seen.row.get("tries") or 1
        if _is_duplicate(file, rivals, rule, same):
            left_out.append(Entry(file=file, outcome="duplicate", reason="same-key-same-bytes"))
        elif rivals and rule == "ignore":
            left_out.append(Entry(file=file, outcome="skipped", reason="overwritten"))
        elif rule == "replace" and any(_later(rival, file) for rival in rivals):
            left_out.append(Entry(file=file, outcome="superseded", reason="announced-late"))
        else:
            if rule == "replace":
                for outdone in fresh.pop(key, []):
                    order.remove(outdone)
                    left_out.append(Entry(file=outdone, outcome="superseded", reason="overwritten"))
            fresh.setdefault(key, []).append(file)
            order.append(file)
    superseded = _superseded((file for file in order if rule_of(file.key) == "replace"), earlier)
    return Sorted(tuple(order), tuple(known), tuple(left_out), tuple(superseded), tuple(retried), tries)


def _is_duplicate(
    file: LandedFile, rivals: Sequence[LandedFile], rule: Overwritten, same: frozenset[tuple[str, str]]
) -> bool:
    """Under `replace` only the newest version stands, so only its bytes count: A, B, A ends at A."""
    if rule == "replace" and rivals:
        rivals = [reduce(lambda a, b: a if _later(a, b) else b, rivals)]
    return any((file.etag and file.etag == rival.etag) or (file.file_id, rival.file_id) in same for rival in rivals)


def _superseded(fresh: Iterable[LandedFile], earlier: Mapping[Key, Sequence[Earlier]]) -> Iterable[Superseded]:
    for file in fresh:
        for seen in earlier.get((file.bucket, file.key), []):
            if seen.loaded:
                yield Superseded(seen, file)


def _later(a: LandedFile, b: LandedFile) -> bool:
    """Whether `a` was written after `b`: by S3's sequencer, else by its clock; else what came first is the older one."""
    told = newer(a, b)
    if told is not None:
        return told
    return bool(a.event_time and b.event_time and a.event_time > b.event_time)
