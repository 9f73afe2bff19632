"""Tables that grow in the running stream: what the second file brings is a column in the batch that brings it, without a
restart, and null in the rows from before; whatever is odd about it has an outcome, stated here."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.events import BatchCommitted
from forebay.events import Event
from forebay.jobs.ingest import ingest
from forebay.settings import IngestSettings
from forebay_local.twin.twin import Twin
from tests.journey.story import Story, lines, story

SERVICE = """
name = "studio"
[[tables]]
name = "flat"
where = { kind = "flat" }
undeclared = { flatten = "_" }
[[tables]]
name = "{game}"
columns = [
  { name = "n", type = "long" },
  { name = "tags", type = "map" },
  { name = "at_s", type = "timestamp", unit = "s" },
  { name = "at_ms", type = "timestamp", unit = "ms" },
  { name = "at_us", type = "timestamp", unit = "us" },
  { name = "at_zone", type = "timestamp" },
  { name = "at_none", type = "timestamp" },
]
"""

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())
MANY = {f"k{n:04}": n for n in range(5000)}
LONG = "x" * 300


@dataclass(frozen=True)
class Case:
    """Two batches of one record each: the columns afterwards, the second row's values that are not null, and what is rescued
    of it. Every table has `n` and `game` besides."""

    first: dict[str, Any]
    later: dict[str, Any]
    columns: dict[str, str]
    values: dict[str, Any]
    rescued: Any = None
    had: dict[str, Any] = field(default_factory=dict)
    """The first row's values."""


CASES = {
    "a_new_field": Case({}, {"b": 5}, {"b": "bigint"}, {"b": 5}),
    "a_new_nested_field": Case(
        {"o": {"x": 1}},
        {"o": {"x": 2, "y": "t"}},
        {"o": "struct<x:bigint,y:string>"},
        {"o": {"x": 2, "y": "t"}},
        had={"o": {"x": 1, "y": None}},
    ),
    "number_then_text": Case({"a": 1}, {"a": "x"}, {"a": "bigint"}, {}, {"a": "x"}, {"a": 1}),
    "text_then_number": Case({"a": "x"}, {"a": 1}, {"a": "string"}, {"a": "1"}, {"a": 1}, {"a": "x"}),
    "whole_then_fraction": Case({"a": 1}, {"a": 2.5}, {"a": "bigint"}, {}, {"a": 2.5}, {"a": 1}),
    "fraction_then_whole": Case({"a": 2.5}, {"a": 1}, {"a": "double"}, {"a": 1.0}, None, {"a": 2.5}),
    "truth_then_number": Case({"a": True}, {"a": 1}, {"a": "boolean"}, {}, {"a": 1}, {"a": True}),
    "object_then_list": Case({"a": {"x": 1}}, {"a": [1]}, {"a": "struct<x:bigint>"}, {}, {"a": [1]}, {"a": {"x": 1}}),
    "list_then_object": Case({"a": [1]}, {"a": {"x": 1}}, {"a": "array<bigint>"}, {}, {"a": {"x": 1}}, {"a": [1]}),
    "map_that_is_declared": Case(
        {"tags": {"k": 1}},
        {"tags": MANY},
        {},
        {"tags": {k: str(v) for k, v in MANY.items()}},
        None,
        {"tags": {"k": "1"}},
    ),
    "twins_in_two_files": Case({"Level": 1}, {"level": 2}, {"level": "bigint"}, {"level": 2}, None, {"level": 1}),
    "twins_in_one_record": Case({}, {"level": 2, "Level": 1}, {"level": "bigint"}, {"level": 2}, {"Level": 1}),
    "reserved_words": Case(
        {},
        {"select": 1, "from": "x", "table": True, "order": [1]},
        {"select": "bigint", "from": "string", "table": "boolean", "order": "array<bigint>"},
        {"select": 1, "from": "x", "table": True, "order": [1]},
    ),
    "an_empty_key": Case({}, {"": 1}, {"empty": "bigint"}, {"empty": 1}),
    "keys_that_are_no_names": Case(
        {},
        {"a.b": 1, "c d": 2, "`": 3, "größe": 4, "_line": 5},
        {"a_b": "bigint", "c_d": "bigint", "x_": "bigint", "gr__e_d353a267": "bigint", "x_line": "bigint"},
        {"a_b": 1, "c_d": 2, "x_": 3, "gr__e_d353a267": 4, "x_line": 5},
    ),
    "null_only": Case({"a": None}, {"a": None}, {}, {}),
    "null_before_anything_is_known": Case({"a": None}, {"a": 7}, {"a": "bigint"}, {"a": 7}),
    "declared_times": Case(
        {},
        {
            "at_s": SECONDS,
            "at_ms": SECONDS * 1000,
            "at_us": SECONDS * 10**6,
            "at_zone": "2026-11-21T14:00:00+02:00",
            "at_none": "2026-11-21 12:00:00",
        },
        {},
        dict.fromkeys(("at_s", "at_ms", "at_us", "at_zone", "at_none"), NOON),
    ),
    "times_that_nobody_declared": Case(
        {},
        {"at": "2026-11-21 12:00:00", "ms": SECONDS * 1000},
        {"at": "string", "ms": "bigint"},
        {"at": "2026-11-21 12:00:00", "ms": SECONDS * 1000},
    ),
    "nested_too_deep": Case(
        {},
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}},
        {"a": "struct<b:struct<c:struct<d:struct<e:struct<f:string>>>>>"},
        {"a": {"b": {"c": {"d": {"e": {"f": '{"g":1}'}}}}}},
    ),
    "flat": Case(
        {"kind": "flat"},
        {"kind": "flat", "pos": {"x": 1, "at": {"y": 2}}},
        {"pos_x": "bigint", "pos_at_y": "bigint", "kind": "string"},
        {"pos_x": 1, "pos_at_y": 2, "kind": "flat"},
        had={"kind": "flat"},
    ),
}

OWN = ("_file_id", "_line", "_batch", "_ingested_at", "_rescued", "game", "n")
DECLARED = ("tags", "at_s", "at_ms", "at_us", "at_zone", "at_none")


@pytest.fixture(scope="module")
def told(twin: Twin, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """One job takes in both files: the second is put when the batch of the first is over."""
    folder = tmp_path_factory.mktemp("growing")
    (folder / "service.toml").write_text(SERVICE)
    extra = {"map_that_is_not_declared": ({}, {"m": MANY}), "a_long_name": ({}, {LONG: 1})}
    both = {name: (case.first, case.later) for name, case in CASES.items()} | extra
    files = [lines([{"game": name, "n": n, **pair[n]} for name, pair in both.items()]) for n in range(2)]
    with story(twin) as told:
        stop = threading.Event()

        def emit(event: Event) -> None:
            told.events.append(event)
            if isinstance(event, BatchCommitted):
                if event.batch == 0:
                    told.put("second.json", files[1])
                else:
                    stop.set()

        told.put("first.json", files[0])
        settings = IngestSettings(lake=told.lake, queue_url=told.queue_url, service=str(folder), trigger_s=0, wait_s=1)
        ingest(settings, emit=emit, stop=stop)
        assert [event.batch for event in told.events if isinstance(event, BatchCommitted)] == [0, 1]
        assert told.accounts().differences() == []
        yield told


def columns_of(told: Story, spark: SparkSession, table: str) -> dict[str, str]:
    schema = spark.read.format("delta").load(f"{told.lake}/{table}").schema
    return {f.name: f.dataType.simpleString() for f in schema.fields if f.name not in (*OWN, *DECLARED)}


def rows_of(told: Story, table: str) -> tuple[dict[str, Any], dict[str, Any]]:
    first, later = told.rows(table, "select * from t order by _batch")
    return first, later


def values_of(row: dict[str, Any]) -> dict[str, Any]:
    row = {name: dict(value) if isinstance(value, list) and name == "tags" else value for name, value in row.items()}
    return {name: value for name, value in row.items() if value is not None and name not in OWN}


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_what_a_file_brings_ends_where_it_is_stated(told: Story, spark: SparkSession, name: str) -> None:
    case = CASES[name]
    first, later = rows_of(told, name)
    assert columns_of(told, spark, name) == case.columns
    assert values_of(later) == case.values
    assert (later["_rescued"] and json.loads(later["_rescued"])) == case.rescued
    assert values_of(first) == case.had
    assert first["_rescued"] is None


def test_an_object_whose_keys_are_identifiers_is_one_column_of_json(told: Story, spark: SparkSession) -> None:
    _, later = rows_of(told, "map_that_is_not_declared")
    assert (json.loads(later["m"]), later["_rescued"]) == (MANY, None)
    assert columns_of(told, spark, "map_that_is_not_declared") == {"m": "string"}


def test_a_long_key_gets_a_shorter_name_and_is_kept_beside_it(told: Story, spark: SparkSession) -> None:
    (column,) = columns_of(told, spark, "a_long_name")
    assert len(column) == 120
    field = spark.read.format("delta").load(f"{told.lake}/a_long_name").schema[column]
    assert field.metadata == {"forebay.fields": [LONG]}
    assert rows_of(told, "a_long_name")[1][column] == 1
