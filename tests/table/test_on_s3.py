"""The same on S3: through our log store, with two drivers at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import deltalake
import pytest
from pyspark.sql import functions as F

from forebay.table.commit import Txn
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.java import hadoop_conf
from forebay.table.kernel import TableLogs
from forebay.table.replace import replace
from tests.fault_proxy import FaultProxy, Forward, Request, answered, drop_answer
from tests.table.appending import append

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from forebay_local.twin.twin import Twin

BATCHES = 4
COMMITS = r"_delta_log/\d+\.json$"


@pytest.mark.deep
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_two_drivers_lose_no_commit(
    spark: SparkSession, twin: Twin, tmp_path_factory: pytest.TempPathFactory, scheme: str
) -> None:
    lake = f"{scheme}://{twin.lake_bucket}/two-drivers-{scheme}"
    tables = [Destination(name, f"{lake}/{name}", ("driver",)) for name in ("a", "b")]

    def drive(name: str) -> list[int]:
        logs, versions = TableLogs(spark), []
        for batch in range(BATCHES):
            rows = spark.range(4).selectExpr(
                "if(id < 2, 'a', 'b') _table", "id", f"'{name} ü' driver", f"{batch} batch"
            )
            outcomes = append(spark, rows, tables, txn=Txn(name, batch), logs=logs, pool=2)
            versions += [o.version for o in outcomes.values() if isinstance(o, Appended)]
        logs.close()
        return versions

    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(drive, ["one", "other"])

    assert sorted([*one, *other]) == sorted([*range(2 * BATCHES)] * 2)
    for name, ids in (("a", {0, 1}), ("b", {2, 3})):
        found = spark.read.format("delta").load(f"{lake}/{name}").collect()
        wanted = {(i, f"{driver} ü", batch) for i in ids for driver in ("one", "other") for batch in range(BATCHES)}
        assert len(found) == len(wanted)
        assert {(r.id, r.driver, r.batch) for r in found} == wanted
    assert (
        len(
            deltalake.DeltaTable(
                f"s3://{twin.lake_bucket}/two-drivers-{scheme}/a", storage_options={"AWS_ALLOW_HTTP": "true"}
            ).to_pyarrow_table()
        )
        == 4 * BATCHES
    )


@pytest.fixture
def far_lake(spark: SparkSession, twin: Twin) -> Iterator[tuple[str, FaultProxy]]:
    """A lake in a bucket whose log is read and written through a proxy."""
    bucket = f"far-{uuid4().hex[:8]}"
    twin.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": twin.region})
    key = f"fs.s3a.bucket.{bucket}.endpoint"
    with FaultProxy(int(twin.endpoint.rsplit(":", 1)[1])) as proxy:
        spark.conf.set(key, proxy.url)
        yield f"s3://{bucket}", proxy
        spark.conf.unset(key)


def ten_rows(spark: SparkSession) -> DataFrame:
    return spark.range(10).selectExpr("'a' _table", "id")


def test_a_remembered_table_costs_few_requests_and_no_listing(
    spark: SparkSession, far_lake: tuple[str, FaultProxy]
) -> None:
    (lake, proxy), logs = far_lake, TableLogs(spark)
    counted = []
    for batch in range(6):
        before = Counter(proxy.counts)
        append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("ü", batch), logs=logs)
        counted.append(Counter(proxy.counts) - before)
    logs.close()
    # The data file does not go through the proxy. Look: GET of the last commit; commit: the same, and PUT.
    assert counted[1:] == [Counter(GET=2, PUT=1)] * 5
    assert counted[0]["PUT"] == 1, "a new table has a commit, and no objects for its folders"


def test_kernel_knows_a_commit_that_it_made_as_s3_does(spark: SparkSession, far_lake: tuple[str, FaultProxy]) -> None:
    """A size that is too small would cut the commit when it is read."""
    (lake, _), logs = far_lake, TableLogs(spark)
    table = Destination("a", f"{lake}/a")
    append(spark, ten_rows(spark), [table], txn=Txn("ü €", 1), logs=logs)
    seen = logs.look(table.path)
    assert seen is not None
    (commit,) = seen.snapshot.getLogSegment().getDeltas()
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(commit.getPath())
    assert commit.getSize() == path.getFileSystem(hadoop_conf(spark)).getFileStatus(path).getLen()
    logs.close()


@pytest.mark.parametrize("more", [0, 40])
def test_a_commit_that_somebody_made_anew_is_not_cut_at_the_size_of_the_old_one(
    spark: SparkSession, far_lake: tuple[str, FaultProxy], twin: Twin, more: int
) -> None:
    (lake, _), logs, s3 = far_lake, TableLogs(spark), twin.client("s3")
    table, bucket = Destination("a", f"{lake}/a"), lake.removeprefix("s3://")
    append(spark, ten_rows(spark).withColumn("_file_id", F.lit("f")), [table], txn=Txn("x", 1), logs=logs)
    for found in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        s3.delete_object(Bucket=bucket, Key=found["Key"])
    spark.range(3).selectExpr("id", *(f"{n} more_{n}" for n in range(more))).write.format("delta").save(table.path)
    append(spark, ten_rows(spark).withColumn("_file_id", F.lit("f")), [table], txn=Txn("x", 2), logs=logs)
    logs.close()
    assert spark.read.format("delta").load(table.path).where("_file_id = 'f'").count() == 10


def test_a_driver_that_starts_anew_soon_knows_as_much_as_the_old_one(
    spark: SparkSession, far_lake: tuple[str, FaultProxy]
) -> None:
    lake, proxy = far_lake
    for batch in range(4):
        logs = TableLogs(spark)
        append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("x", batch), logs=logs)
        logs.close()
    logs = TableLogs(spark)
    for batch in (5, 6):
        before = Counter(proxy.counts)
        append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("x", batch), logs=logs)
    assert Counter(proxy.counts) - before == Counter(GET=2, PUT=1)
    logs.close()


def test_a_commit_whose_answer_is_dropped_by_the_network_is_in_once(
    spark: SparkSession, far_lake: tuple[str, FaultProxy]
) -> None:
    (lake, proxy), logs = far_lake, TableLogs(spark)
    append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("x", 1), logs=logs)
    proxy.on("PUT", r"_delta_log/.*json$", nth=1, then=drop_answer)
    outcome = append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("x", 2), logs=logs)["a"]
    logs.close()
    assert isinstance(outcome, Appended)
    assert spark.read.format("delta").load(f"{lake}/a").count() == 20


def test_a_commit_that_is_denied_names_the_missing_right_after_one_request(
    spark: SparkSession, far_lake: tuple[str, FaultProxy]
) -> None:
    (lake, proxy), logs = far_lake, TableLogs(spark)
    append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("x", 1), logs=logs)
    denied = proxy.on("PUT", COMMITS, then=answered(403, "AccessDenied"), times=None)
    outcome = append(spark, ten_rows(spark), [Destination("a", f"{lake}/a")], txn=Txn("x", 2), logs=logs)["a"]
    logs.close()
    assert isinstance(outcome, Failed)
    assert not outcome.may_be_in
    assert "s3:PutObject" in str(outcome.error)
    assert denied.taken == 1
    assert spark.read.format("delta").load(f"{lake}/a").count() == 10


class LandsLater:
    """The client sees a broken connection; the request reaches the server only when `land` is called."""

    def __init__(self) -> None:
        self.land: Callable[[], object] | None = None

    def __call__(self, request: Request, forward: Forward) -> None:
        self.land = lambda: forward(request)


@pytest.mark.deep
@pytest.mark.parametrize("way", ["append", "replace"])
def test_a_commit_that_arrives_after_it_was_given_up_is_never_called_failed(
    spark: SparkSession, far_lake: tuple[str, FaultProxy], way: str
) -> None:
    (lake, proxy), logs, late = far_lake, TableLogs(spark), LandsLater()
    table = Destination("a", f"{lake}/a")

    def write(batch: int) -> AppendResult:
        rows = ten_rows(spark).withColumn("_file_id", F.lit(str(batch)))
        if way == "append" or batch == 1:
            return append(spark, rows, [table], txn=Txn("x", batch), logs=logs)["a"]
        return replace(spark, table, ["1"], lambda seen: rows.drop("_table"), txn=Txn("x", batch), logs=logs)

    write(1)
    proxy.on("PUT", COMMITS, then=late)
    proxy.on("PUT", COMMITS, then=answered(403, "AccessDenied"), times=None)
    outcome = write(2)
    assert isinstance(outcome, Failed)
    assert outcome.may_be_in
    proxy.forget()
    assert late.land is not None
    late.land()
    assert write(2) == Skipped()
    logs.close()
    assert spark.read.format("delta").load(f"{lake}/a").count() == (20 if way == "append" else 10)


def test_the_log_store_is_the_one_that_spark_was_told(spark: SparkSession) -> None:
    """Kernel reads settings of its own; without them two drivers would lose commits on S3."""
    from forebay.spark.session import LOG_STORE
    from forebay.table.java import hadoop_conf

    conf = hadoop_conf(spark)
    assert {conf.get(f"io.delta.kernel.logStore.{scheme}.impl") for scheme in ("s3", "s3a")} == {LOG_STORE}
