"""A batch of rows in many tables, on a lake in a folder; one Spark session for all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from forebay.events import Event
from forebay.operate.lake_view import LakeView
from forebay.table.commit import LogFailed, Txn
from forebay.table.data_files.in_arrow import arrow_rows
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.events import ColumnsAdded, TableCreated, TypesWidened
from forebay.table.kernel import TableLogs
from tests.table.appending import append
from tests.table.log import adds, commits, data_files, folder, stats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("as_on_a_cluster")

A = "kept-apart"


def rows_for(spark: SparkSession, *tables: tuple[str, int]) -> DataFrame:
    """`("a", 3)` makes three rows for table a."""
    values = [(name, i, f"{name}-{i}") for name, count in tables for i in range(count)]
    return spark.createDataFrame(values, "_table string, id long, text string")


def read(path: str) -> list[tuple[Any, ...]]:
    """Without Spark, which takes a second for each look."""
    return sorted(tuple(row.values()) for row in deltalake.DeltaTable(path).to_pyarrow_table().to_pylist())


def read_by_spark(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())


@contextmanager
def configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """What the session had before comes back: `unset` would leave Spark's default in its place."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in before.items():
            spark.conf.unset(key) if earlier is None else spark.conf.set(key, earlier)


def test_each_row_is_in_its_table_and_a_table_without_rows_gets_no_commit(spark: SparkSession, lake: str) -> None:
    told: list[Event] = []
    tables = [Destination(name, f"{lake}/{name}") for name in ("a", "b", "none")]
    outcomes = append(spark, rows_for(spark, ("a", 3), ("b", 2)), tables, txn=Txn(A, 1), emit=told.append)

    assert {name: (o.version, o.files, o.rows) for name, o in outcomes.items() if isinstance(o, Appended)} == {
        "a": (0, 1, 3),
        "b": (0, 1, 2),
    }
    assert read(f"{lake}/a") == [(0, "a-0"), (1, "a-1"), (2, "a-2")]
    assert read(f"{lake}/b") == [(0, "b-0"), (1, "b-1")]
    assert not folder(f"{lake}/none").exists()
    assert sorted(e.table for e in told if isinstance(e, TableCreated)) == ["a", "b"]


def test_a_new_table_can_be_read_by_every_reader(spark: SparkSession, lake: str) -> None:
    append(
        spark,
        rows_for(spark, ("a", 1)),
        [Destination("a", f"{lake}/a", properties={"delta.checkpointInterval": "7"})],
        txn=Txn(A, 1),
    )
    found = {kind: body for action in commits(f"{lake}/a")[0] for kind, body in action.items()}
    assert found["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert found["metaData"]["configuration"] == {"delta.checkpointInterval": "7"}
    assert found["txn"]["appId"] == A


def test_a_repeated_transaction_is_skipped_and_leaves_no_file(spark: SparkSession, lake: str) -> None:
    rows, tables = rows_for(spark, ("a", 3), ("b", 1)), [Destination(n, f"{lake}/{n}") for n in ("a", "b")]
    append(spark, rows.where("_table = 'a'"), tables, txn=Txn(A, 7))
    files = data_files(f"{lake}/a")

    outcomes = append(spark, rows, tables, txn=Txn(A, 7))

    assert outcomes["a"] == Skipped()
    assert isinstance(outcomes["b"], Appended)
    assert data_files(f"{lake}/a") == files
    assert len(read(f"{lake}/a")) == 3
    logs = TableLogs(spark)
    assert (logs.last_version_at(f"{lake}/a", A), logs.last_version_at(f"{lake}/a", "another")) == (7, -1)
    assert logs.last_version_at(f"{lake}/nowhere", A) == -1
    logs.close()


def test_the_next_transaction_and_another_application_are_added(spark: SparkSession, lake: str) -> None:
    rows, tables = rows_for(spark, ("a", 2)), [Destination("a", f"{lake}/a")]
    logs = TableLogs(spark)
    for txn in (Txn(A, 1), Txn(A, 2), Txn("another", 1), Txn(A, 2), Txn("another", 1)):
        append(spark, rows, tables, txn=txn, logs=logs)
    logs.close()
    assert read(f"{lake}/a") == [(0, "a-0")] * 3 + [(1, "a-1")] * 3
    assert len(commits(f"{lake}/a")) == 3


# --- partitions ------------------------------------------------------------------------------------------------------

ODD_VALUES = ["plain", "a b", "a/b", "50%", "x=y", "ö", "#?&+", "__HIVE_DEFAULT_PARTITION", "", None]


@pytest.mark.deep
def test_partition_values_of_every_kind_come_back(spark: SparkSession, lake: str) -> None:
    values = [("a", i, zone) for i, zone in enumerate(ODD_VALUES)]
    rows = spark.createDataFrame(values, "_table string, id long, zone string").selectExpr(
        "*",
        "date_add(date'2026-01-31', cast(id as int)) day",
        "timestamp'2026-01-31 10:00:00.25' at",
        "id % 2 = 0 even",
        "cast(id as decimal(9,2)) amount",
    )
    columns = ("zone", "day", "at", "even", "amount")
    outcome = append(spark, rows, [Destination("a", f"{lake}/a", columns)], txn=Txn(A, 1))["a"]

    assert isinstance(outcome, Appended)
    assert outcome.files == len(ODD_VALUES)
    # The empty string is null to Delta.
    wanted = sorted((i, zone or None) for i, zone in enumerate(ODD_VALUES))
    table = spark.read.format("delta").load(f"{lake}/a")
    assert sorted((r.id, r.zone) for r in table.collect()) == wanted
    assert table.drop("zone").exceptAll(rows.drop("zone", "_table")).isEmpty()
    assert table.where("zone = 'a/b' and day = '2026-02-02' and even").count() == 1

    others = deltalake.DeltaTable(f"{lake}/a").to_pyarrow_table()
    assert sorted(zip(others["id"].to_pylist(), others["zone"].to_pylist(), strict=True)) == wanted
    assert sorted(others["day"].to_pylist()) == sorted(r.day for r in rows.collect())
    assert {str(at) for at in others["at"].to_pylist()} == {"2026-01-31 10:00:00.250000+00:00"}


def test_tables_with_different_partitions_share_one_job(spark: SparkSession, lake: str) -> None:
    rows = rows_for(spark, ("a", 4), ("b", 4), ("c", 4)).selectExpr("*", "id % 2 half", "'x' kind")
    partitions = {"a": (), "b": ("half",), "c": ("kind", "half")}
    outcomes = append(spark, rows, [Destination(n, f"{lake}/{n}", p) for n, p in partitions.items()], txn=Txn(A, 1))

    assert {name: o.files for name, o in outcomes.items() if isinstance(o, Appended)} == {"a": 1, "b": 2, "c": 2}
    for name in partitions:
        found = spark.read.format("delta").load(f"{lake}/{name}").select("id", "half", "kind").collect()
        assert sorted(map(tuple, found)) == [(i, i % 2, "x") for i in range(4)]


# --- statistics ------------------------------------------------------------------------------------------------------


def test_statistics_are_those_that_delta_itself_writes(spark: SparkSession, lake: str) -> None:
    rows = spark.range(100).selectExpr(
        "'a' _table",
        "id l",
        "cast(id - 50 as int) i",
        "cast(id as short) sh",
        "id / 7.5D d",
        "cast(id as float) / 3 f",
        "cast(id as decimal(30,10)) / 3 as dec",
        "id % 2 = 0 flag",
        "timestamp_micros(1234567890123456 + id * 1000001) at",
        "date_add(date'1969-06-01', cast(id * 10 as int)) day",
        "if(id % 3 = 0, null, concat('value-', id)) text",
        "repeat(concat(id, 'ö'), 40) long_text",
        "cast(concat('b', id) as binary) bin",
        "if(id % 4 = 0, null, named_struct('x', id, 'y', named_struct('z', concat('z', id)))) s",
        "if(id % 5 = 0, null, array(id)) arr",
        "map('k', id) m",
        "cast(null as string) nothing",
    )
    append(spark, rows, [Destination("a", f"{lake}/a")], txn=Txn(A, 1))
    rows.drop("_table").coalesce(1).write.format("delta").save(f"{lake}/theirs")
    [ours], [theirs] = stats(f"{lake}/a"), stats(f"{lake}/theirs")
    theirs.pop("tightBounds", None)
    assert ours == theirs


def test_spark_skips_files_by_our_statistics(spark: SparkSession, lake: str) -> None:
    for batch in range(3):
        rows = spark.range(batch * 100, batch * 100 + 100).selectExpr("'a' _table", "id")
        append(spark, rows, [Destination("a", f"{lake}/a")], txn=Txn(A, batch))
    found = spark.read.format("delta").load(f"{lake}/a").where("id = 150")
    assert [row.id for row in found.collect()] == [150]
    assert len(found.inputFiles()) == 1


# --- one table fails, the others do not ------------------------------------------------------------------------------


def failure(outcome: AppendResult) -> str:
    assert isinstance(outcome, Failed)
    assert not outcome.may_be_in
    return str(outcome.error)


def test_tables_that_cannot_be_written_do_not_stop_the_others(spark: SparkSession, lake: str) -> None:
    append(spark, rows_for(spark, ("broken", 1)), [Destination("broken", f"{lake}/broken")], txn=Txn(A, 1))
    (folder(f"{lake}/broken") / "_delta_log" / f"{0:020}.json").write_text("not json")
    (folder(lake) / "in_the_way").write_text("a file where the table should be")
    spark.createDataFrame([("one",)], "id string").write.format("delta").save(f"{lake}/typed")

    names = ("broken", "in_the_way", "typed", "good")
    outcomes = append(
        spark,
        rows_for(spark, *((name, 2) for name in names)),
        [Destination(name, f"{lake}/{name}") for name in names],
        txn=Txn(A, 2),
    )

    assert "Could not parse" in failure(outcomes["broken"])
    assert "in_the_way" in failure(outcomes["in_the_way"])
    assert "column id: is string in the table and long in the rows" in failure(outcomes["typed"])
    assert not list(folder(f"{lake}/typed").glob("*.zstd.parquet"))
    assert read(f"{lake}/good") == [(0, "good-0"), (1, "good-1")]


def test_a_row_for_a_table_that_nobody_named_stops_everything(spark: SparkSession, lake: str) -> None:
    with pytest.raises(Exception, match="a row belongs to table 'stray'"):
        append(spark, rows_for(spark, ("a", 1), ("stray", 1)), [Destination("a", f"{lake}/a")], txn=Txn(A, 1))
    assert not (folder(f"{lake}/a") / "_delta_log").exists()


@pytest.mark.parametrize("sql", ["CONSTRAINT", "COLUMN MAPPING"])
def test_a_table_that_asks_for_more_than_we_do_is_refused(spark: SparkSession, lake: str, sql: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{lake}/a` (id BIGINT, text STRING) USING DELTA")
    if sql == "CONSTRAINT":
        spark.sql(f"ALTER TABLE delta.`{lake}/a` ADD CONSTRAINT positive CHECK (id > 100)")
    else:
        spark.sql(
            f"ALTER TABLE delta.`{lake}/a` SET TBLPROPERTIES "
            "('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
        )
    outcome = append(spark, rows_for(spark, ("a", 1)), [Destination("a", f"{lake}/a")], txn=Txn(A, 1))["a"]
    assert ("checkConstraints" if sql == "CONSTRAINT" else "columnMapping") in failure(outcome)
    assert spark.read.format("delta").load(f"{lake}/a").isEmpty()


# --- other readers, other writers ------------------------------------------------------------------------------------


def test_delta_rs_reads_the_same_rows(spark: SparkSession, lake: str) -> None:
    rows = spark.range(50).selectExpr(
        "'a' _table",
        "id",
        "timestamp_micros(1234567890123456 + id) at",
        "cast(id as decimal(20,3)) amount",
        "if(id % 3 = 0, null, named_struct('x', id, 'tags', array(concat('t', id)))) s",
        "map('k', cast(id as double)) m",
        "concat('day-', id % 4) day",
    )
    append(spark, rows, [Destination("a", f"{lake}/a", ("day",))], txn=Txn(A, 1))
    names = ["id", "at", "amount", "s", "m", "day"]
    ours = spark.read.format("delta").load(f"{lake}/a").select(names).toArrow().sort_by("id").to_pylist()
    theirs = deltalake.DeltaTable(f"{lake}/a").to_pyarrow_table().select(names).sort_by("id").to_pylist()
    assert theirs == ours
    assert (
        spark.read.format("delta")
        .load(f"{lake}/a")
        .select(names)
        .drop("m")
        .exceptAll(rows.select(names).drop("m"))
        .isEmpty()
    )
    assert len(ours) == 50


def test_a_stream_of_the_table_sees_each_row_once_also_over_compaction(
    spark: SparkSession, lake: str, tmp_path: Any
) -> None:
    seen: list[int] = []

    def drain() -> None:
        stream = spark.readStream.format("delta").load(f"{lake}/a").writeStream.trigger(availableNow=True)
        collected = stream.foreachBatch(lambda rows, _: seen.extend(r.id for r in rows.collect()))
        collected.option("checkpointLocation", f"{tmp_path}/checkpoint").start().awaitTermination()

    logs = TableLogs(spark)
    for batch in range(3):
        rows = spark.range(batch * 10, batch * 10 + 10).selectExpr("'a' _table", "id")
        append(spark, rows, [Destination("a", f"{lake}/a")], txn=Txn(A, batch), logs=logs)
        if batch == 1:
            drain()
            spark.sql(f"OPTIMIZE delta.`{lake}/a`")
    drain()
    logs.close()
    assert sorted(seen) == list(range(30))


@pytest.mark.deep
def test_compaction_and_vacuum_treat_our_files_as_their_own(spark: SparkSession, lake: str) -> None:
    logs = TableLogs(spark)
    for batch in range(3):
        append(spark, rows_for(spark, ("a", 2)), [Destination("a", f"{lake}/a")], txn=Txn(A, batch), logs=logs)
    stray = folder(f"{lake}/a") / "part-never-committed.zstd.parquet"
    shutil.copy(data_files(f"{lake}/a")[0], stray)

    spark.sql(f"OPTIMIZE delta.`{lake}/a`")
    outcome = append(spark, rows_for(spark, ("a", 2)), [Destination("a", f"{lake}/a")], txn=Txn(A, 3), logs=logs)["a"]
    logs.close()
    with configured(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM delta.`{lake}/a` RETAIN 0 HOURS")

    assert isinstance(outcome, Appended)
    assert outcome.version == 4
    assert len(data_files(f"{lake}/a")) == 2
    assert read(f"{lake}/a") == [(0, "a-0")] * 4 + [(1, "a-1")] * 4


def test_new_columns_and_nested_fields_are_added_and_missing_ones_are_null(spark: SparkSession, lake: str) -> None:
    told: list[Event] = []

    def batch(number: int, *columns: str) -> AppendResult:
        rows = spark.range(1).selectExpr("'a' _table", *columns)
        return append(spark, rows, [Destination("a", f"{lake}/a")], txn=Txn(A, number), emit=told.append)["a"]

    batch(1, "id", "named_struct('x', 1) s")
    batch(2, "id + 1 as id", "named_struct('x', 2, 'y', 'new') s", "'added' extra")
    last = batch(3, "id + 2 as id")

    assert isinstance(last, Appended)
    table = spark.read.format("delta").load(f"{lake}/a").orderBy("id")
    assert [json.loads(line) for line in table.toJSON().collect()] == [
        {"id": 0, "s": {"x": 1}},
        {"id": 1, "s": {"x": 2, "y": "new"}, "extra": "added"},
        {"id": 2},
    ]
    assert [e.columns for e in told if isinstance(e, ColumnsAdded)] == [("s.y", "extra")]


class Interrupted(TableLogs):
    """Somebody else does something to the table between our look and our commit."""

    def __init__(self, spark: SparkSession, *deeds: Callable[[], Any]) -> None:
        super().__init__(spark)
        self.deeds = list(deeds)

    def create(self, *arguments: Any, **more: Any) -> Any:
        self._interrupt()
        return super().create(*arguments, **more)

    def append(self, *arguments: Any, **more: Any) -> Any:
        self._interrupt()
        return super().append(*arguments, **more)

    def _interrupt(self) -> None:
        if self.deeds:
            self.deeds.pop()()


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("INSERT INTO delta.`{}` VALUES (9, 'other')", [(0, "a-0"), (0, "a-0"), (9, "other")]),
        ("ALTER TABLE delta.`{}` ADD COLUMNS (more INT)", [(0, "a-0", None), (0, "a-0", None)]),
        ("DELETE FROM delta.`{}`", [(0, "a-0")]),
        ("OPTIMIZE delta.`{}`", [(0, "a-0"), (0, "a-0")]),
    ],
)
def test_what_others_commit_meanwhile_is_not_undone(
    spark: SparkSession, lake: str, statement: str, wanted: list[tuple[Any, ...]]
) -> None:
    rows, tables = rows_for(spark, ("a", 1)), [Destination("a", f"{lake}/a")]
    append(spark, rows, tables, txn=Txn(A, 1))
    logs = Interrupted(spark, lambda: spark.sql(statement.format(f"{lake}/a")))
    assert isinstance(append(spark, rows, tables, txn=Txn(A, 2), logs=logs)["a"], Appended)
    logs.close()
    assert read(f"{lake}/a") == wanted


@pytest.mark.parametrize(("columns", "fits"), [("id long, text string", True), ("id string, text string", False)])
def test_a_table_that_another_driver_makes_first_is_appended_to_if_it_fits(
    spark: SparkSession, lake: str, columns: str, fits: bool
) -> None:
    logs = Interrupted(spark, lambda: spark.createDataFrame([], columns).write.format("delta").save(f"{lake}/a"))
    outcome = append(spark, rows_for(spark, ("a", 1)), [Destination("a", f"{lake}/a")], txn=Txn(A, 1), logs=logs)["a"]
    logs.close()
    if fits:
        assert read(f"{lake}/a") == [(0, "a-0")]
    else:
        assert "column id: is string in the table" in failure(outcome)


def test_a_table_that_was_laid_out_anew_since_the_last_batch_is_written_as_it_is_now(
    spark: SparkSession, lake: str
) -> None:
    logs = TableLogs(spark)
    tables = [Destination(name, f"{lake}/{name}") for name in ("a", "b")]
    append(spark, rows_for(spark, ("a", 2), ("b", 2)), tables, txn=Txn(A, 1), logs=logs)
    laid_out = spark.read.format("delta").load(f"{lake}/a").write.format("delta").mode("overwrite")
    laid_out.option("overwriteSchema", "true").partitionBy("id").save(f"{lake}/a")
    outcomes = append(spark, rows_for(spark, ("a", 3), ("b", 3)), tables, txn=Txn(A, 2), logs=logs)
    logs.close()
    assert {name: o.rows for name, o in outcomes.items() if isinstance(o, Appended)} == {"a": 3, "b": 3}
    assert [row[0] for row in read(f"{lake}/a")] == [0, 0, 1, 1, 2]
    assert all(add["partitionValues"].keys() == {"id"} for add in adds(f"{lake}/a")[-3:])


@pytest.mark.parametrize("columns", [["id"], ["id", "'other' region", *(f"{n} more_{n}" for n in range(40))]])
def test_a_table_that_somebody_deletes_and_makes_anew_gets_our_columns(
    spark: SparkSession, lake: str, columns: list[str]
) -> None:
    """Its first commit has the name of the one that is remembered, and other columns."""
    logs, table = TableLogs(spark), Destination("a", f"{lake}/a")
    rows = spark.range(10).selectExpr("'a' _table", "id", "'f' _file_id")
    append(spark, rows, [table], txn=Txn("x", 1), logs=logs)
    shutil.rmtree(folder(table.path))
    spark.range(3).selectExpr(*columns).write.format("delta").save(table.path)
    for batch in (2, 3):
        append(spark, rows, [table], txn=Txn("x", batch), logs=logs)
    logs.close()
    assert spark.read.format("delta").load(table.path).groupBy("_file_id").count().orderBy("count").collect() == [
        (None, 3),
        ("f", 20),
    ]


def test_a_table_whose_folder_is_replaced_is_made_anew(spark: SparkSession, lake: str) -> None:
    rows, tables, logs = rows_for(spark, ("a", 1)), [Destination("a", f"{lake}/a")], TableLogs(spark)
    for batch in range(3):
        append(spark, rows, tables, txn=Txn(A, batch), logs=logs)
    shutil.rmtree(folder(f"{lake}/a"))
    append(spark, rows, tables, txn=Txn(A, 3), logs=logs)
    logs.close()
    assert len(commits(f"{lake}/a")) == 1
    assert read(f"{lake}/a") == [(0, "a-0")]


# --- answers that get lost -------------------------------------------------------------------------------------------


class Deaf(TableLogs):
    """Commits arrive, their answers do not; `blind`: nor can the log be read afterwards."""

    blind = False
    sent = False

    def append(self, *arguments: Any, **more: Any) -> Any:
        super().append(*arguments, **more)
        self.sent = True
        raise LogFailed("IOException", "connection reset")

    def look(self, path: str, *, again: bool = False) -> Any:
        if self.sent and self.blind:
            raise LogFailed("IOException", "connection refused")
        return super().look(path, again=again)


def test_a_commit_whose_answer_is_lost_is_found_in_the_log(spark: SparkSession, lake: str) -> None:
    rows, tables, logs = rows_for(spark, ("a", 1)), [Destination("a", f"{lake}/a")], Deaf(spark)
    append(spark, rows, tables, txn=Txn(A, 1), logs=logs)
    outcome = append(spark, rows, tables, txn=Txn(A, 2), logs=logs)["a"]
    logs.close()
    assert isinstance(outcome, Appended)
    assert (outcome.version, outcome.rows) == (1, 1)


def test_a_commit_of_which_nothing_is_known_is_said_to_be_so(spark: SparkSession, lake: str) -> None:
    rows, tables, logs = rows_for(spark, ("a", 1)), [Destination("a", f"{lake}/a")], Deaf(spark)
    logs.blind = True
    append(spark, rows, tables, txn=Txn(A, 1), logs=logs)
    outcome = append(spark, rows, tables, txn=Txn(A, 2), logs=logs)["a"]
    logs.close()
    assert isinstance(outcome, Failed)
    assert outcome.may_be_in
    assert append(spark, rows, tables, txn=Txn(A, 2))["a"] == Skipped()
    assert len(read(f"{lake}/a")) == 2


# --- many, large and long --------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_checkpoints_are_written_where_only_we_commit(spark: SparkSession, lake: str) -> None:
    rows, logs = rows_for(spark, ("a", 1)), TableLogs(spark)
    table = Destination("a", f"{lake}/a", properties={"delta.checkpointInterval": "3"})
    for batch in range(8):
        append(spark, rows, [table], txn=Txn(A, batch), logs=logs)
    logs.close()

    log = folder(f"{lake}/a") / "_delta_log"
    assert [p.name for p in sorted(log.glob("*.checkpoint.parquet"))] == [f"{v:020}.checkpoint.parquet" for v in (3, 6)]
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 6
    for version in range(6):
        (log / f"{version:020}.json").unlink()
    assert len(read(f"{lake}/a")) == 8
    logs = TableLogs(spark)
    assert logs.last_version_at(f"{lake}/a", A) == 7
    logs.close()
    assert deltalake.DeltaTable(f"{lake}/a").version() == 7
    spark.sql(f"OPTIMIZE delta.`{lake}/a`")
    assert len(data_files(f"{lake}/a")) == 9


def test_a_table_with_nearly_all_rows_is_written_by_several_tasks(spark: SparkSession, lake: str) -> None:
    rows = spark.range(0, 20_000, 1, 4).selectExpr(
        "if(id % 100 < 95, 'huge', concat('t', id % 3)) _table", "id", "uuid() u"
    )
    names = ("huge", "t0", "t1", "t2")
    with configured(spark, {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "200k"}):
        outcomes = append(spark, rows, [Destination(n, f"{lake}/{n}") for n in names], txn=Txn(A, 1))
    huge = outcomes["huge"]
    assert isinstance(huge, Appended)
    assert huge.rows == 19_000
    assert 2 <= huge.files <= 8
    assert sum(o.rows for o in outcomes.values() if isinstance(o, Appended)) == 20_000
    assert max(stat["numRecords"] for stat in stats(f"{lake}/huge")) < 12_000


@pytest.mark.deep
def test_a_clustered_table_asks_no_more_of_readers_and_takes_whatever_other_tables_take(
    spark: SparkSession, lake: str
) -> None:
    table = Destination("a", f"{lake}/a", cluster_columns=("text", "id"))
    logs = TableLogs(spark)
    append(spark, rows_for(spark, ("a", 40)), [table], txn=Txn(A, 1), logs=logs)
    wider = rows_for(spark, ("a", 40)).selectExpr("_table", "id + 100 id", "text", "id % 3 more")
    assert isinstance(append(spark, wider, [table], txn=Txn(A, 2), logs=logs)["a"], Appended)
    logs.close()
    before = read(f"{lake}/a")
    assert len(before) == 80
    (protocol,) = (action["protocol"] for action in commits(f"{lake}/a")[0] if "protocol" in action)
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 7)
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{lake}/a`").select("clusteringColumns").collect()
    assert detail.clusteringColumns == ["text", "id"]
    spark.sql(f"OPTIMIZE delta.`{lake}/a`")
    (optimized,) = (add for add in adds(f"{lake}/a") if add.get("clusteringProvider"))
    assert json.loads(optimized["stats"])["numRecords"] == 80
    assert read(f"{lake}/a") == before
    by_delta_rs = deltalake.DeltaTable(f"{lake}/a").to_pyarrow_table(columns=["id", "text", "more"]).to_pylist()
    assert sorted(before, key=str) == sorted((tuple(row.values()) for row in by_delta_rs), key=str)


@pytest.mark.deep
def test_types_become_wider_where_that_is_declared_and_readers_must_know_it_from_then_on(
    spark: SparkSession, lake: str
) -> None:
    told: list[Event] = []
    narrow = spark.sql("SELECT 'a' _table, 1 id, 'x' text, 1.5F share, 1.25BD price")
    wide = spark.sql("SELECT 'a' _table, 3000000000L id, 'y' text, 0.1D share, 12345.125BD price, 'more' extra")
    allowed, plain = Destination("a", f"{lake}/a", type_widening=True), Destination("a", f"{lake}/a")
    logs = TableLogs(spark)
    append(spark, narrow, [allowed], txn=Txn(A, 1), logs=logs)
    assert LakeView(lake).query("a", "select id from t") == [{"id": 1}], "as long as nothing is wider, all can read it"
    refused = append(spark, wide, [plain], txn=Txn(A, 2), logs=logs)["a"]
    assert isinstance(refused, Failed)
    assert "column id: is int in the table and long in the rows" in str(refused.error)
    for batch in (2, 3):
        assert isinstance(append(spark, wide, [allowed], txn=Txn(A, batch), logs=logs, emit=told.append)["a"], Appended)
    logs.close()

    (widened,) = (event for event in told if isinstance(event, TypesWidened))
    assert widened.columns == ("id int -> long", "share float -> double", "price decimal(3,2) -> decimal(8,3)")
    assert read_by_spark(spark, f"{lake}/a") == [
        (1, "x", 1.5, Decimal("1.25"), None),
        *[(3_000_000_000, "y", 0.1, Decimal("12345.125"), "more")] * 2,
    ]
    kinds = {next(iter(action)) for action in commits(f"{lake}/a")[2]}
    assert kinds == {"commitInfo", "txn", "add"}, "the second time nothing is wider"
    with pytest.raises(deltalake.exceptions.DeltaError, match="TypeWidening"):
        LakeView(lake).query("a", "select id from t")
    facts = LakeView(lake).facts("a")
    assert facts is not None
    assert facts.rows == 3
    spark.sql(f"OPTIMIZE delta.`{lake}/a`")
    assert len(read_by_spark(spark, f"{lake}/a")) == 3
    spark.sql(f"ALTER TABLE delta.`{lake}/a` DROP FEATURE typeWidening")
    assert len(LakeView(lake).query("a", "select id from t")) == 3


@pytest.mark.deep
def test_a_table_gets_the_properties_that_it_lacks_before_its_next_rows(spark: SparkSession, lake: str) -> None:
    from pyspark.sql import functions as F

    logs, rows = TableLogs(spark), rows_for(spark, ("new", 1), ("by_id", 1), ("old", 1), ("wide", 1))
    append(spark, rows.where("_table = 'old'"), [Destination("old", f"{lake}/old")], txn=Txn(A, 1), logs=logs)
    wide = rows.where("_table = 'wide'").withColumn("number", F.lit(1))
    append(spark, wide, [Destination("wide", f"{lake}/wide")], txn=Txn(A, 1), logs=logs)
    feed = {"delta.enableChangeDataFeed": "true", "owner": "growth"}
    tables = [
        Destination("new", f"{lake}/new", properties=feed),
        Destination("by_id", f"{lake}/by_id", properties=feed, cluster_columns=("id",)),
        Destination("old", f"{lake}/old", properties=feed),
        Destination("wide", f"{lake}/wide", properties=feed, type_widening=True),
    ]
    wider = rows.withColumn("number", F.lit(3_000_000_000))
    for batch in (2, 3):
        outcomes = append(spark, wider, tables, txn=Txn(A, batch), logs=logs)
        assert {kind.__name__ for kind in map(type, outcomes.values())} == {"Appended"}
    logs.close()
    assert [len(commits(f"{lake}/{name}")) for name in ("new", "old", "wide")] == [2, 4, 4]
    for name, first in (("new", 0), ("by_id", 0), ("old", 1)):
        reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
        assert reader.load(f"{lake}/{name}").count() == 2
    for name in ("new", "old"):
        table = deltalake.DeltaTable(f"{lake}/{name}")
        assert table.protocol().min_reader_version == 1
        assert table.metadata().configuration == feed
        assert len(pa.table(table.load_cdf(starting_version=1).read_all())) >= 1
        table.restore(table.version() - 1)
        [its] = (one for one in tables if one.name == name)
        its_rows = wider.where(F.col("_table") == name)
        assert isinstance(append(spark, its_rows, [its], txn=Txn(A, 4))[name], Appended)


def test_three_hundred_tables_take_one_batch(spark: SparkSession, lake: str) -> None:
    # In a folder, Delta's usual log store starts a process for each chmod; this one does not, and one driver is alone here.
    with configured(spark, {"spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore"}):
        logs = TableLogs(spark)
    names = [f"game_{i}" for i in range(300)]
    rows = spark.range(600).selectExpr("concat('game_', id % 300) _table", "id")
    outcomes = append(spark, rows, [Destination(n, f"{lake}/{n}") for n in names], txn=Txn(A, 1), logs=logs)
    logs.close()

    assert {name: o.rows for name, o in outcomes.items() if isinstance(o, Appended)} == dict.fromkeys(names, 2)
    assert all(len(adds(f"{lake}/{name}")) == 1 for name in names)


def test_rows_of_the_driver_are_in_their_table_once_and_skipped_like_all_others(spark: SparkSession, lake: str) -> None:
    rows = arrow_rows(
        [
            {
                "day": date(2026, 11, day),
                "at": datetime(2026, 11, day, 10, tzinfo=UTC),
                "counts": {"a": day},
                "text": text,
            }
            for day, text in ((21, "x"), (20, None), (21, "y"))
        ],
        "day date, at timestamp, counts map<string, long>, text string",
    )
    table, logs = Destination("own", f"{lake}/own", ("day",)), TableLogs(spark)
    outcomes = [append(spark, rows, [table], txn=Txn(A, 1), logs=logs)["own"] for _ in range(2)]
    logs.close()

    assert isinstance(outcomes[0], Appended)
    assert (outcomes[0].rows, outcomes[0].files, outcomes[1]) == (3, 2, Skipped())
    found = spark.read.format("delta").load(f"{lake}/own").orderBy("day", "text").collect()
    assert [(str(row.day), row.at.astimezone(UTC).hour, row.counts, row.text) for row in found] == [
        ("2026-11-20", 10, {"a": 20}, None),
        ("2026-11-21", 10, {"a": 21}, "x"),
        ("2026-11-21", 10, {"a": 21}, "y"),
    ]
