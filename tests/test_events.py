"""Events: one declaration gives the log line and the metric."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from forebay.events import Event, Journal, Metric, metric, metrics_of, to_log


@dataclass(frozen=True, kw_only=True)
class RowsCounted(Event):
    service: str
    table: str
    note: str | None = None
    rows: int = metric()
    wait_seconds: float | None = metric("Seconds", default=None)


EVENT = RowsCounted(service="games", table="alpha", rows=3)


def test_a_metric_is_named_after_its_event_and_has_few_dimensions() -> None:
    where = (("service", "games"), ("table", "alpha"))
    assert list(metrics_of(EVENT)) == [Metric("RowsCountedRows", 3, "Count", where)]


def test_the_log_line_says_the_event_first_and_leaves_out_what_is_not_known() -> None:
    stream = io.StringIO()
    to_log(stream, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))(EVENT)
    line = json.loads(stream.getvalue())
    assert line == {
        "at": "2026-01-02T00:00:00.000+00:00",
        "level": "info",
        "event": "RowsCounted",
        "service": "games",
        "table": "alpha",
        "rows": 3,
    }


def test_a_quiet_log_still_says_what_a_person_must_act_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class TroubleSeen(RowsCounted):
        level = "error"

    monkeypatch.setenv("FOREBAY_LOG", "error")
    stream = io.StringIO()
    sink = to_log(stream)
    sink(EVENT)
    sink(TroubleSeen(service="games", table="alpha", rows=1))
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["TroubleSeen"]


def test_a_sink_that_fails_stops_neither_the_data_nor_the_other_sinks(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(event: Event) -> None:
        raise OSError("no route")

    seen: list[Event] = []
    journal = Journal(broken, seen.append)
    journal(EVENT)
    journal(EVENT)
    assert seen == [EVENT, EVENT]
    assert capsys.readouterr().err.count("no route") == 1
