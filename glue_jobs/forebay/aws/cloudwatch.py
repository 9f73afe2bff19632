"""A sink that publishes the events' metrics to CloudWatch, a few requests a batch.

In: events. Out: PutMetricData requests of at most 500 numbers, in the given namespace. Numbers of one metric between two
requests are sent together as values with counts, which keeps every percentile exact. A request that fails is sent again with
the next one. Metrics that waited too long are dropped, oldest first: a metric must never delay the data.

CloudWatch bills each table's metrics separately. So a table's metrics are published only if the table is chosen, or if a
person must act on the event. The log has all of them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

from forebay.events import NAMESPACE, Event, metrics_of

ALL_TABLES = "*"

METRICS_A_REQUEST = 500
VALUES_A_METRIC = 150
"""CloudWatch's own limit for one entry."""
MOST_WAITING = 20_000
LONGEST_DIMENSION = 1024

_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class CloudWatch:
    """Collects, and sends when `every_s` have passed or on `flush`."""

    def __init__(
        self,
        client: Any,
        *,
        namespace: str = NAMESPACE,
        tables: Collection[str] = (ALL_TABLES,),
        every_s: float = 30,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._namespace, self._every_s, self._clock = client, namespace, every_s, clock
        self._tables = frozenset(tables)
        self._waiting: dict[_Key, Counter[float]] = {}
        self._sent_at, self._lock = clock(), threading.Lock()

    @classmethod
    def to(
        cls, metrics: str, client: Callable[[], Any], *, tables: Collection[str] = (ALL_TABLES,)
    ) -> CloudWatch | None:
        """The sink that a setting names, as read by `where_numbers_go`; a client is made only if one is needed."""
        _, _, namespace = metrics.partition(":")
        return cls(client(), namespace=namespace, tables=tables) if namespace else None

    def __call__(self, event: Event) -> None:
        if not self._wants(event):
            return
        with self._lock:
            for m in metrics_of(event):
                self._waiting.setdefault((m.name, m.unit, m.dimensions), Counter())[m.value] += 1
            due = self._clock() - self._sent_at >= self._every_s
        if due:
            self.flush()

    def _wants(self, event: Event) -> bool:
        table = getattr(event, "table", None)
        return table is None or event.level == "error" or bool({table, ALL_TABLES} & self._tables)

    def flush(self) -> None:
        """Sends what is waiting. Raises what boto3 raises, after keeping what was not sent for the next time."""
        with self._lock:
            self._sent_at = self._clock()
            data = list(_data(self._waiting))
            self._waiting = {}
            for at in range(0, len(data), METRICS_A_REQUEST):
                try:
                    self._client.put_metric_data(
                        Namespace=self._namespace, MetricData=data[at : at + METRICS_A_REQUEST]
                    )
                except Exception:
                    self._keep(data[at:][-MOST_WAITING:])
                    raise

    def _keep(self, data: list[dict[str, Any]]) -> None:
        for entry in data:
            where = tuple((d["Name"], d["Value"]) for d in entry["Dimensions"])
            counts = Counter(dict(zip(entry["Values"], (int(c) for c in entry["Counts"]), strict=True)))
            self._waiting.setdefault((entry["MetricName"], entry["Unit"], where), Counter()).update(counts)


def _data(waiting: dict[_Key, Counter[float]]) -> Iterator[dict[str, Any]]:
    for (name, unit, where), counts in waiting.items():
        values = list(counts.items())
        for at in range(0, len(values), VALUES_A_METRIC):
            some = values[at : at + VALUES_A_METRIC]
            yield {
                "MetricName": name,
                "Unit": unit,
                "Dimensions": [{"Name": n, "Value": dimension_value(v)} for n, v in where],
                "Values": [value for value, _ in some],
                "Counts": [float(count) for _, count in some],
            }


def dimension_value(value: str) -> str:
    """The value for a metric, and for an alarm on it. CloudWatch accepts ASCII alone, and not only blanks. For one other
    value, such as a table's name, it refuses all metrics of the request, each time.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html"""
    is_plain = value.isascii() and value.isprintable() and value.strip()
    return (value if is_plain else ascii(value))[:LONGEST_DIMENSION]
