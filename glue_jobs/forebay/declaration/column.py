"""The declaration of a column, and the treatment of undeclared fields."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from forebay.declaration.column_type import PLAIN_TYPES, column_type
from forebay.declaration.path import parse_path
from forebay.nesting import DEEPEST_COLUMN
from forebay.remembered import remembered


@remembered
def path_in_record(value: str) -> str:
    """The path in its one spelling, so that equal paths are equal texts."""
    return str(parse_path(value))


def of_the_file(path: str) -> bool:
    """Whether it is a field of the record's file, which all its records have, and not of the record."""
    return not parse_path(path).of_record


RecordPath = Annotated[str, AfterValidator(path_in_record)]


def widens(before: str, after: str) -> bool:
    """Whether each value of one type is also a value of the other, and Delta's `typeWidening` supports the change."""
    if (before, after) in {("int", "long"), ("int", "double"), ("float", "double")}:
        return True
    into = _digits(after)
    had = {"int": (10, 0), "long": (20, 0)}.get(before) or _digits(before)
    if into is None or had is None or before == after:
        return False
    more_digits, more_fraction = into[0] - had[0], into[1] - had[1]
    return more_digits >= more_fraction >= 0


def _digits(kind: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    return (int(found[1]), int(found[2])) if found else None


class Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(Declared):
    """One column of a table. Its type never changes. A value that does not fit is null here, and `_rescued` keeps it
    unchanged."""

    name: str = Field(description="the column's name in the table")
    type: Annotated[str, AfterValidator(column_type)] = Field(
        "string",
        description="its type; json: any value as JSON text; map: an object with any keys, as a map of strings; "
        "`array<...>` and `struct<name: ...>`: of any of these types",
        json_schema_extra={
            "examples": [*PLAIN_TYPES, "decimal(18,2)", "array<string>", "struct<x: double, y: double>"]
        },
    )
    path: RecordPath | None = Field(
        None, description="the field it is read from, such as player.id or items[0].sku; default: the column's name"
    )
    formats: tuple[str, ...] = Field(
        (),
        description="for timestamp and date: Spark's patterns, tried in order, such as dd/MM/yyyy HH:mm; else ISO 8601 with a "
        "whole date, such as 2026-11-22T10:30Z; without an offset in UTC",
    )
    unit: Literal["s", "ms", "us", "ns"] | None = Field(
        None,
        description="for timestamp and date: the unit of a number since 1970 (seconds, milliseconds, microseconds, "
        "nanoseconds); without it a number is not a time",
    )

    expression: str | None = Field(
        None, description="SQL over the other columns instead of a field, such as to_date(event_time)"
    )

    @property
    def of_record(self) -> bool:
        """Whether it is a field of the record: not of its file, and not computed from other columns."""
        return self.expression is None and not of_the_file(self.source)

    @property
    def source(self) -> str:
        return self.path or self.name

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,254}", value):
            raise ValueError("must be a letter, then letters, digits or _ (names that begin with _ are forebay's)")
        return value

    @model_validator(mode="after")
    def _reads_one_thing(self) -> Column:
        if self.expression is not None and (self.path is not None or self.formats or self.unit):
            raise ValueError("has an expression, so it cannot have a path, formats or a unit")
        return self

    @model_validator(mode="after")
    def _formats_are_for_times(self) -> Column:
        if self.formats and self.type not in ("timestamp", "date"):
            raise ValueError(f"formats are only for timestamp and date, but {self.name} is {self.type}")
        if self.unit and self.type not in ("timestamp", "date"):
            raise ValueError(f"unit is only for timestamp and date, but {self.name} is {self.type}")
        if self.unit and self.formats:
            raise ValueError("has formats, which apply to texts, so it cannot have a unit, which applies to numbers")
        return self


class Undeclared(Declared):
    """The treatment of fields that no column reads."""

    become: Literal["columns", "rescued", "ignored"] = Field(
        "columns",
        description="columns: each becomes a column when it arrives; rescued: kept in _rescued; ignored: left out",
    )
    depth: int = Field(
        5,
        ge=0,
        le=DEEPEST_COLUMN,
        description="levels of nested objects that become structs; deeper ones are JSON text",
    )
    flatten: str | None = Field(
        None, max_length=3, description="flatten objects into columns, whose names are joined by this text"
    )
    new_columns: int = Field(
        1000,
        ge=0,
        le=5000,
        description="columns that a batch may add, including nested ones; others are rescued",
    )
    keys: int = Field(
        200,
        ge=1,
        le=10_000,
        description="an object with more distinct keys than this becomes JSON text: its keys are identifiers, not fields",
    )
    max_columns: int = Field(1000, ge=0, le=20_000, description="the most columns that the table may have")


class Dedupe(Declared):
    """Two records of a table with equal values here are duplicates."""

    by: tuple[str, ...] = Field(
        min_length=1, description="declared columns that identify a record; if all are null, it is never a duplicate"
    )
    days: int = Field(3, ge=0, le=90, description="days for which a record is remembered")
