"""Declared columns: each value as its type, or null and rescued; whatever else the record holds."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from forebay.batch.columns import rules_of, with_table_columns
from forebay.batch.routing import routed
from forebay.declaration.service import Service, parse_service

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 11, 21, tzinfo=UTC)


def service_of(columns: str, more: str = "") -> Service:
    return parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{columns}]\n{more}'})


def made_of(spark: SparkSession, service: Service, texts: list[str]) -> list[dict[str, Any]]:
    values = [(0, n, 0, text, None, None, "f", n) for n, text in enumerate(texts)]
    content = spark.createDataFrame(
        values,
        "piece int, line long, byte_offset long, value string, problem string, detail string, _file_id string, _line long",
    )
    rows = routed(content, service).withColumn("_landed_at", F.lit(AT))
    rows = with_table_columns(rows, service, service.tables[0], batch=1, at=AT)
    return [row.asDict(recursive=True) for row in rows.orderBy("_line").collect()]


def value_of(spark: SparkSession, kind: str, value: Any, formats: str = "") -> tuple[Any, Any]:
    column = f'{{ name = "x", type = "{kind}", path = "in.x"{formats} }}'
    (row,) = made_of(spark, service_of(column), [json.dumps({"in": {"x": value}})])
    return row["x"], row["_misfits"] and json.loads(row["_misfits"])


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
        ("timestamp", 1795262400, noon),
        ("timestamp", 1795262400000, noon),
        ("timestamp", 1795262400000000, noon),
        ("timestamp", 1795262400000000000, noon),
        ("timestamp", "1795262400", noon),
        ("timestamp", 1795262400.25, noon.replace(microsecond=250_000)),
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
    assert json.loads(row["_misfits"]).keys() == {f"c{n}" for n, (*_, wanted) in enumerate(cases) if wanted is None}


def _naive(value: Any) -> Any:
    """Spark hands timestamps over as local times."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def test_times_can_have_formats_of_their_own(spark: SparkSession) -> None:
    formats = ', formats = ["dd/MM/yyyy HH:mm", "yyyyMMdd"]'
    found = [value_of(spark, "timestamp", text, formats) for text in ("21/11/2026 12:00", "20261121", "2026-11-21")]
    assert [_naive(moment) for moment, _ in found] == [datetime(2026, 11, 21, 12), datetime(2026, 11, 21), None]
    assert [misfit for _, misfit in found] == [None, None, {"in.x": "2026-11-21"}]


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
    assert (one["sum"], json.loads(one["_misfits"])) == (2, dict.fromkeys(IMPOSSIBLE))
    could = {"ratio", "again"}  # null is no error
    assert json.loads(other["_misfits"]) == {"price": "x", **dict.fromkeys(IMPOSSIBLE.keys() - could)}
    assert json.loads(empty["_misfits"] or "{}").keys() <= {"never", "checked"}
