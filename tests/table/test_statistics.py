"""What is said of a data file, without Spark. That Delta says the same of the same rows, test_fan_out.py shows."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.table.data_files.statistics import Statistics, cut_above


def statistics(*pieces: pa.Table) -> Any:
    found = Statistics()
    for piece in pieces:
        found.observe(piece)
    return json.loads(found.as_json())


def column(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"c": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("values", "kind", "low", "high"),
    [
        ([3, None, -1], pa.int64(), -1, 3),
        ([2**63 - 1, -(2**63)], pa.int64(), -(2**63), 2**63 - 1),
        ([0.5, -2.5], pa.float64(), -2.5, 0.5),
        ([date(2026, 1, 2), date(2025, 1, 2)], pa.date32(), "2025-01-02", "2026-01-02"),
        (
            [datetime(2026, 1, 2, 3, 4, 5, 678999, UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)],
            pa.timestamp("us", "UTC"),
            "1969-12-31T23:59:59.999Z",
            "2026-01-02T03:04:05.678Z",
        ),
        (["b", "ä", "a"], pa.string(), "a", "ä"),
    ],
)
def test_bounds_are_written_as_delta_reads_them(values: list[Any], kind: pa.DataType, low: Any, high: Any) -> None:
    found = statistics(column(values, kind))
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == (low, high)
    assert found["nullCount"]["c"] == values.count(None)
    assert found["numRecords"] == len(values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], pa.bool_()),
        ([b"x"], pa.binary()),
        ([None, None], pa.int64()),
        ([float("nan")], pa.float64()),
        ([float("inf"), float("-inf")], pa.float64()),
        ([[1], None], pa.list_(pa.int64())),
        ([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        ([-(2**62)], pa.timestamp("us", "UTC")),
        ([2**30], pa.date32()),
    ],
)
def test_what_has_no_order_or_no_words_has_a_null_count_only(values: list[Any], kind: pa.DataType) -> None:
    found = statistics(column(values, kind))
    assert (found["minValues"], found["maxValues"]) == ({}, {})
    assert found["nullCount"] == {"c": values.count(None)}


def test_nan_is_above_every_number_so_there_is_no_maximum() -> None:
    found = statistics(column([1.0, float("nan"), 5.0], pa.float64()), column([7.0], pa.float64()))
    assert (found["minValues"], found["maxValues"]) == ({"c": 1.0}, {})


def test_a_decimal_keeps_all_its_digits() -> None:
    big = Decimal("12345678901234567890123456789.123456789")
    found = Statistics()
    found.observe(column([big], pa.decimal128(38, 9)))
    assert f'"maxValues":{{"c":{big}}}' in found.as_json()


def test_pieces_add_up() -> None:
    found = statistics(column([5, None], pa.int64()), column([None, 1], pa.int64()), column([None], pa.int64()))
    assert found == {"numRecords": 5, "minValues": {"c": 1}, "maxValues": {"c": 5}, "nullCount": {"c": 3}}


def test_a_field_is_null_where_its_struct_is() -> None:
    kind = pa.struct([("a", pa.int64()), ("in", pa.struct([("b", pa.string())]))])
    found = statistics(column([{"a": 1, "in": {"b": "x"}}, None, {"a": None, "in": None}], kind))
    assert found["nullCount"] == {"c": {"a": 2, "in": {"b": 2}}}
    assert found["maxValues"] == {"c": {"a": 1, "in": {"b": "x"}}}


def test_only_the_first_32_leaves_are_counted() -> None:
    wide = pa.table(
        {
            "s": pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int64()), ("b", pa.int64())])),
            **{f"c{i}": pa.array([i]) for i in range(40)},
        }
    )
    assert list(statistics(wide)["nullCount"]) == ["s", *(f"c{i}" for i in range(30))]


def test_long_strings_are_cut_to_32_characters_and_the_maximum_is_raised() -> None:
    found = statistics(column(["a" * 33, "z" * 40], pa.string()))
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == ("a" * 32, "z" * 32 + "\x7f")


def test_a_string_of_nothing_but_last_characters_has_no_maximum() -> None:
    assert cut_above("\U0010ffff" * 100) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_a_cut_maximum_is_never_below_the_string(text: str) -> None:
    cut = cut_above(text)
    assert cut is None or (cut >= text and len(cut) <= 65)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1))
def test_bounds_hold_for_every_string_in_the_order_of_bytes(values: list[str]) -> None:
    found = statistics(column(values, pa.string()))
    low, high = found["minValues"]["c"].encode(), found["maxValues"].get("c", "\U0010ffff" * 100).encode()
    assert all(low <= value.encode() <= high for value in values)
