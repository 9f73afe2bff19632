"""The options: what is right is read, what is wrong is refused by name, all at once."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from forebay.errors import InvalidConfiguration
from forebay.source.elsewhere import ELSEWHERE
from forebay.source.options import MANIFESTS, OPTIONS, SourceOptions, source_options_table

QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/landed"
LEAST = {"queueUrl": QUEUE, "manifestPath": "s3://lake/_streams/ingest"}


def test_the_least_that_can_be_said_gives_the_declared_defaults() -> None:
    options = SourceOptions.parse(LEAST)
    assert (options.queue_url, options.manifest_path) == (QUEUE, "s3://lake/_streams/ingest")
    assert (options.max_files_per_batch, options.max_bytes_per_batch) == (2000, 2 << 30)
    assert (options.fetch_parallelism, options.visibility_timeout_s, options.wait_s) == (8, 300, 5)
    assert (options.bucket_allow_list, options.path_filter, options.order, options.drain) == (set(), "", "none", False)


def test_the_case_of_names_does_not_matter_because_spark_does_not_keep_it() -> None:
    assert SourceOptions.parse({name.lower(): text for name, text in LEAST.items()}) == SourceOptions.parse(LEAST)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("maxFilesPerBatch", "1", 1),
        ("maxBytesPerBatch", "500m", 500 << 20),
        ("maxBytesPerBatch", "10 GiB", 10 << 30),
        ("maxBytesPerBatch", "12345", 12345),
        ("bucketAllowList", "one-bucket, another.bucket", {"one-bucket", "another.bucket"}),
        ("order", "Oldest-First", "oldest-first"),
        ("drain", "TRUE", True),
        ("manifestPath", "file:///tmp/x/", "file:///tmp/x"),
        ("manifestPath", "/tmp/x", "/tmp/x"),
        ("manifestPath", "s3a://b/p", "s3a://b/p"),
        ("pathFilter", "in/**/*.json", "in/**/*.json"),
    ],
)
def test_a_value_is_read(name: str, text: str, value: object) -> None:
    field = next(option.field for option in OPTIONS if option.name == name)
    assert getattr(SourceOptions.parse(LEAST | {name: text}), field) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queueUrl", "landed"),
        ("queueUrl", "https://sqs.eu-central-1.amazonaws.com"),
        ("manifestPath", "relative/path"),
        ("manifestPath", "/"),
        ("manifestPath", "s3:///nobucket"),
        ("manifestPath", "hdfs://host/path"),
        ("endpoint", "127.0.0.1:4566"),
        ("maxFilesPerBatch", "0"),
        ("maxFilesPerBatch", "many"),
        ("maxBytesPerBatch", "2x"),
        ("maxBytesPerBatch", "0"),
        ("fetchParallelism", "65"),
        ("visibilityTimeoutS", "1"),
        ("visibilityTimeoutS", "43201"),
        ("waitS", "21"),
        ("waitS", "-1"),
        ("waitS", "1.5"),
        ("bucketAllowList", "a bucket"),
        ("pathFilter", "in/{a,b"),
        ("order", "newest"),
        ("drain", "yes"),
        ("drainCapS", "0"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_name_and_what_is_allowed(name: str, text: str) -> None:
    allowed = next(option.allowed for option in OPTIONS if option.name == name)
    with pytest.raises(InvalidConfiguration) as refused:
        SourceOptions.parse(LEAST | {name: text})
    [problem] = refused.value.problems
    assert (problem.where, problem.suggestion) == (name, f"allowed: {allowed}")
    assert text in problem.what


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        SourceOptions.parse({"waitS": "99", "order": "up", "path": "s3://b/p"})
    assert [problem.where for problem in refused.value.problems] == [
        "path",
        "queueUrl",
        "manifestPath",
        "waitS",
        "order",
    ]


def test_an_unknown_option_is_refused_and_the_nearest_known_one_named() -> None:
    with pytest.raises(InvalidConfiguration, match=r"did you mean maxFilesPerBatch\?"):
        SourceOptions.parse(LEAST | {"maxFilePerBatch": "10"})


@pytest.mark.parametrize(
    ("options", "region"),
    [
        ({}, "eu-central-1"),
        ({"region": "us-east-2"}, "us-east-2"),
        ({"queueUrl": "http://127.0.0.1:4566/000000000000/landed"}, None),
    ],
)
def test_the_region_is_the_one_said_else_the_queues_else_left_to_the_environment(
    options: dict[str, str], region: str | None
) -> None:
    assert SourceOptions.parse(LEAST | options).region_of_queue == region


def test_names_that_other_sources_have_for_an_option_mean_the_same() -> None:
    other = SourceOptions.parse(
        LEAST | {"maxFilesPerTrigger": "7", "maxBytesPerTrigger": "1m", "sqsFetchInterval": "5 seconds"}
    )
    assert (other.max_files_per_batch, other.max_bytes_per_batch, other.wait_s) == (7, 1 << 20, 5)
    assert SourceOptions.parse(LEAST | {"sqsFetchInterval": "2m"}).wait_s == 20


def test_an_option_said_twice_in_two_ways_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="is set twice, as maxFilesPerBatch and maxFilesPerTrigger"):
        SourceOptions.parse(LEAST | {"maxFilesPerBatch": "7", "maxFilesPerTrigger": "8"})
    assert SourceOptions.parse(LEAST | {"maxFilesPerBatch": "7", "maxFilesPerTrigger": "7"}).max_files_per_batch == 7


def test_a_cluster_may_say_where_the_manifests_of_every_queue_are() -> None:
    given = {"queueUrl": LEAST["queueUrl"]}
    told = SourceOptions.parse(given, {MANIFESTS: "s3://lake/manifests/"})
    assert told.manifest_path == "s3://lake/manifests/" + LEAST["queueUrl"].split("/", 3)[3]
    assert SourceOptions.parse(LEAST, {MANIFESTS: "s3://lake/manifests"}).manifest_path == LEAST["manifestPath"]
    with pytest.raises(InvalidConfiguration, match="manifestPath: is missing"):
        SourceOptions.parse(given, {})


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 0), ("Z", 0), ("Africa/Nairobi", 3), ("+02:00", 2), ("GMT-3", -3), ("-0330", -3.5)],
)
def test_a_time_zone_has_a_name_or_an_offset(zone: str, hours: float) -> None:
    parsed = SourceOptions.parse(LEAST | {"timeZone": zone}).time_zone
    assert parsed.utcoffset(datetime(2026, 1, 1)) == timedelta(hours=hours)


@pytest.mark.parametrize("zone", ["Mars", "+19:00", "+01:60", "Europe", "../UTC"])
def test_a_time_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(InvalidConfiguration, match="timeZone"):
        SourceOptions.parse(LEAST | {"timeZone": zone})


def test_no_option_is_both_here_and_elsewhere() -> None:
    here = {name.lower() for option in OPTIONS for name in (option.name, *option.also)}
    assert not here & {name.lower() for name in ELSEWHERE}
    with pytest.raises(InvalidConfiguration, match=r"is not an option of this s3-sqs .`fetchParallelism`"):
        SourceOptions.parse(LEAST | {"sqsMaxConnections": "4"})


def test_the_table_for_readers_names_every_option_once() -> None:
    lines = source_options_table().splitlines()
    assert [line.split("`")[1] for line in lines[2:]] == [option.name for option in OPTIONS]
    assert all(line.count("|") == 6 for line in lines)
