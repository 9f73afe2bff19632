"""The types of columns, as people write them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from forebay.declaration.column_type import ArrayOf, StructOf, column_type, parts_of
from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration
from forebay.nesting import DEEPEST_COLUMN

DEEP = "array<" * DEEPEST_COLUMN + "int" + ">" * DEEPEST_COLUMN


@pytest.mark.parametrize(
    ("written", "spelled", "parts"),
    [
        ("array<string>", "array<string>", ArrayOf("string")),
        ("ARRAY < bigint >", "array<long>", ArrayOf("long")),
        ("struct<x double, y double>", "struct<x:double,y:double>", StructOf({"x": "double", "y": "double"})),
        ("struct<X: double>", "struct<X:double>", StructOf({"X": "double"})),
        (
            "array<struct<sku string, price decimal(10, 2)>>",
            "array<struct<sku:string,price:decimal(10,2)>>",
            ArrayOf(StructOf({"sku": "string", "price": "decimal(10,2)"})),
        ),
        (
            "struct<tags: array<map>, at timestamp>",
            "struct<tags:array<map>,at:timestamp>",
            StructOf({"tags": ArrayOf("map"), "at": "timestamp"}),
        ),
    ],
)
def test_a_type_in_sparks_ddl_has_one_spelling(written: str, spelled: str, parts: Any) -> None:
    assert (column_type(written), column_type(spelled), parts_of(spelled)) == (spelled, spelled, parts)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("array<>", "must be one of string"),
        ("struct<>", "where a struct needs a field"),
        ("struct<x>", "has 'x' where a struct needs a field"),
        ("struct<x: double, X: int>", "names the field X twice"),
        ("array<array<int>", "has a < without its >"),
        ("struct<a: long, at: array<struct<x: flaot>>>", "has the field at.x, which must be one of string"),
        ("struct<x: double NOT NULL>", "did you mean double?"),
        (f"array<{DEEP}>", f"is nested deeper than {DEEPEST_COLUMN} levels"),
        ("array<decimal(39,2)>", "did you mean decimal(18,2)?"),
        ("array<strin>", "has elements, which must be one of string, "),
        ("array<struct<x: array<strin>>>", "has the field x, which must be one of string, "),
    ],
)
def test_a_wrong_type_is_refused_and_the_message_says_why(written: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        column_type(written)


def test_a_type_of_as_many_levels_as_may_be_is_taken() -> None:
    assert column_type(DEEP) == DEEP


@pytest.mark.parametrize("kind", ["array<string>", "struct<a: long>"])
@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ('partitions = ["x"]', "which cannot name a folder"),
        ('cluster_by = ["x"]', "for which Delta keeps no minimum and maximum"),
        ('dedupe = { by = ["x"] }', "which identifies no record; make it json"),
        ('compaction = { order_by = ["x"] }', "which has no order"),
        ('mode = "merge"\nmerge = { into = "b", keys = ["x"], sequence_by = ["n"] }', "it must be one of string"),
        ('mode = "merge"\nmerge = { into = "b", keys = ["n"], sequence_by = ["x"] }', "it must be one of "),
        ('event_time = { column = "x" }', "is not a declared column of type timestamp"),
    ],
)
def test_an_array_or_a_struct_is_refused_where_a_simple_value_is_needed(kind: str, setting: str, says: str) -> None:
    columns = f'columns = [{{ name = "x", type = "{kind}" }}, {{ name = "n", type = "long" }}]'
    with pytest.raises(InvalidConfiguration) as refused:
        parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\n{columns}\n{setting}'})
    assert says in str(refused.value)


@pytest.mark.parametrize(("fields", "is_indexed"), [(31, True), (32, False)])
def test_a_struct_takes_as_many_columns_of_statistics_as_it_has_fields(fields: int, is_indexed: bool) -> None:
    kind = (
        f"struct<{', '.join(f'f{n}: long' for n in range(fields - 1))}, s: struct<many: array<struct<a: int, b: int>>>>"
    )
    columns = f'columns = [{{ name = "x", type = "{kind}" }}, {{ name = "n", type = "long" }}]'
    told = {"service.toml": f'name = "s"\n[[tables]]\nname = "a"\n{columns}\ncluster_by = ["n"]'}
    if is_indexed:
        parse_service(told)
    else:
        with pytest.raises(InvalidConfiguration, match=r"n must be among the first 32 columns \(a struct counts"):
            parse_service(told)
