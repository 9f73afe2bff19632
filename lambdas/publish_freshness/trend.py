"""Rolling averages, from what was published: sums and counts by the hour, so that an hour with many batches counts for more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from lambdas.publish_freshness.events import TrendMeasured

__all__ = ["trend"]

DAY, WEEK = timedelta(days=1), timedelta(days=7)
Points = dict[datetime, float]


def trend(cloudwatch: Any, *, namespace: str, service: str, job: str, now: datetime) -> TrendMeasured:
    of_service = {"service": service}
    asked = {
        "latency": ("BatchCommittedLatencyP50Seconds", of_service, "Sum"),
        "batches": ("BatchCommittedLatencyP50Seconds", of_service, "SampleCount"),
        "dpu": ("JobEndedDpuSeconds", {**of_service, "job": job}, "Sum"),
        "runs": ("JobEndedDpuSeconds", {**of_service, "job": job}, "SampleCount"),
        "bytes": ("BatchCommittedBytes", of_service, "Sum"),
        "files": ("BatchCommittedFiles", of_service, "Sum"),
    }
    queries = [_query(name, namespace, *what) for name, what in asked.items()]
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries, StartTime=now - WEEK, EndTime=now
    )
    found: dict[str, Points] = {name: {} for name in asked}
    for page in pages:
        for result in page["MetricDataResults"]:
            found[result["Id"]].update(zip(result["Timestamps"], result["Values"], strict=True))

    def average(total: str, count: str, since: timedelta) -> float | None:
        whole, parts = (sum(v for at, v in found[name].items() if at >= now - since) for name in (total, count))
        return round(whole / parts, 3) if parts else None

    return TrendMeasured(
        service=service,
        latency_day_seconds=average("latency", "batches", DAY),
        latency_week_seconds=average("latency", "batches", WEEK),
        run_dpu_day_seconds=average("dpu", "runs", DAY),
        run_dpu_week_seconds=average("dpu", "runs", WEEK),
        file_bytes=average("bytes", "files", WEEK),
    )


def _query(name: str, namespace: str, metric: str, dimensions: dict[str, str], statistic: str) -> dict[str, Any]:
    where: Sequence[dict[str, str]] = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    about = {"Namespace": namespace, "MetricName": metric, "Dimensions": where}
    return {"Id": name, "MetricStat": {"Metric": about, "Period": 3600, "Stat": statistic}}
