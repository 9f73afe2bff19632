"""The driver of a pass: files in; their ends, the fates of their records, and data files of all tables out.

In: new files, and what the batch writes with. Out: `Pass`, or `ReadAgain`. A pass whose files are not staged must be undone.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Standing
from forebay.batch.dedupe import Dedupe
from forebay.batch.held import COLUMNS as HELD_COLUMNS
from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.asking import AnswersTask, FromHeld, FromParcels, FromPieces, QuestionsTask, SentTask
from forebay.batch.one_pass.duplicates import without_duplicates
from forebay.batch.one_pass.gathering import WRITER_BYTES, Parcel
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.lean import EndsOfHand, EndsTask, Lean, ShortMemory
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.questions import Questions, answered, conditions_of, questions_of
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.batch.one_pass.told import Held, KeptOut, Known, Told
from forebay.batch.one_pass.too_many import rows_with_ids, too_many
from forebay.batch.poison import DETAIL_CHARACTERS, blames_a_file, poison_end, read_apart
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.piece import Piece, cut, deal
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.columns import OWN_COLUMNS, rules_of, spark_type
from forebay.lake.layout import is_own
from forebay.landed_file import LandedFile
from forebay.privacy.vault import COLUMNS as VAULT_COLUMNS
from forebay.record.conform import writable
from forebay.record.growth import Rules
from forebay.table.data_files.data_file import TableFolder, Written
from forebay.table.data_files.in_arrow import arrow_schema, columns_of_ddl, map_in_arrow
from forebay.table.data_files.storage import storage_as
from forebay.table.kernel import Seen, TableLogs
from forebay.table.shaping import RESCUED, Shaping, known_columns
from forebay.transforms import folders

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["OnePass", "fixed_columns_of"]

ALONE_AT_MOST = 4
"""Up to this many tasks write the records that they read, each a file for each table. With more, rows are gathered."""
IDS_AT_MOST = 20_000_000
"""The most ids in a batch. Each takes 21 bytes on its way to the driver, and Spark accepts answers of a gigabyte in total by
default."""
SENT = "writer int, parcel binary"
FUNCTIONS_APART = "a task ended; functions of `transform` now run in processes of their own"
READER_BYTES = 16 << 20
"""The bytes of a batch for each task that reads."""


Parcelled = FromPieces | FromParcels | FromHeld


class OnePass:
    """The passes of all batches of a driver."""

    def __init__(self, spark: SparkSession, lake: str, limits: Limits, logs: TableLogs) -> None:
        self.spark, self.lake, self.limits, self.logs = spark, lake, limits, logs
        self.short_memory = ShortMemory()
        self._asked: tuple[tuple[Sequence[Table], str], tuple[Questions, Questions]] | None = None

    def of(
        self,
        files: Sequence[LandedFile],
        service: Service,
        *,
        batch: int,
        shared: Mapping[str, Any],
        unwritten: Mapping[str, KeptOut],
        standing: Standing,
        known: Mapping[str, Known] | None = None,
        only_unwritten: bool = False,
    ) -> Pass:
        """The rows of tables that are `unwritten` go to the quarantine, but those of a file that is `standing` there. Where
        `only_unwritten`, there are no other rows. `known` are tables whose columns an earlier pass did not know. Tables with
        data files that cannot be put twice are in `written.failed`. `ReadAgain` where the pass is of no use; then no data
        file is left."""
        if not files:
            return Pass([], [], Written({}, {}), self.lake)
        pieces = cut(files, self.limits)
        told = replace(
            self._told(pieces, service, batch=batch, shared=shared, known=known or {}),
            unwritten=unwritten,
            standing={name: frozenset(tables) for name, tables in standing.items()},
            only_unwritten=only_unwritten,
        )
        answer, poison = self._read(told, files)
        made = self._pass_of(answer, service)
        rows = rows_with_ids(made.fates, service)
        has_few = rows.total() <= IDS_AT_MOST
        again = next((why for name, why in made.written.failed.items() if name not in answer.broken), "")
        if answer.lacks_ids and has_few:
            again = "one task had most of the ids"
        if again and not answer.odd:
            made.undo()
            answer, poison = self._read(replace(told, ids_at_most=sys.maxsize) if has_few else told, files)
            made = self._pass_of(replace(answer, read_twice=again), service)
        if odd := answer.odd or next((why for name, why in made.written.failed.items() if is_own(name)), None):
            made.undo()
            raise ReadAgain(odd)
        ended = {end.file.file_id for end in poison}
        made = replace(
            made, ends=[*file_ends([p for p in pieces if p.file.file_id not in ended], answer.ends), *poison]
        )
        if not only_unwritten and (odd_files := made.unaccounted()):
            made.undo()
            raise ReadAgain(f"{odd_files[0]} gave different records when it was read again")
        if left_out := too_many(made.ends, rows, IDS_AT_MOST):
            made.undo()
            raise ReadAgain(
                f"{counted(rows.total(), 'row', 'has')} ids, and the limit is {IDS_AT_MOST:,}", files=left_out
            )
        return made

    def of_held(
        self,
        rows: DataFrame,
        files: Mapping[HeldFile, int],
        service: Service,
        held: Held,
        *,
        batch: int,
        shared: Mapping[str, Any],
        known: Mapping[str, Known],
    ) -> Pass:
        """The same of held records: `rows` as `content` has them, and how many there are of each file. A piece has the number
        of its file. Each task writes the records that it gets."""
        pieces = [Piece(number, file) for number, file in enumerate(files)]
        ends = tuple(
            PieceEnd(piece=number, outcome="loaded", documents=rows) for number, rows in enumerate(files.values())
        )
        told = self._told(pieces, service.without_vault, batch=batch, shared=shared, known=known)
        told = replace(told, ends=ends, held=held, ids_at_most=sys.maxsize)
        answer = self._answer_of_held(rows, told)
        made = replace(self._pass_of(answer, service), ends=file_ends(pieces, ends), moved=answer.moved)
        odd = answer.odd
        if odd is None and made.unaccounted():
            odd = "the table of the records gave different ones when it was read again"
        if odd:
            made.undo()
            raise ReadAgain(odd)
        return made

    def _answer_of_held(self, rows: DataFrame, told: Told) -> Answer:
        """A retry has no files to leave out. Only functions may end its tasks, or need too much memory."""
        read = ReadTask(told, self.spark.sparkContext.defaultParallelism, 1)
        parcels = self._parcels_of(rows.coalesce(read.readers), FromHeld(read.of_held), read)
        is_last = told.functions_apart or not told.has_functions
        try:
            answer = together(parcels.mapPartitions(GatherTask(told, alone=True)).collect())
        except Exception as failure:
            if is_last or not blames_a_file(failure):
                raise
        else:
            if is_last or not answer.is_crowded:
                return answer
            self._pass_of(answer, told.service).undo()
        return self._answer_of_held(rows, replace(told, functions_apart=True))

    def _told(
        self,
        pieces: Sequence[Piece],
        service: Service,
        *,
        batch: int,
        shared: Mapping[str, Any],
        known: Mapping[str, Known],
    ) -> Told:
        questions, conditions = self._questions(service)
        return Told(
            service=service,
            limits=self.limits,
            lake=self.lake,
            shared=shared,
            batch=batch,
            pieces=tuple(pieces),
            known={**self._known(service), **known},
            kept=arrow_schema(HELD_COLUMNS),
            vaulted=arrow_schema(VAULT_COLUMNS),
            storage=storage_as(os.environ),
            questions=questions,
            asked=arrow_schema(questions.sent),
            conditions=conditions,
            asked_first=arrow_schema(conditions.sent),
            unwritten={},
            standing={},
            only_unwritten=False,
            ids_at_most=2 * IDS_AT_MOST,  # some tasks have more than their share
            functions_in=folders(),
        )

    def without_duplicates(self, made: Pass, dedupe: Dedupe) -> Pass:
        """After `ReadAgain` no data file is left here, either."""
        try:
            return without_duplicates(made, dedupe, self.spark, storage_as(os.environ))
        except ReadAgain:
            made.undo()
            raise
        except Exception as failure:
            if not blames_a_file(failure):
                raise
            made.undo()
            raise ReadAgain(f"a task failed: {str(failure)[:DETAIL_CHARACTERS]}") from failure

    def _read(self, told: Told, files: Sequence[LandedFile]) -> tuple[Answer, list[FileEnd]]:
        """Reads the files, and adds the ends of those that kill every worker that reads them."""

        def read(some: Sequence[LandedFile], told: Told = told) -> Answer:
            mine = {file.file_id for file in some}
            return self._answer(replace(told, pieces=tuple(p for p in told.pieces if p.file.file_id in mine)))

        def again(some: Sequence[LandedFile]) -> Answer:
            made = read(some, replace(told, functions_apart=True))
            return replace(made, read_twice=made.read_twice or FUNCTIONS_APART)

        apart = read_apart(files, read, again if told.has_functions else None)
        private = told.service.privacy is not None
        return together(apart.parts), [poison_end(file, why, private=private) for file, why in apart.poison.items()]

    def _pass_of(self, answer: Answer, service: Service) -> Pass:
        written = answer.written
        written = replace(written, failed={**written.failed, **answer.broken})
        made = Pass([], answer.counted, written, self.lake, answer.identified)
        return replace(made, vault=service.vault, vaulted=answer.vaulted, read_twice=answer.read_twice)

    def _answer(self, told: Told) -> Answer:
        """If a task ran short of memory, reads everything again in little memory. Later readings of that size do so from the
        start."""
        weight = sum(piece.weight for piece in told.pieces)
        if self.short_memory.is_expected(weight):
            answer = Answer(odd="memory ran short before")
        else:
            answer = together(self._answers(told))
            if not answer.is_crowded:
                return answer
            self.short_memory.learn(weight)

        def undo(answer: Answer) -> None:
            self._pass_of(answer, told.service).undo()

        undo(answer)
        tasks = self.spark.sparkContext.defaultParallelism
        told = replace(told, functions_apart=True)  # a row that needs too much memory is then refused alone
        return replace(
            Lean(told, tasks, self._ends, self._by_hand, undo).answer(),
            read_twice=answer.odd or "memory is running short",
        )

    def _ends(self, told: Told, hands: list[list[Piece]]) -> list[EndsOfHand]:
        return self._dealt(hands).mapPartitions(EndsTask(told)).collect()

    def _by_hand(self, told: Told, hands: list[list[Piece]]) -> list[Answer]:
        """Each task writes what it reads."""
        documents = {end.piece: end.documents for end in told.ends}
        if sum(documents[piece.number] for hand in hands for piece in hand) > told.ids_at_most:
            told = replace(told, ids_at_most=told.ids_at_most // len(hands))
        parcels = self._parcels(hands, ReadTask(told, len(hands), 1))
        return parcels.mapPartitions(GatherTask(told, alone=True)).collect()

    def _answers(self, told: Told) -> list[Answer]:
        weight = sum(piece.weight for piece in told.pieces)
        hands = deal(told.pieces, self._tasks(weight, READER_BYTES)) or [[]]  # reading nothing may fail, too
        alone = len(hands) <= ALONE_AT_MOST and all(piece.whole for piece in told.pieces)
        writers = self._tasks(weight, WRITER_BYTES)
        told = replace(told, ids_at_most=told.ids_at_most // (len(hands) if alone else writers))
        if alone and not (told.questions or told.conditions):
            return self._dealt(hands).mapPartitions(Task(told)).collect()
        parcels = self._parcels(hands, ReadTask(told, len(hands), 1 if alone else writers))
        if alone:
            return parcels.mapPartitions(GatherTask(told, alone=True)).collect()
        answers = parcels.partitionBy(writers, int).mapPartitions(GatherTask(told)).collect()
        return [answers[0], *(replace(answer, ends=[]) for answer in answers[1:])] if answers else []

    def _parcels(self, hands: list[list[Piece]], read: ReadTask) -> RDD[tuple[int, Parcel]]:
        told = read.told
        if not (told.questions or told.conditions):
            return self._dealt(hands).mapPartitionsWithIndex(read)
        tasks = self._dealt([(number, pickle.dumps(hand)) for number, hand in enumerate(hands)])
        return self._parcels_of(self.spark.createDataFrame(tasks, "number int, pieces binary"), FromPieces(read), read)

    def _parcels_of(self, rows: DataFrame, made: Parcelled, read: ReadTask) -> RDD[tuple[int, Parcel]]:
        """The parcels that tasks make of these rows, with Spark's answers if it is asked."""
        told = read.told
        if told.conditions:
            rows = self._with_answers(rows, QuestionsTask(told.asked_first, made), told.conditions)
            made = FromParcels(read.routed)
        if told.questions:
            return self._sent(self._with_answers(rows, QuestionsTask(told.asked, made), told.questions))
        if told.conditions:
            return self._sent(rows).mapPartitions(read.routed)
        return self._sent(map_in_arrow(rows, SentTask(made), SENT))

    def _with_answers(self, rows: DataFrame, task: QuestionsTask, questions: Questions) -> DataFrame:
        sent = map_in_arrow(rows, task, questions.sent)
        return map_in_arrow(answered(sent, questions), AnswersTask(), SENT)

    def _sent(self, rows: DataFrame) -> RDD[tuple[int, Parcel]]:
        return rows.rdd.map(lambda row: (row["writer"], pickle.loads(row["parcel"])))

    def _dealt(self, hands: list[Any]) -> RDD[Any]:
        """Each of them to a task."""
        return self.spark.sparkContext.parallelize(hands, len(hands))

    def _questions(self, service: Service) -> tuple[Questions, Questions]:
        """Spark's parser finds the names in their SQL, once."""
        of = service.tables, service.vault
        if self._asked is None or self._asked[0] != of:
            self._asked = of, (questions_of(service), conditions_of(service))
        return self._asked[1]

    def _tasks(self, weight: int, each: int) -> int:
        return max(1, min(self.spark.sparkContext.defaultParallelism, -(-weight // each)))

    def _known(self, service: Service) -> dict[str, Known]:
        """The tables that need not be looked up."""
        before = self.lake.rstrip("/") + "/"
        declared = [_Declared(number, service.tables[number]) for number in service.owners]
        found = {}
        for seen in self.logs.remembered():
            name = seen.path.removeprefix(before)
            if seen.path.startswith(before) and "/" not in name and (known := _known_of(name, seen, declared)):
                found[name] = known
        return found


@dataclass(frozen=True)
class _Declared:
    """A declaration, which may make a thousand tables. Spark is asked once for its columns."""

    number: int
    table: Table

    @cached_property
    def fixed(self) -> StructType:
        return fixed_columns_of(self.table)

    @cached_property
    def rules(self) -> Rules:
        return rules_of(self.table)


def _known_of(name: str, seen: Seen, declared: Sequence[_Declared]) -> Known | None:
    """None of a table that no declaration makes."""
    for one in declared:
        if one.table.makes(name):
            shaping = Shaping(writable(known_columns(seen.schema, one.fixed, one.rules)), one.rules)
            return Known(one.number, TableFolder(seen.path, seen.partition_columns, shaping))
    return None


def fixed_columns_of(table: Table) -> StructType:
    """The columns of a table's rows that do not come from undeclared fields."""
    kinds = {column.name: spark_type(column) for column in table.columns}
    kinds |= dict(zip(OWN_COLUMNS, ("STRING", "BIGINT", "BIGINT", "TIMESTAMP"), strict=True))
    if table.keep_record:
        kinds["_record"] = "STRING"
    kinds[RESCUED] = "STRING"
    return columns_of_ddl(", ".join(f"`{name}` {kind}" for name, kind in kinds.items()))
