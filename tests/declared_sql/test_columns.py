"""Declared columns: each value as its type, or null and rescued; whatever else the record holds."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forebay.declaration.column import Column
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.declared_sql.columns import rules_of, spark_type, time_by_formats
from forebay.record.conform import Records
from forebay.record.number import problem_of
from forebay.record.route import Origin, route_of
from forebay.record.typed import typed
from forebay.source.columns import columns_of
from forebay.table.data_files.in_arrow import columns_of_ddl
from tests.batch.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def service_of(columns: str, more: str = "") -> Service:
    return parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{columns}]\n{more}'})


def made_of(service: Service, texts: list[str]) -> list[dict[str, Any]]:
    """The columns that are read from records, and `_misfits`."""
    table = service.tables[0]
    columns = [column for column in table.columns if column.expression is None]
    made = typed(Records(pa.array(texts, pa.string()), rules_of(table)), columns)
    arrays = dict(zip([column.name for column in columns], made.columns, strict=True)) | {"_misfits": made.misfits}
    return pa.table(arrays).to_pylist(maps_as_pydicts="strict")


def landed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str, texts: list[str]
) -> World:
    """After a batch of one file, with a line for each text."""
    world = World(
        spark, f"file://{tmp_path}/lake", monkeypatch, service=f'name = "s"\n[[tables]]\nname = "a"\n{service}'
    )
    world.answers["a.json"] = "\n".join(texts).encode()
    world.try_batch(0, [world.file("a.json")])
    return world


def misfits_of(row: dict[str, Any]) -> dict[str, Any]:
    """By the key at the top, with numbers as they are written."""
    return {
        key: value
        for one in json.loads(row["_misfits"] or "[]", parse_float=str, parse_int=str)
        for key, value in one.items()
    }


def test_each_value_is_read_as_its_type_or_is_a_misfit() -> None:
    noon = datetime(2026, 11, 21, 12)
    cases: list[tuple[str, Any, Any]] = [
        ("long", "17", 17),
        ("long", "seventeen", None),
        ("long", {"a": 1}, None),
        ("int", 2**40, None),
        ("double", "1.5", 1.5),
        ("boolean", "true", True),
        ("boolean", 7.5, None),
        ("decimal(9,2)", "1.25", Decimal("1.25")),
        ("decimal(3,2)", "123.4", None),
        ("map", {"k": 1, "l": {"m": 2}}, {"k": "1", "l": '{"m":2}'}),
        ("map", [1], None),
        ("json", {"k": [1, None]}, '{"k":[1,null]}'),
        ("date", "2026-11-21", date(2026, 11, 21)),
        ("timestamp", "2026-11-21T12:00:00Z", noon),
        ("timestamp", "2026-11-21T14:00:00+02:00", noon),
        ("timestamp", "2026-11-21 12:00:00", noon),
        ("timestamp", 1795262400, None),
        ("timestamp", "1795262400", None),
        ("timestamp", "yesterday", None),
        ("timestamp", "21/11/2026 12:00", None),
    ]
    columns = ", ".join(f'{{ name = "c{n}", type = "{kind}" }}' for n, (kind, _, _) in enumerate(cases))
    record = {f"c{n}": value for n, (_, value, _) in enumerate(cases)}
    (row,) = made_of(service_of(columns), [json.dumps(record)])
    wrong = {
        (kind, str(value)): row[f"c{n}"]
        for n, (kind, value, wanted) in enumerate(cases)
        if _naive(row[f"c{n}"]) != wanted
    }
    assert not wrong
    assert misfits_of(row).keys() == {f"c{n}" for n, (*_, wanted) in enumerate(cases) if wanted is None}


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def test_times_can_have_formats_of_their_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = '{ name = "x", type = "timestamp", path = "in.x", formats = ["dd/MM/yyyy HH:mm", "yyyyMMdd"] }'
    texts = [json.dumps({"in": {"x": text}}) for text in ("21/11/2026 12:00", "20261121", "2026-11-21")]
    world = landed(spark, tmp_path, monkeypatch, f"columns = [{column}]", texts)
    rows = sorted(world._table("a"), key=lambda row: row["_line"])
    assert [_naive(row["x"]) for row in rows] == [datetime(2026, 11, 21, 12), datetime(2026, 11, 21), None]
    assert [json.loads(row["_rescued"] or "null") for row in rows] == [None, None, {"in": {"x": "2026-11-21"}}]


def test_a_year_that_no_time_reaches_is_of_none_of_the_formats(spark: SparkSession) -> None:
    formats = ("yyyy-MM-dd'T'HH:mm", "yyyy-MM-dd", "yyyy")
    texts = ["+300000-01-01", "+300000-01-01T00:00", "+300000", "+10000", "9999"]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    made = time_by_formats(F.col("text"), Column(name="x", type="timestamp", formats=formats))
    found = rows.select(made.cast("string").alias("x")).collect()
    assert [row["x"] for row in found] == [None] * 4 + ["9999-01-01 00:00:00"]


def utc(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]


HALF_PAST = utc(2026, 11, 22, 10, 30)
MOMENTS: list[tuple[str, str, Any]] = [
    *(("", text, HALF_PAST) for text in ("2026-11-22T10:30Z", "2026-11-22 10:30", "2026-11-22t10:30:00.000z")),
    *(
        ("", text, HALF_PAST)
        for text in ("2026-11-22T12:30+02", "2026-11-22T12:30:00+0200", "2026-11-22T16:00:00+05:30")
    ),
    *(("", text, HALF_PAST) for text in ("2026-11-22 10:30:00 UTC", "20261122T103000Z", "2026-11-22T10:30:00,000")),
    ("", "2026-11-22T10", utc(2026, 11, 22, 10)),
    ("", "2026-11-22", utc(2026, 11, 22)),
    ("", "2026-11-22T10:30:00.1234567Z", utc(2026, 11, 22, 10, 30, 0, 123456)),
    ("", "2026-11-22T10:30:00.05Z", utc(2026, 11, 22, 10, 30, 0, 50_000)),
    ("", "1969-12-31T23:59:59.5Z", utc(1969, 12, 31, 23, 59, 59, 500_000)),
    ("", "0001-01-01T00:00:00Z", utc(1, 1, 1)),
    ("", "9999-12-31T23:59:59.999999Z", utc(9999, 12, 31, 23, 59, 59, 999999)),
    *(
        ("", text, None)
        for text in ("10:30", "T10:30", "86400", "2026", "2026-11", "20261122", "12026-11-22", "-2026-11-22")
    ),
    *(
        ("", text, None)
        for text in ("0000-12-31", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-02-30")
    ),
    *(
        ("", text, None)
        for text in ("2026-11-22T24:00:00Z", "2026-11-22T10:60Z", "2026-11-22T10:30:60Z", "2026-11-22T10:30+19")
    ),
    *(
        ("", text, None)
        for text in ("0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-11-22T10:30:00.Z", "2026-11-22T10:30:00;5Z")
    ),
    *(
        ("", text, None)
        for text in ("2026-1-2", "2026-11-22T", "2026-11-22T10:30 Europe/Paris", "now", "today", "", "epoch")
    ),
    ("s", "1795343400", HALF_PAST),
    ("s", "-0.5", utc(1969, 12, 31, 23, 59, 59, 500000)),
    ("ms", "1795343400000", HALF_PAST),
    ("us", "1.7953434e15", HALF_PAST),
    ("ns", "1795343400000000999", HALF_PAST),
    ("s", "2026-11-22T10:30Z", HALF_PAST),
    *(("s", text, None) for text in ("1795343400000000", "1e400", "1e999999999", "NaN", "86400 s")),
]


def test_times_are_whole_or_counted_in_a_declared_unit_and_never_guessed() -> None:
    units = [f', unit = "{unit}"' if unit else "" for unit, *_ in MOMENTS]
    columns = [f'{{ name = "c{n}", type = "timestamp", path = "t{n}"{unit} }}' for n, unit in enumerate(units)]
    columns += ['{ name = "day", type = "date" }, { name = "early", type = "date" }, { name = "far", type = "date" }']
    record = {f"t{n}": text for n, (_, text, _) in enumerate(MOMENTS)}
    record |= {"day": "2026-11-22T23:30:00-05:00", "early": "0000-01-01", "far": "99999-01-01"}
    (row,) = made_of(service_of(", ".join(columns)), [json.dumps(record)])
    found = {(unit, text): _naive(row[f"c{n}"]) for n, (unit, text, _) in enumerate(MOMENTS)}
    assert found == {(unit, text): moment for unit, text, moment in MOMENTS}
    assert (row["day"], row["early"], row["far"]) == (date(2026, 11, 22), None, None)
    refused = {f"t{n}" for n, (*_, moment) in enumerate(MOMENTS) if moment is None} | {"early", "far"}
    assert misfits_of(row).keys() == refused


def test_an_object_and_a_field_of_it_can_both_be_declared() -> None:
    service = service_of(
        '{ name = "player" }, { name = "player_id", path = "player.id" }, { name = "x", path = "player.pos.x", type = "long" }'
    )
    texts = ['{"player": {"id": "p", "pos": {"x": 5}, "more": [1]}}', '{"player": "p"}']
    one, other = made_of(service, texts)
    assert json.loads(one["player"]) == {"id": "p", "pos": {"x": 5}, "more": [1]}
    assert (one["player_id"], one["x"], other["player"], other["player_id"]) == ("p", 5, "p", None)
    assert rules_of(service.tables[0]).declared == {"player": {}}


@pytest.mark.parametrize("keep", ["true", "false"])
def test_the_text_of_a_record_is_kept_where_that_is_declared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    (row,) = landed(spark, tmp_path, monkeypatch, f"keep_record = {keep}", ['{"a": 1}  '])._table("a")
    assert row.get("_record") == ('{"a": 1}' if keep == "true" else None)


IMPOSSIBLE = {
    "ratio": ("double", "price / quantity"),
    "again": ("double", "price / quantity + price / quantity"),
    "overflow": ("long", "quantity + 9223372036854775807 + count"),
    "narrow": ("int", "count * 10000000000"),
    "text": ("long", "cast(name as bigint)"),
    "never": ("string", "raise_error(name)"),
    "checked": ("string", "assert_true(count = 0)"),
    "beyond": ("long", "element_at(array(1, 2), cast(count as int) + 4)"),
    "pattern": ("boolean", "'x' rlike concat(name, '[')"),
    "day": ("date", "make_date(cast(count as int) + 9999, 1, 1)"),
    "late": ("date", "date_add(date'9999-12-31', cast(count as int))"),
    "inner": ("long", "aggregate(transform(array(quantity), x -> 1 / x), 0D, (a, x) -> a + x)"),
    "constant": ("double", "count / 0"),
}
"""Derived columns, each of which Spark cannot compute for a row with quantity 0, count 1 and a name that is no number."""


def test_what_cannot_be_computed_is_null_and_said_in_rescued(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = ", ".join(
        f'{{ name = "{name}", type = "{kind}", expression = "{sql}" }}' for name, (kind, sql) in IMPOSSIBLE.items()
    )
    read = (
        '{ name = "price", type = "double" }, { name = "quantity", type = "long" }, { name = "count", type = "long" }'
    )
    columns = f'{read}, {{ name = "name" }}, {{ name = "sum", type = "double", expression = "price + 1" }}, {declared}'
    texts = [
        '{"price": 1, "quantity": 0, "count": 1, "name": "a"}',
        '{"price": "x", "quantity": 0, "count": 1, "name": "a"}',
        "{}",
    ]
    rows = landed(spark, tmp_path, monkeypatch, f"columns = [{columns}]", texts)._table("a")
    one, other, empty = sorted(rows, key=lambda row: row["_line"])
    rescued = [json.loads(row["_rescued"] or "{}") for row in (one, other, empty)]
    assert {name: one[name] for name in IMPOSSIBLE} == dict.fromkeys(IMPOSSIBLE)
    assert (one["sum"], rescued[0]) == (2, dict.fromkeys(IMPOSSIBLE))
    could = {"ratio", "again"}  # null is no error
    assert rescued[1] == {"price": "x", **dict.fromkeys(IMPOSSIBLE.keys() - could)}
    assert rescued[2].keys() <= {"never", "checked"}


VERBATIM = [
    ("string", "12345678901234567.89", "12345678901234567.89", None),
    ("string", "1E400", "1E400", None),
    ("string", "1.50", "1.50", None),
    ("string", '"\\ud800"', None, "\ud800"),
    ("string", '"\\u00e9\\n\\ud83d\\ude00"', "é\n😀", None),
    ("json", '{"n" : [1.50, 1e2, "a b", {}], "m":-0}', '{"n":[1.50,1e2,"a b",{}],"m":-0}', None),
    ("json", '"text"', "text", None),
    ("map", '{"k": 1.10, "l": {"m": 1.0}, "n": null}', {"k": "1.10", "l": '{"m":1.0}', "n": None}, None),
    ("decimal(18,2)", "1.005", None, "1.005"),
    ("decimal(18,2)", "1.500", Decimal("1.50"), None),
    ("decimal(18,2)", "1.5e3", Decimal("1500.00"), None),
    ("decimal(38,18)", "12345678901234567.890000000000000001", Decimal("12345678901234567.890000000000000001"), None),
    ("decimal(18,2)", "1E999999999", None, "1E999999999"),
    ("decimal(4,2)", "123.4", None, "123.4"),
    ("double", "12345678901234567.89", 12345678901234567.89, "12345678901234567.89"),
    ("double", "0.1", 0.1, None),
    ("double", "0.30000000000000004", 0.30000000000000004, None),
    ("double", "1E400", None, "1E400"),
    ("double", "-Infinity", -math.inf, None),
    ("float", "1e39", None, "1e39"),
    ("float", "0.1", pytest.approx(0.1), None),
    ("float", "0.123456789", pytest.approx(0.123456789), "0.123456789"),
    ("long", "1.5", None, "1.5"),
    ("long", "1" + "0" * 30, None, "1" + "0" * 30),
]


def test_a_declared_column_and_what_is_rescued_have_each_digit() -> None:
    columns = ", ".join(
        f'{{ name = "c{n}", type = "{kind}", path = "in.c{n}" }}' for n, (kind, *_) in enumerate(VERBATIM)
    )
    record = ", ".join(f'"c{n}" : {written}' for n, (_, written, *_) in enumerate(VERBATIM))
    (row,) = made_of(service_of(columns), [f'{{"in": {{ {record} }} }}'])
    left: dict[str, Any] = {}
    for one in json.loads(row["_misfits"], parse_float=str, parse_int=str):
        left |= one["in"]
    found = {(kind, written): (row[f"c{n}"], left.get(f"c{n}")) for n, (kind, written, *_) in enumerate(VERBATIM)}
    assert found == {(kind, written): (value, rescued) for kind, written, value, rescued in VERBATIM}


TYPES = [
    "long",
    "int",
    "double",
    "float",
    "boolean",
    "timestamp",
    "date",
    "string",
    "json",
    "decimal(9,2)",
    "decimal(38,18)",
]
ANYTHING: tuple[str, ...] = (
    *("0", "1", "-1", "-0", "-0.0", "40000", "2147483648", "9223372036854775807", "9223372036854775808", "1.0", "1.5"),
    *("1e2", "1e-7", "1E400", "0.1", "1.005", "12345678901234567.89", "0.123456789", "1e39", "NaN", "-Infinity"),
    *("true", "false", "null", "[]", "{}", "[1, 2 ]", '{"x" : 1.10, "y": -0}', "1795343400", '"1795343400"'),
    *(
        '"NaN"',
        '"+inf"',
        '"1"',
        '" 7 "',
        '"+7"',
        '"7."',
        '".5"',
        '"1_0"',
        '"x"',
        '""',
        '"yes"',
        '"F"',
        '"\\ud800"',
        '"\\u00e9"',
    ),
    *(json.dumps(text) for _, text, _ in MOMENTS),
)


def test_a_notebook_gets_the_values_that_a_service_gets(spark: SparkSession) -> None:
    """Only Spark reads the types of a DDL text."""
    names = [f"c{n}" for n in range(len(TYPES))]
    service = service_of(
        ", ".join(f'{{ name = "{name}", type = "{of}" }}' for name, of in zip(names, TYPES, strict=True))
    )
    texts = ["{" + ", ".join(f'"{name}": {value}' for name in names) + "}" for value in ANYTHING]
    rows = made_of(service, texts)
    fields = [
        T.StructField(c.name, columns_of_ddl(f"x {spark_type(c)}")["x"].dataType) for c in service.tables[0].columns
    ]
    for name, of, field in zip(names, TYPES, fields, strict=True):
        ours = columns_of(texts, T.StructType([field]), UTC)
        for place, (value, mine, row) in enumerate(zip(ANYTHING, ours.arrays[0].to_pylist(), rows, strict=True)):
            told = place in ours.misfits | ours.inexact
            assert (of, value, str(mine), told) == (of, value, str(row[name]), name in misfits_of(row))


def test_a_declared_column_takes_its_own_key_and_else_a_twin() -> None:
    service = service_of('{ name = "level", type = "long" }, { name = "id", path = "player.user_id" }')
    texts = [
        '{"Level": 1, "player": {"User-Id": "a"}}',
        '{"Level": 1, "level": 2, "LEVEL": 3, "Player": {"USER_ID": "b", "user_id": "c"}}',
        '{"lEvel": 1, "Level": 2, "\\u006cEVEL": "x"}',
        '{"level": null, "Level": 5}',
    ]
    rows = made_of(service, texts)
    assert [(row["level"], row["id"]) for row in rows] == [(1, "a"), (2, "c"), (2, None), (None, None)]


def test_what_is_no_json_is_refused_however_it_looks() -> None:
    texts = ['{"a": 01}', '{"a": 1.}', '{"a": "\\x"}', '{"a": "\t"}', '{"a": 1,}', '{"a": 1} x', '{"a": 1}, {"a": 2}']
    texts += ['{"a": tru}', '{"a": "\\u12g4"}', "{", "{'a': 1}"]
    good = ['{"a": NaN, "b": -Infinity}', ' {"a" : 1e5 } ', '{"": {}}', '{"a": ' + "[" * 150 + "]" * 150 + "}"]
    others = {'{"a": 1}, {"a": 2}': "several-documents"}
    reasons = [others.get(text, "not-json") for text in texts]
    assert [problem_of(text) for text in texts + good] == reasons + [None] * len(good)


def test_no_value_names_a_table_where_the_lake_keeps_something_else() -> None:
    service = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "{game}"\nvalues = ".+"'})
    games = ["declarations", "_forebay", ".hidden", "declarations_2", "alpha"]
    found = [route_of(service, {"game": game}, Origin()).table for game in games]
    assert found == [None, None, None, "declarations_2", "alpha"]
