"""The plan of a batch: how each file ended, how many of its rows go where, and the data files that have them. It is durable
before the first commit.

In: the files and the rows of the batch. Out: a `Plan` from which any process can make all commits of the batch, even if the
landed objects have changed. Plans are in the lake, and not in the checkpoint: a new checkpoint finishes those that the earlier
one left. A plan is deleted when the ledger has its batch.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from forebay.batch.accounting import Fate, by_table
from forebay.content.end import FileEnd
from forebay.declaration.kept.pinned import other_code_needed
from forebay.errors import Halt
from forebay.lake.layout import VAULT, is_own
from forebay.lake.objects import Objects, discard
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import files_to_read
from forebay.ledger.entry import Entry
from forebay.ledger.ignored import CLEARED
from forebay.ledger.versions import Sorted
from forebay.plain import known, plain
from forebay.privacy.vault import place_of
from forebay.table.data_files.data_file import DataFile
from forebay.table.staged import StagedTable

FORMAT = 3
SUFFIX = ".json.gz"


@dataclass(frozen=True)
class Staged:
    """The data files that a batch has written and not committed yet: of its `tables` by name, and `beside` them of our own.
    Nothing of what has no rows. `unwritten` says why tables are not written."""

    unwritten: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, StagedTable] = field(default_factory=dict)
    beside: Mapping[str, StagedTable] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StagedTable]:
        yield from self.tables.values()
        yield from self.beside.values()

    @property
    def files(self) -> Iterator[DataFile]:
        return (file for one in self for file in one.files)

    def as_json(self) -> dict[str, Any]:
        return {"unwritten": dict(self.unwritten), "tables": [one.as_json() for one in self]}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Staged:
        staged = [StagedTable.of_json(one) for one in stored["tables"]]
        tables, beside = ({one.name: one for one in staged if is_own(one.name) is own} for own in (False, True))
        return cls(stored["unwritten"], tables, beside)


def delete_files(files: Iterable[DataFile], lake: str, vault: str) -> None:
    """Data files that are in no log and never will be, many with one request: a batch may have thousands of tables."""
    names: dict[str, list[str]] = {}
    for file in files:
        if file.table == VAULT:
            names.setdefault(place_of(file.table, lake, vault), []).append(file.path)
        else:
            names.setdefault(lake, []).append(f"{file.table}/{file.path}")
    for place, some in names.items():
        discard(place, some)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`files` are all of the batch, `ends` and `fates` those of the files that the ledger did not know. `service` are the
    declarations, pinned; `tries_until` the last try of kept records whose ids the batch looks at. `skipped` are the ids of
    files that an operator wanted left out. `left_out` are the entries of these that the ledger did not have, and of files that
    a rule left out, perhaps only once others of their key were read. `had_ledger`: the lake had one when the batch began.
    `staged` are the data files. Until it is `settled`, nothing was committed by it, and it binds nobody."""

    generation: str
    batch: int
    began_at: datetime
    service: dict[str, Any]
    files: tuple[LandedFile, ...]
    ends: tuple[FileEnd, ...]
    fates: tuple[Fate, ...]
    tries_until: int | None = None
    skipped: tuple[str, ...] = ()
    left_out: tuple[Entry, ...] = ()
    had_ledger: bool = False
    staged: Staged = field(default_factory=Staged)
    settled: bool = True
    ahead: timedelta = timedelta()
    """By how much `began_at` is later than the clock was."""

    @property
    def landing(self) -> tuple[LandedFile, ...]:
        return tuple(end.file for end in self.ends if end.lands)

    @property
    def forgotten(self) -> tuple[FileEnd, ...]:
        return tuple(end for end in self.ends if end.outcome == "forgotten")

    @property
    def without_bytes(self) -> tuple[FileEnd, ...]:
        """The ends that land without being read."""
        return tuple(end for end in self.ends if end.outcome in ("forgotten", "deleted"))

    @property
    def cleared(self) -> frozenset[str]:
        """The ids of the deletions that forebay made itself, as far as was known when the batch began."""
        return frozenset(entry.file.file_id for entry in self.left_out if entry.reason == CLEARED)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that rows are meant for."""
        return frozenset(by_table(self.fates))

    @property
    def vault(self) -> str:
        """The address of the vault when the batch began. Other code may have made the declarations."""
        vault: str = (self.service.get("privacy") or {}).get("vault", "")
        return vault

    def sorted_as_begun(self, claim: Claim) -> Sorted:
        """Repeats what the first try decided about each file, whatever a comparison would say now."""
        fresh, split = tuple(end.file for end in self.ends), files_to_read(claim)
        hashes = {end.file.file_id: end.content_hash for end in self.ends}
        begun = split.as_begun({file.file_id for file in (*fresh, *(entry.file for entry in self.left_out))})
        superseded, landed = tuple(claim.superseded(fresh, hashes)), frozenset(file.file_id for file in self.landing)
        return replace(begun, fresh=fresh, left_out=self.left_out, superseded=superseded, landed=landed)

    def reads_like(self, ends: Iterable[FileEnd], fates: Iterable[Fate], tables: Collection[str]) -> bool:
        """Whether files that are read again bring the same rows for these tables."""
        landed = {end.file.file_id for end in self.ends if end.lands}
        now = {end.file.file_id for end in ends if end.lands}
        meant = {fate for fate in self.fates if fate.fate == "write" and fate.table in tables}
        return landed == now and meant == {fate for fate in fates if fate.fate == "write" and fate.table in tables}

    def encode(self) -> bytes:
        at = {file.file_id: n for n, file in enumerate(self.files)}
        head = {"format": FORMAT, "began_at": self.began_at.isoformat(), "service": self.service}
        head |= {"generation": self.generation, "batch": self.batch, "tries_until": self.tries_until}
        stored = {
            **head,
            "files": [_file_out(file) for file in self.files],
            "ends": [{"file": at[end.file.file_id], **_end_out(end)} for end in self.ends],
            "fates": [{**plain(fate), "file_id": at[fate.file_id]} for fate in self.fates],
            "skipped": self.skipped,
            "left_out": [_entry_out(entry, at[entry.file.file_id]) for entry in self.left_out],
            "had_ledger": self.had_ledger,
            "staged": self.staged.as_json(),
            "settled": self.settled,
            "ahead_s": self.ahead.total_seconds(),
        }
        return gzip.compress(json.dumps(stored, separators=(",", ":")).encode(), compresslevel=1, mtime=0)

    @classmethod
    def decode(cls, content: bytes) -> Plan:
        stored = json.loads(gzip.decompress(content))
        if stored["format"] != FORMAT:
            raise other_code_needed(f"batch {stored['batch']}", "the format of its plan")
        files = tuple(_file_in(file) for file in stored["files"])
        return cls(
            generation=stored["generation"],
            batch=stored["batch"],
            began_at=datetime.fromisoformat(stored["began_at"]),
            service=stored["service"],
            files=files,
            ends=tuple(_end_in(files[end["file"]], end) for end in stored["ends"]),
            fates=tuple(_fate_in(files[fate["file_id"]].file_id, fate) for fate in stored["fates"]),
            tries_until=stored["tries_until"],
            skipped=tuple(stored["skipped"]),
            left_out=_entries_in(files, stored["left_out"]),
            had_ledger=stored["had_ledger"],
            staged=Staged.of_json(stored["staged"]),
            settled=stored["settled"],
            ahead=timedelta(seconds=stored.get("ahead_s", 0)),
        )


class Plans:
    """The plans of one service, under `the PLANS of a lake`."""

    def __init__(self, store: Objects, service: str) -> None:
        self._store, self._service = store, service

    def of(self, generation: str, batch: int) -> Plan | None:
        return self._read(self._name(generation, batch))

    def pin(self, plan: Plan) -> None:
        """The first plan of a batch. Two drivers cannot both have one."""
        if not self._store.write_once(self._name(plan.generation, plan.batch), plan.encode()):
            raise self._taken(plan)

    def settle(self, plan: Plan) -> Plan:
        """The pinned plan, which binds from now on. A driver that was paused does not bring back a plan that another one
        withdrew."""
        if plan.settled:
            return plan
        name, settled = self._name(plan.generation, plan.batch), replace(plan, settled=True)
        content, tag = self._store.read_tagged(name) or (b"", None)
        if content != plan.encode() or not self._store.write_over(name, settled.encode(), tag):
            raise self._taken(plan)
        return settled

    def _taken(self, plan: Plan) -> Halt:
        return Halt(
            f"{self.address(plan.generation, plan.batch)} was written by another driver meanwhile: two of them work on batch "
            f"{plan.batch}; stop one, then start again"
        )

    def address(self, generation: str, batch: int) -> str:
        return f"{self._store.place}/{self._name(generation, batch)}"

    def forget(self, generation: str, batch: int) -> None:
        self._store.delete([self._name(generation, batch)])

    def names(self) -> frozenset[str]:
        """Those of the plans that are there."""
        return frozenset(self._store.names(self._service))

    def left(self) -> list[Plan]:
        """Plans of batches that did not end, or whose driver died before it deleted them; the oldest first."""
        plans = (self._read(f"{self._service}/{name}") for name in self._store.names(self._service))
        return sorted((plan for plan in plans if plan is not None), key=lambda plan: plan.began_at)

    def _read(self, name: str) -> Plan | None:
        content = self._store.read(name)
        try:
            return None if content is None else Plan.decode(content)
        except (ValueError, LookupError, TypeError, EOFError, OSError, zlib.error) as broken:
            raise Halt(
                f"{self._store.place}/{name} is not the plan of a batch ({type(broken).__name__}: {broken}). "
                "Restore it from the versions of its bucket, then start again. See docs/disasters.md, A plan"
            ) from broken

    def _name(self, generation: str, batch: int) -> str:
        return f"{self._service}/{generation}-{batch}{SUFFIX}"


def files_of_open_plans(plans: Objects) -> dict[str, frozenset[str]]:
    """The data files that a batch of any service is still to commit, by table. `plans` is the PLANS of a lake."""
    files: dict[str, set[str]] = {}
    for service in plans.folders():
        for plan in Plans(plans, service).left():
            for staged in plan.staged:
                files.setdefault(staged.name, set()).update(file.path for file in staged.files)
    return {table: frozenset(names) for table, names in files.items()}


def _file_out(file: LandedFile) -> dict[str, Any]:
    facts = {**plain(file), "event_time": file.event_time.isoformat() if file.event_time else None}
    return facts if file.service else {name: value for name, value in facts.items() if name != "service"}


def _file_in(stored: dict[str, Any]) -> LandedFile:
    moment = stored["event_time"]
    return LandedFile(**{**stored, "event_time": datetime.fromisoformat(moment) if moment else None})


def _end_out(end: FileEnd) -> dict[str, Any]:
    return {name: value for name, value in plain(end).items() if name not in ("file", "lines_before")}


def _end_in(file: LandedFile, stored: dict[str, Any]) -> FileEnd:
    return FileEnd(**known(FileEnd, stored) | {"file": file})


def _fate_in(file_id: str, stored: dict[str, Any]) -> Fate:
    return Fate(**known(Fate, stored) | {"file_id": file_id, "violated": tuple(stored["violated"])})


def _entry_out(entry: Entry, at: int) -> dict[str, Any]:
    names = ("outcome", "reason", "content_hash", "superseded_by")
    return {"file": at, **{name: getattr(entry, name) for name in names}}


def _entries_in(files: Sequence[LandedFile], stored: Iterable[dict[str, Any]]) -> tuple[Entry, ...]:
    return tuple(Entry(**known(Entry, one) | {"file": files[one["file"]]}) for one in stored)
