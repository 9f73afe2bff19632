"""The table of a record, in plain Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.declaration.loading import parse_service
from forebay.record.number import read_json
from forebay.record.route import Origin, Route, route_of

SERVICE = parse_service(
    {
        "service.toml": """
name = "s"
envelope = { key = "in/{game}/" }
[[tables]]
name = "big"
where = { "order.total" = { above = 100 }, "order.test" = { not = true } }
[[tables]]
name = "{@key.game}_{order.kind}"
where = { order = { exists = true } }
[[tables]]
name = "first_sku"
where = { "items[0].sku" = ["a", 7] }
"""
    }
)


@pytest.mark.parametrize(
    ("record", "route"),
    [
        ({"order": {"total": 100.5}}, Route("write", "big", 0)),
        ({"order": {"total": "101", "test": False}}, Route("write", "big", 0)),
        ({"order": {"total": 100.5, "test": True, "kind": "x"}}, Route("write", "alpha_x", 1)),
        ({"order": {"total": 100, "kind": "No Name"}}, Route("quarantine", None, 1, "bad-table-name")),
        ({"order": {"total": 100}, "items": [{"sku": 7}]}, Route("write", "first_sku", 2)),
        ({"items": [{"sku": 8}]}, Route("park")),
        ({"items": {"sku": "a"}}, Route("park")),
    ],
)
def test_the_first_declaration_that_fits_takes_the_record(record: Any, route: Route) -> None:
    assert route_of(SERVICE, read_json(json.dumps(record)), Origin("in/alpha/x.json")) == route


@pytest.mark.parametrize(
    "game", ["../_forebay/ledger", "a/../../_forebay", "a\0", "\n", "_own", ".hidden", "declarations"]
)
def test_however_wide_its_pattern_a_value_names_no_other_folder(game: str) -> None:
    service = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "{game}"\nvalues = "(?s).*"\n'})
    assert route_of(service, {"game": game}, Origin()) == Route("quarantine", None, 0, "bad-table-name")


def test_a_table_is_written_by_the_declaration_that_owns_its_name() -> None:
    """However its records came there: by another declaration, whose columns are not its own."""
    service = parse_service(
        {
            "service.toml": """
name = "s"
[[tables]]
name = "{kind}"
where = { kind = { exists = true } }
[[tables]]
name = "sales"
where = { price = { exists = true } }
[[tables]]
name = "{game}"
"""
        }
    )
    records = [{"kind": "sales"}, {"kind": "x"}, {"price": 1}, {"game": "sales"}, {"game": "x"}]
    routes = [route_of(service, record, Origin()) for record in records]
    assert [(route.table, route.declared) for route in routes] == [
        ("sales", 1),
        ("x", 0),
        ("sales", 1),
        ("sales", 1),
        ("x", 0),
    ]
