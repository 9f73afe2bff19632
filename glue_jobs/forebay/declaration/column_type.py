"""The types of declared columns: simple ones, and arrays and structs of them in Spark's DDL.

In: a type as people write it, such as `array<struct<sku: string, price: decimal(10,2)>>`. Out: its one spelling, or its parts.
A wrong type is a `ValueError` that suggests another.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from forebay.nesting import DEEPEST_COLUMN

PLAIN_TYPES = (
    *("string", "long", "int", "double", "float", "boolean", "timestamp", "date", "binary"),
    *("json", "map"),
)
INEXACT = ("double", "float")
"""Types whose values have one text in Python, and another in some versions of Java."""

TYPED = {
    "bigint": "long",
    "int64": "long",
    "integer": "int",
    "int32": "int",
    "varchar": "string",
    "text": "string",
    "str": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "float64": "double",
    "float32": "float",
    "real": "float",
    "bytes": "binary",
}
"""Names from SQL and Python that mean one of our types."""

NOT_A_TYPE = {
    "object": "struct<x: long, y: string>, json, or map",
    "struct": "struct<x: long, y: string>, json, or map",
    "dict": "struct<x: long, y: string>, json, or map",
    "array": "array<string>, or json",
    "list": "array<string>, or json",
    "variant": "json",
    "jsonb": "json",
    "number": "double, or decimal(18,2)",
    "numeric": "decimal(18,2)",
    "decimal": "decimal(18,2)",
    "money": "decimal(18,2)",
    "uuid": "string",
    "char": "string",
    "smallint": "int",
    "tinyint": "int",
    "time": "string, or timestamp",
}
"""Names that could mean several types, or none, each with the types that a person may have meant."""

FIELD = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]{0,254})(?:\s*:\s*|\s+)")


@dataclass(frozen=True)
class ArrayOf:
    """An array of this."""

    of: ColumnType


@dataclass(frozen=True)
class StructOf:
    """Fields by name."""

    fields: Mapping[str, ColumnType]


ColumnType = str | ArrayOf | StructOf
"""A simple type is its name."""


def column_type(value: str) -> str:
    """The type's one spelling."""
    opened = value.strip().lower()
    if re.match(r"(array|struct)\s*<", opened):
        if value.count("<") != value.count(">"):
            raise ValueError("has a < without its >, or a > without its <")
        return _spelled(_parsed(value.strip(), DEEPEST_COLUMN))
    return _plain(value)


def is_nested(kind: str) -> bool:
    """Whether a type in its one spelling is an array or a struct."""
    return kind.startswith(("array<", "struct<"))


@lru_cache(maxsize=1000)
def parts_of(kind: str) -> ColumnType:
    """The parts of a type in its one spelling."""
    return _parsed(kind, DEEPEST_COLUMN) if is_nested(kind) else kind


def renamed_leaves(kind: str, names: Callable[[str], str]) -> str:
    """The type with other names for the simple types in it."""
    return _spelled(parts_of(kind), names)


def leaves_of(kind: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The simple types in a type, each with the names of the fields that lead to it."""
    yield from _leaves((), parts_of(kind))


def _leaves(names: tuple[str, ...], kind: ColumnType) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(kind, ArrayOf):
        yield from _leaves(names, kind.of)
    elif isinstance(kind, StructOf):
        for name, of in kind.fields.items():
            yield from _leaves((*names, name), of)
    else:
        yield names, kind


def width_of(kind: str) -> int:
    """How many columns of statistics Delta counts: one for each field of a struct, and one for an array."""
    return _width(parts_of(kind))


def _width(kind: ColumnType) -> int:
    return sum(map(_width, kind.fields.values())) if isinstance(kind, StructOf) else 1


def _parsed(text: str, levels: int, field: str = "", part: str = "") -> ColumnType:
    """`field` is the struct's field that has this type, with those around it, and `part` what it is called in a message."""
    opened = re.fullmatch(r"\s*(array|struct)\s*<(.*)>\s*", text, re.IGNORECASE | re.DOTALL)
    if opened is None:
        try:
            return _plain(text.strip())
        except ValueError as wrong:
            raise ValueError(f"has {part}, which {wrong}" if part else str(wrong)) from None
    if levels == 0:
        raise ValueError(f"is nested deeper than {DEEPEST_COLUMN} levels; make the inner ones json")
    if opened[1].lower() == "array":
        return ArrayOf(_parsed(opened[2], levels - 1, field, part or "elements"))
    return StructOf(_fields(opened[2], levels - 1, f"{field}." if field else ""))


def _fields(text: str, levels: int, before: str) -> dict[str, ColumnType]:
    fields: dict[str, ColumnType] = {}
    names: set[str] = set()
    for part in _between_commas(text):
        named = FIELD.match(part)
        if named is None:
            raise ValueError(
                f"has {part.strip()!r} where a struct needs a field, such as x: double "
                "(a field's name is a letter, then letters, digits or _)"
            )
        if named[1].lower() in names:
            raise ValueError(f"names the field {named[1]} twice (Spark ignores case)")
        names.add(named[1].lower())
        field = before + named[1]
        fields[named[1]] = _parsed(part[named.end() :], levels, field, f"the field {field}")
    return fields


def _between_commas(text: str) -> Iterator[str]:
    """The parts of a text between commas outside brackets."""
    start = opened = 0
    for at, sign in enumerate(text):
        opened += (sign in "<(") - (sign in ">)")
        if sign == "," and opened == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _spelled(kind: ColumnType, names: Callable[[str], str] = str) -> str:
    if isinstance(kind, ArrayOf):
        return f"array<{_spelled(kind.of, names)}>"
    if isinstance(kind, StructOf):
        return f"struct<{','.join(f'{name}:{_spelled(of, names)}' for name, of in kind.fields.items())}>"
    return names(kind)


def _plain(value: str) -> str:
    kind = TYPED.get(value.lower(), value.lower())
    if kind in PLAIN_TYPES:
        return kind
    found = re.fullmatch(r"(?:decimal|numeric)\((\d{1,2}),\s*(\d{1,2})\)", kind)
    if found and int(found[2]) <= int(found[1]) <= 38 and int(found[1]) > 0:
        return f"decimal({found[1]},{found[2]})"
    near = _type_meant(kind)
    hint = f" (did you mean {near}?)" if near else ""
    raise ValueError(
        f"must be one of {', '.join(PLAIN_TYPES)}, decimal(18,2), array<string> or struct<x: long, y: string>{hint}"
    )


def _type_meant(typed: str) -> str:
    """The type that is meant, by its first word: `varchar(20)`, `double precision`, `string[]`."""
    word = "array" if typed.endswith("[]") else re.split(r"[^a-z0-9_]", typed)[0]
    if typed.endswith("[]") and (of := TYPED.get(typed[:-2], typed[:-2])) in PLAIN_TYPES:
        return f"array<{of}>"
    known = {**{kind: kind for kind in PLAIN_TYPES}, **TYPED, **NOT_A_TYPE}
    return known[word] if word in known else next((known[one] for one in difflib.get_close_matches(word, known, 1)), "")
