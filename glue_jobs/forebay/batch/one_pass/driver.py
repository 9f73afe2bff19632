"""The driver's side of a pass: files in; their ends, the fates of their records, and data files of all tables out.

In: new files, and what the batch writes with. Out: `Pass`, or `ReadAgain`. A pass whose files are not staged must be undone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Standing
from forebay.batch.dedupe import Dedupe
from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.duplicates import without_duplicates
from forebay.batch.one_pass.held import COLUMNS as HELD_COLUMNS
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.lean import Lean, ShortMemory
from forebay.batch.one_pass.outcome import Pass, ReadAgain, rows_with_ids, too_many
from forebay.batch.one_pass.spec import Held, KeptOut, Known, PassSpec
from forebay.batch.poison import DETAIL_CHARACTERS, blames_a_file, poison_end, read_apart
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.piece import Piece, cut
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.columns import OWN_COLUMNS, rules_of, spark_type
from forebay.declared_sql.questions import Questions, conditions_of, questions_of
from forebay.lake.layout import is_own
from forebay.landed_file import LandedFile
from forebay.privacy.known_secret import known_token
from forebay.privacy.vault import COLUMNS as VAULT_COLUMNS
from forebay.record.conform import writable
from forebay.record.growth import Rules
from forebay.table.data_files.data_file import TableFolder, Written
from forebay.table.data_files.in_arrow import arrow_schema, columns_of_ddl
from forebay.table.data_files.storage import storage_as
from forebay.table.kernel import Seen, TableLogs
from forebay.table.shaping import RESCUED, Shaping, known_columns
from forebay.transforms import folders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

IDS_AT_MOST = 20_000_000
"""The most ids in a batch. Each takes 21 bytes on its way to the driver, and Spark accepts answers of a gigabyte in total by
default."""
FUNCTIONS_APART = "a task ended; functions of `transform` now run in processes of their own"


class OnePass:
    """The passes of all batches of a driver."""

    def __init__(self, spark: SparkSession, lake: str, limits: Limits, logs: TableLogs) -> None:
        self.spark, self.lake, self.limits, self.logs = spark, lake, limits, logs
        self.jobs, self.short_memory = Jobs(spark), ShortMemory()
        self._asked: tuple[tuple[Sequence[Table], str], tuple[Questions, Questions]] | None = None

    def of(
        self,
        files: Sequence[LandedFile],
        service: Service,
        *,
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
        spec = replace(
            self._spec(pieces, service, shared, known or {}),
            unwritten=unwritten,
            standing=standing,
            only_unwritten=only_unwritten,
        )
        answer, poison = self._read(spec, files)
        made = self._pass_of(answer, service)
        rows = rows_with_ids(made.fates, service)
        has_few = rows.total() <= IDS_AT_MOST
        again = next((why for name, why in made.written.failed.items() if name not in answer.broken), "")
        if answer.lacks_ids and has_few:
            again = "one task had most of the ids"
        if again and not answer.odd:
            made.undo()
            answer, poison = self._read(replace(spec, ids_at_most=sys.maxsize) if has_few else spec, files)
            made = self._pass_of(replace(answer, read_twice=again), service)
        with made.undone_if_unusable():
            if odd := answer.odd or next((why for name, why in made.written.failed.items() if is_own(name)), None):
                raise ReadAgain(odd)
            ended = {end.file.file_id for end in poison}
            ends = file_ends([p for p in pieces if p.file.file_id not in ended], answer.ends)
            made = replace(made, ends=[*ends, *poison])
            if not only_unwritten and (odd_files := made.unaccounted()):
                raise ReadAgain(f"{odd_files[0]} gave different records when it was read again")
            if left_out := too_many(made.ends, rows, IDS_AT_MOST):
                why = f"{counted(rows.total(), 'row', 'has')} ids, and the limit is {IDS_AT_MOST:,}"
                raise ReadAgain(why, files=left_out)
        return made

    def of_held(
        self,
        rows: DataFrame,
        files: Mapping[HeldFile, int],
        service: Service,
        held: Held,
        *,
        shared: Mapping[str, Any],
        known: Mapping[str, Known],
    ) -> Pass:
        """The same of held records: `rows` as `content` has them, and how many there are of each file. A piece has the number
        of its file. Each task writes the records that it gets."""
        pieces = [Piece(number, file) for number, file in enumerate(files)]
        ends = tuple(
            PieceEnd(piece=number, outcome="loaded", documents=rows) for number, rows in enumerate(files.values())
        )
        spec = self._spec(pieces, service.without_vault, shared, known)
        spec = replace(spec, ends=ends, held=held, ids_at_most=sys.maxsize)
        answer = self._answer_of_held(spec, rows)
        made = replace(self._pass_of(answer, service), ends=file_ends(pieces, ends), moved=answer.moved)
        with made.undone_if_unusable():
            if answer.odd:
                raise ReadAgain(answer.odd)
            if made.unaccounted():
                raise ReadAgain("the table of the records gave different ones when it was read again")
        return made

    def _answer_of_held(self, spec: PassSpec, rows: DataFrame) -> Answer:
        """A retry has no files to leave out. Only functions may end its tasks, or need too much memory."""
        is_last = spec.functions_apart or not spec.has_functions
        try:
            answer = together(self.jobs.of_held(spec, rows))
        except Exception as failure:
            if is_last or not blames_a_file(failure):
                raise
        else:
            if is_last or not answer.is_crowded:
                return answer
            self._pass_of(answer, spec.service).undo()
        return self._answer_of_held(replace(spec, functions_apart=True), rows)

    def _spec(
        self, pieces: Sequence[Piece], service: Service, shared: Mapping[str, Any], known: Mapping[str, Known]
    ) -> PassSpec:
        questions, conditions = self._questions(service)
        return PassSpec(
            service=service,
            limits=self.limits,
            lake=self.lake,
            shared=shared,
            pieces=tuple(pieces),
            known={**self._known(service), **known},
            kept=arrow_schema(HELD_COLUMNS),
            vaulted=arrow_schema(VAULT_COLUMNS),
            storage=storage_as(os.environ),
            questions=questions,
            conditions=conditions,
            ids_at_most=2 * IDS_AT_MOST,  # some tasks have more than their share
            functions_in=folders(),
            secret_token=known_token(service.secret),
        )

    def without_duplicates(self, made: Pass, dedupe: Dedupe) -> Pass:
        """After `ReadAgain` no data file is left here, either."""
        with made.undone_if_unusable():
            try:
                return without_duplicates(made, dedupe, self.spark, storage_as(os.environ))
            except Exception as failure:
                if not blames_a_file(failure):
                    raise
                raise ReadAgain(f"a task failed: {str(failure)[:DETAIL_CHARACTERS]}") from failure

    def _read(self, spec: PassSpec, files: Sequence[LandedFile]) -> tuple[Answer, list[FileEnd]]:
        """Reads the files, and adds the ends of those that kill every worker that reads them."""

        def read(some: Sequence[LandedFile], spec: PassSpec = spec) -> Answer:
            mine = {file.file_id for file in some}
            return self._answer(replace(spec, pieces=tuple(p for p in spec.pieces if p.file.file_id in mine)))

        def again(some: Sequence[LandedFile]) -> Answer:
            made = read(some, replace(spec, functions_apart=True))
            return replace(made, read_twice=made.read_twice or FUNCTIONS_APART)

        apart = read_apart(files, read, again if spec.has_functions else None)
        private = spec.service.privacy is not None
        return together(apart.parts), [poison_end(file, why, private=private) for file, why in apart.poison.items()]

    def _pass_of(self, answer: Answer, service: Service) -> Pass:
        written = answer.written
        written = replace(written, failed={**written.failed, **answer.broken})
        made = Pass([], answer.counted, written, self.lake, answer.identified)
        return replace(made, vault=service.vault, vaulted=answer.vaulted, read_twice=answer.read_twice)

    def _answer(self, spec: PassSpec) -> Answer:
        """If a task ran short of memory, reads everything again in little memory. Later readings of that size do so from the
        start."""
        weight = sum(piece.weight for piece in spec.pieces)
        if self.short_memory.is_expected(weight):
            answer = Answer(odd="memory ran short before")
        else:
            answer = together(self.jobs.of_pieces(spec))
            if not answer.is_crowded:
                return answer
            self.short_memory.learn(weight)

        def undo(answer: Answer) -> None:
            self._pass_of(answer, spec.service).undo()

        undo(answer)
        spec = replace(spec, functions_apart=True)  # a row that needs too much memory is then refused alone
        return replace(
            Lean(spec, self.jobs.at_once, self.jobs.ends, self.jobs.of_hands, undo).answer(),
            read_twice=answer.odd or "memory is running short",
        )

    def _questions(self, service: Service) -> tuple[Questions, Questions]:
        """Spark's parser finds the names in their SQL, once."""
        of = service.tables, service.vault
        if self._asked is None or self._asked[0] != of:
            self._asked = of, (questions_of(service), conditions_of(service))
        return self._asked[1]

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
