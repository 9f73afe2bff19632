"""The published metrics, by the hour of the last two days, and of this month.

In: CloudWatch, and the names of the service and of its jobs. Out: `Published`. One request, and one more for each page of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from forebay.batch.events import BatchCommitted, RecordsQuarantined
from forebay.batch.reasons import REASONS
from forebay.events import metric_name
from forebay.operate.stack.cost import month_of
from lambdas.job_ended.events import JobEnded
from lambdas.metrics import Points, points_of

HOUR = "%Y-%m-%dT%H"
HOURS = tuple(timedelta(hours=back) for back in reversed(range(48)))
DAY_S, HOUR_S = 86_400, 3_600
MISSED = "FilesReconciledMissed"


@dataclass(frozen=True)
class Published:
    """`dpu_hours` of this month, by job."""

    at: datetime
    points: Mapping[str, Points]
    reasons: Mapping[str, int]
    dpu_hours: Mapping[str, float]
    files_of_month: int

    def total(self, name: str) -> float:
        return sum(self.points[name].values())

    def by_hour(self, name: str) -> tuple[tuple[datetime, float], ...]:
        hour = self.at.replace(minute=0, second=0, microsecond=0)
        found = {f"{at:{HOUR}}": value for at, value in self.points[name].items()}
        return tuple((hour - back, found.get(f"{hour - back:{HOUR}}", 0.0)) for back in HOURS)


def published(cloudwatch: Any, namespace: str, service: str, jobs: Sequence[str], *, now: datetime) -> Published:
    of_service = {"service": service}
    batch = {name: metric_name(BatchCommitted, name) for name in ("records", "files", "quarantined", "parked")}
    asked = {name: (metric, of_service, "Sum") for name, metric in batch.items()}
    asked["latency"] = (metric_name(BatchCommitted, "latency_p50_seconds"), of_service, "Average")
    asked["missed"] = (MISSED, of_service, "Sum")
    why = {f"reason{n}": reason for n, reason in enumerate(REASONS)}
    for name, reason in why.items():
        asked[name] = (metric_name(RecordsQuarantined, reason.replace("-", "_")), of_service, "Sum")
    since = now.replace(minute=0, second=0, microsecond=0) - HOURS[0]
    points = points_of(cloudwatch, namespace, asked, period_s=HOUR_S, since=since, now=now)
    dpu = metric_name(JobEnded, "dpu_seconds")
    month: dict[str, Any] = {f"job{n}": (dpu, {**of_service, "job": job}, "Sum") for n, job in enumerate(jobs)}
    month["files"] = (batch["files"], of_service, "Sum")
    of_month = points_of(cloudwatch, namespace, month, period_s=DAY_S, since=month_of(now), now=now)
    reasons = {reason: int(sum(points[name].values())) for name, reason in why.items()}
    return Published(
        now,
        points,
        dict(sorted(((reason, count) for reason, count in reasons.items() if count), key=lambda pair: -pair[1])),
        {job: sum(of_month[f"job{n}"].values()) / 3600 for n, job in enumerate(jobs)},
        int(sum(of_month["files"].values())),
    )
