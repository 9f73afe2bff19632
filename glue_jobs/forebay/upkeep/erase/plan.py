"""The subjects of an erasure, and its progress: durable before anything happens, so that an interrupted erasure resumes.

In: the place of a service's erasures. Out: `ErasePlan`s and, table by table, what was `Done`. No object names a person: only
tokens are stored. The change of a table is written before its commit, with the version that the commit gets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from forebay.lake.layout import application, erased_of
from forebay.lake.objects import open_objects
from forebay.plain import known

PLANS, DONE, LANDING, REPORTS = "plans", "done", "landing", "reports"


@dataclass(frozen=True)
class ErasePlan:
    """`ledger_version` is that of the ledger when no batch that knew them was left, and `ledger_at` when that was; -1 before
    that. `ended`: all rows left.
    `search_landing`: objects are read that may hold records of theirs which no table has. Where they are not, `unseen_objects`
    says how many there are; -1 where nobody counted."""

    number: int
    at: str
    service: str
    tokens: tuple[str, ...]
    anonymise: bool = False
    erased: str = ""
    ledger_version: int = -1
    ledger_at: str = ""
    ended: bool = False
    gone_at: str = ""
    vault_rows: int = 0
    vault_unjudged: int = 0
    search_landing: bool = False
    unseen_objects: int = -1
    unseen_bytes: int = 0
    subject: str = ""
    """The field that named them."""

    @property
    def app_id(self) -> str:
        return application(self.service, "erase")


@dataclass(frozen=True)
class Done:
    """The result for one table. `version` is that of the commit, or of the table if it had no such row; `files` are the
    removed rows by landed file. `due_at`: from then on no object may hold them. `refused`: why nothing was done. The subject
    of unjudged rows and objects is unknown."""

    table: str
    version: int
    rows: int
    files: Mapping[str, int]
    data_files: int
    due_at: str
    at: str
    gone: int | None = None
    """How many objects were deleted, once it was due."""
    refused: str = ""
    searched: bool = True
    """Whether the table says whose its rows are."""
    dropped: bool = False
    """Whether the table was dropped before, and only old versions of its objects are left, which nobody searches."""
    unjudged_rows: int = 0
    unjudged_objects: int = 0


class Erasures:
    """The erasures of one service, in one lake."""

    def __init__(self, lake: str, service: str) -> None:
        self._store = open_objects(erased_of(lake, service))

    def plans(self) -> Iterator[ErasePlan]:
        for name in self._store.names(PLANS):
            if (found := self._plan(f"{PLANS}/{name}")) is not None:
                yield found

    def newest(self) -> ErasePlan | None:
        name = max(self._store.names(PLANS), default="")
        return self._plan(f"{PLANS}/{name}") if name else None

    def begin(self, plan: ErasePlan) -> ErasePlan:
        """Gives the plan a number of its own, even if another one begins at the same time: progress is stored by number."""
        while True:
            plan = replace(plan, number=max((one.number for one in self.plans()), default=0) + 1)
            if self._store.write_once(_name_of(plan), _json(plan)):
                return plan

    def as_kept(self, plan: ErasePlan) -> ErasePlan:
        """The plan in its present state: another process may have continued it while this one waited."""
        return self._plan(_name_of(plan)) or plan

    def keep(self, plan: ErasePlan) -> None:
        self._store.write(_name_of(plan), _json(plan))

    def done(self, plan: ErasePlan) -> dict[str, Done]:
        folder = f"{DONE}/{plan.number:010}/"
        found = (self._store.read(one.name) for one in self._store.found(folder))
        tables = (Done(**known(Done, json.loads(one))) for one in found if one is not None)
        return {one.table: one for one in tables}

    def note(self, plan: ErasePlan, done: Done) -> None:
        self._store.write(f"{DONE}/{plan.number:010}/{done.table}.json", _json(done))

    def landing(self, plan: ErasePlan) -> list[dict[str, Any]] | None:
        """The results of the objects that their rows came from; None before that."""
        found = self._store.read(f"{LANDING}/{plan.number:010}.json")
        return None if found is None else list(json.loads(found))

    def note_landing(self, plan: ErasePlan, landed: Iterable[Any]) -> None:
        self._store.write(f"{LANDING}/{plan.number:010}.json", json.dumps([asdict(one) for one in landed]).encode())

    def report(self, number: int) -> dict[str, Any] | None:
        found = self._store.read(f"{REPORTS}/{number:010}.json")
        return None if found is None else dict(json.loads(found))

    def keep_report(self, plan: ErasePlan, report: Mapping[str, Any]) -> None:
        self._store.write(f"{REPORTS}/{plan.number:010}.json", json.dumps(report, indent=1).encode())

    def _plan(self, name: str) -> ErasePlan | None:
        if (found := self._store.read(name)) is None:
            return None
        stored = json.loads(found)
        return ErasePlan(**known(ErasePlan, stored) | {"tokens": tuple(stored["tokens"])})


def _name_of(plan: ErasePlan) -> str:
    return f"{PLANS}/{plan.number:010}.json"


def _json(value: Any) -> bytes:
    return json.dumps(asdict(value)).encode()
