"""Declared columns: each value as its type, or null and rescued; whatever else the record holds."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from forebay.batch.columns import column_of_text, rules_of, spark_type
from forebay.declaration.column import Column
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.source.columns import columns_of
from tests.batch.by_spark.declared_columns import with_table_columns
from tests.batch.by_spark.routing import routed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

AT = datetime(2026, 11, 21, tzinfo=UTC)


def service_of(columns: str, more: str = "") -> Service:
    return parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{columns}]\n{more}'})


def made_of(spark: SparkSession, service: Service, texts: list[str]) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in made_in(spark, service, texts).collect()]


def made_in(spark: SparkSession, service: Service, texts: list[str]) -> DataFrame:
    values = [(0, n, 0, text, None, None, "f", n) for n, text in enumerate(texts)]
    content = spark.createDataFrame(
        values,
        "piece int, line long, byte_offset long, value string, problem string, detail string, _file_id string, _line long",
    )
    rows = routed(content, service).withColumn("_landed_at", F.lit(AT))
    rows = with_table_columns(rows, service, service.tables[0], batch=1, at=AT)
    return rows.orderBy("_line")


def value_of(spark: SparkSession, kind: str, value: Any, formats: str = "") -> tuple[Any, Any]:
    column = f'{{ name = "x", type = "{kind}", path = "in.x"{formats} }}'
    (row,) = made_of(spark, service_of(column), [json.dumps({"in": {"x": value}})])
    return row["x"], row["_misfits"] and misfits_of(row)


def misfits_of(row: dict[str, Any]) -> dict[str, Any]:
    """By the key at the top, with numbers as they are written."""
    return {
        key: value
        for one in json.loads(row["_misfits"] or "[]", parse_float=str, parse_int=str)
        for key, value in one.items()
    }


def test_each_value_is_read_as_its_type_or_is_a_misfit(spark: SparkSession) -> None:
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
    (row,) = made_of(spark, service_of(columns), [json.dumps(record)])
    wrong = {
        (kind, str(value)): row[f"c{n}"]
        for n, (kind, value, wanted) in enumerate(cases)
        if _naive(row[f"c{n}"]) != wanted
    }
    assert not wrong
    assert misfits_of(row).keys() == {f"c{n}" for n, (*_, wanted) in enumerate(cases) if wanted is None}


def _naive(value: Any) -> Any:
    """Spark hands timestamps over as local times."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def test_times_can_have_formats_of_their_own(spark: SparkSession) -> None:
    formats = ', formats = ["dd/MM/yyyy HH:mm", "yyyyMMdd"]'
    found = [value_of(spark, "timestamp", text, formats) for text in ("21/11/2026 12:00", "20261121", "2026-11-21")]
    assert [_naive(moment) for moment, _ in found] == [datetime(2026, 11, 21, 12), datetime(2026, 11, 21), None]
    assert [misfit for _, misfit in found] == [None, None, {"in": {"x": "2026-11-21"}}]


def test_a_year_that_no_time_reaches_is_of_none_of_the_formats(spark: SparkSession) -> None:
    formats = ("yyyy-MM-dd'T'HH:mm", "yyyy-MM-dd", "yyyy")
    texts = ["+300000-01-01", "+300000-01-01T00:00", "+300000", "+10000", "9999"]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    made = column_of_text(F.col("text"), Column(name="x", type="timestamp", formats=formats))
    assert [_naive(row["x"]) for row in rows.select(made.alias("x")).collect()] == [None] * 4 + [datetime(9999, 1, 1)]


def shown(moment: datetime | None) -> str | None:
    """As Spark casts it to text."""
    return (
        None if moment is None else moment.isoformat(" ").rstrip("0") if moment.microsecond else moment.isoformat(" ")
    )


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


def test_times_are_whole_or_counted_in_a_declared_unit_and_never_guessed(spark: SparkSession) -> None:
    units = [f', unit = "{unit}"' if unit else "" for unit, *_ in MOMENTS]
    columns = [f'{{ name = "c{n}", type = "timestamp", path = "t{n}"{unit} }}' for n, unit in enumerate(units)]
    columns += [f'{{ name = "s{n}", expression = "cast(c{n} as string)" }}' for n in range(len(MOMENTS))]
    columns += ['{ name = "day", type = "date" }, { name = "early", type = "date" }, { name = "far", type = "date" }']
    record = {f"t{n}": text for n, (_, text, _) in enumerate(MOMENTS)}
    record |= {"day": "2026-11-22T23:30:00-05:00", "early": "0000-01-01", "far": "99999-01-01"}
    rows = made_in(spark, service_of(", ".join(columns)), [json.dumps(record)])
    (row,) = (row.asDict() for row in rows.drop(*(f"c{n}" for n in range(len(MOMENTS)))).collect())
    found = {(unit, text): row[f"s{n}"] for n, (unit, text, _) in enumerate(MOMENTS)}
    assert found == {(unit, text): shown(moment) for unit, text, moment in MOMENTS}
    assert (row["day"], row["early"], row["far"]) == (date(2026, 11, 22), None, None)
    refused = {f"t{n}" for n, (*_, moment) in enumerate(MOMENTS) if moment is None} | {"early", "far"}
    assert misfits_of(row).keys() == refused


def test_an_object_and_a_field_of_it_can_both_be_declared(spark: SparkSession) -> None:
    service = service_of(
        '{ name = "player" }, { name = "player_id", path = "player.id" }, { name = "x", path = "player.pos.x", type = "long" }'
    )
    texts = ['{"player": {"id": "p", "pos": {"x": 5}, "more": [1]}}', '{"player": "p"}']
    one, other = made_of(spark, service, texts)
    assert json.loads(one["player"]) == {"id": "p", "pos": {"x": 5}, "more": [1]}
    assert (one["player_id"], one["x"], other["player"], other["player_id"]) == ("p", 5, "p", None)
    assert rules_of(service.tables[0]).declared == {"player": {}}


def test_what_is_no_json_elsewhere_is_none_here(spark: SparkSession) -> None:
    values = [(0, n, 0, text, None, None) for n, text in enumerate(["{'a': 1}", '{"a": 1}'])]
    content = spark.createDataFrame(
        values, "piece int, line long, byte_offset long, value string, problem string, detail string"
    )
    rows = routed(content, service_of("")).orderBy("line").select("_fate", "_reason").collect()
    assert [tuple(row) for row in rows] == [("quarantine", "not-json"), ("write", None)]


@pytest.mark.parametrize("keep", ["true", "false"])
def test_the_text_of_a_record_is_kept_where_that_is_declared(spark: SparkSession, keep: str) -> None:
    service = parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\nkeep_record = {keep}'})
    (row,) = made_of(spark, service, ['{"a": 1}  '])
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


def test_what_cannot_be_computed_is_null_and_said_in_rescued(spark: SparkSession) -> None:
    declared = ", ".join(
        f'{{ name = "{name}", type = "{kind}", expression = "{sql}" }}' for name, (kind, sql) in IMPOSSIBLE.items()
    )
    read = (
        '{ name = "price", type = "double" }, { name = "quantity", type = "long" }, { name = "count", type = "long" }'
    )
    service = service_of(
        f'{read}, {{ name = "name" }}, {{ name = "sum", type = "double", expression = "price + 1" }}, {declared}'
    )
    texts = [
        '{"price": 1, "quantity": 0, "count": 1, "name": "a"}',
        '{"price": "x", "quantity": 0, "count": 1, "name": "a"}',
        "{}",
    ]
    one, other, empty = made_of(spark, service, texts)
    assert {name: one[name] for name in IMPOSSIBLE} == dict.fromkeys(IMPOSSIBLE)
    assert (one["sum"], misfits_of(one)) == (2, dict.fromkeys(IMPOSSIBLE))
    could = {"ratio", "again"}  # null is no error
    assert misfits_of(other) == {"price": "x", **dict.fromkeys(IMPOSSIBLE.keys() - could)}
    assert misfits_of(empty).keys() <= {"never", "checked"}


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


def test_a_declared_column_and_what_is_rescued_have_each_digit(spark: SparkSession) -> None:
    columns = ", ".join(
        f'{{ name = "c{n}", type = "{kind}", path = "in.c{n}" }}' for n, (kind, *_) in enumerate(VERBATIM)
    )
    record = ", ".join(f'"c{n}" : {written}' for n, (_, written, *_) in enumerate(VERBATIM))
    (row,) = made_of(spark, service_of(columns), [f'{{"in": {{ {record} }} }}'])
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
    """With `fileFormat` a source reads records without Spark. Both go by the rules of `record.declared`."""
    names = [f"c{n}" for n in range(len(TYPES))]
    service = service_of(
        ", ".join(f'{{ name = "{name}", type = "{of}" }}' for name, of in zip(names, TYPES, strict=True))
    )
    texts = ["{" + ", ".join(f'"{name}": {value}' for name in names) + "}" for value in ANYTHING]
    rows = made_in(spark, service, texts).select(*names, "_misfits").toArrow().to_pylist()
    schema = T.StructType(
        [T.StructField(c.name, T._parse_datatype_string(spark_type(c))) for c in service.tables[0].columns]
    )
    for name, of, field in zip(names, TYPES, schema.fields, strict=True):
        ours = columns_of(texts, T.StructType([field]), UTC)
        for place, (value, mine, row) in enumerate(zip(ANYTHING, ours.arrays[0].to_pylist(), rows, strict=True)):
            told = place in ours.misfits | ours.inexact
            assert (of, value, str(mine), told) == (of, value, str(row[name]), name in misfits_of(row))


def test_a_declared_column_takes_its_own_key_and_else_a_twin(spark: SparkSession) -> None:
    service = service_of('{ name = "level", type = "long" }, { name = "id", path = "player.user_id" }')
    texts = [
        '{"Level": 1, "player": {"User-Id": "a"}}',
        '{"Level": 1, "level": 2, "LEVEL": 3, "Player": {"USER_ID": "b", "user_id": "c"}}',
        '{"lEvel": 1, "Level": 2, "\\u006cEVEL": "x"}',
        '{"level": null, "Level": 5}',
    ]
    rows = made_of(spark, service, texts)
    assert [(row["level"], row["id"]) for row in rows] == [(1, "a"), (2, "c"), (2, None), (None, None)]


def test_what_is_no_json_is_refused_however_it_looks(spark: SparkSession) -> None:
    texts = ['{"a": 01}', '{"a": 1.}', '{"a": "\\x"}', '{"a": "\t"}', '{"a": 1,}', '{"a": 1} x', '{"a": 1}, {"a": 2}']
    deep = '{"a": ' + "[" * 2000 + "]" * 2000 + "}"
    texts += ['{"a": tru}', '{"a": "\\u12g4"}', "[1]", "5", "", "{", deep]
    good = ['{"a": NaN, "b": -Infinity}', ' {"a" : 1e5 } ', '{"": {}}', '{"a": ' + "[" * 150 + "]" * 150 + "}"]
    values = [(0, n, 0, text, None, None) for n, text in enumerate(texts + good)]
    content = spark.createDataFrame(
        values, "piece int, line long, byte_offset long, value string, problem string, detail string"
    )
    rows = routed(content, service_of('{ name = "a" }')).orderBy("line").select("_reason").collect()
    others = {deep: "too-deep", '{"a": 1}, {"a": 2}': "several-documents"}
    reasons = [others.get(text, "not-json") for text in texts]
    assert [row[0] for row in rows] == reasons + [None] * len(good)


def test_no_value_names_a_table_where_the_lake_keeps_something_else(spark: SparkSession) -> None:
    service = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "{game}"\nvalues = ".+"'})
    games = ["declarations", "_forebay", ".hidden", "declarations_2", "alpha"]
    values = [(0, n, 0, json.dumps({"game": game}), None, None) for n, game in enumerate(games)]
    content = spark.createDataFrame(
        values, "piece int, line long, byte_offset long, value string, problem string, detail string"
    )
    rows = routed(content, service).orderBy("line").select("_table").collect()
    assert [row[0] for row in rows] == [None, None, None, "declarations_2", "alpha"]
