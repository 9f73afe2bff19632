"""Declarations that newer code pinned, read by older code after a rollback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.declaration.kept.pinned import pinned, unpinned
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import Halt

TEXT = """
name = "studio"
overwritten = "replace"
[[tables]]
name = "{game}"
columns = [{ name = "level", type = "int" }]
[tables.compaction]
group = "night"
[schedules.night]
job = "compact"
at = "daily 02:00"
group = "night"
"""


@pytest.fixture
def service() -> Service:
    return parse_service({"service.toml": TEXT})


def by_newer_code(service: Service, where: tuple[Any, ...], value: Any, *, default: bool) -> dict[str, Any]:
    """As code that knows one more field would have written it."""
    plain: dict[str, Any] = json.loads(json.dumps(pinned(service)))
    inside = plain
    for step in where[:-1]:
        inside = inside[step]
    inside[where[-1]] = value
    if default:
        plain["at_default"].append(".".join(map(str, where)))
    return plain


def test_what_was_pinned_is_the_same_again(service: Service) -> None:
    assert unpinned(json.loads(json.dumps(pinned(service))), "batch 7") == service


def test_what_an_earlier_forebay_pinned_is_read(service: Service) -> None:
    assert unpinned(service.model_dump(mode="json"), "batch 7") == service


def test_fields_at_their_default_are_named_and_others_are_not(service: Service) -> None:
    at_default = pinned(service)["at_default"]
    assert {"new_tables_per_day", "envelope.key", "tables.0.where", "tables.0.columns.0.expression"} <= set(at_default)
    assert not {"overwritten", "name", "tables", "tables.0.columns", "tables.0.columns.0.type"} & set(at_default)


NEW = [("colour",), ("tables", 0, "colour"), ("tables", 0, "columns", 0, "colour"), ("envelope", "colour")]


@pytest.mark.parametrize("where", NEW, ids=str)
def test_a_new_field_that_nobody_uses_does_not_stop_older_code(service: Service, where: tuple[Any, ...]) -> None:
    assert unpinned(by_newer_code(service, where, "blue", default=True), "batch 7") == service


@pytest.mark.parametrize("where", [("tables", 0, "compaction", "colour"), ("schedules", "night", "colour")], ids=str)
def test_a_new_field_of_upkeep_does_not_either(service: Service, where: tuple[Any, ...]) -> None:
    assert unpinned(by_newer_code(service, where, "blue", default=False), "batch 7") == service


@pytest.mark.parametrize("where", [*NEW, ("overwritten",)], ids=str)
def test_what_may_decide_is_refused_with_the_remedy(service: Service, where: tuple[Any, ...]) -> None:
    with pytest.raises(Halt, match=r"batch 7 was started by another version .* Start that version again") as refused:
        unpinned(by_newer_code(service, where, "blue", default=False), "batch 7")
    assert ".".join(map(str, where)) in str(refused.value)
