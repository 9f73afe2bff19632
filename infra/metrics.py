"""The metrics that forebay publishes, taken from the events: a metric without an event cannot be shown or watched."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw

import forebay.batch.events as batch_events
import forebay.declaration.kept.newest as declaration_events
import forebay.jobs.troubles as trouble_events
import forebay.lake.health as health
import forebay.merge.events as merge_events
import forebay.source.events as file_events
import forebay.table.events as table_events
import forebay.upkeep.accounts.events as accounts_events
import forebay.upkeep.after_load.events as after_load_events
import forebay.upkeep.compaction.events as compaction_events
import forebay.upkeep.maintenance.events as maintenance_events
import forebay.upkeep.reconcile.events as reconcile_events
import lambdas.job_ended.events as job_events
import lambdas.publish_freshness.events as freshness_events
from forebay.aws.cloudwatch import dimension_value
from forebay.events import Event, dimension_fields, metric_name

SOURCES = (
    file_events,
    batch_events,
    declaration_events,
    trouble_events,
    table_events,
    compaction_events,
    maintenance_events,
    reconcile_events,
    merge_events,
    accounts_events,
    after_load_events,
    health,
    freshness_events,
    job_events,
)
"""Rooms whose events reach CloudWatch."""


def published() -> Mapping[str, tuple[str, ...]]:
    """Every metric's name, with its dimensions."""
    return {
        metric_name(event, field.name): dimension_fields(event)
        for event in _events()
        for field in dataclasses.fields(event)
        if "unit" in field.metadata
    }


def _events() -> Iterator[type[Event]]:
    for source in SOURCES:
        for name, found in vars(source).items():
            own = isinstance(found, type) and found.__module__ == source.__name__ and not name.startswith("_")
            if own and issubclass(found, Event):
                yield found


class ServiceMetrics:
    """The metrics of one service in one environment, which has a namespace of its own."""

    def __init__(self, namespace: str, service: str) -> None:
        self._namespace, self._service, self._published = namespace, service, published()

    def of(
        self, event: type[Event], field: str, *, statistic: str = "Sum", minutes: int = 1, label: str | None = None
    ) -> cw.Metric:
        return self._metric(event, field, {}, label or field.replace("_", " "), minutes, statistic)

    def of_job(self, event: type[Event], field: str, job: str, *, minutes: int = 60) -> cw.Metric:
        return self._metric(event, field, {"job": job}, job, minutes)

    def of_table(self, event: type[Event], field: str, table: str, *, minutes: int = 5) -> cw.Metric:
        return self._metric(event, field, {"table": table}, f"{field} of {table}", minutes)

    def by_table(
        self, event: type[Event], field: str, *, statistic: str = "Sum", minutes: int = 5
    ) -> cw.MathExpression:
        """One line for each table, also for those that are yet to come. For dashboards: an alarm cannot search."""
        name = self._name(event, field, ("service", "table"))
        found = f'{{"{self._namespace}",service,table}} MetricName="{name}" service="{self._service}"'
        return cw.MathExpression(
            expression=f"SEARCH('{found}', '{statistic}', {minutes * 60})",
            using_metrics={},
            period=Duration.minutes(minutes),
            label="",
        )

    def _metric(
        self, event: type[Event], field: str, more: dict[str, str], label: str, minutes: int, statistic: str = "Sum"
    ) -> cw.Metric:
        dimensions = {"service": self._service, **more}
        return cw.Metric(
            namespace=self._namespace,
            metric_name=self._name(event, field, tuple(dimensions)),
            dimensions_map={name: dimension_value(value) for name, value in dimensions.items()},
            statistic=statistic,
            period=Duration.minutes(minutes),
            label=label,
        )

    def _name(self, event: type[Event], field: str, dimensions: tuple[str, ...]) -> str:
        name = metric_name(event, field)
        if self._published.get(name) != dimensions:
            raise LookupError(f"{event.__name__}.{field} is not published with dimensions {dimensions}")
        return name
