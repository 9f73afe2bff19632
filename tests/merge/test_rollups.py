"""Whatever happens to the tables, a rollup that follows them equals the model in plain Python."""

from __future__ import annotations

import random
import shutil
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable as Delta
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from forebay.declaration.rollup import Rollup
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.objects import open_objects
from forebay.merge.derived import Derived
from forebay.merge.rollup import roll_up
from forebay.table.kernel import TableLogs
from tests.merge.story import Held, die, in_columns

ROLLUP = Rollup(
    name="revenue",
    tables=("eu", "us"),
    where="amount / (amount - 13) < 100",  # a division by zero counts for no
    group_by={"day": "day", "country": "upper(country)"},
    columns={
        "players": "hll_sketch_estimate(hll_sketch_agg(player))",
        "purchases": "count(*)",
        "revenue": "sum(amount)",
        "least": "min(amount)",
        "most": "max(amount)",
    },
)
COLUMNS = pa.schema(
    {
        "day": pa.string(),
        "country": pa.string(),
        "player": pa.string(),
        "amount": pa.int64(),
        "tags": pa.map_(pa.string(), pa.string()),
        "_file_id": pa.string(),
    }
)


class Shop:
    """Two tables that things happen to, and their rollup."""

    def __init__(self, spark: SparkSession, lake: Path) -> None:
        self.spark, self.lake, self.chance = spark, lake, random.Random(4)
        self.logs, self.said = TableLogs(spark), list[str]()

    def rows(self, file: str) -> list[tuple[Any, ...]]:
        def row() -> tuple[Any, ...]:
            pick = self.chance.choice
            day, country = pick(["mon", "tue", "wed"]), pick(["de", "DE", "fr", None])
            return day, country, f"p{pick(range(9))}", pick(range(10, 20)), {"n": "1"}, file

        return [row() for _ in range(6)]

    def bring(self, table: str) -> None:
        self.write(table, self.rows(f"f{self.chance.randrange(10**6)}"))
        self.said.append(f"bring {table}")

    def write(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        write_deltalake(f"{self.lake}/{table}", in_columns(rows, COLUMNS), partition_by=["day"], mode="append")

    def correct(self, table: str) -> None:
        """As a merge does: files with rows that are changed are written again, with all their other rows."""
        delta = Delta.forPath(self.spark, f"{self.lake}/{table}")
        delta.update("player in ('p1', 'p2')", {"amount": "amount + 1"})
        self.said.append(f"correct {table}")

    def delete(self, table: str, what: str) -> None:
        Delta.forPath(self.spark, f"{self.lake}/{table}").delete(what)
        self.said.append(f"delete {what} of {table}")

    def optimize(self, table: str) -> None:
        Delta.forPath(self.spark, f"{self.lake}/{table}").optimize().executeCompaction()

    def roll_up(self, rollup: Rollup = ROLLUP) -> Any:
        return roll_up(self.spark, str(self.lake), rollup, logs=self.logs, lease=Held())

    def must_agree(self) -> None:
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        for table in (name for name in ("eu", "us") if (self.lake / name).exists()):
            for row in DeltaTable(f"{self.lake}/{table}").to_pyarrow_table().to_pylist():
                if row["amount"] != 13:
                    groups[row["day"], row["country"] and row["country"].upper()].append(row)
        expected = [
            {
                "day": day, "country": country, "players": len({row["player"] for row in rows}), "purchases": len(rows),
                "revenue": sum(row["amount"] for row in rows), "least": min(row["amount"] for row in rows),
                "most": max(row["amount"] for row in rows),
            }
            for (day, country), rows in groups.items()
        ]  # fmt: skip
        found = DeltaTable(f"{self.lake}/revenue").to_pyarrow_table().to_pylist()
        assert sorted(found, key=str) == sorted(expected, key=str), self.said


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return Shop(spark.newSession(), tmp_path / "lake")


@pytest.mark.deep
def test_a_rollup_equals_the_model_whatever_happens_to_its_tables(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.roll_up() is None, "none of its tables is there yet"
    shop.bring("eu")
    assert shop.roll_up().recomputed
    shop.must_agree()
    shop.bring("us")
    assert shop.roll_up().recomputed, "a table that was not there before"
    shop.must_agree()
    assert shop.roll_up() is None

    # A late row of one day, and copies of others: only its group is computed.
    shop.write("eu", [("mon", "de", "p1", 19, None, "late")])
    done = shop.roll_up()
    assert (done.recomputed, done.keys) == (None, 1)
    shop.must_agree()
    for table in ("eu", "us"):
        shop.correct(table)
        shop.bring(table)
        shop.optimize(table)
        shop.delete(table, f"day = '{shop.chance.choice(['mon', 'tue', 'wed'])}' and player > 'p3'")
    # The driver dies after the rows are committed, and before the second table's version is.
    with monkeypatch.context() as patched:
        patched.setattr(Derived, "note", die)
        with pytest.raises(KeyboardInterrupt):
            shop.roll_up()
    shop.must_agree()
    shop.delete("us", "day = 'wed'")
    shop.delete("eu", "day = 'wed'")
    assert shop.roll_up().recomputed is None
    shop.must_agree()
    assert shop.roll_up() is None

    assert shop.roll_up(ROLLUP.model_copy(update={"columns": {"n": "count(*)"}})).recomputed, "another declaration"
    assert shop.roll_up().recomputed, "the first one again, whose transactions say nothing of the rows there now"
    shop.must_agree()

    shutil.rmtree(shop.lake / "us")
    assert shop.roll_up().recomputed, "rows of a table that is gone count no more"
    shop.must_agree()
    shutil.rmtree(shop.lake / "revenue")
    assert shop.roll_up().recomputed
    shop.must_agree()
    shutil.rmtree(shop.lake / "eu")
    before = DeltaTable(f"{shop.lake}/revenue").version()
    with pytest.raises(Halt, match="because eu and us, which it is computed from, are gone"):
        shop.roll_up()
    assert DeltaTable(f"{shop.lake}/revenue").version() == before, "it stays as it is"


@pytest.mark.deep
def test_a_rollup_whose_lease_was_lost_brings_no_older_rows_of_another_table_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in ("eu", "us"):
        shop.bring(table)
    shop.roll_up()
    execute = Derived.execute

    def overtaken(derived: Derived, merge: Any, txn: Any) -> None:
        monkeypatch.undo()
        shop.delete("us", "day = 'mon'")
        shop.roll_up()
        execute(derived, merge, txn)

    shop.correct("eu")
    monkeypatch.setattr(Derived, "execute", overtaken)
    with pytest.raises(Halt, match="another run took"):
        shop.roll_up()
    assert shop.roll_up() is None
    shop.must_agree()


def test_of_one_table_only_groups_that_changed_are_computed_also_where_files_are_written_again(shop: Shop) -> None:
    rollup = Rollup(name="days", tables=("eu",), group_by={"player": "player"}, columns={"amount": "sum(amount)"})

    def now() -> dict[str, int]:
        rows = DeltaTable(f"{shop.lake}/days").to_pyarrow_table().to_pylist()
        return {row["player"]: row["amount"] for row in rows}

    shop.write("eu", [("mon", "de", player, 1, None, "f1") for player in ("p1", "p3", "p4")])
    shop.roll_up(rollup)
    shop.correct("eu")  # writes the file again, with the rows of all players
    assert shop.roll_up(rollup).keys == 1
    assert now() == {"p1": 2, "p3": 1, "p4": 1}
    # A row that comes, and whose file is written again before the rollup hears of it.
    shop.write("eu", [("mon", "de", player, 5, None, "f2") for player in ("p2", "p5")])
    shop.correct("eu")
    assert shop.roll_up(rollup).keys == 3, "p1 and p2 were corrected, p5 came"
    assert now() == {"p1": 3, "p2": 6, "p3": 1, "p4": 1, "p5": 5}
    # The column gets another type, as `forebay schema settle` may give it.
    rows = (
        shop.spark.read.format("delta").load(f"{shop.lake}/eu").selectExpr("* except(amount)", "amount / 2 as amount")
    )
    rows.write.format("delta").partitionBy("day").mode("overwrite").option("overwriteSchema", "true").save(
        f"{shop.lake}/eu"
    )
    assert shop.roll_up(rollup).recomputed == "its columns have other types than before"
    assert now() == {"p1": 1.5, "p2": 3, "p3": 0.5, "p4": 0.5, "p5": 2.5}
    shop.correct("eu")
    assert shop.roll_up(rollup).recomputed is None
    assert now() == {"p1": 2.5, "p2": 4, "p3": 0.5, "p4": 0.5, "p5": 2.5}


KINDS = {
    "struct<a:int,b:string>": ["named_struct('a', 1, 'b', 'x')", "named_struct('a', 2, 'b', 'x')"],
    "array<int>": ["array(1)", "array(1, 2)"],
    "double": ["double('NaN')", "double('-0.0')", "0.0d"],
    "timestamp": ["timestamp '2026-10-25 00:30:00'", "timestamp '2026-10-25 01:30:00'"],
}


@pytest.mark.deep
def test_groups_of_any_type_are_found_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside a map, and where the driver's own clock has an hour twice. Each group has a value of one type alone."""
    by = {f"c{n}": f"c{n}" for n in range(len(KINDS))}
    rollup = Rollup(name="groups", tables=("eu",), group_by=by, columns={"n": "count(*)"})

    def row(its: str, value: str) -> str:
        columns = (f"cast({value if kind == its else 'null'} as {kind}) c{n}" for n, kind in enumerate(KINDS))
        return f"select map('a', 1) tags, {', '.join(columns)}"

    rows = " union all ".join(row(kind, value) for kind, values in KINDS.items() for value in values)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        for turn in range(3):
            shop.spark.sql(rows).write.format("delta").mode("append").save(f"{shop.lake}/eu")
            assert bool(shop.roll_up(rollup).recomputed) == (turn == 0)
    finally:
        monkeypatch.undo()
        time.tzset()
    found = shop.spark.read.format("delta").load(f"{shop.lake}/groups").collect()
    # 0 and -0 are one group.
    assert sorted((next(name for name in by if one[name] is not None), one.n) for one in found) == [
        *(("c0", 3), ("c0", 3), ("c1", 3), ("c1", 3), ("c2", 3), ("c2", 6), ("c3", 3), ("c3", 3)),
    ]


@pytest.mark.deep
def test_a_table_and_its_copy_are_told_apart(shop: Shop) -> None:
    """The copy of a table's folder has the id of the table."""
    shop.bring("eu")
    shutil.copytree(shop.lake / "eu", shop.lake / "us")
    shop.roll_up()
    for table in ("eu", "us"):
        shop.bring(table)
        assert shop.roll_up().recomputed is None
        shop.must_agree()


def test_tables_with_a_column_of_kinds_that_cannot_be_added_are_told(shop: Shop) -> None:
    shop.bring("eu")
    write_deltalake(f"{shop.lake}/us", pa.table({"day": ["mon"], "amount": [["1"]]}), partition_by=["day"])
    with pytest.raises(InvalidConfiguration, match="amount"):
        shop.roll_up()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"group_by": {"day": "dya"}}, "group_by.day: for table eu: is not valid SQL"),
    ({"group_by": {"day": "current_date()"}}, "depends on the clock"),
    ({"group_by": {"tags": "tags"}}, "group_by.tags: for table eu: has a map, and maps cannot be compared"),
    ({"group_by": {"tags": "array(struct(tags))"}}, "maps cannot be compared"),
    ({"columns": {"n": "amount"}}, "columns.n: for table eu: is not"),
    ({"columns": {"n": "first(amount)"}}, "depends on the order of rows"),
    ({"where": "sum(amount) > 1"}, "where: for table eu: uses more than one row"),
]


def test_sql_that_would_not_have_one_answer_is_refused(shop: Shop) -> None:
    shop.bring("eu")
    for wrong, said in WRONG:
        with pytest.raises(InvalidConfiguration) as refused:
            shop.roll_up(ROLLUP.model_copy(update=wrong))
        assert said in str(refused.value)


def test_a_table_of_somebody_else_is_not_written_over(shop: Shop) -> None:
    shop.bring("eu")
    shop.write("revenue", shop.rows("theirs"))
    with pytest.raises(InvalidConfiguration, match="is another table"):
        shop.roll_up()
    assert open_objects(f"{shop.lake}/revenue").names("_delta_log")
