"""The declaration of a condition: a test of a field that routes its record to a table.

In: the value of a field in `where`: a text, a list of texts, or a table of tests. Out: a frozen `Condition`. All its tests
must hold. `holds` says whether a text meets it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_serializer, model_validator
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from forebay.declaration.column import Declared

NUMBER = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
"""Texts that match it are compared as numbers."""

BOUNDS = ("above", "at_least", "below", "at_most")


def _texts(value: Any) -> Any:
    """One or several values, as a record's field is compared: as text."""
    return tuple(_text(one) for one in value) if isinstance(value, list | tuple) else (_text(value),)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        raise ValueError("a fraction needs above, at_least, at_most or below, because 1.5 and 1.50 are the same number")
    return str(value) if isinstance(value, int) else value


def _pattern(value: str | None) -> str | None:
    try:
        re.compile(value or "")
    except re.error as problem:
        raise ValueError(f"is not a regular expression: {problem}") from None
    return value


VALUE = {"type": ["string", "integer", "boolean"]}
VALUES = {"anyOf": [VALUE, {"type": "array", "items": VALUE}]}

Texts = Annotated[tuple[str, ...], BeforeValidator(_texts), WithJsonSchema(VALUES)]


class Condition(Declared):
    """A field is compared as text: 3 and "3" are the same. Null counts as absent."""

    one_of: Texts = Field((), description="one of these values")
    none_of: Texts = Field((), alias="not", description="none of these values; a record without the field fits")
    exists: bool | None = Field(None, description="whether the record must have the field")
    prefix: str | None = Field(None, description="the beginning of the text")
    matches: Annotated[str | None, AfterValidator(_pattern)] = Field(
        None, description="a regular expression that the whole text matches"
    )
    above: float | None = Field(None, description="a number greater than this")
    at_least: float | None = Field(None, description="a number of at least this")
    below: float | None = Field(None, description="a number less than this")
    at_most: float | None = Field(None, description="a number of at most this")

    @model_validator(mode="before")
    @classmethod
    def _only_values(cls, given: Any) -> Any:
        return given if isinstance(given, dict | Condition) else {"one_of": given}

    @model_validator(mode="after")
    def _tests_something(self) -> Condition:
        if not self.model_fields_set or (self.one_of == () and "one_of" in self.model_fields_set):
            raise ValueError("has no test; give a value, or a test such as { exists = true }")
        return self

    @model_serializer
    def _as_declared(self) -> Any:
        if self.model_fields_set == {"one_of"}:
            return self.one_of[0] if len(self.one_of) == 1 else list(self.one_of)
        given = {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}
        return {"not" if name == "none_of" else name: value for name, value in given.items()}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [VALUE, {"type": "array", "items": VALUE}, handler(core)]}

    def holds(self, text: str | None) -> bool:
        """Whether a field with this text fits; None where the record has none."""
        if self.exists is not None and self.exists != (text is not None):
            return False
        if text is None:
            return not self.needs_a_value
        if (self.one_of and text not in self.one_of) or text in self.none_of:
            return False
        if self.prefix is not None and not text.startswith(self.prefix):
            return False
        if self.matches is not None and re.fullmatch(self.matches, text, re.ASCII) is None:
            return False
        return not self.bounds or self._within(text)

    @property
    def bounds(self) -> dict[str, float]:
        """The comparisons of numbers."""
        return {name: limit for name in BOUNDS if (limit := getattr(self, name)) is not None}

    @property
    def needs_a_value(self) -> bool:
        """Whether a record without the field never fits."""
        return bool(self.exists or self.one_of or self.bounds or self.prefix is not None or self.matches is not None)

    def _within(self, text: str) -> bool:
        if re.fullmatch(NUMBER, text) is None:
            return False
        number = float(text)
        fits = {
            "above": lambda limit: number > limit,
            "at_least": lambda limit: number >= limit,
            "below": lambda limit: number < limit,
            "at_most": lambda limit: number <= limit,
        }
        return all(fits[name](limit) for name, limit in self.bounds.items())
