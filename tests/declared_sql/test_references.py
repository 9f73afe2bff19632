"""SQL over columns that stand beside those of other declarations: its names are found where Spark's own parser finds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.declared_sql.columns import spark_type
from forebay.declared_sql.questions import answered, questions_of
from forebay.declared_sql.references import columns_in, renamed
from tests.batch.world import World


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("level > 0", "p_level > 0"),
        ("Level.a.b = LEVEL", "p_level.a.b = p_level"),
        ("`ke y` = 'level'", "`p_ke y` = 'level'"),
        ("'é𝒳' = level /* level */ -- level", "'é𝒳' = p_level /* level */ -- level"),
        ("extract(year from at) = 2026", "extract(year from p_at) = 2026"),
        ("date_add(day, 1, d) > d", "date_add(day, 1, p_d) > p_d"),
        ("trim(both x from y) = ''", "trim(both p_x from p_y) = ''"),
        ("a::int in (b, 2) and m['a'] = m.b", "p_a::int in (p_b, 2) and p_m['a'] = p_m.b"),
        ("exists(ts, T -> t = level)", "exists(p_ts, T -> t = p_level)"),
        ("aggregate(ts, 0, (a, t) -> a + t) > a", "aggregate(p_ts, 0, (a, t) -> a + t) > p_a"),
        (
            "exists(ts, t -> exists(us, u -> u = t and t.v = v))",
            "exists(p_ts, t -> exists(p_us, u -> u = t and t.v = p_v))",
        ),
        ("to_json(struct(level, m.k)) = x", "to_json(struct(p_level AS `level`, p_m.k AS `k`)) = p_x"),
        ("struct(level as l, level + 1)", "struct(p_level as l, p_level + 1)"),
        ("(a, b) = (1, 2)", "(p_a AS `a`, p_b AS `b`) = (1, 2)"),
    ],
)
def test_each_name_of_a_column_is_replaced_and_nothing_else(spark: SparkSession, sql: str, wanted: str) -> None:
    new = {name: f"p_{name}" if " " not in name else f"`p_{name}`" for name in columns_in(sql)}
    assert renamed(sql, new) == wanted
    spark._jsparkSession.sessionState().sqlParser().parseExpression(wanted)


def declarations(tables: int, check: str) -> str:
    declared = """
[[tables]]
name = "t{0}"
where_sql = "kind = 'k{0}'"
columns = [
  {{ name = "kind" }}, {{ name = "n", type = "long" }}, {{ name = "tags" }}, {{ name = "at", type = "timestamp" }},
  {{ name = "twice", type = "long", expression = "n * 2" }},
]
event_time = {{ column = "at", oldest_days = 7 }}
[tables.expectations]
small = {{ check = {1}, on_violation = "quarantine" }}
"""
    return 'name = "many"\n' + "".join(declared.format(number, json.dumps(check)) for number in range(tables))


def service_of(tables: int) -> Service:
    return parse_service({"service.toml": declarations(tables, "n < 3")})


def test_a_plan_has_as_many_steps_for_a_dozen_tables_as_for_two(spark: SparkSession) -> None:
    """Spark's work on a plan grows with the square of its steps."""
    few, many = (questions_of(service_of(tables)) for tables in (2, 12))
    plans = [
        answered(spark.createDataFrame([], asked.sent), asked)._jdf.queryExecution().analyzed().numberedTreeString()  # type: ignore[operator]
        for asked in (few, many)
    ]
    assert plans[0].count("\n") == plans[1].count("\n")


@pytest.mark.parametrize(
    "check",
    [
        "twice < 6",
        "to_json(struct(n, kind)) = concat('{\"n\":', n, ',\"kind\":\"', kind, '\"}') and n < 3",
        "not exists(split(tags, ','), t -> t = kind) and forall(array(n), kind -> kind < 3)",
        "n / (3 - n) >= 0",
    ],
)
def test_a_check_sees_the_columns_of_its_own_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    records = [{"kind": f"k{table}", "n": n, "tags": "a,b"} for table in range(3) for n in (1, 3)]
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=declarations(3, check))
    world.answers["a.json"] = "\n".join(map(json.dumps, records)).encode()
    world.try_batch(0, [world.file("a.json")])
    assert [[row["_line"] for row in world._table(f"t{table}")] for table in range(3)] == [[1], [3], [5]]
    held = world._table("_forebay/quarantine")
    assert sorted((row["line"], row["table"], row["detail"]) for row in held) == [
        (2, "t0", "small"),
        (4, "t1", "small"),
        (6, "t2", "small"),
    ]


def test_structs_that_differ_in_signs_or_case_do_not_share_a_column(spark: SparkSession) -> None:
    kinds = (
        "struct<X: long>",
        "struct<x: long>",
        "struct<a: long, b: long>",
        "struct<a_bigint_b: long>",
        "array<long>",
    )
    declared = (
        f'[[tables]]\nname = "t{n}"\nwhere = {{ n = {n} }}\ncolumns = [{{ name = "x", type = "{kind}" }}, '
        f'{{ name = "y", type = "{kind}", expression = "x" }}]\n'
        for n, kind in enumerate(kinds)
    )
    service = parse_service({"service.toml": 'name = "s"\n' + "".join(declared)})
    questions = questions_of(service)
    for number, table in enumerate(service.tables):
        (given,), answer = questions.of[number].given, questions.of[number].derived["y"]
        kind = spark_type(table.columns[0])
        assert (questions.given[given], questions.answers[answer]) == (kind, kind)
