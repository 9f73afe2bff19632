"""The batch's protocol on paper: the real steps, plans, rules and sums, over tables and objects that are plain Python.

Reading, Spark and Delta are replaced. A commit is all or nothing and carries its transaction, as in Delta. `Lake.effects`
counts whatever becomes visible, and the driver dies after as many as a history says. A thousand histories take seconds.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import chain, count
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

import forebay.batch.attempt.attempt as attempt
import forebay.batch.attempt.carrying_out as carrying_out
import forebay.batch.attempt.ending as ending
import forebay.batch.attempt.without_plan as without_plan
import forebay.batch.batch as heart
import forebay.batch.commits as commits
import forebay.batch.leftovers as leftovers
import forebay.batch.plan as planned
import forebay.batch.retrying.planning as planning
import forebay.batch.retrying.reserved as reserved
import forebay.batch.retrying.retry as retrying
import forebay.batch.staging as staging
import forebay.ledger.last_versions as last_versions
import forebay.threads as threads
from forebay.batch.accounting import Fate, Standing
from forebay.batch.dedupe import DUPLICATE, RETRY, Dedupe
from forebay.batch.ledger_change import COUNTS, Change
from forebay.batch.leftovers import Leftover, all_later, beside_forgotten
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.outcome import IN_VAIN_AT_MOST, Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut
from forebay.batch.one_pass.writer import SUPERSEDED
from forebay.batch.reasons import OF_WHOLE_TABLES, PAUSED_TABLE
from forebay.batch.retrying.chosen import Chosen
from forebay.batch.retrying.moving import Moving
from forebay.batch.retrying.plan import RetryPlan
from forebay.batch.retrying.planning import Planning
from forebay.batch.retrying.reserved import ReservedIds
from forebay.batch.retrying.retry import Retry
from forebay.batch.writing import Writing
from forebay.content.end import FileEnd
from forebay.content.outcome import ReadOutcome
from forebay.declaration.service import Service
from forebay.errors import ForebayError, Halt
from forebay.lake.layout import IDS, LEDGER, QUARANTINE, is_own, last_versions_of, own_table, streams_of
from forebay.lake.lease_holder import LeaseHeld
from forebay.landed_file import LandedFile
from forebay.ledger.brought_back import BroughtBack
from forebay.ledger.claim import Key
from forebay.ledger.entry import FORGET, HELD, key_hash, tables_of_earlier_reading
from forebay.ledger.index import Index
from forebay.ledger.last_versions import KeptVersions
from forebay.ledger.ledger import Ledger
from forebay.ledger.versions import Earlier
from forebay.operate.changing import rollback_ledger
from forebay.operate.changing.rollback_ids import later_versions
from forebay.operate.changing.rollback_ledger import (
    Reading,
    Rollback,
    TableBack,
    entries_after,
    files_of,
    left_elsewhere,
)
from forebay.table.commit import Txn
from forebay.table.data_files.data_file import DataFile
from forebay.table.destination import Appended, Destination, Failed, Skipped, TableLost
from forebay.table.kernel import NO_VERSION
from forebay.table.replace import Staying
from forebay.table.staged import StagedTable
from tests.batch.world import Died

PLACE = "paper"
FIRST = "s"
"""The service that wrote the lake first."""
CLOCK = count()
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Record:
    """Of a file; without a game it is parked, and refused where it is `broken`."""

    game: str | None
    id: str
    broken: bool = False


@dataclass
class Table:
    rows: list[dict[str, Any]] = field(default_factory=list)
    txns: dict[str, int] = field(default_factory=dict)
    commits: dict[Txn, int] = field(default_factory=dict)
    versions: list[list[dict[str, Any]]] = field(default_factory=list)
    """Its rows after each commit."""
    at: list[int] = field(default_factory=list)
    """When each was made, by a clock that all tables share."""
    carried: list[dict[str, int]] = field(default_factory=list)
    """The transactions that each carried."""
    derived_from: str = ""
    restores: list[int] = field(default_factory=list)
    """The versions that a `RESTORE` by hand made."""

    @property
    def version(self) -> int:
        return len(self.versions) - 1

    def change(self, rows: Sequence[dict[str, Any]], **carried: int) -> None:
        self.rows = [*rows]
        self.versions.append(self.rows)
        self.at.append(next(CLOCK))
        self.carried.append(carried)
        self.txns |= carried

    def restore(self, to: int) -> None:
        self.change(self.versions[to])
        self.restores.append(self.version)

    def restored_since(self, version: int) -> int | None:
        """As `lake.log.restored` finds it."""
        before = None
        for number in (number for number in self.restores if number > version):
            was = number - 1 if before is None else before
            before = None if self.versions[was] == self.versions[number] else was
        return before

    def txns_at(self, version: int) -> dict[str, int]:
        return {app: batch for carried in self.carried[: version + 1] for app, batch in carried.items()}


@dataclass
class Lake:
    """What survives a driver: tables by their path in the lake, objects, and S3's answers by file id."""

    tables: dict[str, Table] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, Sequence[Record] | ReadOutcome] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    """Of the bytes of versions, by file id, where several of them may have the same."""
    failing: set[str] = field(default_factory=set)
    fails_early: bool = False
    """Whether a failing table is found out before its files are written, and not at its commit."""
    effects: int = 0
    dies_after: int | None = None
    mine: bool = True
    """Whether the last commit is by whoever made it, and not by another driver that had the same transaction."""
    leases: set[str] = field(default_factory=set)
    cleared: set[str] = field(default_factory=set)
    """Ids of the deletions that `after_load` made, as far as it noted them."""
    meanwhile: tuple[int, Callable[[], None]] | None = None
    """Somebody else does all of his work right before the effect with this number."""
    met: bool = False
    """Whether he did."""
    without_ids: set[tuple[str, str]] = field(default_factory=set)
    """Tables and files: a table went back to rows of a version that was superseded then, so their ids had left."""
    given_up: set[str] = field(default_factory=set)
    """Ids of files of which an operator dropped records that waited for a table."""
    deaths: set[int] = field(default_factory=set)
    """The numbers of effects after which a driver died."""
    counts_takeovers: bool = False
    """Whether it is an effect that a driver takes over, before its first plan."""

    def effect(self, deed: Callable[[], None]) -> None:
        if self.meanwhile is not None and self.effects >= self.meanwhile[0]:
            (_, somebody), self.meanwhile, self.met = self.meanwhile, None, True
            mine = self.effects, self.dies_after
            somebody()
            self.effects, self.dies_after = mine
        self.must_live()
        deed()
        self.effects += 1
        self.must_live()

    def must_live(self) -> None:
        if self.dies_after is not None and self.effects >= self.dies_after:
            self.deaths.add(self.dies_after)
            raise Died

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.tables[name].rows if name in self.tables else []

    def commit(
        self,
        name: str,
        txn: Txn,
        rows: Sequence[dict[str, Any]],
        leaving: Collection[str],
        column: str,
        if_lost: str = "",
    ) -> None:
        def deed() -> None:
            if if_lost and name not in self.tables:
                raise TableLost(if_lost)
            table = self.tables.setdefault(name, Table())
            if table.txns.get(txn.app_id, NO_VERSION) >= txn.version:
                self.mine = False
                return  # Delta refuses the second commit of a transaction
            rows_after = [row for row in table.rows if row.get(column) not in leaving] + list(rows)
            table.change(rows_after, **{txn.app_id: txn.version})
            table.commits[txn] = len(rows)
            self.mine = True

        self.effect(deed)

    def remove(self, name: str, leaving: Collection[str], txn: Txn, generation: str) -> None:
        """The rows of these files, in a commit that carries another transaction than that of the rows that come. Another driver
        of this batch may have added those already."""
        table, own = self.tables[name], (generation, txn.version)

        def deed() -> None:
            stay = [
                row
                for row in table.rows
                if row["_file_id"] not in leaving or (row.get("generation"), row.get("batch")) == own
            ]
            table.change(stay, **{f"{txn.app_id}/removal": txn.version})

        self.effect(deed)


@dataclass
class Store:
    """Objects below a place, in the lake."""

    lake: Lake
    place: str

    def read(self, name: str) -> bytes | None:
        return self.lake.objects.get(f"{self.place}/{name}")

    def names(self, folder: str) -> list[str]:
        before = f"{self.place}/{folder}/"
        return sorted(name.removeprefix(before) for name in self.lake.objects if name.startswith(before))

    def found(self, prefix: str = "", *, after: str = "") -> list[Any]:
        before = f"{self.place}/"
        names = (name.removeprefix(before) for name in self.lake.objects if name.startswith(before))
        return [SimpleNamespace(name=name) for name in names]

    def write(self, name: str, content: bytes) -> None:
        self.lake.effect(lambda: self.lake.objects.update({f"{self.place}/{name}": content}))

    def write_once(self, name: str, content: bytes) -> bool:
        if self.read(name) is None:  # somebody else may write it right before the effect
            self.lake.effect(lambda: self.lake.objects.setdefault(f"{self.place}/{name}", content))  # type: ignore[arg-type,func-returns-value]
        return self.read(name) == content

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        content = self.read(name)
        return None if content is None else (content, content.hex())

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        done = []

        def deed() -> None:
            if ((there := self.read_tagged(name)) and there[1]) == tag:
                self.lake.objects[f"{self.place}/{name}"] = content
                done.append(name)

        if self.lake.counts_takeovers or self.place != streams_of(PLACE):
            self.lake.effect(deed)
        else:
            deed()
        return bool(done)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.lake.effect(lambda name=name: self.lake.objects.pop(f"{self.place}/{name}", None))  # type: ignore[misc]


class PaperLease:
    """Nobody has it once its holder is dead."""

    def __init__(self, lake: Lake, place: str, wait_s: float) -> None:
        if place in lake.leases:
            raise LeaseHeld(place, "another one", wait_s)
        self.leases, self.place = lake.leases, place
        self.leases.add(place)

    def check(self) -> None:
        pass

    def let_go(self) -> None:
        self.leases.discard(self.place)


@dataclass
class Logs:
    lake: Lake

    def _table(self, path: str) -> Table | None:
        return self.lake.tables.get(path.removeprefix(f"{PLACE}/"))

    def look(self, path: str, *, again: bool = False) -> Table | None:
        return self._table(path)

    def version_at(self, path: str, *, again: bool = False) -> int:
        table = self._table(path)
        return NO_VERSION if table is None else table.version

    def last_version_at(self, path: str, app_id: str, *, again: bool = False) -> int:
        return self.look_for(path, app_id)[1]

    def look_for(self, path: str, app_id: str, *, again: bool = False) -> tuple[Table | None, int]:
        table = self._table(path)
        return table, NO_VERSION if table is None else self.last_version(table, app_id)

    def last_version(self, seen: Table, app_id: str) -> int:
        return seen.txns.get(app_id, NO_VERSION)

    def has(self, path: str, txn: Txn, *, again: bool = False) -> bool:
        return self.last_version_at(path, txn.app_id) >= txn.version

    def close(self) -> None:
        pass


class Rows(list[dict[str, Any]]):
    """Stands for a DataFrame, an Arrow table, or both."""

    def toArrow(self) -> Rows:  # noqa: N802 (Spark's name)
        return self

    def count(self) -> int:  # type: ignore[override]
        return len(self)

    @property
    def num_rows(self) -> int:
        return len(self)


class PaperDedupe(Dedupe):
    def ids(self, rows: Any, unwritten: Mapping[str, str]) -> Any:
        written = (row for row in rows or () if row["fate"] == "write" and row["table"] not in unwritten)
        told = ({"id": (r["table"], r["id"]), "file_id": r["_file_id"], "table": r["table"]} for r in written)
        return Rows({**self.of_all_ids, **row} for row in told)

    def forget(self, today: date) -> None:
        pass

    def known_to(self, lake: Lake, landed: Collection[str], rows: Sequence[dict[str, Any]]) -> set[Any]:
        if self.planned is not None:
            planned: Any = self.planned()
            return {(row["table"], row["id"]) for row in rows} - {row["id"] for row in planned or ()}
        if self.as_of == NO_VERSION:
            return set()
        ids = lake.rows(IDS) if self.as_of is None else lake.tables[IDS].versions[self.as_of]
        if (until := self.tries_until) is not None:
            ids = [row for row in ids if row["generation"] != RETRY or row["batch"] <= until]
        leaving = self.leaving_for(landed)
        own = (self.writing.generation, self.writing.txn.version)
        ids = [row for row in ids if row["day"] >= min(self.since.values())]
        return {row["id"] for row in ids if (row["generation"], row["batch"]) != own and row["file_id"] not in leaving}


def _quarantined(rows: Rows, kept_out: Mapping[str, str], standing: Standing, shared: Mapping[str, Any]) -> Rows:
    kept = []
    for row in rows:
        stands = row["table"] in standing.get(row["_file_id"], {})
        why = kept_out.get(row["table"]) if row["fate"] == "write" and not stands else None
        if row["fate"] == "quarantine" or why:
            kept.append({**row, **shared, "file_id": row["_file_id"], "reason": why or "not-json"})
    return Rows(kept)


class PaperWriting(Writing):
    @property
    def paper(self) -> Lake:
        return self.logs.lake  # type: ignore[attr-defined,no-any-return]

    def tables_of(self, made: Pass, declared: Any, wanted: Mapping[str, int], absent: object) -> dict[str, Any]:
        rows = self.of_pass(made)
        staged: dict[str, Any] = {}
        for name in sorted(wanted):
            mine = [row for row in rows if (row["fate"], row["table"]) == ("write", name)]
            table = Destination(name, f"{PLACE}/{name}")
            failing = name in self.paper.failing and self.paper.fails_early and not self.logs.has(table.path, self.txn)
            staged[name] = Failed(ForebayError("said the test")) if failing else self.staged(table, mine, wanted[name])
        return staged

    def kept_by(self, made: Pass, name: str, count: int, *, replaces: bool) -> StagedTable | None:
        if not count:
            return None
        all_rows, told = self.of_pass(made), made.written
        rows = _quarantined(all_rows, told.kept_out, told.standing, self.shared_beside)  # type: ignore[attr-defined]
        if name != QUARANTINE:
            rows = Rows({**r, **self.shared_beside, "file_id": r["_file_id"]} for r in all_rows if r["fate"] == "park")
        return self.stage_beside(self.own(name), rows, count, replaces=replaces)

    def without_tables(self, ids: Any, names: Collection[str]) -> Any:
        return Rows(row for row in ids if row["table"] not in names)

    def of_pass(self, made: Pass) -> Rows:
        return Rows(row for row in pickle.loads(made.written.rows) if row["_file_id"] in made.landed)  # type: ignore[attr-defined]

    def stage_beside(self, table: Destination, rows: Any, wanted: int, *, replaces: bool = False) -> StagedTable | None:
        assert wanted, "no data file is without rows"
        staged = self.staged(table, rows, wanted)
        return replace(staged, replaces=replaces) if isinstance(staged, StagedTable) else None

    def staged(self, table: Destination, rows: Sequence[Any], wanted: int) -> StagedTable | Skipped:
        if self.logs.has(table.path, self.txn):
            return Skipped()
        if len(rows) != wanted:
            raise Halt(f"{table.name}: {wanted} rows were counted, but {len(rows)} are there now")
        file = DataFile(table.name, f"part-{next(CLOCK)}", (), 1, len(rows), 0, "{}")
        by = {"generation": self.generation, "batch": self.txn.version}
        read = [{**by, **row, "_ingested_at": self.began_at} for row in rows]
        Store(self.paper, table.path).write(file.path, pickle.dumps(read))
        return StagedTable(table.name, "", None, (), (file,))

    def commit_all(self, tables: Sequence[tuple[Destination, StagedTable]], pool: int = 1) -> dict[str, Any]:
        return {table.name: self.committed(table, staged.read(self.spark, table.path)) for table, staged in tables}

    def removed(self, table: str, file_ids: Sequence[str]) -> Any:
        return self.committed(Destination(table, f"{PLACE}/{table}"), (), file_ids)

    def replaced(self, declared: Any, table: str, file_ids: Sequence[str], staged: StagedTable) -> Any:
        """Two commits where rows come, as in `removal`; a table that fails in between keeps the batch open."""
        destination = Destination(table, f"{PLACE}/{table}")
        if self.logs.has(destination.path, self.txn):
            return Skipped()
        rows, there = staged.read(self.spark, destination.path), self.paper.rows(table)
        leaving = [row for row in there if row["_file_id"] in file_ids]
        if table in self.paper.failing and file_ids and not leaving:
            raise Halt(f"{table}: the rows of earlier files were removed")
        if leaving and table not in self.paper.failing:
            self.paper.remove(table, file_ids, self.txn, self.generation)
        return self.committed(destination, rows)

    def replaced_beside(self, table: Destination, coming: Any, leaving: Sequence[str], staying: Staying | None) -> Any:
        assert leaving, "Spark has no condition without an id"
        assert table.if_lost or table.name in self.paper.tables, "the table must exist"
        there = self.paper.rows(table.name)
        stay = [r for r in there if staying and r["file_id"] in staying.file_ids and r["table"] in staying.tables]
        kept = [row for row in stay if row["file_id"] in leaving]
        result = self.committed(table, [*kept, *(coming(None) if coming else ())], leaving, "file_id")
        return replace(result, rows=result.rows - len(kept)) if isinstance(result, Appended) else result

    def committed(
        self, table: Destination, rows: Sequence[Any], leaving: Sequence[str] = (), column: str = "_file_id"
    ) -> Appended | Skipped | Failed:
        if self.logs.has(table.path, self.txn):
            return Skipped()
        if table.name in self.paper.failing:
            return Failed(ForebayError("said the test"))
        try:
            self.paper.commit(table.name, self.txn, rows, leaving, column, table.if_lost)
        except TableLost as lost:
            return Failed(lost)
        return Appended(1, 1, len(rows), 0, 0.0) if self.paper.mine else Skipped()

    def without(self, ids: StagedTable | None, failed: Collection[str]) -> StagedTable | None:
        if ids is None or not failed:
            return ids
        rows = [row for row in ids.read(self.spark, f"{PLACE}/{IDS}") if row["table"] not in failed]
        return self.stage_beside(self.own(IDS), rows, len(rows), replaces=ids.replaces) if rows else None

    def must_have_come(self, path: str, wanted: int) -> None:
        rows = self.paper.tables[path.removeprefix(f"{PLACE}/")].commits.get(self.txn)
        if rows != wanted:
            raise Halt(f"{path} has {self.txn} already, with {rows} rows instead of {wanted}")

    def unwritten_before(self) -> dict[str, str]:
        mine = (self.generation, self.txn.version)
        rows = (row for row in self.paper.rows(QUARANTINE) if (row["generation"], row["batch"]) == mine)
        return {row["table"]: row["reason"] for row in rows if row["reason"] in OF_WHOLE_TABLES}


class PaperLedger(Ledger):
    def __init__(self, lake: Lake, service: str) -> None:
        super().__init__(None, PLACE, service)  # type: ignore[arg-type]
        self.lake, self._index = lake, Index(table_rows=len(lake.rows(LEDGER)))
        self.last_versions = KeptVersions(Store(lake, last_versions_of(PLACE)), service)  # type: ignore[arg-type]
        self.known = {row["key_hash"] for row in lake.rows(LEDGER)}

    @property
    def first(self) -> str:
        return FIRST

    def remember(self, entries: Sequence[Any], at: datetime, *, more: int) -> None:
        super().remember(entries, at, more=more)
        assert self.rows == len(self.lake.rows(LEDGER))

    def deletions_of_ours(self, files: Sequence[LandedFile], earlier: Any) -> frozenset[str]:
        """The first look at a lake's notes; those of a batch that goes on are in its plan."""
        return frozenset(file.file_id for file in files if file.file_id in self.lake.cleared)

    def _versions_of(self, files: Sequence[LandedFile]) -> dict[Any, list[Earlier]]:
        found: dict[Any, list[Earlier]] = {}
        asked = {key_hash(file) for file in files}
        if asked & self.known and LEDGER not in self.lake.tables:
            raise Halt(self.lost)
        for row in self.lake.rows(LEDGER):
            if row["key_hash"] in asked and row["service"] in self.names:
                found.setdefault((row["bucket"], row["key"]), []).append(Earlier.of(dict(row)))
        return found

    def frame(self, entries: Iterable[Any], changed: Iterable[dict[str, Any]], **shared: object) -> Any:
        return Rows([*(entry.row(**shared) for entry in entries), *changed])


class PaperPass:
    """Each third one cannot be used, but never the last one that a batch would try."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.in_vain = lake, Counter[int]()

    def of(
        self,
        files: Sequence[LandedFile],
        service: Service,
        *,
        shared: Any,
        unwritten: Mapping[str, KeptOut],
        standing: Standing,
        known: Any = None,
        only_unwritten: bool = False,
    ) -> Pass:
        batch = shared["batch"]
        if next(CLOCK) % 3 == 0 and self.in_vain[batch] < IN_VAIN_AT_MOST - 1:
            self.in_vain[batch] += 1
            raise ReadAgain("said the test")
        rows, ends = self.records_of(files, service)
        if only_unwritten:
            rows = Rows(row for row in rows if row["fate"] == "write" and row["table"] in unwritten)
        fates = _fates(rows)
        names = () if only_unwritten else {fate.table for fate in fates if fate.table}
        paused = {name: PAUSED_TABLE for name in names if service.is_paused(name)}
        kept_out = {name: why.reason for name, why in unwritten.items()} | paused
        told = {"rows": pickle.dumps(rows), "files": {}, "kept_out": kept_out, "standing": standing}
        written: Any = SimpleNamespace(**told)
        return Pass(ends, fates, written, PLACE)

    def without_duplicates(self, made: Pass, dedupe: PaperDedupe) -> Pass:
        if not dedupe.wanted:
            return made
        told = vars(made.written)
        rows = Rows(row for row in pickle.loads(told["rows"]) if row["_file_id"] in made.landed)
        _drop_duplicates(rows, dedupe.known_to(self.lake, made.landed, rows))
        written: Any = SimpleNamespace(**told | {"rows": pickle.dumps(rows)})
        ids = dedupe.ids(rows, told["kept_out"])
        return replace(made, fates=_fates(rows), written=written, ids=[Rows(ids[:1]), Rows(ids[1:])])

    def records_of(self, files: Sequence[LandedFile], service: Service) -> tuple[Rows, list[FileEnd]]:
        ends, rows = [], []
        for file in files:
            in_s3 = replace(file, service="").file_id
            answer = self.lake.answers[in_s3]
            ends.append(_end(file, answer, self.lake.hashes.get(in_s3, "")))
            if not isinstance(answer, str):
                rows += [_row(file, n, record, service.name) for n, record in enumerate(answer)]
        return Rows(rows), ends


class PaperPlanning(Planning):
    @property
    def paper(self) -> Lake:
        return self.logs.lake  # type: ignore[attr-defined,no-any-return]

    def held(self, plan: RetryPlan) -> Any:
        rows = self.paper.tables[own_table(plan.choice.held)].versions[plan.version]
        return [
            row
            for row in rows
            if row["service"] == self.service.name
            and row["file_id"] not in plan.without
            and plan.after < row["file_id"]
            and (not plan.until or row["file_id"] <= plan.until)
            and plan.choice.table in (None, row["table"])
            and plan.choice.reason in (None, row["reason"])
        ]

    def _until(self, plan: RetryPlan) -> str:
        """Sometimes one file is enough for a plan."""
        file_ids = sorted({row["file_id"] for row in self.held(plan)})
        return file_ids[0] if len(file_ids) > 1 and next(CLOCK) % 2 else ""

    def _held_of(self, plan: RetryPlan, files: Collection[LandedFile]) -> list[str]:
        keys = {file.key for file in files}
        return sorted({row["file_id"] for row in self.held(plan) if row["key"] in keys})

    def _brought_back(self, plan: RetryPlan, changing: Callable[[], Collection[Key]]) -> BroughtBack | None:
        held = self.paper.rows(own_table(plan.choice.held))
        counts, keys = Counter(row["file_id"] for row in held if row["service"] == self.service.name), changing()
        for row in self.paper.rows(LEDGER):
            if (row["bucket"], row["key"]) in keys:
                continue
            if counts[row["file_id"]] > row[HELD[own_table(plan.choice.held)]]:
                return BroughtBack(row["key"], counts[row["file_id"]], row[HELD[own_table(plan.choice.held)]])
        return None


class PaperRetry(Retry):
    in_vain = 0

    @property
    def paper(self) -> Lake:
        return self.logs.lake  # type: ignore[attr-defined,no-any-return]

    def _files_of(self, plan: RetryPlan) -> dict[HeldFile, int]:
        held = self.planning.held(plan)
        return {HeldFile("landing", row["key"], event_time=row["at"], held_id=row["file_id"]): 1 for row in held}

    def _chosen_of(self, plan: RetryPlan, files: Any, dedupe: Any, writing: Any, known: Any) -> Chosen:
        """Each third pass cannot be used, but never the last one."""
        rows = Rows({**row, "violated": ()} for row in self.planning.held(plan))
        if plan.choice.give_up:
            for row in rows:
                row["fate"] = "drop"
            self.paper.given_up |= {row["file_id"] for row in rows if row["reason"] in OF_WHOLE_TABLES}
            return Chosen(_fates(rows), partial(_gone, rows))
        stay = _other_rows_in_force(self.paper.rows(LEDGER), self.service)
        for row in rows:
            if row["fate"] == "write" and (row["_file_id"], row["table"]) in stay:
                row["fate"] = SUPERSEDED
        if next(CLOCK) % 3 == 0 and self.in_vain < IN_VAIN_AT_MOST - 1:
            self.in_vain += 1
            raise ReadAgain("said the test")
        made = self._made(rows, dedupe.ids(rows, {}), ())
        if dedupe.wanted:
            _drop_duplicates(
                rows,
                self.reserved.compared_with(
                    made, dedupe, writing, self._ids_must_stand, partial(self.planning.keep, plan)
                ).known_to(self.paper, (), rows),
            )
        made = self._made(rows, dedupe.ids(rows, {}), [row for row in rows if row["violated"]])
        return Chosen(made.fates, partial(_gone, rows), made)

    def _made(self, rows: Rows, ids: Rows, dropped: Sequence[Any]) -> Pass:
        files = [HeldFile("landing", row["key"], held_id=row["file_id"]) for row in rows]
        ends = [_end(file, (), "") for file in dict.fromkeys(files)]
        written: Any = SimpleNamespace(rows=pickle.dumps(rows), files={})
        duplicates: Any = (lambda: dropped) if dropped else None
        some = [ids] if len(ids) else []
        identified: Any = some
        return Pass(ends, _fates(rows), written, PLACE, identified, some, duplicates=duplicates)


class PaperReservedIds(ReservedIds):
    def release(self, made: Pass, dedupe: Dedupe, writing: Writing, unwritten: Collection[str]) -> None:
        if not writing.logs.has(dedupe.path, writing.txn, again=True):
            return
        lake: Lake = writing.logs.lake  # type: ignore[attr-defined]
        mine = (writing.generation, writing.txn.version)
        stay = {(r["id"], r["file_id"]) for ids in made.ids for r in writing.without_tables(ids, unwritten)}
        table = lake.tables[IDS]

        def stays(row: Mapping[str, Any]) -> bool:
            return (row["generation"], row["batch"]) != mine or (row["id"], row["file_id"]) in stay

        if all(map(stays, table.rows)):
            return
        lake.effect(lambda: table.change([row for row in table.rows if stays(row)]))


class PaperMoving(Moving):
    @property
    def paper(self) -> Lake:
        return self.writing.logs.lake  # type: ignore[attr-defined,no-any-return]

    def ledger_rows(self, file_ids: Collection[str]) -> list[dict[str, Any]]:
        return [dict(row) for row in self.paper.rows(LEDGER) if row["file_id"] in file_ids]

    def leftovers(self, file_ids: Collection[str]) -> list[Leftover]:
        return [
            Leftover(dict(row))
            for row in self.paper.rows(LEDGER)
            if _is_left(row) and row["written"] and row["superseded_by"] in file_ids
        ]

    def change_ledger(self, changes: Any) -> None:
        change_counts_in(self.paper, changes(), self.writing.txn)

    def wait_for_tables(self, file_ids: Collection[str], in_tables: Collection[str]) -> set[str]:
        gone: Any = self.chosen.gone({*in_tables})
        held = [row for row in self.paper.rows(QUARANTINE) if row["reason"] in OF_WHOLE_TABLES]
        left = {row["file_id"] for row in held if (row["file_id"], row["byte_offset"]) not in gone}
        return left & {*file_ids}

    def let_go(self, in_tables: set[str]) -> None:
        gone: Any = self.chosen.gone(in_tables)
        table = self.paper.tables[own_table(self.plan.choice.held)]
        self.paper.effect(lambda: table.change([r for r in table.rows if (r["file_id"], r["byte_offset"]) not in gone]))


def _is_left(row: Mapping[str, Any]) -> bool:
    """As `leftovers` finds it."""
    half_forgotten = row["outcome"] == FORGET and row["superseded_by"] and row["reason"] in OF_WHOLE_TABLES
    return row["outcome"] == "superseded" or bool(half_forgotten and not row["quarantined"])


def _other_rows_in_force(ledger: Sequence[Mapping[str, Any]], service: Service) -> set[tuple[str, str]]:
    """As `leftovers.other_rows_in_force` finds them."""
    ledger = [row for row in ledger if row["service"] == service.name]
    going = [row for row in ledger if row["outcome"] == FORGET and not _is_left(row)]
    beside = beside_forgotten([row for row in going if service.rule_of(row["key"]) != "append"], ledger)
    partly = {(row["file_id"], name) for row in ledger for name in _of_earlier_reading(row)}
    later = {row["file_id"]: row["superseded_by"] for row in ledger if row["superseded_by"]}
    back = [row for row in ledger if row["superseded_by"] and not _is_left(row)]
    named = [(row["file_id"], row["superseded_by"], name) for row in back for name in row["tables"]]
    partly |= {*beside}
    return partly | {*all_later(named, lambda file_ids: {one: later[one] for one in file_ids if one in later})}


def _of_earlier_reading(row: Mapping[str, Any]) -> frozenset[str]:
    return tables_of_earlier_reading(row["reason"], row["detail"]) & row["tables"].keys()


def _gone(rows: Rows, tables: Collection[str]) -> Any:
    leave = (r for r in rows if r["fate"] == "drop" or (r["fate"] == "write" and r["table"] in tables))
    return {(row["_file_id"], row["byte_offset"]) for row in leave}


def _end(file: LandedFile, answer: Sequence[Record] | ReadOutcome, content_hash: str) -> FileEnd:
    nothing = {"bytes_read": 0, "expanded_bytes": 0, "requests": 1, "head": "", "detail": "said the test"}
    if isinstance(answer, str):
        return FileEnd(file=file, outcome=answer, reason=answer, documents=0, refused=0, **nothing)  # type: ignore[arg-type]
    nothing["content_hash"] = content_hash
    broken = sum(record.broken for record in answer)
    whole = len(answer) - broken
    return FileEnd(file=file, outcome="loaded", reason=None, documents=whole, refused=broken, **nothing)  # type: ignore[arg-type]


def table_of(service: str, game: str) -> str:
    """Each service has tables of its own."""
    return game if service == FIRST else f"{service}_{game}"


def _row(file: LandedFile, offset: int, record: Record, service: str) -> dict[str, Any]:
    fate = "quarantine" if record.broken else "write" if record.game else "park"
    table = table_of(service, record.game) if record.game else None
    row = {
        "_file_id": file.file_id,
        "key": file.key,
        "byte_offset": offset,
        "id": record.id,
        "fate": fate,
        "table": table,
    }
    reason = "not-json" if record.broken else None
    return {**row, "declared": 0 if table else None, "violated": (), "reason": reason}


def _fates(rows: Any) -> list[Fate]:
    told = Counter((r["_file_id"], r["fate"], r["table"], r["declared"], r["violated"], r["reason"]) for r in rows)
    return [Fate(f, fate, n, table, declared, v, why) for (f, fate, table, declared, v, why), n in told.items()]


def _drop_duplicates(rows: list[dict[str, Any]], known: set[Any]) -> None:
    seen = set(known)
    for row in sorted(rows, key=lambda row: (row["_file_id"], row["byte_offset"])):
        if row["fate"] == "write":
            if (row["table"], row["id"]) in seen:
                row.update(fate="drop", violated=(DUPLICATE,))
            seen.add((row["table"], row["id"]))


@contextmanager
def _in_turn(*_: object) -> Iterator[Any]:
    """In the place of threads: effects have an order, and thousands of histories do not wait for their turn on a core."""
    yield SimpleNamespace(map=map, submit=lambda ask: SimpleNamespace(result=ask))


def interleavings(scene: Callable[[pytest.MonkeyPatch], Any]) -> Iterator[tuple[Any, int, int | None]]:
    """A scene for each effect at which the first driver meets another one or dies, and for each after which the other one dies.
    What comes after the last effect is tried once."""
    for at in count():
        is_reached = False
        for dies_after in chain((None,), count()):
            with pytest.MonkeyPatch.context() as patch:
                made = scene(patch)
                yield made, at, dies_after
            is_reached |= made.lake.met or at in made.lake.deaths
            if dies_after not in (None, *made.lake.deaths):
                break
        if not is_reached:
            assert at > 5, "there were hardly any effects"
            return


def lay_out(patch: pytest.MonkeyPatch, lake: Lake, service: Service, generation: str, **more: Any) -> heart.Batch:
    """A driver of its own for this lake; what stood in for Spark stays as long as `patch`."""
    patch.setattr(attempt, "TableLogs", lambda *_, **__: Logs(lake))
    patch.setattr(attempt, "open_objects", lambda place: Store(lake, place))
    patch.setattr(attempt, "OnePass", lambda *_: PaperPass(lake))
    patch.setattr(ending, "arrow_rows", lambda rows, columns: Rows(rows))
    patch.setattr(attempt, "Dedupe", PaperDedupe)
    patch.setattr(attempt, "Writing", PaperWriting)
    patch.setattr(carrying_out, "change_times", lambda _, path, rows, *names: change_times_in(lake, rows, *names))
    patch.setattr(last_versions, "restored_since", lambda ids, version: lake.tables[IDS].restored_since(version))
    _without_spark(patch, lake)
    lake.effects = 0
    return heart.Batch(
        lake,  # type: ignore[arg-type]
        service,
        lake=PLACE,
        generation=lambda: generation,
        ledger=PaperLedger(lake, service.name),
        emit=lambda event: None,
        **more,
    )


def _without_spark(patch: pytest.MonkeyPatch, lake: Lake) -> None:
    """Data files are objects of the lake, which stands in the place of Spark."""
    patch.setattr(threads, "ThreadPoolExecutor", _in_turn)
    patch.setattr(commits, "open_objects", lambda place: Store(lake, place))
    patch.setattr(staging, "open_objects", lambda place: Store(lake, place))
    patch.setattr(without_plan, "tables_of", lambda place: [name for name in lake.tables if not is_own(name)])
    patch.setattr(without_plan, "rows_of_batch", partial(_rows_of_batch, lake))
    patch.setattr(planned, "discard", lambda place, names: Store(lake, place).delete(names))
    patch.setattr(StagedTable, "read", _read)


def _rows_of_batch(lake: Lake, writing: Writing, place: str, file_ids: Collection[str]) -> Counter[str]:
    """Rows of tables have no batch here. A table that has one has lost the earlier rows of its files before."""
    mine, rows = (writing.generation, writing.txn.version), lake.rows(place)
    if is_own(place):
        rows = [row for row in rows if (row["generation"], row["batch"]) == mine]
    return Counter(row["_file_id"] for row in rows if row["_file_id"] in file_ids)


def _read(staged: StagedTable, lake: Any, path: str) -> Rows:
    return Rows(row for file in staged.files for row in pickle.loads(lake.objects[f"{path}/{file.path}"]))


def roll_back_in(
    patch: pytest.MonkeyPatch, lake: Lake, names: Iterable[str], back: int, *, replay: bool = True
) -> bool:
    """So many commits each, as `forebay rollback` does; whether that was done. It refuses while a batch or a retry is
    unfinished, and where the ids of rows that would be in force again are gone."""
    if any("plan" in name for name in lake.objects):
        return False
    patch.setattr(
        rollback_ledger, "rows_with", lambda _, __, by, values: [r for r in lake.rows(LEDGER) if r[by] in values]
    )
    plan = Rollback("n", tuple(_back(name, lake.tables[name], back) for name in names), replay)
    files = files_of(None, plan)  # type: ignore[arg-type]
    if lake.rows(IDS) and any(left_elsewhere(plan, files)):
        return False
    ledger, ids = lake.tables[LEDGER], lake.tables.setdefault(IDS, Table())
    after = {row["file_id"]: {**row, "tables": dict(row["tables"])} for row in entries_after(None, plan, files)}  # type: ignore[arg-type]
    ledger.change([{**row, **after.get(row["file_id"], {})} for row in ledger.rows])
    going = {row["file_id"] for row in ledger.rows if row["outcome"] == "superseded"}
    for one in plan.tables:
        table = lake.tables[one.table]
        known = _ids_then(ids, table, one.to)
        meant = {(one.table, file_id) for file_id in one.files}
        left = _superseded_then(ledger, table, one.to)
        lake.without_ids |= {(name, file_id) for name, file_id in meant if file_id in left}
        kept = [row for row in ids.rows if (row["table"], row["file_id"]) not in meant]
        table.change(table.versions[one.to])
        stand = meant & {(one.table, row["_file_id"]) for row in table.rows if row["_file_id"] not in going}
        ids.change(kept + [row for row in known if (row["table"], row["file_id"]) in stand])
    return True


def _superseded_then(ledger: Table, table: Table, to: int) -> set[str]:
    """The files that were superseded before the commit that followed in the table."""
    followed = table.at[to + 1] if to < table.version else 0
    version = sum(at < followed for at in ledger.at) - 1
    rows = ledger.versions[version] if version > NO_VERSION else []
    return {row["file_id"] for row in rows if row["outcome"] == "superseded"}


def _ids_then(ids: Table, table: Table, to: int) -> list[dict[str, Any]]:
    """As `rollback_ids` finds them."""
    followed = table.at[to + 1] if to < table.version else 0
    version = sum(at < followed for at in ids.at) - 1
    then, now = ids.txns_at(version), ids.txns
    written = table.txns_at(to).items()
    waited = {app: batch for app, batch in written if then.get(app, NO_VERSION) < batch <= now.get(app, NO_VERSION)}
    later = later_versions(waited, ((n, ids.carried[n]) for n in range(version + 1, ids.version + 1)))
    at = [version, *later.values()]
    rows = {n: ids.versions[n] if n > NO_VERSION else [] for n in at}
    others = [row for row in rows[version] if row["service"] not in later]
    return others + [row for name, n in later.items() for row in rows[n] if row["service"] == name]


def _back(name: str, table: Table, back: int) -> TableBack:
    to = max(0, table.version - back)
    changes = Counter(Reading(row["_file_id"], row["_ingested_at"]) for row in table.versions[to])
    changes.subtract(Reading(row["_file_id"], row["_ingested_at"]) for row in table.rows)
    return TableBack.of(name, table.version, to, changes)


def change_times_in(lake: Lake, changed: Sequence[dict[str, Any]], *others: str) -> None:
    told = {row["file_id"]: {name: row[name] for name in ("sequencer", "event_time", *others)} for row in changed}
    table = lake.tables[LEDGER]
    lake.effect(lambda: table.change([{**row, **told.get(row["file_id"], {})} for row in table.rows]))


def change_counts_in(lake: Lake, changes: Sequence[Change], txn: Txn) -> None:
    told = {was["file_id"]: (was, now) for was, now in changes}

    def deed() -> None:
        table, rows = lake.tables[LEDGER], []
        for row in table.rows:
            was, now = told.get(row["file_id"], (row, row))
            assert all(was[name] == row[name] for name in COUNTS), "the ledger was changed by somebody else"
            reason = now["reason"] if row["reason"] == was["reason"] else row["reason"]
            rows.append({**row, **{name: now[name] for name in ("tables", *COUNTS)}, "reason": reason})
        table.change(rows, **{txn.app_id: txn.version})

    lake.effect(deed)


def retry_in(patch: pytest.MonkeyPatch, lake: Lake, service: Service, now: datetime = NOW) -> Retry:
    """An operator's process, or that of a job that starts."""
    patch.setattr(retrying, "open_objects", lambda place: Store(lake, place))
    patch.setattr(planning, "open_objects", lambda place: Store(lake, place))
    patch.setattr(planning, "paused_tables", lambda place: service.paused)
    patch.setattr(retrying, "Planning", PaperPlanning)
    patch.setattr(retrying, "hold", lambda place, wait_s, **_: PaperLease(lake, place, wait_s))
    patch.setattr(retrying, "Writing", PaperWriting)
    patch.setattr(retrying, "Dedupe", PaperDedupe)
    patch.setattr(retrying, "ReservedIds", PaperReservedIds)
    patch.setattr(reserved, "holder", lambda place: None)
    patch.setattr(reserved, "every_id", lambda made, dedupe: made.ids)
    _without_spark(patch, lake)
    patch.setattr(retrying, "Moving", PaperMoving)
    lake.effects = 0
    logs: Any = Logs(lake)
    spark: Any = lake
    return PaperRetry(spark, service, lake=PLACE, emit=lambda event: None, logs=logs, clock=lambda: now)


def remove_leftovers_in(patch: pytest.MonkeyPatch, lake: Lake, service: Service, now: datetime) -> None:
    """As a job does at its start."""

    def removed(_: Any, table: Destination, file_ids: Any, rows: None, *, txn: Txn, logs: Any) -> Any:
        lake.commit(table.name, txn, (), file_ids, "_file_id")
        return Appended(1, 1, 0, 0, 0.0)

    def waiting(_: Any, place: str, logs: Any, found: Any) -> Any:
        held = (row for row in lake.rows(QUARANTINE) if row["reason"] in OF_WHOLE_TABLES)
        return {(row["file_id"], row["table"]) for row in held}

    def left(ledger: Any, of: Service) -> list[Leftover]:
        rows = (row for row in lake.rows(LEDGER) if _is_left(row) and row["written"])
        return [Leftover(dict(row)) for row in rows]

    def changed(_: Any, path: str, changes: Any, *, txn: Txn, logs: Any) -> None:
        change_counts_in(lake, changes(), txn)

    patch.setattr(leftovers, "open_objects", lambda place: Store(lake, place))
    patch.setattr(leftovers, "any_left", lambda ledger: bool(left(ledger, service)))
    patch.setattr(leftovers, "left_behind", left)
    patch.setattr(leftovers, "_waiting_in_quarantine", waiting)
    patch.setattr(leftovers, "replace", removed)
    patch.setattr(leftovers, "change_counts", changed)
    lake.effects = 0
    no_spark: Any = MagicMock()
    told: Any = {"logs": Logs(lake), "emit": lambda event: None, "now": now}
    leftovers.remove_leftovers(no_spark, service, PLACE, paused=service.paused, **told)
