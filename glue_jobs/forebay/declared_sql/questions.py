"""Declared SQL that Spark evaluates in the middle of a batch: times that are read by `formats`, columns that are computed from
others, and expectations.

In: a service. Out: `Questions`, which tell the tasks what to send for the rows of each declaration and what they get back; and
the Spark expressions that answer them. Declarations share the columns of what is sent, by type (*slots*), so a row carries the
values of its own declaration alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from forebay.declaration.column import Column
from forebay.declaration.column_type import is_nested
from forebay.declaration.expectation import Expectation
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.attempt import attempt
from forebay.declared_sql.columns import spark_type, time_by_formats
from forebay.declared_sql.day import day_source
from forebay.declared_sql.references import columns_in, renamed
from forebay.record.event_time import is_bucketed, time_in_bounds

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

PARCEL, DECLARED = "parcel", "declared"
ORIGINAL = {"original": "string", "original_key": "binary", "original_bound_to": "string"}
"""The values of a record that Spark encrypts for the vault, their key, and the text that binds them to their service."""
ENCRYPTED = "encrypted"
CONDITION = "where"


@dataclass(frozen=True)
class Given:
    """The values of a column that are sent, or of an event time that is outside its bounds the time of its bucket; or the text
    that Spark reads by the column's `formats`, or the time when the file landed."""

    column: str
    kind: Literal["value", "bucketed", "text", "landed"] = "value"


@dataclass(frozen=True)
class Question:
    """A question about the rows of one declaration. It has the slots of the columns that are sent, and those of the answers:
    of times that Spark reads, of columns that it computes, and of expectations."""

    table: Table
    given: Mapping[str, Given]
    times: Mapping[str, str]
    derived: Mapping[str, str]
    checks: Mapping[str, str]


@dataclass(frozen=True)
class Questions:
    """The questions of a service, by the number of the declaration. `given` and `answers` are the types of all slots.
    `encrypts`: original values go to the vault. `of_each_row`: all of them are about each row."""

    of: Mapping[int, Question] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    encrypts: bool = False
    of_each_row: bool = False

    def __bool__(self) -> bool:
        return bool(self.of) or self.encrypts

    @property
    def sent(self) -> str:
        """The columns of the rows that are sent, as DDL."""
        return _ddl({PARCEL: "binary", DECLARED: "int", **self.given})

    @property
    def returned(self) -> str:
        """The columns of the rows that come back, as DDL. Null is an answer that could not be computed."""
        return _ddl({PARCEL: "binary", **{slot: f"struct<value: {kind}>" for slot, kind in self.answers.items()}})


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def questions_of(service: Service) -> Questions:
    slots = _AllSlots()
    of = {
        number: _question(table, slots)
        for number, table in enumerate(service.tables)
        if table.expectations or asked_columns(table) or any(column.formats for column in table.columns)
    }
    return _with_vault(
        Questions(of, slots.given.kinds, slots.answers), encrypts=bool(service.vault) and not conditions_of(service)
    )


def conditions_of(service: Service) -> Questions:
    """The questions about each record, before its table is known: which declarations want it by their `where_sql`. Each of
    them has its own slots."""
    of, given, answers = dict[int, Question](), dict[str, str](), dict[str, str]()
    for number, table in enumerate(service.tables):
        if table.where_sql is not None:
            slots = _AllSlots(f"where_{number}_")
            of[number] = _question(_only_asked(table, table.where_sql), slots)
            given |= slots.given.kinds
            answers |= slots.answers
    return _with_vault(Questions(of, given, answers, of_each_row=True), encrypts=bool(of) and bool(service.vault))


def _with_vault(asked: Questions, *, encrypts: bool) -> Questions:
    if not encrypts:
        return asked
    given, answers = {**asked.given, **ORIGINAL}, {**asked.answers, ENCRYPTED: "binary"}
    return replace(asked, given=given, answers=answers, encrypts=True)


def _only_asked(table: Table, sql: str) -> Table:
    """The table with this SQL alone, and the columns that it needs."""
    named = columns_in(sql)
    columns = tuple(c for c in table.columns if c.name.lower() in named or c.expression is None)
    return table.model_copy(update={"columns": columns, "expectations": {CONDITION: Expectation(check=sql)}})


def asked_columns(table: Table) -> list[Column]:
    """The columns that Spark computes."""
    return [c for c in table.columns if c.expression is not None and day_source(c, table) is None]


class _Slots:
    """The columns that declarations share: the second long of each declaration is in the second slot for longs. The questions
    of one step do not share columns with those of another."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kinds: dict[str, str] = {}
        self._nested: list[str] = []

    def of_one(self, kinds: Sequence[str]) -> Iterator[str]:
        """A slot for each of these types, which one declaration needs."""
        taken: Counter[str] = Counter()
        for kind in kinds:
            plain = self._plain(kind)
            slot = f"{self.name}_{plain}_{taken[plain]}"
            taken[plain] += 1
            self.kinds[slot] = kind
            yield slot

    def _plain(self, kind: str) -> str:
        """Two structs may differ only in signs, or in upper and lower case."""
        if is_nested(kind):
            self._nested += [kind] * (kind not in self._nested)
            return f"nested{self._nested.index(kind)}"
        return "".join(letter if letter.isalnum() else "_" for letter in kind.lower())


class _AllSlots:
    def __init__(self, before: str = "") -> None:
        self.given, self.times = _Slots(f"{before}given"), _Slots(f"{before}time")
        self.columns, self.checks = _Slots(f"{before}column"), _Slots(f"{before}check")

    @property
    def answers(self) -> dict[str, str]:
        return self.times.kinds | self.columns.kinds | self.checks.kinds


def _question(table: Table, slots: _AllSlots) -> Question:
    derived, times = asked_columns(table), [column for column in table.columns if column.formats]
    wanted = list(dict.fromkeys(_wanted(table)))
    kinds = {column.name: spark_type(column) for column in table.columns}
    sent = [{"text": "STRING", "landed": "TIMESTAMP"}.get(one.kind, kinds[one.column]) for one in wanted]
    return Question(
        table,
        dict(zip(slots.given.of_one(sent), wanted, strict=True)),
        dict(zip((c.name for c in times), slots.times.of_one([*map(spark_type, times)]), strict=True)),
        dict(zip((c.name for c in derived), slots.columns.of_one([*map(spark_type, derived)]), strict=True)),
        dict(zip(table.expectations, slots.checks.of_one(["BOOLEAN" for _ in table.expectations]), strict=True)),
    )


def _wanted(table: Table) -> Iterator[Given]:
    """The columns that the SQL names, and that Spark does not make itself."""
    made = {column.name.lower() for column in asked_columns(table)}
    for column in (column for column in table.columns if column.formats):
        made.add(column.name.lower())
        yield Given(column.name, "text")
        if table.event_time is not None and table.event_time.column == column.name:
            yield Given(column.name, "landed")
    by_name = {column.name.lower(): column.name for column in table.columns if column.name.lower() not in made}
    for column in asked_columns(table):
        for name in sorted(columns_in(column.expression or "") & by_name.keys()):
            yield Given(by_name[name], "bucketed" if is_bucketed(table, by_name[name]) else "value")
    for expectation in table.expectations.values():
        for name in sorted(columns_in(expectation.check) & by_name.keys()):
            yield Given(by_name[name])


def answered(rows: DataFrame, questions: Questions) -> DataFrame:
    """The rows that were sent, with the answers. Expectations may be about computed columns, so they are the second step."""
    from pyspark.sql import functions as F

    rows = rows.withColumns(_times(questions))
    for step in (_columns, _expectations):
        asked = step(questions)
        rows = rows.withColumns({slot: _first(some, questions) for slot, some in asked.items()})
    if questions.encrypts:
        values, key, bound_to = map(F.col, ORIGINAL)
        encrypted = F.struct(encrypted_values(values, key, bound_to).alias("value"))
        rows = rows.withColumn(ENCRYPTED, F.when(values.isNotNull(), encrypted))
    return rows.select(PARCEL, *(F.col(slot) for slot in questions.answers))


Asked = dict[str, list[tuple[int, str, str]]]
"""By slot: the number of a declaration, its SQL, and the type of the answer."""


def _times(questions: Questions) -> dict[str, Expression]:
    """The times that are read by their formats, by slot."""
    from pyspark.sql import functions as F

    made: dict[str, Expression] = {}
    for number, question in questions.of.items():
        texts = {one.column: slot for slot, one in question.given.items() if one.kind == "text"}
        for column in (column for column in question.table.columns if column.formats):
            slot, value = question.times[column.name], time_by_formats(F.col(texts[column.name]), column)
            before = made.get(slot, F.when(F.lit(False), F.lit(None)))
            made[slot] = before.when(_mine(questions, number), F.struct(value.alias("value")))
    return made


def _columns(questions: Questions) -> Asked:
    asked: Asked = {}
    for number, question in questions.of.items():
        table = question.table
        names = _sql_of_names(table, question, bucketed=True)
        for column in asked_columns(table):
            sql = renamed(str(column.expression), names)
            asked.setdefault(question.derived[column.name], []).append((number, sql, spark_type(column)))
    return asked


def _expectations(questions: Questions) -> Asked:
    asked: Asked = {}
    for number, question in questions.of.items():
        table = question.table
        names = _sql_of_names(table, question, bucketed=False)
        names |= {column.lower(): f"{slot}.value" for column, slot in question.derived.items()}
        for name, expectation in table.expectations.items():
            asked.setdefault(question.checks[name], []).append((number, renamed(expectation.check, names), "boolean"))
    return asked


def _sql_of_names(table: Table, question: Question, *, bucketed: bool) -> dict[str, str]:
    """The SQL of each column that is sent, or read by its formats, by its name in lower case."""
    names = {}
    for slot, one in question.given.items():
        if one.kind == ("bucketed" if bucketed and is_bucketed(table, one.column) else "value"):
            names[one.column.lower()] = slot
    landed = {one.column: slot for slot, one in question.given.items() if one.kind == "landed"}
    for column, slot in question.times.items():
        value = f"{slot}.value"
        names[column.lower()] = time_in_bounds(table, value, landed[column], bucketed) if column in landed else value
    return names


def _first(asked: Sequence[tuple[int, str, str]], questions: Questions) -> Expression:
    from pyspark.sql import functions as F

    made = F.when(F.lit(False), F.lit(None))
    for number, sql, kind in asked:
        mine = _mine(questions, number)
        made = made.when(mine, attempt(sql, kind, mine))
    return made


def _mine(questions: Questions, number: int) -> Expression:
    """The rows that are of this declaration, or all that are asked about."""
    from pyspark.sql import functions as F

    return F.col(DECLARED).isNotNull() if questions.of_each_row else F.col(DECLARED) == number


def encrypted_values(values: Expression, key: Expression, bound_to: Expression) -> Expression:
    """Personal values for the vault. They are bound to their service and wrapping key, and a data key to its subjects."""
    from pyspark.sql import functions as F

    return F.aes_encrypt(values.cast("binary"), key, F.lit("GCM"), F.lit("DEFAULT"), F.lit(""), bound_to.cast("binary"))
