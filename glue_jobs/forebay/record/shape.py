"""The types of the fields of some records: the number of values of each JSON type, down to the innermost.

Shapes add up: the shape of two sets of records is the sum of theirs, in any order and however they are divided. That makes a
table's columns the same whichever task, batch or day a record came in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from forebay.declaration.column_name import safe_name
from forebay.record.name import TwinValue, is_text
from forebay.record.number import NOT_JSON, Written

SCALARS = ("boolean", "long", "double", "string")

MOST_FIELDS = 20_000
"""The fields of one object that are counted at all: names without end would take all memory."""

MOST_SPELLINGS = 20
"""The spellings of one name that are remembered: those that sort first, whatever their order of arrival."""
LONGEST_SPELLING = 1000
"""They are in the schema of a table, which each of its readers reads."""

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


class Shape:
    """A pile of values. Null is none of them, nor are an empty list and an object without a value. An integer that no long
    holds counts as a double, or as text where that would not be exact."""

    __slots__ = ("counts", "element", "fields", "spelled")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.fields: dict[str, Shape] = {}
        self.element: Shape | None = None
        self.spelled: set[str] = set()

    def count(self, kind: str, values: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + values

    def field(self, key: str) -> Shape:
        """That of the field with this key; twins share one."""
        name = safe_name(key)
        found = self.fields.get(name)
        if found is None:
            found = Shape()
            if len(self.fields) < MOST_FIELDS:
                self.fields[name] = found
        if key != name and key not in found.spelled and len(key) <= LONGEST_SPELLING:
            found.spelled.add(key)
            found._forget_spellings()
        return found

    def _forget_spellings(self) -> None:
        while len(self.spelled) > MOST_SPELLINGS:
            self.spelled.remove(max(self.spelled))

    def of_elements(self) -> Shape:
        if self.element is None:
            self.element = Shape()
        return self.element

    def observe(self, value: Any, depth: int) -> None:
        """One more value; objects deeper than `depth` are only counted."""
        kind = type(value)
        if value is None or kind is TwinValue:
            return
        if kind is dict:
            if all(inner is None for inner in value.values()):
                return
            self.count("object")
            if depth > 0:
                for key, inner in value.items():
                    if inner is None or not is_text(key):
                        continue
                    self.field(key).observe(inner, depth - 1)
        elif kind is list:
            if not value:
                return
            self.count("list")
            elements = self.of_elements()
            for inner in value:
                elements.observe(inner, depth)
        else:
            self.count(scalar_of(value))

    def add(self, other: Shape) -> None:
        for kind, values in other.counts.items():
            self.count(kind, values)
        self.spelled |= other.spelled
        self._forget_spellings()
        for name, theirs in other.fields.items():
            mine = self.fields.get(name)
            if mine is None and len(self.fields) < MOST_FIELDS:
                mine = self.fields[name] = Shape()
            if mine is not None:
                mine.add(theirs)
        if other.element is not None:
            self.of_elements().add(other.element)

    def as_json(self) -> str:
        return json.dumps(self._plain(), separators=(",", ":"))

    @classmethod
    def of_json(cls, text: str) -> Shape:
        return cls._of_plain(json.loads(text))

    @classmethod
    def sum(cls, shapes: Iterable[Shape]) -> Shape:
        total = cls()
        for shape in shapes:
            total.add(shape)
        return total

    def _plain(self) -> dict[str, Any]:
        made: dict[str, Any] = {"n": self.counts}
        if self.fields:
            made["f"] = {name: shape._plain() for name, shape in self.fields.items()}
        if self.element is not None:
            made["e"] = self.element._plain()
        if self.spelled:
            made["s"] = sorted(self.spelled)
        return made

    @classmethod
    def _of_plain(cls, plain: Mapping[str, Any]) -> Shape:
        shape = cls()
        shape.counts = dict(plain["n"])
        shape.fields = {name: cls._of_plain(inner) for name, inner in plain.get("f", {}).items()}
        shape.element = cls._of_plain(plain["e"]) if "e" in plain else None
        shape.spelled = set(plain.get("s", ()))
        return shape


def scalar_of(value: Any) -> str:
    """The type of a JSON value that is neither null, object nor list."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if LONG_MIN <= value <= LONG_MAX:
            return "long"
        return "double" if abs(value) < 10**300 and int(float(value)) == value else "string"
    if isinstance(value, Written):
        if value.is_whole:
            return "long"
        return "string" if math.isinf(value) and value.text not in NOT_JSON else "double"
    return "double" if isinstance(value, float) else "string"
