"""Metrics reach CloudWatch exactly, in few requests, and never hold up the data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from forebay.aws.cloudwatch import CloudWatch
from forebay.events import Event, metric, where_numbers_go


@dataclass(frozen=True, kw_only=True)
class RowsCounted(Event):
    table: str
    rows: int = metric()


class FakeCloudWatch:
    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.fails = 0

    def put_metric_data(self, **request: Any) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("throttled")
        self.requests.append(request)

    def values(self) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        for request in self.requests:
            for entry in request["MetricData"]:
                table = entry["Dimensions"][0]["Value"]
                found.setdefault(table, []).extend(zip(entry["Values"], entry["Counts"], strict=True))
        return found


def test_many_events_are_one_request_with_every_value() -> None:
    aws = FakeCloudWatch()
    sink = CloudWatch(aws)
    for rows in (1, 1, 5):
        sink(RowsCounted(table="alpha", rows=rows))
    sink(RowsCounted(table="beta", rows=7))
    sink.flush()
    assert len(aws.requests) == 1
    assert aws.requests[0]["Namespace"] == "forebay"
    assert aws.requests[0]["MetricData"][0]["MetricName"] == "RowsCountedRows"
    assert aws.values() == {"alpha": [(1, 2), (5, 1)], "beta": [(7, 1)]}


@pytest.mark.parametrize("name", ["événements", "a\x7f", " ", "表", "x" * 2000])
def test_the_name_of_a_table_takes_no_other_metric_with_it(name: str) -> None:
    """A declaration may let values of any letters name tables."""

    class LikeAws(FakeCloudWatch):
        def put_metric_data(self, **request: Any) -> None:
            for value in (dimension["Value"] for entry in request["MetricData"] for dimension in entry["Dimensions"]):
                if not re.fullmatch(r"[ -~]{1,1024}", value) or not value.strip():
                    raise OSError("InvalidParameterValue")
            super().put_metric_data(**request)

    aws = LikeAws()
    sink = CloudWatch(aws)
    sink(RowsCounted(table=name, rows=1))
    sink(RowsCounted(table="alpha", rows=2))
    sink.flush()
    assert aws.values()["alpha"] == [(2, 1)]
    assert len(aws.values()) == 2


def test_it_sends_by_itself_when_the_time_has_come() -> None:
    aws, now = FakeCloudWatch(), [0.0]
    sink = CloudWatch(aws, every_s=30, clock=lambda: now[0])
    sink(RowsCounted(table="alpha", rows=1))
    assert aws.requests == []
    now[0] = 31
    sink(RowsCounted(table="alpha", rows=2))
    assert aws.values() == {"alpha": [(1, 1), (2, 1)]}


def test_what_could_not_be_sent_goes_with_the_next_request() -> None:
    aws = FakeCloudWatch()
    sink = CloudWatch(aws)
    sink(RowsCounted(table="alpha", rows=1))
    aws.fails = 1
    with pytest.raises(OSError, match="throttled"):
        sink.flush()
    sink(RowsCounted(table="alpha", rows=1))
    sink.flush()
    assert aws.values() == {"alpha": [(1, 2)]}


def test_thousands_of_tables_and_values_stay_within_the_limits_of_a_request() -> None:
    aws = FakeCloudWatch()
    sink = CloudWatch(aws)
    for n in range(1200):
        sink(RowsCounted(table=f"t{n}", rows=1))
    for n in range(400):
        sink(RowsCounted(table="wide", rows=n))
    sink.flush()
    sizes = [len(request["MetricData"]) for request in aws.requests]
    assert max(sizes) <= 500
    assert max(len(e["Values"]) for request in aws.requests for e in request["MetricData"]) <= 150
    assert sum(count for pairs in aws.values().values() for _, count in pairs) == 1600


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("none", "none"),
        ("cloudwatch", "cloudwatch:forebay"),
        ("CloudWatch:forebay-prod", "cloudwatch:forebay-prod"),
        ("cloudwatch:a/b.c", "cloudwatch:a/b.c"),
    ],
)
def test_where_numbers_go_may_be_a_namespace_of_ones_own(text: str, meant: str) -> None:
    assert where_numbers_go(text) == where_numbers_go(meant) == meant
    sink = CloudWatch.to(meant, FakeCloudWatch)
    assert (sink is None) == (meant == "none")


@pytest.mark.parametrize("text", ["", "statsd", "none:a", "cloudwatch:", "cloudwatch:AWS/S3", "cloudwatch:a b"])
def test_a_place_for_numbers_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be none, cloudwatch, or cloudwatch:NAMESPACE"):
        where_numbers_go(text)


@dataclass(frozen=True, kw_only=True)
class TableBroke(Event):
    level: ClassVar[str] = "error"

    table: str
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class BatchDone(Event):
    service: str
    files: int = metric()


@pytest.mark.parametrize(
    ("tables", "sent"),
    [
        ((), {"beta", "games"}),
        (("alpha",), {"alpha", "beta", "games"}),
        (("gamma",), {"beta", "games"}),
        (("*",), {"alpha", "beta", "games"}),
    ],
)
def test_a_table_has_metrics_of_its_own_if_it_is_chosen_or_something_is_wrong_with_it(
    tables: tuple[str, ...], sent: set[str]
) -> None:
    aws = FakeCloudWatch()
    sink = CloudWatch(aws, tables=tables)
    for event in (
        RowsCounted(table="alpha", rows=1),
        TableBroke(table="beta", rows=1),
        BatchDone(service="games", files=1),
    ):
        sink(event)
    sink.flush()
    assert aws.values().keys() == sent
