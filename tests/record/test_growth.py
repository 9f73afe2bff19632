"""Columns are decided by all the values that came, and by nothing else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.loading import parse_service
from forebay.declared_sql.columns import rules_of
from forebay.record.growth import Rules, agrees, decided, grown, left_out
from forebay.record.kind import Fixed, Kind, Many, Struct, columns_of_json, json_of, leaves
from forebay.record.shape import Shape

KEYS = st.sampled_from(["a", "A", "b", "c d", "_x", ""])
SCALARS = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=12)


def shape_of(records: list[dict[str, Any]], depth: int = 5) -> Shape:
    shape = Shape()
    for record in records:
        shape.observe(record, depth + 1)
    return shape


def columns(records: list[dict[str, Any]], known: Struct | None = None, **rules: Any) -> dict[str, Kind]:
    made = grown(known or Struct(), shape_of(records), Rules(**rules))
    return {".".join(path): kind for path, kind in leaves(made)}


@given(RECORDS, st.integers(0, 2**32), st.integers(1, 5))
def test_the_same_records_in_any_piles_and_any_order_make_the_same_columns(
    records: list[dict[str, Any]], seed: int, piles: int
) -> None:
    shuffled = random.Random(seed).sample(records, len(records))
    parts = [Shape.of_json(shape_of(shuffled[at::piles]).as_json()) for at in range(piles)]
    together = grown(Struct(), Shape.sum(parts), Rules())
    assert together == grown(Struct(), shape_of(records), Rules())


def test_keys_that_share_a_column_because_one_is_reserved_decide_it_together() -> None:
    records = [{"a": "x", "a_field": 1}, {"a_field": 2, "a": "y"}]
    for some in (records, records[::-1], records[:1], records[1:]):
        made = columns(some, reserved=frozenset({"a"}))
        assert made == {"a_field": "string"}


@pytest.mark.parametrize(
    ("written", "table", "belongs"),
    [
        ({"a": 1}, {"a": 2, "b": "x"}, True),
        ({"a": 1, "b": "x"}, {"a": 2}, False),
        ({"a": 1}, {"a": "x"}, False),
        ({"a": {"x": 1}}, {"a": {"x": 2, "y": 3}}, True),
        ({"a": {"x": 1}}, {"a": 1}, False),
        ({"a": 1}, {"a": {"x": 1}}, False),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2, "y": 3}]}, True),
        ({"a": [{"x": 1, "y": 1}]}, {"a": [{"x": 2}]}, False),
        ({"a": [1]}, {"a": 1}, False),
    ],
)
def test_files_belong_into_a_table_that_has_all_of_their_columns_with_these_types(
    written: dict[str, Any], table: dict[str, Any], belongs: bool
) -> None:
    assert agrees(grown(Struct(), shape_of([written]), Rules()), grown(Struct(), shape_of([table]), Rules())) is belongs


@given(RECORDS, RECORDS)
def test_columns_are_only_ever_added(first: list[dict[str, Any]], later: list[dict[str, Any]]) -> None:
    before = grown(Struct(), shape_of(first), Rules())
    after = grown(before, shape_of(later), Rules())
    assert agrees(before, after)
    assert grown(after, shape_of(later), Rules()) == after


@given(RECORDS)
def test_columns_survive_a_table_s_schema(records: list[dict[str, Any]]) -> None:
    made = grown(Struct(), shape_of(records), Rules())
    assert columns_of_json(json_of(made)) == made


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "long"),
        ([1, 2.5], "double"),
        ([1, "x"], "string"),
        ([True, 1], "string"),
        ([True, None], "boolean"),
        ([None, None], None),
        ([[]], None),
        ([{}], None),
        ([[], [1]], Many("long")),
        ([[1], ["x"]], Many("string")),
        ([{"x": 1}, [1]], "string"),
        ([{"x": 1}, "x"], "string"),
        ([2**63], "double"),
        ([2**63 + 1], "string"),
        (["2026-11-21T10:00:00Z"], "string"),
        ([1] * 200 + ["dirt"], "long"),
        ([{"x": 1}] * 200 + ["dirt"], Struct),
        ([1] * 200 + [0.5], "double"),
    ],
)
def test_a_field_gets_the_type_that_its_values_have(values: list[Any], kind: Any) -> None:
    shape = Shape()
    for value in values:
        shape.observe(value, 5)
    found = decided(shape, 5)
    assert type(found) is Struct if kind is Struct else found == kind


def test_a_type_that_one_value_in_a_hundred_has_counts_and_one_in_more_does_not() -> None:
    assert columns([{"a": 1}] * 99 + [{"a": "x"}]) == {"a": "string"}
    assert columns([{"a": 1}] * 100 + [{"a": "x"}]) == {"a": "long"}


def test_unless_told_otherwise_the_limits_are_those_of_a_declaration() -> None:
    (table,) = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "t"'}).tables
    declared, plain = rules_of(table), Rules()
    for name in ("depth", "flatten", "new_columns", "columns", "keys", "undeclared"):
        assert getattr(declared, name) == getattr(plain, name)
    assert len(columns([{f"a{n}": 1 for n in range(1001)}])) == 1000
    assert len(columns([{"a": {f"a{n}": 1 for n in range(200)}}])) == 200
    assert columns([{"a": {f"a{n}": 1 for n in range(201)}}]) == {"a": "json"}
    assert columns([{"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}]) == {"a.b.c.d.e.f": "string"}


def test_what_is_nested_too_deep_is_text() -> None:
    record = {"a": {"b": {"c": {"d": 1}}, "l": [{"x": {"y": 1}}]}}
    assert columns([record], depth=5) == {"a.b.c.d": "long", "a.l.[].x.y": "long"}
    assert columns([record], depth=2) == {"a.b.c": "string", "a.l.[].x": "string"}
    assert columns([record], depth=0) == {"a": "string"}


def test_no_more_columns_come_at_once_than_allowed_the_shallow_ones_first() -> None:
    record = {"map": {f"k{n:04}": 1 for n in range(5000)}, "z": 1}
    made = columns([record], new_columns=10, keys=5000)
    assert len(made) == 10
    assert {"z", "map.k0000", "map.k0008"} <= made.keys()


def test_nor_more_in_all() -> None:
    known = grown(Struct(), shape_of([{f"a{n}": 1 for n in range(8)}]), Rules())
    made = grown(known, shape_of([{f"b{n}": 1 for n in range(8)}]), Rules(columns=10))
    assert made.fields.keys() - known.fields.keys() == {"b0", "b1"}
    assert grown(made, shape_of([{"c": 1}]), Rules(columns=10)) == made


def test_a_key_is_kept_beside_the_name_that_it_got() -> None:
    made = grown(Struct(), shape_of([{"Player Name": 1, "plain": 1, "level": 2}]), Rules(reserved=frozenset({"level"})))
    assert {f.name: set(f.spelled) for f in made.fields.values()} == {
        "level_field": {"level"},
        "plain": set(),
        "player_name": {"Player Name"},
    }


def test_a_key_that_is_no_text_gets_no_column_and_a_very_long_one_is_not_kept_in_the_schema_of_its_table() -> None:
    made = grown(Struct(), shape_of([{"\ud83d": 1, "n": {"\udc00x": 1}, "k" * 300_000: 1, "Plain One": 1}]), Rules())
    (schema := json.dumps(json_of(made), ensure_ascii=False)).encode()
    assert len(schema) < 2000
    assert [set(f.spelled) for f in made.fields.values() if f.name == "plain_one"] == [{"Plain One"}]
    assert len(list(leaves(made))) == 2


def test_a_column_that_people_made_stays_what_it_is() -> None:
    known = columns_of_json(
        {"type": "struct", "fields": [{"name": "At", "type": "timestamp", "nullable": True, "metadata": {}}]}
    )
    made = grown(known, shape_of([{"at": 5}]), Rules())
    assert made.fields["at"].kind == Fixed("timestamp")


def test_an_object_whose_keys_are_identifiers_is_json_text_whatever_the_order() -> None:
    records = [{"scores": {f"player-{n}": n}, "x": {"y": n}} for n in range(11)]
    assert columns(records, keys=11)["scores.player_3"] == "long"
    made = grown(Struct(), shape_of(records), Rules(keys=10))
    assert dict(leaves(made)) == {("scores",): "json", ("x", "y"): "long"}
    assert columns_of_json(json_of(made)) == made
    assert json_of(made)["fields"][0]["type"] == "string"


def test_a_struct_whose_keys_turn_out_to_be_identifiers_grows_no_more() -> None:
    first = grown(Struct(), shape_of([{"scores": {f"p{n}": n for n in range(8)}}]), Rules(keys=10))
    later = shape_of([{"scores": {f"q{n}": n for n in range(5)}}])
    assert grown(first, later, Rules(keys=10)) == first


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        ({"keys": 2}, {"a.y", "a.b.z"}),
        ({"keys": 1}, set()),
        ({"depth": 2}, {"a.y", "a.b.z"}),
        ({"depth": 1}, {"a.y"}),
        ({"depth": 0}, set()),
    ],
)
def test_a_struct_that_is_there_grows_as_far_as_its_keys_and_levels_may(rules: dict[str, int], more: set[str]) -> None:
    known = grown(Struct(), shape_of([{"a": {"b": {"x": 1}}}]), Rules())
    assert columns([{"a": {"y": 1, "b": {"z": 1}}}], known, **rules).keys() == {"a.b.x", *more}


def test_of_thousands_of_spellings_some_are_remembered_whatever_the_order() -> None:
    spellings = [f"player{chr(33 + n % 15)}{chr(33 + n // 15)}id" for n in range(200)]
    one = shape_of([{spelled: 1} for spelled in spellings])
    other = Shape.sum(shape_of([{spelled: 1}]) for spelled in reversed(spellings))
    assert one.as_json() == other.as_json()
    assert max(len(shape.spelled) for shape in one.fields.values()) <= 20


def test_what_the_limits_leave_out_is_named() -> None:
    shape = shape_of([{"a": 1, "b": {"c": 2, "d": "x"}}])
    assert left_out(Struct(), shape, Rules(new_columns=1)) == [("b", "c"), ("b", "d")]
    known = grown(Struct(), shape, Rules(columns=2))
    assert left_out(known, shape, Rules(columns=2)) == [("b", "d")]
    assert left_out(Struct(), shape, Rules()) == left_out(Struct(), shape, Rules(undeclared="rescue")) == []
