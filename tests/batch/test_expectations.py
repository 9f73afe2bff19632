"""Expectations: understood before anything runs, and asked of every row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.events import ExpectationViolated
from forebay.batch.expectations import Verdict, verdicts
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.declared_sql.check import check_expressions
from forebay.errors import InvalidConfiguration
from tests.batch.world import World
from tests.operate.command import failed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

COLUMNS = 'columns = [{ name = "level", type = "long" }, { name = "key" }, { name = "at", type = "timestamp" }]'


def text_of(*tables: str) -> str:
    text = "\n".join(f"[[tables]]\n{table}" for table in tables)
    return f'name = "s"\n{text}'


def service_of(*tables: str) -> Service:
    return parse_service({"service.toml": text_of(*tables)})


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


def landed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str, texts: list[str]
) -> World:
    """After a batch of one file, with a line for each text."""
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=service)
    world.answers["a.json"] = "\n".join(texts).encode()
    world.try_batch(0, [world.file("a.json")])
    return world


def violations(world: World) -> dict[tuple[str, str], int]:
    return {(e.table, e.expectation): e.rows for e in world.events if isinstance(e, ExpectationViolated)}


def lines(world: World, table: str) -> list[int]:
    return sorted(row["_line"] for row in world._table(table))


def held(world: World) -> list[tuple[int, str, str, str]]:
    rows = world._table("_forebay/quarantine")
    return sorted((row["line"], row["table"], row["reason"], row["detail"]) for row in rows)


def test_a_row_gets_the_fate_of_its_worst_violation_and_all_their_names(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [
        {"level": 1, "key": "ab", "at": "2026-01-01"},
        {"level": 0, "key": "ab"},
        {"level": -1, "at": "2031-01-01"},
        {"level": -1, "key": "A!", "at": "2031-01-01"},
        {},
    ]
    service = text_of(
        'name = "never"\nwhere = { no = "1" }\n[tables.expectations]\nx = { check = "false", on_violation = "drop" }',
        declared(GOOD),
    )
    world = landed(spark, tmp_path, monkeypatch, service, [*map(json.dumps, records)])
    assert lines(world, "a") == [1, 2, 5]
    assert held(world) == [(4, "a", "expectation", "positive, early, plain_key")]
    assert world.ledger()["a.json"]["dropped"] == 1
    assert violations(world) == {("a", "positive"): 3, ("a", "early"): 2, ("a", "plain_key"): 1}


def test_two_declarations_may_use_one_name_for_different_things(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = text_of(
        declared('x = "level > 5"', '"a"\nwhere = { t = "a" }'),
        declared("x = \"level = 'high'\"", '"b"', 'columns = [{ name = "level" }]'),
    )
    check_expressions(spark, parse_service({"service.toml": service}))
    texts = ['{"t": "a", "level": 9}', '{"t": "a", "level": 1}', '{"level": "high"}', '{"level": "low"}']
    world = landed(spark, tmp_path, monkeypatch, service, texts)
    assert (lines(world, "a"), lines(world, "b")) == ([1, 2], [3, 4])
    assert violations(world) == {("a", "x"): 1, ("b", "x"): 1}


def test_a_change_whose_key_cannot_name_a_partition_of_the_state_is_quarantined(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = """mode = "merge"
    merge = { into = "b", keys = ["level", "key"], sequence_by = ["at"], partitions = ["key"] }"""
    service = text_of(f'name = "a"\n{COLUMNS}\n{merge}')
    worlds = ["Welt 1/ü\n", "w" * 100, "", "w" * 101, "nul\0", "__HIVE_DEFAULT_PARTITION__", None]
    records = [json.dumps({"level": 1, "key": world, "at": "2026-11-23T08:00:00Z"}) for world in worlds]
    world = landed(spark, tmp_path, monkeypatch, service, records)
    assert lines(world, "a") == [1, 2]
    bad = "bad-partition-value"
    found = [(line, reason) for line, _, reason, _ in held(world)]
    assert found == [(3, "no-key"), (4, bad), (5, bad), (6, bad), (7, "no-key")]


def test_a_table_fails_and_the_alarm_rings_above_its_limit_and_not_at_it() -> None:
    service = service_of(
        declared(
            'warned = { check = "true", alarm_above_percent = 40 }\nhalf = { check = "true", fail_above_percent = 50 }\n'
            'never = { check = "true", on_violation = "fail" }'
        )
    )
    fates = [Fate("0", "write", 6, "a", 0), Fate("1", "write", 4, "a", 0, ("warned", "half")), Fate("0", "park", 5)]
    assert verdicts(service, fates) == [
        Verdict("a", "warned", "warn", 10, 4, failed=False, rings=False),
        Verdict("a", "half", "warn", 10, 4, failed=False, rings=False),
        Verdict("a", "never", "fail", 10, 0, failed=False, rings=False),
    ]
    worse = verdicts(service, [*fates, Fate("2", "drop", 3, "a", 0, ("warned", "half", "never"))])
    assert [(verdict.failed, verdict.rings) for verdict in worse] == [(False, True), (True, True), (True, True)]


@pytest.mark.parametrize(
    ("kind", "expression", "says"),
    [
        ("date", "to_date(never)", "is not valid SQL.*never"),
        ("date", "current_date()", "depends on the clock"),
        ("date", "max(level)", "one row"),
        # Spark's cast goes by position, and would put y into x.
        ("struct<x: long, y: long>", "named_struct('y', 1, 'x', 2)", "makes a struct of y, x, but x, y are declared"),
        ("array<struct<x: long>>", "array(struct(level))", "makes a struct of level, but x are declared"),
    ],
)
def test_a_derived_column_that_makes_no_sense_is_named(
    spark: SparkSession, kind: str, expression: str, says: str
) -> None:
    columns = f'columns = [{{ name = "level" }}, {{ name = "day", type = "{kind}", expression = "{expression}" }}]'
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


def test_a_check_that_cannot_be_computed_does_not_hold_and_asks_no_row_of_another_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = 'columns = [{ name = "price", type = "double" }, { name = "quantity", type = "long" }]'
    checks = """cheap = { check = "price / quantity < 10", on_violation = "quarantine" }
        fair = "price / quantity > 1"
        whole = "cast(cast(price as string) as bigint) > 0" """
    service = text_of(declared(checks, '"a"\nwhere = { t = "a" }', columns), 'name = "b"')
    texts = [
        '{"t": "a", "price": 8, "quantity": 4}',
        '{"t": "a", "price": 8, "quantity": 0}',
        '{"t": "a", "quantity": 0}',
        '{"t": "b", "price": 8, "quantity": 0}',
    ]
    world = landed(spark, tmp_path, monkeypatch, service, texts)
    assert (lines(world, "a"), lines(world, "b")) == ([1, 3], [4])
    assert held(world) == [(2, "a", "expectation", "cheap, fair, whole")]
    assert violations(world) == {("a", "cheap"): 1, ("a", "fair"): 1, ("a", "whole"): 2}
