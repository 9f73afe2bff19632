"""Where the events of a job go: to the log, to the tables' health objects and, if the settings say so, to CloudWatch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from forebay.aws.client import client
from forebay.aws.cloudwatch import CloudWatch
from forebay.events import Emit, Event, Journal, to_log
from forebay.jobs.arrivals import Arrivals
from forebay.jobs.pacing import pacing_of
from forebay.jobs.troubles import Troubles
from forebay.lake.health import HealthRecords
from forebay.settings import JobSettings, names_in


@dataclass(frozen=True, kw_only=True)
class ArgumentsPassedOver(Event):
    """The job got arguments that it does not know. They had no effect."""

    level: ClassVar[str] = "warning"
    arguments: tuple[str, ...]


@contextmanager
def journal(settings: JobSettings) -> Iterator[Emit]:
    """A sink for the events of this job. It sends the remaining ones when the job ends."""
    arrivals = Arrivals(HealthRecords(settings.lake))
    chosen = names_in(settings.metrics_of_tables)
    metrics = CloudWatch.to(settings.metrics, lambda: client("cloudwatch"), tables=chosen)
    numbers: list[Emit] = [metrics, Troubles(metrics)] if metrics is not None else []
    pacing = pacing_of(settings)
    emit = Journal(to_log(), arrivals, *numbers, *filter(None, [pacing]))
    if settings.passed_over:
        emit(ArgumentsPassedOver(arguments=tuple(f"--{name}" for name in settings.passed_over)))
    try:
        yield emit
    finally:
        emit.last_words(arrivals.close)
        if pacing is not None:
            emit.last_words(pacing.flush)
        if metrics is not None:
            emit.last_words(metrics.flush)
