"""Declared arrays and structs: each value whole in its column, or in `_rescued` as the producer wrote it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.declaration.column_name import taken_key
from forebay.operate.lake_view import LakeView
from tests.declared_sql.test_columns import landed, made_of, service_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PRICES = "array<struct<sku: string, price: decimal(10,2)>>"
SPOT = "struct<x: double, y: double>"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ALL = object()
"""The producer's text is rescued as well."""
CASES: list[tuple[str, str, Any, Any]] = [
    ("array<string>", '["a", "", null, "é"]', ["a", "", None, "é"], None),
    ("array<string>", '[1.50, true, {"k": 1e2}]', ["1.50", "true", '{"k":1e2}'], None),
    ("array<string>", "[]", [], None),
    ("array<string>", "null", None, None),
    ("array<string>", '"a,b"', None, ALL),
    ("array<string>", '{"0": "a"}', None, ALL),
    ("array<string>", '["\\ud800"]', None, ALL),
    ("array<string>", '"[\\"a\\"]"', ["a"], None),
    ("array<long>", '[1, "2", -0, 9223372036854775807]', [1, 2, 0, 9223372036854775807], None),
    ("array<long>", "[1, 1.5]", None, ALL),
    ("array<long>", "[9223372036854775808]", None, ALL),
    ("array<int>", "[[1]]", None, ALL),
    ("array<array<int>>", "[[1], [], null, [null]]", [[1], [], None, [None]], None),
    ("array<double>", "[0.1, 1e400]", None, ALL),
    ("array<double>", "[0.1, 12345678901234567.89]", [0.1, 12345678901234567.89], ALL),
    ("array<decimal(10,2)>", "[1.50, 2, 0.010]", [Decimal("1.50"), Decimal("2.00"), Decimal("0.01")], None),
    ("array<decimal(10,2)>", "[1.50, 1.005]", None, ALL),
    ("array<boolean>", '[true, "no"]', [True, False], None),
    ("array<timestamp>", '["2026-11-21T12:00:00Z", null]', [NOON, None], None),
    ("array<timestamp>", '["noon"]', None, ALL),
    ("array<map>", '[{"k": 1.10}]', [{"k": "1.10"}], None),
    ("array<json>", '[{"k": 1.10}, "t"]', ['{"k":1.10}', "t"], None),
    (SPOT, '{"x": 1.5, "y": null}', {"x": 1.5, "y": None}, None),
    (SPOT, '{"x": 1.5}', {"x": 1.5, "y": None}, None),
    (SPOT, '{"X": 1.5, "Y": 2}', {"x": 1.5, "y": 2.0}, None),
    (SPOT, "{}", {"x": None, "y": None}, None),
    (SPOT, '{"x": 1.5, "z": 1}', {"x": 1.5, "y": None}, ALL),
    (SPOT, '{"x": 1.5, "z": null}', {"x": 1.5, "y": None}, None),
    (SPOT, '{"x": 1.5, "X": 2}', {"x": 1.5, "y": None}, ALL),
    (SPOT, '{"x": 1.5, "y": "far"}', None, ALL),
    (SPOT, "[1.5, 2]", None, ALL),
    (PRICES, '[{"sku": "a", "price": 1.50}, null]', [{"sku": "a", "price": Decimal("1.50")}, None], None),
    (PRICES, '[{"sku": "a", "price": 1.505}]', None, ALL),
    (PRICES, '[{"sku": "a", "by": [1.50]}]', [{"sku": "a", "price": None}], ALL),
    (f"struct<a: array<{SPOT}>>", '{"a": [{"x": 1, "y": 1E1}]}', {"a": [{"x": 1.0, "y": 10.0}]}, None),
]


class Digits(str):
    """A number as it is written."""

    __slots__ = ()


def with_digits(text: str) -> Any:
    return json.loads(text, parse_int=Digits, parse_float=Digits)


def misfit_of(row: dict[str, Any], name: str) -> Any:
    return {key: value for one in with_digits(row["_misfits"] or "[]") for key, value in one.items()}.get(name)


def test_each_value_is_in_its_column_or_rescued_or_both() -> None:
    columns = ", ".join(f'{{ name = "c{n}", type = "{kind}" }}' for n, (kind, *_) in enumerate(CASES))
    text = "{" + ", ".join(f'"c{n}": {written}' for n, (_, written, *_) in enumerate(CASES)) + "}"
    (row,) = made_of(service_of(columns), [text])
    for n, (kind, written, value, rescued) in enumerate(CASES):
        wanted = with_digits(written) if rescued is ALL else None
        assert (kind, written, row[f"c{n}"], misfit_of(row, f"c{n}")) == (kind, written, value, wanted)


def test_a_key_that_comes_twice_in_the_json_of_a_text_is_not_lost() -> None:
    (row,) = made_of(service_of(f'{{ name = "c", type = "{SPOT}" }}'), ['{"c": "{\\"x\\": 1, \\"x\\": 2}"}'])
    assert (row["c"], misfit_of(row, "c")) == (None, '{"x": 1, "x": 2}')


NUMBERS = st.sampled_from(
    ["0", "-0", "1.50", "1e2", "12345678901234567.89", "9223372036854775808", "1E400", "0.1", "7"]
)
LEAVES = NUMBERS | st.sampled_from(["null", "true", '"a"', '"1.5"', '""', "[]", "{}", '"\\ud800"', '"{\\"x\\":1}"'])
NAMES = st.sampled_from(["x", "y", "X", "sku", "other", "", "\ud800"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: f"[{','.join(some)}]")
        | st.dictionaries(NAMES, inner, max_size=3).map(
            lambda some: "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in some.items()) + "}"
        )
    ),
    max_leaves=8,
)
KINDS = (
    "array<string>",
    "array<long>",
    "array<double>",
    "array<decimal(20,2)>",
    SPOT,
    "array<struct<x: long, sku: string>>",
)
KINDS += ("struct<x: array<double>, y: struct<x: decimal(38,10)>>", "array<array<boolean>>", "struct<x: json, y: map>")


@settings(deadline=None)
@given(VALUES, st.sampled_from(KINDS))
def test_the_column_and_rescued_give_back_what_the_producer_wrote(written: str, kind: str) -> None:
    column = service_of(f'{{ name = "c", type = "{kind}" }}')
    (row,) = made_of(column, [f'{{"c":{written}}}'])
    if row["_misfits"] is None:
        assert gives_back(row["c"], with_digits(written)), row
    else:
        assert misfit_of(row, "c") == with_digits(written)


def gives_back(made: Any, written: Any) -> bool:
    if made is None or written is None:
        return made is None and written is None
    if isinstance(made, (list, dict)) and isinstance(written, str):  # JSON in a text
        return gives_back(made, with_digits(written))
    if isinstance(made, list):
        return len(made) == len(written) and all(map(gives_back, made, written))
    if isinstance(made, dict):
        said = {key: value for key, value in written.items() if value is not None}
        had = {taken_key(said, name): value for name, value in made.items() if value is not None}
        return said.keys() == had.keys() and all(gives_back(had[key], value) for key, value in said.items())
    if isinstance(made, bool):
        return made is (written in (True, "1", "7"))
    if isinstance(made, str):
        return made == written or bool(with_digits(made) == written)
    return Decimal(made) == Decimal(written) or Decimal(str(made)) == Decimal(written)


DECLARED = f"""columns = [
  {{ name = "id", type = "long" }}, {{ name = "items", type = "array<string>" }}, {{ name = "pos", type = "{SPOT}" }},
  {{ name = "prices", type = "{PRICES}" }}, {{ name = "seen", type = "array<timestamp>" }},
  {{ name = "words", type = "array<string>", expression = "split(concat(get(items, 0), ' b'), ' ')" }},
]
expectations = {{ some = "size(items) > 0" }}
"""


def test_spark_and_delta_rs_read_the_types_and_the_values(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        '{"id": 1, "items": ["a", null], "pos": {"x": 1.5}, "prices": [{"sku": "k", "price": 1.50}], "more": [1]}',
        '{"id": 2, "items": [], "pos": {"x": 1, "z": 0.50}, "seen": ["2026-11-21T12:00:00Z"]}',
        '{"id": 3, "items": "a,b", "prices": [{"price": 1.005}]}',
    ]
    world = landed(spark, tmp_path, monkeypatch, DECLARED, texts)
    world.tables_agree_with_the_ledger("a")
    rows = spark.read.format("delta").load(f"{world.lake}/a").orderBy("id")
    assert {field.name: field.dataType.simpleString() for field in rows.schema.fields if field.name[0] != "_"} == {
        "id": "bigint",
        "items": "array<string>",
        "pos": "struct<x:double,y:double>",
        "prices": "array<struct<sku:string,price:decimal(10,2)>>",
        "seen": "array<timestamp>",
        "words": "array<string>",
        "more": "array<bigint>",
    }
    one, two, three = (row.asDict(recursive=True) for row in rows.collect())
    assert (one["items"], one["pos"], one["words"]) == (["a", None], {"x": 1.5, "y": None}, ["a", "b"])
    assert one["prices"] == [{"sku": "k", "price": Decimal("1.50")}]
    assert (two["items"], two["pos"]) == ([], {"x": 1.0, "y": None})
    assert [moment.astimezone(UTC) for moment in two["seen"]] == [NOON]
    assert (three["items"], three["prices"]) == (None, None)
    rescued = [with_digits(row["_rescued"]) if row["_rescued"] else None for row in (one, two, three)]
    assert rescued == [
        None,
        {"pos": {"x": "1", "z": "0.50"}},
        {"items": "a,b", "prices": [{"price": "1.005"}]},
    ]
    found = LakeView(world.lake).table("a")
    assert found is not None
    by_delta_rs = sorted(found.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    names = ("id", "items", "pos", "prices", "words", "more", "_rescued")
    assert [[row[name] for name in names] for row in by_delta_rs] == [
        [row[name] for name in names] for row in (one, two, three)
    ]


def test_a_struct_that_is_declared_with_another_field_gets_it_with_the_next_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = 'columns = [{ name = "spots", type = "array<struct<x: long>>" }]'
    world = landed(spark, tmp_path, monkeypatch, declared, ['{"spots": [{"x": 1, "y": 2}]}'])
    world.service = world.service.replace("x: long", "x: long, y: long")
    world.answers["b.json"] = b'{"spots": [{"x": 3, "y": 4}]}'
    world.try_batch(1, [world.file("b.json")])
    rows = spark.read.format("delta").load(f"{world.lake}/a").orderBy("_batch")
    assert [(row["spots"][0].asDict(), row["_rescued"]) for row in rows.collect()] == [
        ({"x": 1, "y": None}, '{"spots":[{"x":1,"y":2}]}'),
        ({"x": 3, "y": 4}, None),
    ]
