"""Declared columns of many records at once are what the definition says of each record."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from forebay.declaration.column_type import PLAIN_TYPES
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.declared_sql.columns import rules_of
from forebay.record import typed as way
from forebay.record.conform import Records
from forebay.record.number import read_json
from forebay.record.typed import NotOrdinary, typed

KINDS = (*PLAIN_TYPES, "decimal(9,2)", "decimal(38,18)")
KINDS += ("array<string>", "array<double>", "array<array<long>>", "struct<a:decimal(9,2)>", "struct<a:json,C:map>")
KINDS += ("array<struct<a:struct<b:double>>>", "array<timestamp>", "struct<c:binary,a:date>")
COLUMNS = [f'{{ name = "c{n}", type = "{kind}", path = "v" }}' for n, kind in enumerate(KINDS)]
COLUMNS += [
    f'{{ name = "u_{unit}", type = "timestamp", unit = "{unit}", path = "v" }}' for unit in ("s", "ms", "us", "ns")
]
COLUMNS += ['{ name = "d", type = "date", unit = "ms", path = "v" }', '{ name = "deep", type = "long", path = "p.q" }']
COLUMNS += ['{ name = "first", type = "long", path = "v[0]" }', '{ name = "inner", path = "v[1].a" }']
WHOLE = ["0", "-0", "1", "7", "-1", "127", "2147483647", "2147483648", "9007199254740992", "9007199254740993"]
WHOLE += ["9223372036854775807", "9223372036854775808", "1700000000", "1700000000123", "253402300800", "-62135596801"]
FRACTIONS = ["0.1", "9.99", "-1.5", "1.0", "1e3", "1.10", "0.12345678901234567", "1e400", "16777217.0", "123456.789"]
TEXTS = [
    "",
    "a",
    "7",
    " 7 ",
    "1.5",
    "true",
    "no",
    "NaN",
    "2026-01-31",
    "2026-01-31T10:00:00Z",
    "2026-01-31 10:00:00.5Z",
]
TEXTS += ["2026-02-30T10:00:00Z", "2026-01-31T10:00Z", "20260131T100000", "9999-12-31T23:59:59.999999Z", "\ud800", "é"]
OTHERS = ["null", "true", "false", "[]", "{}", '{"a":1}', "[1]", '["x",{"A":2}]', '{"a":{"b":1.10},"c":null}']
OTHERS += [
    "[null]",
    "[[1,null],[]]",
    '[{"a":{"b":0.5}},null,{}]',
    '{"A":7,"c":{}}',
    '["2026-01-31T10:00:00Z"]',
    '"[1]"',
    '"null"',
]
OTHERS += ['["\\ud800"]', '{"a":{"b":12345678901234567.89}}', '{"a":"2026-01-31","b":[1]}', "[1e400]"]


@pytest.fixture(scope="module")
def service() -> Service:
    return parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{", ".join(COLUMNS)}]'})


def by_definition(service: Service, texts: list[str]) -> list[tuple[list[Any], Any]]:
    columns = service.tables[0].columns
    paths = [way.parse_path(column.source) for column in columns]
    return [way._walked(text, columns, paths) for text in texts]


def at_once(service: Service, texts: list[str]) -> list[tuple[list[Any], Any]]:
    table = service.tables[0]
    made = typed(Records(pa.array(texts, pa.string()), rules_of(table)), table.columns)
    arrays = [array.to_pylist() for array in made.columns]
    return [([array[n] for array in arrays], made.misfits[n].as_py()) for n in range(len(texts))]


def must_be_alike(service: Service, texts: list[str]) -> None:
    columns = service.tables[0].columns
    wanted, got = by_definition(service, texts), at_once(service, texts)
    for text, (values, misfits), (mine, odd) in zip(texts, wanted, got, strict=True):
        held = [way._array([value], column)[0].as_py() for value, column in zip(values, columns, strict=True)]
        assert len(held) == len(mine)
        for column, one, other in zip(columns, held, mine, strict=True):
            assert _same(one, other), (text, column.name, one, other)
        assert (misfits and read_json(misfits)) == (odd and read_json(odd)), text


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    return bool(one == other)


@pytest.mark.parametrize("values", [WHOLE, FRACTIONS, [json.dumps(text) for text in TEXTS], OTHERS])
def test_values_alone_and_beside_their_like_are_what_the_definition_says(service: Service, values: list[str]) -> None:
    texts = [f'{{"v":{value},"x":1}}' for value in values]
    must_be_alike(service, texts)
    for text in texts:
        must_be_alike(service, [text, text])


@pytest.mark.parametrize("seed", range(40))
def test_random_mixtures_are_what_the_definition_says(service: Service, seed: int) -> None:
    random = Random(seed)
    pool = [*WHOLE, *FRACTIONS, *(json.dumps(text) for text in TEXTS), *OTHERS]
    some = random.sample(pool, random.randint(1, 4))
    keys = random.choices(['"v"', '"V"', '"p":{"q":3},"v"', '"p":{"Q":"x"},"v"', '"p":7,"v"'], k=2)
    texts = [f"{{{random.choice(keys)}:{random.choice(some)}}}" for _ in range(random.randint(1, 30))]
    must_be_alike(service, texts)


def test_a_record_that_cannot_be_read_here_is_told(service: Service) -> None:
    with pytest.raises(NotOrdinary):
        at_once(service, ['{"v":1}', '{"v":1} {"v":2}'])
