"""A small world for the heart alone: files that answer as a test says, a lake in a folder, and a driver that dies when told.

No S3 and no queue: `read_content` is answered from memory, through the real reader. Dying is an exception right after an
effect; the next try has a new `Batch`, as another process would have.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import forebay.batch.batch as heart
import forebay.batch.commits as commits
import forebay.batch.one_pass.reader as reader
import forebay.batch.writing as writing
import forebay.table.removal as removal
from forebay.batch.attempt.beginning import Beginning
from forebay.batch.batch import Batch
from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.asking import Parcelled, QuestionsTask, parcels_of, with_answers
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.lean import EndsTask
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.batch.plan import Plans
from forebay.content.fetch import Get, Metadata
from forebay.content.limits import Limits
from forebay.content.outcome import ReadOutcome, Unread
from forebay.content.piece import Piece
from forebay.declaration.loading import parse_service
from forebay.declared_sql.questions import Questions, answered
from forebay.events import Event
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.operate.lake_view import LakeView
from forebay.table.data_files.in_arrow import arrow_schema
from forebay.table.kernel import TableLogs

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }]
"""
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)


BEFORE_THE_PLAN = -1
"""When a driver dies: its files are written, and nothing names them yet."""

KEPT = {QUARANTINE: "quarantined", PARKED: "parked"}


NAMES = "bucket string, key string, size long, etag string, version_id string, sequencer string, event_time timestamp"


class Died(BaseException):
    """The driver is no more."""


def records(**games: int | str) -> bytes:
    """So many records of each game; `broken` are refused, `homeless` wanted by no table."""
    lines = []
    for game, count in games.items():
        for n in range(int(count)):
            told = {"broken": "{broken", "homeless": '{"event": "no game"}'}.get(game)
            lines.append(told or json.dumps({"game": game, "event_id": f"{game}-{n}"}))
    return "".join(f"{line}\n" for line in lines).encode()


def archived(lines: bytes) -> bytes:
    """An archive of two members, whose lines keep their numbers."""
    first, _, rest = lines.partition(b"\n")
    with zipfile.ZipFile(into := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.json", first + b"\n")
        archive.writestr("rest.json", b"\n" + rest)
    return into.getvalue()


def with_one_batch(spark: SparkSession, folder: Path, files: Mapping[str, bytes], service: str) -> Path:
    """A lake that has these files, made once for tests that each begin with a copy of it."""
    with pytest.MonkeyPatch.context() as patched:
        made = World(spark, f"file://{folder}/lake", patched, service=service, answers=dict(files))
        made.try_batch(0, [made.file(key) for key in files])
    return folder / "lake"


def unread(how: ReadOutcome) -> Unread:
    reasons: Mapping[str, Any] = {
        "denied": "access-denied",
        "missing": "no-such-key",
        "changed": "etag-differs",
        "unavailable": "gave-up",
    }
    return Unread(how, reasons[how], "said the test")


def names_of(spark: SparkSession, files: Sequence[LandedFile]) -> DataFrame:
    """As the source gives them."""
    rows = [(f.bucket, f.key, f.size, f.etag, f.version_id, f.sequencer, f.event_time) for f in files]
    return spark.createDataFrame(rows, NAMES)


@dataclass
class World:
    spark: SparkSession
    lake: str
    monkeypatch: pytest.MonkeyPatch
    service: str = SERVICE
    generation: str = "first"
    paused: tuple[str, ...] = ()
    answers: dict[str, bytes | Unread] = field(default_factory=dict)
    """What each key, or the content with this etag, answers now."""
    etags: dict[str, str] = field(default_factory=dict)
    """The content that a key has now, where it had several."""
    metadata: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """That of the object with this key."""
    events: list[Event] = field(default_factory=list)
    way: type[Beginning] = Beginning

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(Jobs, "of_pieces", lambda _, spec: self._answers(spec))
        self.monkeypatch.setattr(Jobs, "ends", lambda _, spec, hands: list(EndsTask(spec)(hands)))
        self.monkeypatch.setattr(
            Jobs,
            "of_hands",
            lambda _, spec, hands: [self._gathered(spec, hand, at, len(hands)) for at, hand in enumerate(hands)],
        )
        self.monkeypatch.setattr(reader, "source", self._source)

    def _answers(self, spec: PassSpec) -> list[Answer]:
        """What Spark does with the tasks, in this process; it is asked for nothing but its SQL."""
        if not (spec.questions or spec.conditions):
            return list(Task(spec)([list(spec.pieces)]))
        return [self._gathered(spec, list(spec.pieces), 0, 1)]

    def _gathered(self, spec: PassSpec, pieces: list[Piece], reader: int, readers: int) -> Answer:
        read = ReadTask(spec, readers, 1)
        if not (spec.questions or spec.conditions):
            return next(GatherTask(spec, alone=True)(read(reader, [pieces])))
        batches = [pa.record_batch({"number": [reader], "pieces": [pickle.dumps(pieces)]})]
        made: Parcelled = read.of_pieces
        if spec.conditions:
            batches, made = self._with_answers(batches, made, spec.conditions), read.of_parcels
        if spec.questions:
            batches = self._with_answers(batches, made, spec.questions)
        parcels = parcels_of(batches) if spec.questions else made(batches)
        return next(GatherTask(spec, alone=True)(parcels))

    def _with_answers(
        self, batches: list[pa.RecordBatch], made: Parcelled, questions: Questions
    ) -> list[pa.RecordBatch]:
        task = QuestionsTask(arrow_schema(questions.sent), made)
        sent = self.spark.createDataFrame(pa.Table.from_batches(task(batches), schema=task.schema))
        # As a task gets them: `toArrow` refuses a null struct whose field is not nullable.
        return list(with_answers(answered(sent, questions)._collect_as_arrow()))  # type: ignore[operator]

    def file(self, key: str, version: int = 1) -> LandedFile:
        return LandedFile(
            "landing", key, 10, f"{key}-{version}", None, f"{version:016X}", AT + timedelta(seconds=version)
        )

    def try_batch(self, number: int, files: Sequence[LandedFile], *, dies_after: int | None = None) -> None:
        """One try by a driver of its own; `dies_after` so many commits, 0 for right before the first one."""
        batch = self.batch()
        with self.monkeypatch.context() as patched:
            patched.setattr(heart, "Beginning", self.way)
            if dies_after == BEFORE_THE_PLAN:
                patched.setattr(Plans, "pin", _die)
            elif dies_after is not None:
                die_after(patched, dies_after)
            try:
                batch.process(names_of(self.spark, files), number)
            finally:
                batch.close()

    def start(self, generation: str) -> None:
        """A new checkpoint's driver starts, as the job does before its stream begins."""
        self.generation = generation
        batch = self.batch()
        try:
            batch.finish_earlier()
        finally:
            batch.close()

    def batch(self) -> Batch:
        service = parse_service({"service.toml": self.service}).with_paused(self.paused)
        ledger = Ledger(self.spark, self.lake, service.name)
        return Batch(
            self.spark,
            service,
            lake=self.lake,
            generation=lambda: self.generation,
            ledger=ledger,
            emit=self.events.append,
            tables_at_once=1,
        )

    def ledger(self) -> dict[str, dict[str, Any]]:
        """Rows of the ledger by key; a key with two rows is a mistake of ours."""
        return {row["key"]: row for row in self.entries()}

    def entries(self) -> list[dict[str, Any]]:
        rows = [{**row, "tables": row["tables"] and dict(row["tables"])} for row in self._table("_forebay/ledger")]
        assert len({row["file_id"] for row in rows}) == len(rows), "the ledger has two rows of one file"
        return rows

    def outcomes(self) -> dict[str, str]:
        return {key: row["outcome"] for key, row in self.ledger().items()}

    def rows_of(self, table: str) -> dict[str, int]:
        """Rows in a table by the key of their file."""
        return self._by_file(table, "_file_id")

    def kept(self, name: str) -> dict[str, int]:
        return self._by_file(f"_forebay/{name}", "file_id")

    def tables_agree_with_the_ledger(self, *tables: str) -> None:
        """File by file, and of what is kept beside the tables, too."""
        told: dict[str, dict[str, int]] = {table: {} for table in (*tables, *KEPT)}
        for row in self.entries():
            beside = {name: row[column] for name, column in KEPT.items() if row[column]}
            for table, rows in {**dict(row["tables"] or {}), **beside}.items():
                told[table][row["file_id"]] = rows
        there = {table: Counter(row["_file_id"] for row in self._table(table)) for table in tables}
        there |= {name: Counter(row["file_id"] for row in self._table(name) if row["line"]) for name in KEPT}
        assert told == there

    def _by_file(self, table: str, column: str) -> dict[str, int]:
        keys = {row["file_id"]: key for key, row in self.ledger().items()}
        counts: dict[str, int] = {}
        for row in self._table(table):
            key = keys.get(row[column], "a file that the ledger does not know")
            counts[key] = counts.get(key, 0) + 1
        return counts

    def _table(self, name: str) -> list[dict[str, Any]]:
        """Without Spark, which takes a second for each look."""
        return LakeView(self.lake).query(name, "select * from t")

    def plans(self) -> list[Path]:
        return sorted(Path(f"{self.lake.removeprefix('file://')}/_forebay/plans").rglob("*.json.gz"))

    def _source(self, limits: Limits, metadata: Metadata | None) -> Get:
        def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
            if metadata is not None:
                metadata[file] = self.metadata.get(file.key, {})
            return self._get(file, start, stop)

        return get

    def _get(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        answer = self.answers[file.key] if file.etag not in self.answers else self.answers[file.etag]
        if file.etag != self.etags.get(file.key, file.etag):
            return unread("changed")
        return answer if isinstance(answer, Unread) else answer[start:stop]


def _die(*_: object) -> None:
    raise Died


def die_after(patched: pytest.MonkeyPatch, count: int) -> None:
    done = [0]

    def around(real: Any) -> Any:
        def commit(*args: Any, **kwargs: Any) -> Any:
            if done[0] == count:
                raise Died
            answer = real(*args, **kwargs)
            done[0] += 1
            if done[0] == count:
                raise Died
            return answer

        return commit

    patched.setattr(TableLogs, "_commit", around(TableLogs._commit))
    patched.setattr(writing, "replace", around(writing.replace))
    patched.setattr(removal, "remove", around(removal.remove))
    patched.setattr(commits, "replace", around(commits.replace))
