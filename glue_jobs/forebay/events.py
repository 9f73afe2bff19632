"""Events: each is a frozen dataclass that owns its log line and its metrics, and is emitted once.

A room emits an event; nothing else on the path logs. Sinks are added at the rim (`to_log`, `to_cloudwatch`), so a test
passes a plain list's `append`. Names are noun + past-tense verb. `level` is "error" only where a person must act.

A field marked `metric(unit)` becomes a CloudWatch metric named `<EventName><FieldName>` (`BatchCommitted.files` ->
`BatchCommittedFiles`), with the event's `service`, `job` and `table` fields as its only dimensions: dimensions cost money.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, ClassVar, TextIO

DIMENSIONS = ("service", "job", "table")
NAMESPACE = "forebay"
"""The namespace of metrics, if none is named."""


def metric(unit: str = "Count", **kwargs: Any) -> Any:
    """A dataclass field whose value is published as a metric; None is not published."""
    return field(metadata={"unit": unit}, **kwargs)


@dataclass(frozen=True, kw_only=True)
class Event:
    """The base of all events."""

    level: ClassVar[str] = "info"

    def as_dict(self) -> dict[str, Any]:
        """The log line: the event's name first, then its fields in the order of declaration, without those that are None."""
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"event": type(self).__name__, **{k: v for k, v in facts.items() if v is not None}}


@dataclass(frozen=True, kw_only=True)
class ErrorEvent(Event):
    """The base of events that a person must act on."""

    level: ClassVar[str] = "error"


@dataclass(frozen=True, kw_only=True)
class ServiceEvent(Event):
    service: str


@dataclass(frozen=True, kw_only=True)
class BatchEvent(ServiceEvent):
    batch: int


@dataclass(frozen=True, kw_only=True)
class TableEvent(ServiceEvent):
    table: str


@dataclass(frozen=True, kw_only=True)
class TableBatchEvent(TableEvent):
    batch: int


@dataclass(frozen=True)
class Metric:
    """One number on its way to CloudWatch."""

    name: str
    value: float
    unit: str
    dimensions: tuple[tuple[str, str], ...]


def metric_name(event: type[Event], field_name: str) -> str:
    return event.__name__ + "".join(part.capitalize() for part in field_name.split("_"))


def dimension_fields(event: type[Event]) -> tuple[str, ...]:
    names = {f.name for f in dataclasses.fields(event)}
    return tuple(d for d in DIMENSIONS if d in names)


def metrics_of(event: Event) -> Iterator[Metric]:
    """The metrics that this event carries."""
    where = tuple((d, str(getattr(event, d))) for d in dimension_fields(type(event)))
    for f in dataclasses.fields(event):
        value = getattr(event, f.name)
        if "unit" in f.metadata and value is not None:
            yield Metric(metric_name(type(event), f.name), float(value), f.metadata["unit"], where)


Emit = Callable[[Event], None]


def where_numbers_go(text: str) -> str:
    """A setting: `none`, `cloudwatch`, or `cloudwatch:NAMESPACE`, which is what it leaves, in full."""
    word, colon, namespace = text.strip().partition(":")
    if word.lower() == "none" and not colon:
        return "none"
    if word.lower() == "cloudwatch" and (not colon or re.fullmatch(r"(?!AWS/)[\w./#-]{1,255}", namespace)):
        return f"cloudwatch:{namespace or NAMESPACE}"
    raise ValueError("must be none, cloudwatch, or cloudwatch:NAMESPACE, such as cloudwatch:forebay-prod")


class Journal:
    """Hands each event to every sink. A sink that fails must not stop the data: its error goes to stderr, once a sink."""

    def __init__(self, *sinks: Emit) -> None:
        self._sinks = sinks
        self._broken: set[int] = set()

    def __call__(self, event: Event) -> None:
        for sink in self._sinks:
            self._try(sink, lambda sink=sink: sink(event))  # type: ignore[misc]

    def last_words(self, flush: Callable[[], None]) -> None:
        """Runs a sink's flush at the end, under the same rule."""
        self._try(flush, flush)

    def _try(self, sink: object, deed: Callable[[], None]) -> None:
        try:
            deed()
        except Exception as problem:
            if id(sink) not in self._broken:
                self._broken.add(id(sink))
                print(f"forebay: events cannot be sent by {type(sink).__name__}: {problem}", file=sys.stderr)


def to_log(stream: TextIO | None = None, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Emit:
    """A sink that writes one JSON object a line. With FOREBAY_LOG=error in the environment, which reaches the processes that
    Spark starts too, only what a person must act on is written."""
    lock = threading.Lock()
    quiet = os.environ.get("FOREBAY_LOG") == "error"

    def write(event: Event) -> None:
        if quiet and event.level != "error":
            return
        line = {"at": clock().isoformat(timespec="milliseconds"), "level": event.level, **event.as_dict()}
        text = json.dumps(line, default=_plain, ensure_ascii=False)
        with lock:
            print(text, file=stream or sys.stderr, flush=True)

    return write


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
