"""A lake that cannot keep two writers apart is refused at start, with a sentence that says why."""

from __future__ import annotations

import pytest

from forebay.errors import InvalidConfiguration
from forebay.lake.safety import refuse_unsafe_settings
from forebay.spark.session import LOG_STORE, job_settings
from tests.fault_proxy import answered, without_header
from tests.logstore.conftest import Bucket, DriverProcess, Failed

# One worker for all of them: they share three JVMs.
pytestmark = pytest.mark.jvm

SAFE = job_settings()


@pytest.mark.parametrize(
    "lake", ["s3://b/lake", "s3a://b", "s3://b/lake/", "file:/tmp/lake", "/tmp/lake", "hdfs://n/lake"]
)
def test_the_settings_that_we_ship_are_taken(lake: str) -> None:
    refuse_unsafe_settings(SAFE, lake)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.hadoop.fs.s3a.performance.flags", "create"),
        ("spark.hadoop.fs.s3a.performance.flags", "mkdir, Create ,delete"),
        ("spark.hadoop.fs.s3a.performance.flags", "*"),
        ("fs.s3a.performance.flags", "create"),
        ("spark.hadoop.fs.s3a.bucket.our-lake.performance.flags", "create,mkdir"),
        ("spark.hadoop.fs.s3a.create.performance", "true"),
        ("spark.hadoop.fs.s3a.bucket.our-lake.create.performance", "TRUE"),
        ("spark.hadoop.fs.s3a.create.conditional.enabled", "false"),
        ("spark.delta.logStore.s3a.impl", "io.delta.storage.S3SingleDriverLogStore"),
        ("spark.delta.logStore.class", "io.delta.storage.S3SingleDriverLogStore"),
    ],
)
def test_a_setting_that_would_lose_commits_is_refused_by_its_name(key: str, value: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        refuse_unsafe_settings(SAFE | {key: value}, "s3a://our-lake/tables")
    (problem,) = refused.value.problems
    assert problem.where == key
    assert value in problem.what or key == "spark.delta.logStore.class"
    assert problem.suggestion


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.hadoop.fs.s3a.performance.flags", "mkdir,delete"),
        ("spark.hadoop.fs.s3a.create.performance", "false"),
        ("spark.hadoop.fs.s3a.bucket.landing.performance.flags", "create"),
        ("spark.hadoop.fs.s3a.bucket.landing.create.performance", "true"),
        ("spark.delta.logStore.gs.impl", "io.delta.storage.GCSLogStore"),
    ],
)
def test_a_setting_that_does_not_touch_the_lakes_commits_is_taken(key: str, value: str) -> None:
    refuse_unsafe_settings(SAFE | {key: value}, "s3a://our-lake/tables")


def test_the_lakes_own_flags_come_before_the_general_ones() -> None:
    general = {"spark.hadoop.fs.s3a.performance.flags": "create"}
    own = {"spark.hadoop.fs.s3a.bucket.our-lake.performance.flags": "mkdir"}
    refuse_unsafe_settings(SAFE | general | own, "s3a://our-lake/tables")


def test_deltas_own_log_store_is_refused() -> None:
    without = {key: value for key, value in SAFE.items() if value != LOG_STORE}
    with pytest.raises(InvalidConfiguration, match=r"logStore\.s3a\.impl: is not set, so Delta uses its own"):
        refuse_unsafe_settings(without, "s3a://our-lake/tables")


def test_all_problems_are_told_at_once() -> None:
    bad = {"spark.hadoop.fs.s3a.performance.flags": "*", "fs.s3a.create.performance": "true"}
    with pytest.raises(InvalidConfiguration) as refused:
        refuse_unsafe_settings(bad, "s3://our-lake")
    assert len(refused.value.problems) == 3


def test_a_lake_on_a_kind_of_storage_that_nobody_looked_at_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="use s3://, s3a://, hdfs:// or file:"):
        refuse_unsafe_settings(SAFE, "gs://our-lake")


# --- asked of the file system itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_a_server_with_conditional_writes_is_taken_and_left_clean(
    bucket: Bucket, driver: DriverProcess, scheme: str
) -> None:
    driver.ask("configure", settings=bucket.through_proxy)
    driver.ask("probe", path=f"{scheme}://{bucket.name}/lake")
    assert bucket.proxy.statuses["PUT", 412] == 1
    assert len(bucket.proxy.requests("DELETE", r"_forebay/probe/[0-9a-f]{32}$")) == 1


def test_a_lake_on_the_laptops_disk_is_taken(driver: DriverProcess, tmp_path: object) -> None:
    driver.ask("probe", path=f"file:{tmp_path}/lake")


def test_a_server_that_ignores_if_none_match_is_refused(bucket: Bucket, driver: DriverProcess) -> None:
    driver.ask("configure", settings=bucket.through_proxy)
    bucket.proxy.on("PUT", "", then=without_header("If-None-Match"), times=None)
    assert "ignores If-None-Match" in refusal(driver, bucket.lake)
    assert len(bucket.proxy.requests("DELETE")) == 1


def test_a_file_system_that_cannot_create_conditionally_is_refused(driver: DriverProcess) -> None:
    key = "spark.hadoop.fs.s3.impl"
    driver.ask("configure", settings={key.removeprefix("spark.hadoop."): "org.apache.hadoop.fs.http.HttpFileSystem"})
    try:
        sentence = refusal(driver, "s3://somewhere/lake")
    finally:
        driver.ask("configure", settings={key.removeprefix("spark.hadoop."): SAFE[key]})
    assert "cannot create a file only if it does not exist" in sentence
    assert "HttpFileSystem" in sentence
    assert "3.4.2" in sentence


def test_an_s3a_whose_conditional_writes_are_switched_off_in_a_site_file_is_refused(
    bucket: Bucket, driver: DriverProcess
) -> None:
    driver.ask("configure", settings={f"fs.s3a.bucket.{bucket.name}.create.conditional.enabled": "false"})
    assert "fs.s3a.create.conditional.enabled: `false`" in refusal(driver, bucket.lake)
    with pytest.raises(Failed) as failed:
        driver.ask("write", path=f"{bucket.lake}/_delta_log/00000000000000000000.json", lines=["never"])
    assert failed.value.classes[0] == f"{LOG_STORE}$CannotCreateConditionally"


def test_performance_flags_in_a_site_file_are_refused(bucket: Bucket, driver: DriverProcess) -> None:
    driver.ask("configure", settings={f"fs.s3a.bucket.{bucket.name}.performance.flags": "create"})
    assert "fs.s3a.performance.flags: `create`" in refusal(driver, bucket.lake)


def test_a_bucket_that_is_not_there_is_one_line(driver: DriverProcess) -> None:
    sentence = refusal(driver, "s3a://no-such-bucket-anywhere/lake")
    assert "there is no such bucket" in sentence
    assert "\n" not in sentence


def test_a_name_that_no_bucket_can_have_is_one_line(driver: DriverProcess) -> None:
    sentence = refusal(driver, "s3a:///lake")
    assert sentence.startswith("lake s3a:///lake: a test commit failed")
    assert "\n" not in sentence


def test_a_lake_that_we_may_not_write_to_is_one_line(bucket: Bucket, driver: DriverProcess) -> None:
    driver.ask("configure", settings=bucket.through_proxy)
    bucket.proxy.on("PUT", "", then=answered(403, "AccessDenied"), times=None)
    sentence = refusal(driver, bucket.lake)
    assert "writing to it is denied" in sentence
    assert "\n" not in sentence


def refusal(driver: DriverProcess, lake: str) -> str:
    with pytest.raises(Failed) as failed:
        driver.ask("probe", path=lake)
    assert failed.value.classes == ["InvalidConfiguration"], str(failed.value)
    return failed.value.text
