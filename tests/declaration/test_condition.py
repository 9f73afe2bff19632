"""Conditions of `where`: what is understood, and which fields fit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from forebay.declaration.condition import Condition
from forebay.declaration.loading import parse_service
from forebay.operate.declaring.declarations import editor_schema, gets_few, impact

FITS: list[tuple[Any, list[str | None], list[str | None]]] = [
    ("purchase", ["purchase"], ["purchases", "", None]),
    (3, ["3"], ["3.0", None]),
    (True, ["true"], ["True", "1"]),
    (["a", 2], ["a", "2"], ["b", None]),
    ({"one_of": ["a"]}, ["a"], ["b"]),
    ({"not": "test"}, ["live", "", None], ["test"]),
    ({"not": ["a", "b"], "exists": True}, ["c"], ["a", "b", None]),
    ({"exists": False}, [None], ["", "a"]),
    ({"prefix": "order."}, ["order.", "order.paid"], ["orders", None]),
    ({"matches": "v[0-9]|x"}, ["v1", "x"], ["v10", "xv1", "v1\n", None]),
    ({"above": 1, "at_most": 3}, ["1.5", "3", "3e0"], ["1", "3.1", "x", "", " 2", "Infinity", None]),
    ({"at_least": -1, "below": 2.5}, ["-1", "2"], ["-1.1", "2.5"]),
]


@pytest.mark.parametrize(("declared", "fit", "unfit"), FITS, ids=lambda value: str(value)[:30])
def test_a_field_fits_or_does_not(declared: Any, fit: list[str | None], unfit: list[str | None]) -> None:
    condition = Condition.model_validate(declared)
    assert [text for text in fit if not condition.holds(text)] == []
    assert [text for text in unfit if condition.holds(text)] == []
    assert Condition.model_validate(condition.model_dump()) == condition


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({}, "has no test"),
        ([], "has no test"),
        (1.5, "a fraction needs above"),
        ({"prefx": "a"}, "Extra inputs"),
        ({"matches": "("}, "is not a regular expression"),
        ({"above": "high"}, "valid number"),
    ],
)
def test_what_asks_for_nothing_or_cannot_be_understood_is_refused(declared: Any, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Condition.model_validate(declared)


def test_conditions_are_compared_whole() -> None:
    text = 'name = "s"\n[[tables]]\nname = "a"\nwhere = { kind = %s }\n[[tables]]\nname = "b"\nwhere = { kind = %s }'
    one = parse_service({"service.toml": text % ("['x', 'y']", "['y', 'z']")})
    other = parse_service({"service.toml": text % ("['x', 'y']", "'z'")})
    assert gets_few(other) == []
    assert impact(other, other) == []
    assert "table b: is new; it can adopt matching parked records" in impact(other, one)


def test_the_editor_knows_each_form() -> None:
    schema = editor_schema()["$defs"]["Table"]["properties"]["where"]["additionalProperties"]
    assert schema == {"$ref": "#/$defs/Condition"}
    value, several, tests = editor_schema()["$defs"]["Condition"]["anyOf"]
    assert value["type"] == ["string", "integer", "boolean"]
    assert several["type"] == "array"
    assert "not" in tests["properties"]
