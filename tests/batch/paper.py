"""The batch's protocol on paper: the real steps, plans, rules and sums, over tables and objects that are plain Python.

Reading, Spark and Delta are replaced. A commit is all or nothing and carries its transaction, as in Delta. `Lake.effects`
counts whatever becomes visible, and the driver dies after as many as a history says. A thousand histories take seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any

import pytest

import forebay.batch.batch as heart
import forebay.batch.writing as writing
from forebay.batch.accounting import Fate, Standing
from forebay.batch.dedupe import DUPLICATE, Dedupe
from forebay.batch.reading import Read
from forebay.batch.reasons import OF_WHOLE_TABLES
from forebay.batch.writing import Writing
from forebay.content.end import FileEnd
from forebay.content.outcome import ReadOutcome
from forebay.declaration.service import Service
from forebay.errors import ForebayError, Halt
from forebay.lake.layout import IDS, LEDGER, PARKED, QUARANTINE, own_table
from forebay.landed_file import LandedFile
from forebay.ledger.entry import key_hash
from forebay.ledger.index import Index
from forebay.ledger.ledger import FILE_COLUMNS, Ledger
from forebay.ledger.versions import Earlier
from forebay.table.commit import Txn
from forebay.table.destination import Appended, Failed, Skipped
from forebay.table.kernel import NO_VERSION
from tests.batch.world import Died

__all__ = ["Lake", "Record", "lay_out"]

PLACE = "paper"


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


@dataclass
class Lake:
    """What survives a driver: tables by their path in the lake, objects, and S3's answers by file id."""

    tables: dict[str, Table] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, Sequence[Record] | ReadOutcome] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    effects: int = 0
    dies_after: int | None = None

    def effect(self, deed: Callable[[], None]) -> None:
        if self.dies_after is not None and self.effects >= self.dies_after:
            raise Died
        deed()
        self.effects += 1
        if self.effects == self.dies_after:
            raise Died

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.tables[name].rows if name in self.tables else []

    def commit(
        self, name: str, txn: Txn, rows: Sequence[dict[str, Any]], leaving: Collection[str], column: str
    ) -> None:
        def deed() -> None:
            table = self.tables.setdefault(name, Table())
            table.rows = [row for row in table.rows if row[column] not in leaving] + list(rows)
            table.txns[txn.app_id] = txn.version
            table.commits[txn] = len(rows)

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

    def found(self, prefix: str = "") -> list[Any]:
        before = f"{self.place}/"
        names = (name.removeprefix(before) for name in self.lake.objects if name.startswith(before))
        return [SimpleNamespace(name=name) for name in names]

    def write(self, name: str, content: bytes) -> None:
        self.lake.effect(lambda: self.lake.objects.update({f"{self.place}/{name}": content}))

    def write_once(self, name: str, content: bytes) -> bool:
        there = self.read(name)
        if there is None:
            self.write(name, content)
        return there in (None, content)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.lake.effect(lambda name=name: self.lake.objects.pop(f"{self.place}/{name}", None))  # type: ignore[misc]


@dataclass
class Logs:
    lake: Lake

    def _table(self, path: str) -> Table | None:
        return self.lake.tables.get(path.removeprefix(f"{PLACE}/"))

    def look(self, path: str, *, again: bool = False) -> Table | None:
        return self._table(path)

    def last_version_at(self, path: str, app_id: str, *, again: bool = False) -> int:
        table = self._table(path)
        return NO_VERSION if table is None else table.txns.get(app_id, NO_VERSION)

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


class PaperRead(Read):
    def landing(self, usable: Collection[str]) -> Any:
        return Rows(row for row in self.rows or () if row["_file_id"] in usable)


class PaperDedupe(Dedupe):
    def ids(self, rows: Any, unwritten: Mapping[str, str], tables: Mapping[str, int]) -> Any:
        lake: Lake = self.logs.lake  # type: ignore[attr-defined]
        written = [row for row in rows or () if row["fate"] == "write"]
        written += [row for table in tables for row in lake.rows(table) if row["_file_id"] in self.unread]
        found = (row for row in written if row["table"] not in unwritten)
        return Rows({**self.shared, "id": (r["table"], r["id"]), "file_id": r["_file_id"]} for r in found)

    def forget(self) -> None:
        pass

    def known_to(self, lake: Lake, landed: Collection[str]) -> set[Any]:
        landed = landed if self.landed is None else self.landed
        leaving = {file_id for file_id, by in self.leaving.items() if by in landed}
        own = (self.shared["generation"], self.shared["batch"])
        return {
            row["id"]
            for row in lake.rows(IDS)
            if (row["generation"], row["batch"]) != own and row["file_id"] not in leaving
        }


class PaperHeld:
    def __init__(self, rows: Any, spark: Any, unwritten: Mapping[str, str], shared: Any, standing: Standing) -> None:
        self.rows, self.unwritten, self.shared, self.standing = rows or (), unwritten, shared, standing

    def quarantined(self, files: Sequence[FileEnd]) -> Rows:
        kept = []
        for row in self.rows:
            stands = row["table"] in self.standing.get(row["_file_id"], {})
            why = self.unwritten.get(row["table"]) if row["fate"] == "write" and not stands else None
            if row["fate"] == "quarantine" or why:
                kept.append({**row, **self.shared, "file_id": row["_file_id"], "reason": why or "not-json"})
        return Rows(kept)

    def parked(self) -> Rows:
        return Rows({**r, **self.shared, "file_id": r["_file_id"]} for r in self.rows if r["fate"] == "park")


class PaperWriting(Writing):
    @property
    def paper(self) -> Lake:
        return self.logs.lake  # type: ignore[attr-defined,no-any-return]

    def write_tables(self, rows: Any, declared: Any, wanted: Any, leaving: Any) -> frozenset[str]:
        results = {}
        for name in sorted(wanted, key=lambda name: (name in leaving, name)):
            mine = [row for row in rows or () if (row["fate"], row["table"]) == ("write", name)]
            results[name] = self.committed(name, mine, wanted[name], leaving.get(name, ()))
        return frozenset(name for name, result in results.items() if self.failed(name, wanted[name], result))

    def replaced(self, declared: Any, table: str, file_ids: Sequence[str], rows: Any) -> Any:
        return self.committed(table, rows or (), 0, file_ids)

    def committed(
        self, name: str, rows: Sequence[Any], wanted: int, leaving: Sequence[str], column: str = "_file_id"
    ) -> Appended | Skipped | Failed:
        if self.logs.has(f"{PLACE}/{name}", self.txn):
            return Skipped()
        if name in self.paper.failing:
            return Failed(ForebayError("said the test"))
        if len(rows) != wanted:
            raise Halt(f"{name}: {wanted} rows were counted, but {len(rows)} are there now")
        self.paper.commit(name, self.txn, rows, leaving, column)
        return Appended(1, 1, len(rows), 0, 0.0)

    def write_own(self, name: str, rows: Any, wanted: int, leaving: Sequence[str] = ()) -> None:
        table = own_table(name)
        if rows is None and not (leaving and table in self.paper.tables):
            return
        result = self.committed(table, rows or (), wanted, leaving, "file_id")
        if isinstance(result, Skipped) and table in (QUARANTINE, PARKED):
            self.must_have_come(table, wanted)

    def must_have_come(self, path: str, wanted: int) -> None:
        rows = self.paper.tables[path.removeprefix(f"{PLACE}/")].commits.get(self.txn)
        if rows != wanted:
            raise Halt(f"{path} has {self.txn} already, with {rows} rows instead of {wanted}")

    def unwritten_before(self) -> dict[str, str]:
        mine = (self.generation, self.txn.version)
        rows = (row for row in self.paper.rows(QUARANTINE) if (row["generation"], row["batch"]) == mine)
        return {row["table"]: row["reason"] for row in rows if row["reason"] in OF_WHOLE_TABLES}


class PaperLedger(Ledger):
    def __init__(self, lake: Lake) -> None:
        super().__init__(None, PLACE)  # type: ignore[arg-type]
        self.lake, self._index = lake, Index()

    def _versions_of(self, files: Sequence[LandedFile]) -> dict[Any, list[Earlier]]:
        found: dict[Any, list[Earlier]] = {}
        asked = {key_hash(file) for file in files}
        for row in self.lake.rows(LEDGER):
            if row["key_hash"] in asked:
                file = LandedFile(**{name: row[name] for name in FILE_COLUMNS}, event_time=row["event_time"])
                found.setdefault((file.bucket, file.key), []).append(Earlier(file, row))
        return found

    def frame(self, entries: Iterable[Any], changed: Iterable[dict[str, Any]], **shared: object) -> Any:
        return Rows([*(entry.row(**shared) for entry in entries), *changed])


class PaperBatch(heart.Batch):
    def process_files(self, number: int, files: Sequence[LandedFile]) -> None:
        rows = [SimpleNamespace(**{f.name: getattr(file, f.name) for f in fields(file)}) for file in files]
        self.process(SimpleNamespace(collect=lambda: rows), number)  # type: ignore[arg-type]

    def dedupe(self, *given: Any) -> Dedupe:
        made = super().dedupe(*given)
        return PaperDedupe(**{f.name: getattr(made, f.name) for f in fields(made)})

    def read(self, files: Sequence[LandedFile], cached: ExitStack) -> Read:
        lake: Lake = self.logs.lake  # type: ignore[attr-defined]
        ends, rows = [], []
        for file in files:
            answer = lake.answers[file.file_id]
            ends.append(_end(file, answer))
            if not isinstance(answer, str):
                rows += [_row(file, n, record) for n, record in enumerate(answer)]
        return PaperRead(Rows(rows), ends, ())  # type: ignore[arg-type]

    def decided(self, read: Read, split: Any, dedupe: Any, cached: ExitStack) -> Read:
        lake: Lake = self.logs.lake  # type: ignore[attr-defined]
        fresh = {file.file_id for file in split.fresh}
        ends = [end for end in read.ends if end.file.file_id in fresh]
        rows = [row for row in read.rows or () if row["_file_id"] in fresh]
        if dedupe.wanted:
            _drop_duplicates(rows, dedupe.known_to(lake, {row["_file_id"] for row in rows}))
        told = Counter((r["_file_id"], r["fate"], r["table"], r["declared"], r["violated"], r["reason"]) for r in rows)
        fates = [Fate(f, fate, n, table, declared, v, why) for (f, fate, table, declared, v, why), n in told.items()]
        return PaperRead(Rows(rows), ends, fates)  # type: ignore[arg-type]


def _end(file: LandedFile, answer: Sequence[Record] | ReadOutcome) -> FileEnd:
    nothing = {"bytes_read": 0, "expanded_bytes": 0, "requests": 1, "head": "", "detail": "said the test"}
    if isinstance(answer, str):
        return FileEnd(file=file, outcome=answer, reason=answer, documents=0, refused=0, **nothing)  # type: ignore[arg-type]
    broken = sum(record.broken for record in answer)
    whole = len(answer) - broken
    return FileEnd(file=file, outcome="loaded", reason=None, documents=whole, refused=broken, **nothing)  # type: ignore[arg-type]


def _row(file: LandedFile, offset: int, record: Record) -> dict[str, Any]:
    fate = "quarantine" if record.broken else "write" if record.game else "park"
    table = record.game if fate == "write" else None
    row = {"_file_id": file.file_id, "byte_offset": offset, "id": record.id, "fate": fate, "table": table}
    reason = "not-json" if record.broken else None
    return {**row, "declared": 0 if table else None, "violated": (), "reason": reason}


def _drop_duplicates(rows: list[dict[str, Any]], known: set[Any]) -> None:
    seen = set(known)
    for row in sorted(rows, key=lambda row: (row["_file_id"], row["byte_offset"])):
        if row["fate"] == "write":
            if (row["table"], row["id"]) in seen:
                row.update(fate="drop", violated=(DUPLICATE,))
            seen.add((row["table"], row["id"]))


def lay_out(patch: pytest.MonkeyPatch, lake: Lake, service: Service, generation: str) -> PaperBatch:
    """A driver of its own for this lake; what stood in for Spark stays as long as `patch`."""
    patch.setattr(heart, "TableLogs", lambda *_, **__: Logs(lake))
    patch.setattr(heart, "register", lambda *_: None)
    patch.setattr(heart, "open_objects", lambda place: Store(lake, place))
    patch.setattr(heart, "arrow_rows", lambda rows, columns: Rows(rows))
    patch.setattr(heart, "Writing", PaperWriting)
    patch.setattr(writing, "Held", PaperHeld)
    lake.effects = 0
    return PaperBatch(
        None,  # type: ignore[arg-type]
        service,
        lake=PLACE,
        generation=lambda: generation,
        ledger=PaperLedger(lake),
        emit=lambda event: None,
    )
