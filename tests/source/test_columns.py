"""Documents into declared columns, without Spark; tests/declared_sql/test_columns.py compares them with those of a batch."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from forebay.errors import InvalidConfiguration
from forebay.source.columns import columns_of, refuse_types

LONG, TEXT = T.LongType(), T.StringType()


def schema(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


def one(text: str, kind: T.DataType) -> Any:
    """The value of field `a`, and whether the document fitted."""
    columns = columns_of([text], schema(a=kind), UTC)
    return columns.arrays[0][0].as_py(), not columns.misfits


def test_a_field_that_does_not_fit_is_null_and_its_siblings_stay() -> None:
    columns = columns_of(['{"a": 1, "b": "x"}', '{"a": "one", "b": "y"}'], schema(a=LONG, b=TEXT), UTC)
    assert [array.to_pylist() for array in columns.arrays] == [[1, None], ["x", "y"]]
    assert columns.misfits == {1}


def test_a_field_that_is_not_there_is_null_and_one_that_nobody_declared_is_passed_over() -> None:
    columns = columns_of(['{"b": 1}', '{"a": null}'], schema(a=LONG), UTC)
    assert (columns.arrays[0].to_pylist(), columns.misfits) == ([None, None], set())


@pytest.mark.parametrize("text", ["", "nonsense", '{"a": 1', '{"a": 1} {"a": 2}', "[]", '"a"', "{'a': 1}", "[" * 9999])
def test_what_is_no_single_object_fits_nowhere(text: str) -> None:
    assert one(text, LONG) == (None, False)


@pytest.mark.parametrize("kind", [T.LongType(), T.IntegerType(), T.ShortType(), T.ByteType()])
def test_an_integer_must_be_one_and_small_enough(kind: T.DataType) -> None:
    bits = {"bigint": 63, "int": 31, "smallint": 15, "tinyint": 7}[kind.simpleString()]
    assert one(f'{{"a": {2**bits - 1}}}', kind) == (2**bits - 1, True)
    assert one(f'{{"a": {-(2**bits)}}}', kind) == (-(2**bits), True)
    assert one('{"a": " +7 "}', kind) == (7, True)
    for text in (str(2**bits), str(-(2**bits) - 1), "1.0", "1e0", '"1_0"', "true", "[]"):
        assert one(f'{{"a": {text}}}', kind) == (None, False)


def test_one_value_that_does_not_fit_costs_its_column_nothing() -> None:
    columns = columns_of(['{"a": 1}', '{"a": 99999999999999999999}', '{"a": 3}'], schema(a=LONG), UTC)
    assert (columns.arrays[0].to_pylist(), columns.misfits) == ([1, None, 3], {1})


def test_what_is_no_text_becomes_compact_json_with_each_digit_in_a_text() -> None:
    for text, becomes in (("1.10", "1.10"), ("-0", "-0"), ("1E400", "1E400"), ('{"x" : [1, 2.0]}', '{"x":[1,2.0]}')):
        assert one(f'{{"a": {text}}}', TEXT) == (becomes, True)
    assert one('{"a": "é"}', TEXT) == ("é", True)


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    assert one('{"a": "\\ud800x"}', TEXT) == (None, False)


def test_a_decimal_is_exact_or_does_not_fit() -> None:
    kind = T.DecimalType(38, 2)
    digits = "123456789012345678901234567890123456.78"
    assert one(f'{{"a": {digits}}}', kind) == (Decimal(digits), True)
    assert one(f'{{"a": {digits}5}}', kind) == (None, False)
    assert one('{"a": 1234.5}', T.DecimalType(5, 2)) == (None, False)


def test_a_number_that_a_double_only_comes_near_fits_and_is_named() -> None:
    columns = columns_of(['{"a": 0.1}', '{"a": 12345678901234567.89}', '{"a": 1E400}'], schema(a=T.DoubleType()), UTC)
    assert columns.arrays[0].to_pylist() == [0.1, 12345678901234567.89, None]
    assert (columns.misfits, columns.inexact) == ({2}, {1})


def test_an_element_that_does_not_fit_is_null_and_the_others_stay() -> None:
    assert one('{"a": [1, "x"]}', T.ArrayType(LONG)) == ([1, None], False)
    assert one('{"a": [1, null]}', T.ArrayType(LONG)) == ([1, None], True)
    inner = T.ArrayType(schema(x=LONG, y=TEXT))
    assert one('{"a": [{"x": 1}, {"x": "q", "y": "k"}]}', inner) == (
        [{"x": 1, "y": None}, {"x": None, "y": "k"}],
        False,
    )
    columns = columns_of(['{"a": [1]}', '{"a": ["x", 2]}', '{"a": []}', "{}"], schema(a=T.ArrayType(LONG)), UTC)
    assert (columns.arrays[0].to_pylist(), columns.misfits) == ([[1], [None, 2], [], None], {1})


def test_a_map_keeps_every_key() -> None:
    kind = T.MapType(TEXT, LONG)
    texts = ['{"a": {"k": 1, "l": null}}', '{"a": {"k": "x"}}', "{}", '{"a": {"\\ud800": 1}}']
    columns = columns_of(texts, schema(a=kind), UTC)
    assert columns.arrays[0].to_pylist() == [[("k", 1), ("l", None)], [("k", None)], None, None]
    assert columns.misfits == {1, 3}


def test_a_moment_without_a_zone_is_local_to_the_readers() -> None:
    for zone, hour in ((UTC, 3), (ZoneInfo("Europe/Berlin"), 2)):
        columns = columns_of(['{"a": "2024-01-02 03:04:05"}'], schema(a=T.TimestampType()), zone)
        assert columns.arrays[0].to_pylist() == [datetime(2024, 1, 2, hour, 4, 5, tzinfo=UTC)]


@pytest.mark.parametrize(
    "text", ['"10:00:00"', '"2026"', "86400", '"99999-01-01"', '"2024-01-02T03:04:05 Mars/Olympus"', "1.5", "{}"]
)
def test_what_is_no_moment_for_certain_is_null(text: str) -> None:
    assert one(f'{{"a": {text}}}', T.TimestampType()) == (None, False)


def test_a_day_has_no_time() -> None:
    assert one('{"a": "2024-02-29T23:00:00+05:00"}', T.DateType()) == (date(2024, 2, 29), True)
    assert one('{"a": "20240102"}', T.DateType()) == (None, False)


def test_bytes_are_base64() -> None:
    assert one('{"a": "YWJj"}', T.BinaryType()) == (b"abc", True)
    assert one('{"a": "YW"}', T.BinaryType()) == (None, False)


def test_types_that_json_is_not_read_into_are_refused_all_at_once() -> None:
    wanted = schema(
        a=T.VariantType(), b=T.ArrayType(T.DayTimeIntervalType(0, 0)), c=T.MapType(T.IntegerType(), TEXT), d=TEXT
    )
    with pytest.raises(InvalidConfiguration) as refused:
        refuse_types(wanted)
    assert [problem.what for problem in refused.value.problems] == [
        "JSON is not read into interval day",
        "JSON is not read into map<int,string>",
        "JSON is not read into variant",
    ]


KINDS = schema(
    a=LONG,
    b=TEXT,
    c=T.DoubleType(),
    d=T.TimestampType(),
    e=T.DecimalType(9, 2),
    f=T.ArrayType(schema(x=T.ByteType())),
    g=T.MapType(TEXT, T.ArrayType(T.DateType())),
    h=schema(x=schema(y=T.FloatType())),
    i=T.ArrayType(T.ArrayType(T.BinaryType())),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdefghixy"), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.text() | st.dictionaries(st.sampled_from("abcdefghi"), JSON).map(json.dumps), max_size=5))
def test_no_text_makes_it_fail(texts: list[str]) -> None:
    columns = columns_of(texts, KINDS, UTC)
    assert {len(array) for array in columns.arrays} == {len(texts)}
