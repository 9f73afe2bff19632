"""The declaration of a table: its records, its columns, and the layout of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, StrictBool, field_validator, model_validator

from forebay.declaration.column import Column, Declared, Dedupe, RecordPath, Undeclared, path_in_record
from forebay.declaration.column_type import INEXACT, is_nested
from forebay.declaration.condition import Condition
from forebay.declaration.event_time import EventTime
from forebay.declaration.expectation import Expectation
from forebay.declaration.form import PARENT, Explosion
from forebay.declaration.layout import Compaction, cluster_problems, partition_problems
from forebay.declaration.merge import Merge
from forebay.declaration.mistakes.common_name import USUAL_VALUES, Pattern
from forebay.declaration.path import parse_path
from forebay.declaration.properties import refusals
from forebay.transforms import TRANSFORM_NAME

TABLE_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,126}")

RESERVED = frozenset({"declarations"})
"""Folders of a lake that cannot be tables: VACUUM of such a table would delete the declarations that a push wrote there."""

IN_THE_SERVICE = (
    "is decided before a record's table is known, so that nothing personal is parked or quarantined: "
    'declare it in service.toml, such as [privacy] personal = ["email", { path = "ip", become = "truncated" }]'
)

NOT_OF_A_TABLE = {
    "overwritten": "is decided for a whole file, whose rows may go to several tables: declare it in "
    'service.toml, for all keys or for some, such as overwritten_below = { "in/fixes/" = "replace" }',
    "personal": IN_THE_SERVICE,
    "privacy": IN_THE_SERVICE,
}
"""Settings that people expect in a table, and why they are refused."""


class Table(Declared):
    """A destination, or a family of them: a name with {fields} makes one table for each value that arrives."""

    name: str = Field(description="the table's name; {field} is replaced by that field of the record")
    where: dict[RecordPath, Condition] = Field(
        default_factory=dict,
        description="tests of a record's fields: a value, a list of values, or a table of tests; all must be true",
    )
    explode: RecordPath | None = Field(
        None,
        description="an array within records, such as cart.items: its objects become rows of this table, beside the record; "
        "@parent.id is a field of their record, @ordinal their position",
    )
    where_sql: str | None = Field(
        None,
        min_length=1,
        description="SQL over the declared columns that must be true as well, such as amount > 100; null means false",
    )
    columns: tuple[Column, ...] = Field(
        (), description="columns whose type is declared; `undeclared` decides about other fields"
    )
    transform: str | None = Field(
        None,
        description="a function of your deployment that changes the columns of the table's rows, such as shop:clean for the "
        "function clean in transforms/shop.py: a pyarrow.Table in, one with the same rows out",
    )
    undeclared: Undeclared = Field(
        default_factory=lambda: Undeclared(), description="how fields that are not declared are kept"
    )
    type_widening: StrictBool = Field(
        False,
        description="a declared column may get a wider type without the table being rewritten; then only readers that know "
        "Delta's feature typeWidening can read it",
    )
    event_time: EventTime | None = Field(
        None, description="the column with the time of a record, and how old a record may be"
    )
    partitions: tuple[str, ...] = Field((), description="declared columns by whose values the table is partitioned")
    partition_values: dict[str, str] = Field(
        default_factory=dict,
        description="patterns that values of partition columns must match; otherwise the record is refused",
    )
    cluster_by: tuple[str, ...] = Field(
        (),
        description="instead of partitions: declared columns by which OPTIMIZE groups rows (liquid clustering)",
    )
    expectations: dict[str, Expectation] = Field(
        default_factory=dict, description="what must be true for each row, by name; a text alone is a check that warns"
    )
    dedupe: Dedupe | None = Field(
        None, description="drop records that were loaded before, as identified by these columns"
    )
    mode: Literal["append", "merge"] = Field(
        "append",
        description="append: the rows are the table; merge: they are changes, and `merge` names their state",
    )
    merge: Merge | None = Field(
        None, description="with mode = merge: the state into which the changes are merged, and how"
    )
    keep_record: StrictBool = Field(False, description="keep each record's original text, in _record")
    values: str = Field(USUAL_VALUES, description="the pattern that each {field} must match before it may name a table")
    properties: dict[str, str] = Field(
        default_factory=dict,
        description="Delta's properties of the table, such as delta.enableChangeDataFeed, and any of your own",
    )
    compaction: Compaction = Field(
        default_factory=Compaction, description="how its small files are compacted into large ones"
    )
    time_travel_days: int = Field(
        7,
        ge=1,
        le=3650,
        description="days for which old versions stay readable; maintenance deletes nothing that they need",
    )
    keep_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="days that rows are kept after they were loaded; maintenance deletes older ones; 0: for ever",
    )

    @property
    def has_sql(self) -> bool:
        """Whether Spark must evaluate anything that is declared here."""
        derived = any(column.expression is not None for column in self.columns)
        deletes = self.merge is not None and self.merge.delete_when is not None
        return bool(derived or self.expectations or self.where_sql or deletes)

    def computes(self, column: Column) -> bool:
        """Whether the column's value is computed, not only read from one place in the record."""
        when = self.event_time
        filled = when is not None and when.otherwise == "landed" and when.column == column.name
        return filled or column.expression is not None

    @property
    def transformed(self) -> tuple[Column, ...]:
        """The columns that `transform` gets: all but those that Spark computes or reads."""
        return tuple(column for column in self.columns if column.expression is None and not column.formats)

    @property
    def glob(self) -> str:
        """The pattern of the names that it may give: * for each {field}."""
        return re.sub(r"\{[^{}]*\}", "*", self.name)

    @property
    def globs(self) -> tuple[str, ...]:
        """The same, with the pattern of the states that its changes are merged into."""
        return (self.glob,) if self.merge is None else (self.glob, self.merge.glob)

    def state_of(self, table: str) -> str | None:
        """The name of the state that this table's changes are merged into; None where they are not."""
        return None if self.merge is None else self.merge.state_of(self.name, table, self.values)

    @property
    def names(self) -> Pattern:
        """The names of its tables."""
        return Pattern(self.name, self.values)

    @property
    def states(self) -> Pattern | None:
        """The names of the states into which its changes are merged."""
        return None if self.merge is None else Pattern(self.merge.into, self.values)

    def may_merge_into(self, state: str) -> bool:
        """Whether its changes could be merged into a state of this name."""
        return self.states is not None and self.states.gives(state)

    def makes(self, table: str) -> bool:
        """Whether a table of this name can belong to it."""
        return self.names.gives(table)

    @property
    def fields(self) -> tuple[str, ...]:
        """The record's fields that the name is made of; ValueError where one is not a path."""
        return tuple(path_in_record(field) for field in re.findall(r"\{([^{}]*)\}", self.name))

    @model_validator(mode="before")
    @classmethod
    def _asks_for_nothing_that_would_not_be_done(cls, given: Any) -> Any:
        for key, why in NOT_OF_A_TABLE.items():
            if isinstance(given, dict) and key in given:
                raise ValueError(f"{key} {why}")
        return given

    @property
    def explosion(self) -> Explosion | None:
        """The array that it explodes, and the fields of the parent record that it reads."""
        if self.explode is None:
            return None
        paths = (parse_path(path) for path in self.named)
        kept = {
            str(path.steps[1]) for path in paths if path.of_record and len(path.steps) > 1 and path.steps[0] == PARENT
        }
        return Explosion(parse_path(self.explode).keys, tuple(sorted(kept)))

    @property
    def named(self) -> set[str]:
        """The paths of all fields that it reads."""
        return {*self.fields, *self.where, *(c.source for c in self.columns if c.expression is None)}

    @field_validator("explode")
    @classmethod
    def _made_of_keys(cls, value: str | None) -> str | None:
        if value is not None and (not (path := parse_path(value)).of_record or path.has_position):
            raise ValueError(f"{value}: the array must be named by keys alone, such as cart.items")
        return value

    @field_validator("values")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as problem:
            raise ValueError(f"is not a regular expression: {problem}") from None
        return value

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Table:
        """Checks its parts against each other, and reports all mistakes at once, one a line."""
        checks = (
            self._names_a_table(),
            partition_problems(self.partitions, self.partition_values, self.columns),
            cluster_problems(self.cluster_by, self.partitions, self.columns, self.compaction),
            self._names_its_columns(),
            self._knows_its_parents(),
            self._names_a_function(),
            self._says_how_it_is_merged(),
            refusals(self.properties),
        )
        if wrong := [problem for check in checks for problem in check]:
            raise ValueError("\n".join(wrong))
        return self

    def _names_a_table(self) -> Iterator[str]:
        plain = re.sub(r"\{[^{}]*\}", "x", self.name)
        if not TABLE_NAME.fullmatch(plain):
            yield f"name {self.name!r} must be lowercase letters, digits and _, with {{field}} for a value of the record"
        if self.name in RESERVED:
            yield f"name {self.name!r} is the folder of a lake's declarations: give the table another name"
        for field in self.fields:
            try:
                path_in_record(field)
            except ValueError as wrong:
                yield str(wrong)
        names = [column.name.lower() for column in self.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield f"names a column twice: {', '.join(twice)} (Spark ignores case)"

    def _knows_its_parents(self) -> Iterator[str]:
        if self.explosion is not None and not self.explosion.kept:
            yield (
                "explode: no column identifies the record of a row; add one of the record's fields, such as "
                '{ name = "order_id", path = "@parent.order_id" }'
            )

    def _names_a_function(self) -> Iterator[str]:
        if self.transform is None:
            return
        if TRANSFORM_NAME.fullmatch(self.transform) is None:
            yield f"transform: {self.transform!r} is not module:function, such as shop:clean"
        if not self.transformed:
            yield "transform: the function would get no column; it gets declared columns without `expression` and `formats`"

    def _has_expression(self, name: str) -> bool:
        return any(column.expression is not None for column in self.columns if column.name == name)

    def _names_its_columns(self) -> Iterator[str]:
        kinds = {column.name: column.type for column in self.columns}
        for name in self.dedupe.by if self.dedupe else ():
            if name not in kinds:
                yield f"dedupe: {name} is not a declared column"
            elif kinds[name] in INEXACT:
                yield f"dedupe: {name} is {kinds[name]}, which Java and Python write differently; make it a decimal or string"
            elif kinds[name] == "map":
                yield f"dedupe: {name} is map, whose keys have no order; make it json"
            elif is_nested(kinds[name]):
                yield f"dedupe: {name} is {kinds[name]}, which identifies no record; make it json"
            elif kinds[name] == "binary" and (self.transform is not None or self._has_expression(name)):
                yield f"dedupe: {name} is binary, and its bytes may be no text; make it a string, such as that of hex()"
        for name in self.compaction.order_by:
            if is_nested(kinds.get(name, "")):
                yield f"compaction.order_by: {name} is {kinds[name]}, which has no order"
        for name in self.expectations:
            if name.startswith("_"):
                yield f"expectations: {name} begins with _, which is reserved for forebay"
        if self.event_time is not None and kinds.get(self.event_time.column) != "timestamp":
            yield f"event_time: {self.event_time.column} is not a declared column of type timestamp"

    def _says_how_it_is_merged(self) -> Iterator[str]:
        if (self.mode == "merge") != (self.merge is not None):
            yield 'mode: "merge" needs a section `merge`, and such a section needs mode = "merge"'
        if self.merge is not None:
            yield from self.merge.problems(self.name, {column.name: column.type for column in self.columns})
