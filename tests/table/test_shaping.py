"""Records bring their tables' columns along, each table its own, in the commit that brings the rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from forebay.errors import InvalidConfiguration
from forebay.events import Event
from forebay.record.growth import Rules
from forebay.table.commit import Txn
from forebay.table.destination import Appended, AppendResult, Destination, Failed
from forebay.table.events import ColumnsAdded
from tests.table.appending import append
from tests.table.log import commits
from tests.table.test_fan_out import A, configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("as_on_a_cluster")


def rows_of(spark: SparkSession, records: dict[str, list[dict[str, Any]]]) -> DataFrame:
    values = [(table, n, json.dumps(record), None) for table, some in records.items() for n, record in enumerate(some)]
    return spark.createDataFrame(values, "_table string, _line long, _document string, _misfits string")


def load(
    spark: SparkSession,
    lake: str,
    batch: int,
    records: dict[str, list[dict[str, Any]]],
    emit: Any = lambda event: None,
    **rules: Any,
) -> dict[str, AppendResult]:
    tables = [Destination(name, f"{lake}/{name}", rules=Rules(**rules)) for name in records]
    return append(spark, rows_of(spark, records), tables, txn=Txn(A, batch), emit=emit)


def table(lake: str, name: str = "a") -> list[dict[str, Any]]:
    """As delta-rs reads it, which must be what Spark reads."""
    read: list[dict[str, Any]] = deltalake.DeltaTable(f"{lake}/{name}").to_pyarrow_table().to_pylist()
    return sorted(read, key=lambda row: str(row["_line"]))


def types(spark: SparkSession, lake: str, name: str = "a") -> dict[str, str]:
    return {f.name: f.dataType.simpleString() for f in spark.read.format("delta").load(f"{lake}/{name}").schema}


def test_each_table_gets_the_columns_that_its_own_records_have(spark: SparkSession, lake: str) -> None:
    load(spark, lake, 1, {"a": [{"x": 1, "p": {"q": "r"}}], "b": [{"y": [1.5]}, {"y": []}], "c": [{"z": None}]})
    assert types(spark, lake, "a") == {"_line": "bigint", "_rescued": "string", "p": "struct<q:string>", "x": "bigint"}
    assert types(spark, lake, "b") == {"_line": "bigint", "_rescued": "string", "y": "array<double>"}
    assert types(spark, lake, "c") == {"_line": "bigint", "_rescued": "string"}
    assert table(lake, "b") == [
        {"_line": 0, "_rescued": None, "y": [1.5]},
        {"_line": 1, "_rescued": None, "y": []},
    ]


def test_a_new_field_is_a_column_in_the_very_commit_that_brings_it(spark: SparkSession, lake: str) -> None:
    told: list[Event] = []
    load(spark, lake, 1, {"a": [{"x": 1, "p": {"q": 1}, "l": [{"m": 1}]}]})
    later = {"x": 2, "new": True, "p": {"q": 2, "r": 3}, "l": [{"m": 2, "n": 3}]}
    load(spark, lake, 2, {"a": [later]}, emit=told.append)

    assert [type(event) for event in told] == [ColumnsAdded]
    assert sorted(told[0].columns) == ["l.n", "new", "p.r"]  # type: ignore[attr-defined]
    assert len(commits(f"{lake}/a")) == 2
    rows = spark.read.format("delta").load(f"{lake}/a").orderBy("x").collect()
    assert [row.new for row in rows] == [None, True]
    assert [row.p.asDict() for row in rows] == [{"q": 1, "r": None}, {"q": 2, "r": 3}]
    assert [row.l[0].asDict() for row in rows] == [{"m": 1, "n": None}, {"m": 2, "n": 3}]


@pytest.mark.deep
def test_the_table_can_be_written_and_checkpointed_after_it_grew(spark: SparkSession, lake: str) -> None:
    for batch in range(1, 13):
        load(spark, lake, batch, {"a": [{f"f{batch}": batch}]})
    rows = spark.read.format("delta").load(f"{lake}/a").collect()
    assert sorted(value for row in rows for name, value in row.asDict().items() if name[0] == "f" and value) == [
        *range(1, 13)
    ]


def test_a_table_keeps_its_types_and_what_does_not_fit_is_rescued_and_counted(spark: SparkSession, lake: str) -> None:
    load(spark, lake, 1, {"a": [{"x": 1}]})
    outcome = load(spark, lake, 2, {"a": [{"x": "text"}, {"x": 2}]})["a"]
    assert isinstance(outcome, Appended)
    assert (outcome.rows, outcome.rescued) == (2, 1)
    read = [(row["x"], row["_rescued"]) for row in table(lake)]
    assert sorted(read, key=str) == [(1, None), (2, None), (None, '{"x":"text"}')]


def test_where_tasks_disagree_about_a_column_its_files_are_written_again(spark: SparkSession, lake: str) -> None:
    """Two tasks, each with a half that looks like whole numbers or like text, must not leave two types in one table."""
    records = [{"n": n, "x": n if n < 2000 else str(n), "fill": f"{n * 7919:040}"} for n in range(4000)]
    with configured(spark, {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "20k"}):
        rows = rows_of(spark, {"a": records}).repartitionByRange(4, "_line")
        outcome = append(
            spark, rows, [Destination("a", f"{lake}/a", rules=Rules())], txn=Txn(A, 1), table_column="_table"
        )["a"]
    assert isinstance(outcome, Appended)
    assert (outcome.rows, outcome.rescued) == (4000, 2000)
    assert outcome.files > 1
    assert types(spark, lake)["x"] == "string"
    assert sorted(int(row["x"]) for row in table(lake)) == list(range(4000))


def test_misfits_of_declared_columns_stand_beside_what_else_is_rescued(spark: SparkSession, lake: str) -> None:
    misfits = '[{"player":{"level":1.50}},{"at":"never"}]'
    rows = spark.createDataFrame(
        [("a", 1, "{}", misfits), ("a", 2, '{"player": {"q": 1}}', misfits), ("a", 3, "{}", None)],
        "_table string, _line long, _document string, _misfits string",
    )
    rules = Rules(undeclared="rescue")
    append(spark, rows, [Destination("a", f"{lake}/a", rules=rules)], txn=Txn(A, 1))
    assert [row["_rescued"] for row in table(lake)] == [
        '{"player":{"level":1.50},"at":"never"}',
        '{"player":{"q":1,"level":1.50},"at":"never"}',
        None,
    ]


def test_a_table_of_another_make_keeps_its_columns(spark: SparkSession, lake: str) -> None:
    made = spark.sql("select 1L _line, timestamp'2026-01-01' At, 'x' Name, cast(null as string) _rescued")
    made.write.format("delta").save(f"{lake}/a")
    load(spark, lake, 1, {"a": [{"at": "later", "name": "y", "more": 1}]})
    new = next(row for row in table(lake) if row["_line"] == 0)
    assert (new["At"], new["Name"], new["more"], new["_rescued"]) == (None, "y", 1, '{"at":"later"}')


def test_a_table_that_cannot_take_the_rows_does_not_hold_up_the_others(spark: SparkSession, lake: str) -> None:
    spark.sql("select 'x' _line").write.format("delta").save(f"{lake}/a")
    outcomes = load(spark, lake, 1, {"a": [{"x": 1}], "b": [{"x": 1}]})
    assert isinstance(outcomes["a"], Failed)
    assert isinstance(outcomes["a"].error, InvalidConfiguration)
    assert isinstance(outcomes["b"], Appended)


@pytest.mark.parametrize("tables", [60])
def test_many_tables_each_with_columns_of_their_own(spark: SparkSession, lake: str, tables: int) -> None:
    for batch in (1, 2):
        records = {f"t{n}": [{f"of_{n}_{batch}": n}] for n in range(tables)}
        assert all(isinstance(o, Appended) for o in load(spark, lake, batch, records).values())
    assert types(spark, lake, "t7").keys() == {"_line", "_rescued", "of_7_1", "of_7_2"}
