"""Rolling averages, from what was published: sums and counts by the hour, so that an hour with many batches counts for more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lambdas.metrics import points_of
from lambdas.publish_freshness.events import TrendMeasured

DAY, WEEK = timedelta(days=1), timedelta(days=7)


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
    found = points_of(cloudwatch, namespace, asked, period_s=3600, since=now - WEEK, now=now)

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
