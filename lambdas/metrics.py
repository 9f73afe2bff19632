"""Metrics that were published, read back from CloudWatch: many at once, in as few requests as their pages are.

In: by a name of your own, a metric, its dimensions and a statistic; the period and the span. Out: the points by that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

Points = dict[datetime, float]
Asked = Mapping[str, tuple[str, Mapping[str, str], str]]


def points_of(
    cloudwatch: Any, namespace: str, asked: Asked, *, period_s: int, since: datetime, now: datetime
) -> dict[str, Points]:
    queries = []
    for name, (metric, dimensions, statistic) in asked.items():
        where = [{"Name": key, "Value": value} for key, value in dimensions.items()]
        about = {"Namespace": namespace, "MetricName": metric, "Dimensions": where}
        queries.append({"Id": name, "MetricStat": {"Metric": about, "Period": period_s, "Stat": statistic}})
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries, StartTime=since, EndTime=now
    )
    found: dict[str, Points] = {name: {} for name in asked}
    for page in pages:
        for result in page["MetricDataResults"]:
            found[result["Id"]].update(zip(result["Timestamps"], result["Values"], strict=True))
    return found
