"""The declared columns of present rows: values stay, move in from the record, or become another type; the rest is rescued."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from forebay.declaration.loading import parse_service
from forebay.operate.declaring.redeclared import redeclared
from forebay.table.as_records import as_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVICE = """
name = "s"
[[tables]]
name = "a"
columns = [
  { name = "n", type = "long" }, { name = "level" }, { name = "at", type = "timestamp", formats = ["dd/MM/yyyy"] },
  { name = "day", type = "date", path = "player.day", formats = ["yyyyMMdd"] }, { name = "kept", type = "double" },
  { name = "price", type = "decimal(9,2)", path = "item.price" }, { name = "tag", path = "tags[1]" },
  { name = "file", path = "@file" }, { name = "flag", type = "boolean", path = "is.flag" },
  { name = "rest", type = "map" }, { name = "sum", type = "long", expression = "n + 1" },
]
"""
TABLE = """
_file_id string, _line long, n double, level long, at string, kept double, flag string, rest struct<a: int>,
player struct<day: string, id: int>, tags array<string>, game string, _rescued string
"""


def test_every_value_finds_its_place(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [
        ("f", 1, 3.0, 7, "21/11/2026", 0.5, "yes", (1,), ("20261121", 1), ["x", "y"], "g", '{"item":{"price":1.50}}'),
        ("f", 2, 2.5, None, "soon", None, "odd", None, ("late", 2), ["x"], "g", '{"kept":1.25}'),
        ("f", 3, None, None, None, None, None, None, None, None, None, '{"item":{"price":1.005},"n":"4","at":"1/1"}'),
    ]
    table = parse_service({"service.toml": SERVICE}).tables[0]
    came = ["player", "tags", "game"]
    made = redeclared(as_records(spark.createDataFrame(rows, TABLE), came), table)
    one, two, three = (row.asDict(recursive=True) for row in made.orderBy("_line").collect())
    assert made.columns[: len(table.columns)] == [column.name for column in table.columns]

    def declared(row: dict[str, Any]) -> dict[str, Any]:
        values = {column.name: row[column.name] for column in table.columns}
        at = values["at"] and values["at"].astimezone(UTC)
        return {name: value for name, value in (values | {"at": at}).items() if value is not None}

    assert declared(one) == {
        "n": 3,
        "level": "7",
        "at": datetime(2026, 11, 21, tzinfo=UTC),
        "day": date(2026, 11, 21),
        "kept": 0.5,
        "price": one["price"],
        "tag": "y",
        "flag": True,
        "rest": {"a": "1"},
    }
    assert str(one["price"]) == "1.50"
    assert declared(two) == {"kept": 1.25}
    assert declared(three) == {"n": 4}
    misfits = [json.loads(row["_misfits"] or "[]", parse_float=str) for row in (one, two, three)]
    assert misfits[0] == []
    wrong = {"player": {"day": "late"}}, {"n": "2.5"}, {"at": "soon"}, {"is": {"flag": "odd"}}
    assert sorted(map(str, misfits[1])) == sorted(map(str, wrong))
    assert sorted(map(str, misfits[2])) == sorted(map(str, ({"item": {"price": "1.005"}}, {"at": "1/1"})))
    assert json.loads(two["_document"])["player"] == {"day": "late", "id": 2}


def test_what_was_rescued_of_a_field_is_not_lost_with_its_new_type(spark: SparkSession) -> None:
    """The column has the nearest double, an array with gaps, or some fields of an object; or the value of another key."""
    service = """
name = "s"
[[tables]]
name = "a"
columns = [
  { name = "exact", type = "decimal(38,20)" }, { name = "said" }, { name = "some", type = "json" },
  { name = "part", type = "json" }, { name = "level" }, { name = "score", type = "long" }, { name = "at", type = "date" },
  { name = "sum", type = "long", expression = "score + 1" },
]
"""
    names = "exact double, said double, some array<bigint>, part struct<a: int>, level int, score bigint, at timestamp"
    names += ", sum bigint"
    at = datetime(2026, 11, 21, tzinfo=UTC)
    digits = "0.10000000000000000001"
    rescued = f'{{"exact":{digits},"said":{digits},"some":[1,"x"],"part":{{"b":[2]}},"Level":6,"Score":8}}'
    rescued = f'{rescued[:-1]},"sum":null,"was":null}}'
    rows: list[tuple[Any, ...]] = [
        ("f", 1, 0.1, 0.1, [1, None], (1,), 5, 7, at, None, rescued),
        ("f", 2, 0.5, 0.5, [1], (1,), 5, 7, at, 8, None),
        ("f", 3, None, None, None, None, None, None, None, None, rescued),
    ]
    table = parse_service({"service.toml": service}).tables[0]
    frame = spark.createDataFrame(rows, f"_file_id string, _line long, {names}, _rescued string")
    made = redeclared(as_records(frame, [], {}), table).orderBy("_line").collect()
    values = [[str(row[column.name]) for column in table.columns] for row in made]
    assert values == [
        [digits, digits, '[1,"x"]', '{"a":1,"b":[2]}', "5", "7", "2026-11-21", "None"],
        ["0.50000000000000000000", "0.5", "[1]", '{"a":1}', "5", "7", "2026-11-21", "8"],
        [digits, digits, '[1,"x"]', '{"b":[2]}', "6", "8", "None", "None"],
    ]
    misfits = [json.loads(row["_misfits"] or "[]") for row in made]
    assert misfits == [[{"sum": None}, {"Level": 6}, {"Score": 8}], [], [{"sum": None}]]


def test_a_column_that_becomes_an_array_or_a_struct_keeps_every_value(spark: SparkSession) -> None:
    service = """
name = "s"
[[tables]]
name = "a"
columns = [
  { name = "ids", type = "array<long>" }, { name = "texts", type = "array<string>" },
  { name = "at", type = "struct<x: double, tags: array<string>>" }, { name = "same", type = "struct<X: long>" },
]
"""
    names = "ids string, texts array<bigint>, at struct<x: bigint, tags: string>, same struct<X: bigint>"
    rows: list[tuple[Any, ...]] = [
        ("f", 1, "[1, 2]", [1, None], (1, '["a"]'), (1,), None),
        ("f", 2, "[1.5]", [], None, (2,), '{"same":{"X":2,"z":0.50}}'),
        ("f", 3, None, None, None, None, '{"ids":[7],"at":{"x":0.5}}'),
    ]
    table = parse_service({"service.toml": service}).tables[0]
    frame = spark.createDataFrame(rows, f"_file_id string, _line long, {names}, _rescued string")
    made = redeclared(as_records(frame, [], {}), table).orderBy("_line").collect()
    values = [[value for name, value in row.asDict(recursive=True).items() if name in names] for row in made]
    assert values == [
        [[1, 2], ["1", None], None, {"X": 1}],
        [None, [], None, {"X": 2}],
        [[7], None, {"x": 0.5, "tags": None}, None],
    ]
    misfits = [json.loads(row["_misfits"] or "[]", parse_float=str) for row in made]
    assert misfits == [[{"at": '{"x":1,"tags":"[\\"a\\"]"}'}], [{"ids": "[1.5]"}, {"same": {"X": 2, "z": "0.50"}}], []]


def test_parts_of_every_type_keep_their_value_where_a_struct_gets_another_field(spark: SparkSession) -> None:
    parts = "t: timestamp, b: binary, f: float, m: map, d: date, p: decimal(20,10)"
    service = f"""
name = "s"
[[tables]]
name = "a"
columns = [
  {{ name = "at", type = "struct<{parts}, new: long>" }}, {{ name = "texts", type = "array<string>" }},
  {{ name = "doubles", type = "array<double>" }}, {{ name = "whole" }},
]
"""
    had = parts.replace("map", "map<string,string>")
    ddl = f"at struct<{had}>, texts array<binary>, doubles array<float>, whole struct<t: timestamp, f: float>"
    noon = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
    value = (noon, "é".encode(), 0.1, {"k": None, "l": "1.50"}, date(2026, 11, 21), Decimal("1.5"))
    rows = [("f", 1, value, [b"ab", None], [0.1], (noon, 0.1), None)]
    frame = spark.createDataFrame(rows, f"_file_id string, _line long, {ddl}, _rescued string")
    (row,) = redeclared(as_records(frame, [], {}), parse_service({"service.toml": service}).tables[0]).collect()
    at = row["at"].asDict()
    assert at.pop("t").astimezone(UTC) == noon
    single = frame.select("at.f").collect()[0]["f"]
    assert at == {"b": "é".encode(), "f": single, "m": value[3], "d": value[4], "p": value[5], "new": None}
    assert (row["texts"], row["doubles"], row["_misfits"]) == (["ab", None], [0.1], None)
    assert row["whole"] == '{"t":"2026-11-21T12:00:00.123456Z","f":0.1}'
    (record,) = as_records(frame, ["at", "doubles"], {}).collect()
    said = json.loads(record["_document"])
    assert (said["at"]["f"], said["doubles"]) == (0.1, [0.1])
