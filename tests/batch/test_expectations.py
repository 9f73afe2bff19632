"""Expectations: understood before anything runs, and asked of every row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.check_sql import check_expressions
from forebay.batch.expectations import Verdict, verdicts
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from tests.batch.by_spark.expectations import checked
from tests.batch.by_spark.routing import routed, with_final_fates
from tests.operate.command import failed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

COLUMNS = 'columns = [{ name = "level", type = "long" }, { name = "key" }, { name = "at", type = "timestamp" }]'


def service_of(*tables: str) -> Service:
    text = "\n".join(f"[[tables]]\n{table}" for table in tables)
    return parse_service({"service.toml": f'name = "s"\n{text}'})


def declared(expectations: str, name: str = '"a"', columns: str = COLUMNS) -> str:
    return f"name = {name}\n{columns}\n[tables.expectations]\n{expectations}"


GOOD = """
positive = "level > 0"
early = { check = "at < timestamp'2030-01-01'", on_violation = "drop" }
plain_key = { check = "key rlike '^[a-z]+$' and length(key) < 5", on_violation = "quarantine", fail_above_percent = 50 }
"""


def test_good_ones_are_understood(spark: SparkSession) -> None:
    check_expressions(spark, service_of(declared(GOOD)))


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("level >", "is not valid SQL"),
        ("levl > 0", "is not valid SQL.*levl"),
        ("level + 1", "must be a boolean, but is long"),
        ("key > array(1)", "is not valid SQL"),
        ("approx_top_k_combine(level) > 0", "is not valid SQL: .*"),
        ("window(at, '1 hour') is null", "uses more than one row"),
        ("session_window(key, '1 hour') is null", "uses more than one row"),
        ("sum(level) > 0", "uses more than one row"),
        ("level in (select 1)", "reads other tables"),
        ("to_json(struct(*)) = ''", "must name its columns, without \\*"),
        ("reflect('java.util.UUID', 'randomUUID') is not null", "calls Java"),
        ("at < current_timestamp()", "depends on the clock"),
        ("rand() > 0.5", "gives a different answer each time"),
        ("input_file_name() = ''", "depends on where it runs"),
        ("key rlike '['", "cannot be computed for any row: .*PatternSyntaxException"),
    ],
)
def test_one_that_makes_no_sense_is_named_before_anything_runs(spark: SparkSession, check: str, says: str) -> None:
    service = service_of(declared(f'"mine" = {json.dumps(check)}'))
    with pytest.raises(InvalidConfiguration, match=rf"table a: expectations\.mine: {says}"):
        check_expressions(spark, service)


def test_one_that_makes_no_sense_is_not_put_in_force(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "s"\n[[tables]]\n' + declared('mine = "levl > 0"'))
    place = tmp_path / "in-force"
    assert "table a: expectations.mine: is not valid SQL" in failed(2, "tables", "push", str(tmp_path), str(place))
    assert not place.exists()


def test_all_of_them_are_told_at_once(spark: SparkSession) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        check_expressions(spark, service_of(declared('x = "1"\ny = "2"'), declared('z = "3"', '"b"')))
    assert len(refused.value.problems) == 3


def test_a_row_gets_the_fate_of_its_worst_violation_and_all_their_names(spark: SparkSession) -> None:
    records = [
        {"level": 1, "key": "ab", "at": "2026-01-01"},
        {"level": 0, "key": "ab"},
        {"level": -1, "at": "2031-01-01"},
        {"level": -1, "key": "A!", "at": "2031-01-01"},
        {},
    ]
    values = [(0, n, 0, json.dumps(record), None, None) for n, record in enumerate(records)]
    content = spark.createDataFrame(
        values, "piece int, line long, byte_offset long, value string, problem string, detail string"
    )
    service = service_of(
        'name = "never"\nwhere = { no = "1" }\n[tables.expectations]\nx = { check = "false", on_violation = "drop" }',
        declared(GOOD),
    )
    rows = with_final_fates(checked(routed(content, service), service))
    found = rows.orderBy("line").select("_fate", "_violated", "_reason", "detail", "_table").collect()
    assert [tuple(row) for row in found] == [
        ("write", None, None, None, "a"),
        ("write", ["positive"], None, None, "a"),
        ("drop", ["positive", "early"], None, None, "a"),
        ("quarantine", ["positive", "early", "plain_key"], "expectation", "positive, early, plain_key", "a"),
        ("write", None, None, None, "a"),
    ]


def test_two_declarations_may_use_one_name_for_different_things(spark: SparkSession) -> None:
    service = service_of(
        declared('x = "level > 5"', '"a"\nwhere = { t = "a" }'),
        declared("x = \"level = 'high'\"", '"b"', 'columns = [{ name = "level" }]'),
    )
    check_expressions(spark, service)
    texts = ['{"t": "a", "level": 9}', '{"t": "a", "level": 1}', '{"level": "high"}', '{"level": "low"}']
    values = [(0, n, 0, text, None, None) for n, text in enumerate(texts)]
    content = spark.createDataFrame(
        values, "piece int, line long, byte_offset long, value string, problem string, detail string"
    )
    rows = checked(routed(content, service), service).orderBy("line").select("_violated").collect()
    assert [row[0] for row in rows] == [None, ["x"], None, ["x"]]


def test_a_change_whose_key_cannot_name_a_partition_of_the_state_is_quarantined(spark: SparkSession) -> None:
    merge = """mode = "merge"
    merge = { into = "b", keys = ["level", "key"], sequence_by = ["at"], partitions = ["key"] }"""
    service = service_of(f'name = "a"\n{COLUMNS}\n{merge}')
    worlds = ["Welt 1/ü\n", "w" * 100, "", "w" * 101, "nul\0", "__HIVE_DEFAULT_PARTITION__", None]
    records = [json.dumps({"level": 1, "key": world, "at": "2026-11-23T08:00:00Z"}) for world in worlds]
    content = spark.createDataFrame(
        [(0, n, 0, record, None, None) for n, record in enumerate(records)],
        "piece int, line long, byte_offset long, value string, problem string, detail string",
    )
    found = checked(routed(content, service), service).orderBy("line").select("_refused").collect()
    bad = "bad-partition-value"
    assert [row[0] for row in found] == [None, None, "no-key", bad, bad, bad, "no-key"]


def test_a_table_fails_above_its_limit_and_not_at_it() -> None:
    service = service_of(
        declared(
            'warned = "true"\nhalf = { check = "true", fail_above_percent = 50 }\n'
            'never = { check = "true", on_violation = "fail" }'
        )
    )
    fates = [Fate("0", "write", 6, "a", 0), Fate("1", "write", 4, "a", 0, ("warned", "half")), Fate("0", "park", 5)]
    assert verdicts(service, fates) == [
        Verdict("a", "warned", "warn", 10, 4, False),
        Verdict("a", "half", "warn", 10, 4, False),
        Verdict("a", "never", "fail", 10, 0, False),
    ]
    worse = [*fates, Fate("2", "drop", 3, "a", 0, ("half", "never"))]
    assert [v.failed for v in verdicts(service, worse)] == [False, True, True]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("to_date(never)", "is not valid SQL.*never"),
        ("current_date()", "depends on the clock"),
        ("max(level)", "one row"),
    ],
)
def test_a_derived_column_that_makes_no_sense_is_named(spark: SparkSession, expression: str, says: str) -> None:
    columns = f'columns = [{{ name = "level" }}, {{ name = "day", type = "date", expression = "{expression}" }}]'
    with pytest.raises(InvalidConfiguration, match=rf"table a: columns\.day: .*{says}"):
        check_expressions(spark, service_of(f'name = "a"\n{columns}'))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('values = "(?P<x>[a-z]+)"', "values: is not a pattern that Spark accepts"),
        (
            'columns = [{ name = "at", type = "date", formats = ["YYYY-MM-dd"] }]',
            "columns.at.formats: is not a pattern",
        ),
    ],
)
def test_a_pattern_that_only_python_takes_is_named_before_anything_runs(
    spark: SparkSession, more: str, says: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=f"table a: {says}"):
        check_expressions(spark, service_of(f'name = "a"\n{more}'))


def test_a_check_that_cannot_be_computed_does_not_hold_and_asks_no_row_of_another_table(spark: SparkSession) -> None:
    columns = 'columns = [{ name = "price", type = "double" }, { name = "quantity", type = "long" }]'
    checks = """cheap = { check = "price / quantity < 10", on_violation = "quarantine" }
        fair = "price / quantity > 1"
        whole = "cast(cast(price as string) as bigint) > 0" """
    service = service_of(declared(checks, '"a"\nwhere = { t = "a" }', columns), 'name = "b"')
    texts = [
        '{"t": "a", "price": 8, "quantity": 4}',
        '{"t": "a", "price": 8, "quantity": 0}',
        '{"t": "a", "quantity": 0}',
        '{"t": "b", "price": 8, "quantity": 0}',
    ]
    values = [(0, n, 0, text, None, None) for n, text in enumerate(texts)]
    content = spark.createDataFrame(
        values, "piece int, line long, byte_offset long, value string, problem string, detail string"
    )
    rows = (
        with_final_fates(checked(routed(content, service), service))
        .orderBy("line")
        .select("_fate", "_violated")
        .collect()
    )
    assert [tuple(row) for row in rows] == [
        ("write", ["whole"]),
        ("quarantine", ["cheap", "fair", "whole"]),
        ("write", None),
        ("write", None),
    ]
