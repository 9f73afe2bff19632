"""SQL of rollups is refused when a job starts, and not at its first merge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.declared_sql.check import check_expressions
from forebay.declared_sql.check_rollups import missing_columns, unknown_columns
from forebay.errors import InvalidConfiguration
from tests.operate.command import failed, ran

CHANGES = """
name = "shop"
[[tables]]
name = "changes"
mode = "merge"
undeclared = { become = "rescued" }
columns = [
  { name = "id" }, { name = "at", type = "timestamp" }, { name = "amount", type = "decimal(18,2)" },
  { name = "tags", type = "map" },
]
merge = { into = "versions", keys = ["id"], sequence_by = ["at"], history = "scd2" }
[[tables]]
name = "events"
where = { kind = "e" }
columns = [{ name = "level", type = "int" }]
[[rollups]]
name = "r"
"""
GOOD = """tables = ["versions"]
where = "valid_to is null"
group_by = { day = "date(valid_from)", file = "_file_id" }
columns = { revenue = "sum(amount)", n = "count(distinct id)" }
"""


def service(rollup: str) -> Service:
    return parse_service({"service.toml": CHANGES + rollup})


def test_one_that_makes_sense_passes(spark: SparkSession) -> None:
    check_expressions(spark, service(GOOD))
    assert list(unknown_columns(spark, service(GOOD))) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("sum(amount)", "sum(amount) +* 2", "rollup r: columns.revenue: for table versions: is not valid SQL"),
        ("sum(amount)", "upper(id)", "columns.revenue: for table versions: is not an aggregate, such as sum(amount)"),
        ("sum(amount)", "summ(amount)", "columns.revenue: for table versions: is not valid SQL"),
        ("sum(amount)", "sum(tags)", "columns.revenue: for table versions: is not valid SQL"),
        ("sum(amount)", "first(amount)", "depends on the order of rows"),
        ("sum(amount)", "sum(amount * rand())", "gives a different answer each time"),
        ("date(valid_from)", "current_date()", "group_by.day: for table versions: depends on the clock"),
        ("date(valid_from)", "tags", "group_by.day: for table versions: has a map"),
        ("date(valid_from)", "max(at)", "group_by.day: for table versions: uses more than one row"),
        ("valid_to is null", "amount", "where: for table versions: must be a boolean, but is decimal"),
    ],
)
def test_one_that_makes_no_sense_is_named_before_anything_runs(
    spark: SparkSession, before: str, after: str, said: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(said)):
        check_expressions(spark, service(GOOD.replace(before, after)))


def test_a_column_that_never_comes_is_refused_before_it_is_in_force_and_stops_no_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The table may have it from an earlier declaration."""
    wrong = GOOD.replace("sum(amount)", "sum(amuont)").replace('["versions"]', '["versions", "changes"]')
    check_expressions(spark, service(wrong))
    found = [(one.where, one.what) for one in missing_columns(spark, service(wrong))]
    assert ("rollup r: columns.revenue", "versions never has the column amuont") in found
    assert ("rollup r: where", "changes never has the column valid_to") in found
    assert list(unknown_columns(spark, service(wrong))) == []
    (tmp_path / "service.toml").write_text(CHANGES + wrong)
    assert "versions never has the column amuont" in failed(2, "tables", "check", str(tmp_path))


OF_EVENTS = (
    'tables = ["events"]\ngroup_by = { world = "upper(place.world)" }\ncolumns = { n = "sum(score)", l = "max(level)" }'
)


def test_a_column_that_only_a_record_can_bring_is_a_note(spark: SparkSession, tmp_path: Path) -> None:
    check_expressions(spark, service(OF_EVENTS))
    found = [one.partition(" with the first")[0] for one in unknown_columns(spark, service(OF_EVENTS))]
    assert found == [
        "rollup r: group_by.world: events gets its column place",
        "rollup r: columns.n: events gets its column score",
    ]
    (tmp_path / "service.toml").write_text(CHANGES + OF_EVENTS)
    said = ran("tables", "check", str(tmp_path))
    assert "events gets its column score with the first record that has it" in said
    assert "something to look at" in said
    with pytest.raises(InvalidConfiguration, match="is not an aggregate"):
        check_expressions(spark, service(OF_EVENTS.replace("sum(score)", "upper(score)")))
