"""What is waiting, what is in hand, what is dead, and how long ago the last batch was."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lambdas.publish_freshness.events import TrendMeasured
from lambdas.publish_freshness.ledger_log import LOG
from lambdas.publish_freshness.measuring import Settings, measure, of_tables
from lambdas.publish_freshness.trend import trend

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SETTINGS = Settings(
    service="games",
    namespace="forebay-dev",
    queue_url="q",
    dead_urls="dead,undelivered",
    lake="s3://lake",
    ingest_job="ingest",
    keys="arn:key",
    schedule_group="forebay-dev",
)


class Sqs:
    counts = {"q": (7, 2), "dead": (3, 1), "undelivered": (1, 0)}  # noqa: RUF012

    def get_queue_attributes(self, **asked: Any) -> dict[str, Any]:
        return {"Attributes": dict(zip(asked["AttributeNames"], map(str, self.counts[asked["QueueUrl"]]), strict=True))}


class S3:
    """A bucket of keys with their ages in minutes, listed as S3 does."""

    class exceptions:  # noqa: N801
        class NoSuchKey(Exception):
            pass

    def __init__(self, ages: dict[str, float], checkpoint: int | None = None, below: str = "") -> None:
        self.ages, self.checkpoint, self.below = ages, checkpoint, below

    def get_object(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"Bucket": "lake", "Key": f"{self.below}{LOG}_last_checkpoint"}
        if self.checkpoint is None:
            raise self.exceptions.NoSuchKey
        return {"Body": io.BytesIO(json.dumps({"version": self.checkpoint, "size": 9}).encode())}

    def get_paginator(self, name: str) -> S3:
        assert name == "list_objects_v2"
        return self

    def paginate(self, **asked: Any) -> Any:
        for key, age in sorted(self.ages.items()):
            if key.startswith(asked["Prefix"]) and key > asked["StartAfter"]:
                yield {"Contents": [{"Key": key, "LastModified": NOW - timedelta(minutes=age)}]}


def commit(version: int, ending: str = ".json") -> str:
    return f"{LOG}{version:020}{ending}"


def seconds(s3: S3) -> float | None:
    return measure(SETTINGS, sqs=Sqs(), s3=s3, now=NOW).since_batch_seconds


def test_messages_are_counted_by_where_they_are() -> None:
    measured = measure(SETTINGS, sqs=Sqs(), s3=S3({}), now=NOW)
    assert (measured.service, measured.waiting, measured.held, measured.dead) == ("games", 7, 2, 5)


def test_the_newest_commit_of_the_ledger_is_the_last_batch() -> None:
    assert seconds(S3({commit(0): 30, commit(1): 4})) == 240


def test_where_the_lake_is_a_folder_of_its_bucket_the_ledger_there_is_read() -> None:
    s3 = S3({f"games/{commit(3)}": 4, f"shop/{commit(9)}": 0, commit(9): 0}, checkpoint=1, below="games/")
    found = measure(replace(SETTINGS, lake="s3://lake/games"), sqs=Sqs(), s3=s3, now=NOW)
    assert found.since_batch_seconds == 240


def test_only_commits_count() -> None:
    ages = {commit(5): 9, commit(5, ".crc"): 0, commit(5, ".checkpoint.parquet"): 0, LOG + "_last_checkpoint": 0}
    assert seconds(S3(ages, checkpoint=5)) == 540


def test_no_number_is_made_up_before_the_first_batch() -> None:
    assert seconds(S3({})) is None


def test_a_clock_that_runs_behind_gives_no_negative_age() -> None:
    assert seconds(S3({commit(0): -1})) == 0


class Health:
    """A bucket with what is known of tables."""

    class exceptions:  # noqa: N801
        class NoSuchKey(Exception):
            pass

    known = {"orders": NOW - timedelta(minutes=7), "new": None}  # noqa: RUF012

    def get_object(self, **asked: Any) -> dict[str, Any]:
        table = asked["Key"].removeprefix("_forebay/health/").removesuffix(".json")
        if table not in self.known:
            raise self.exceptions.NoSuchKey
        at = self.known[table]
        return {"Body": io.BytesIO(json.dumps({"table": table, "newest_at": at and at.isoformat()}).encode())}


def test_a_watched_table_has_the_age_of_its_last_rows_and_none_is_made_up() -> None:
    settings = replace(SETTINGS, watched_tables="orders,new,nobody")
    assert [(m.table, m.since_rows_seconds) for m in of_tables(settings, s3=Health(), now=NOW)] == [("orders", 420)]
    assert list(of_tables(SETTINGS, s3=Health(), now=NOW)) == []


class Numbers:
    """CloudWatch, which answers in pages: of each query, what was said at so many hours ago."""

    def __init__(self, said: dict[tuple[str, str], dict[int, float]]) -> None:
        self.said = said

    def get_paginator(self, name: str) -> Numbers:
        assert name == "get_metric_data"
        return self

    def paginate(self, **asked: Any) -> Any:
        assert (asked["StartTime"], asked["EndTime"]) == (NOW - timedelta(days=7), NOW)
        for query in asked["MetricDataQueries"]:
            about = query["MetricStat"]["Metric"]
            assert about["Namespace"] == "forebay-dev"
            of_job = [d["Value"] for d in about["Dimensions"] if d["Name"] == "job"]
            assert of_job == (["ingest"] if about["MetricName"].startswith("JobEnded") else [])
            points = self.said.get((about["MetricName"], query["MetricStat"]["Stat"]), {})
            for hours, value in points.items():
                at = NOW - timedelta(hours=hours)
                yield {"MetricDataResults": [{"Id": query["Id"], "Timestamps": [at], "Values": [value]}]}


def test_averages_count_batches_and_not_hours() -> None:
    latency, dpu = "BatchCommittedLatencyP50Seconds", "JobEndedDpuSeconds"
    said = {
        (latency, "Sum"): {1: 100.0, 30: 10.0},
        (latency, "SampleCount"): {1: 10.0, 30: 10.0},
        (dpu, "Sum"): {40: 600.0},
        (dpu, "SampleCount"): {40: 2.0},
        ("BatchCommittedBytes", "Sum"): {2: 7000.0},
        ("BatchCommittedFiles", "Sum"): {2: 2.0},
    }
    found = trend(Numbers(said), namespace="forebay-dev", service="games", job="ingest", now=NOW)
    assert found == TrendMeasured(
        service="games",
        latency_day_seconds=10,
        latency_week_seconds=5.5,
        run_dpu_day_seconds=None,
        run_dpu_week_seconds=300,
        file_bytes=3500,
    )
