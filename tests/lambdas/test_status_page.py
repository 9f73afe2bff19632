"""The page says what there is, in HTML that nothing from outside can break, and needs nothing else to be shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from lambdas.status_page.looking import in_state
from lambdas.status_page.page import Alarm, Run, State, Table, page, size, span

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
EVIL = '<script>alert("x")</script>&amp;'
VOID = ("meta", "br", "img", "link", "!doctype")
STATE = State(
    name="forebay-dev",
    at=NOW,
    waiting=1234,
    held=5,
    dead=0,
    last_batch=NOW - timedelta(minutes=4),
    tables=(Table("calm", 3, 0, 5_000_000, NOW), Table("busy", 900, 880, 12_000, NOW - timedelta(hours=5))),
    runs=(
        Run("ingest", "SUCCEEDED", NOW - timedelta(minutes=5), 61, ""),
        Run("compact", "SUCCEEDED", NOW - timedelta(hours=9), 60, ""),
        Run("compact", "FAILED", NOW - timedelta(hours=3), 7200, EVIL),
    ),
    alarms=(),
)


class Reader(HTMLParser):
    """Text by row, tags that are open, and whatever is asked for from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.asks: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.asks += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def said_by(state: State) -> str:
    return " ".join("".join(Reader(page(state)).texts).split())


def test_the_page_says_how_files_jobs_and_tables_are() -> None:
    read = Reader(page(STATE))
    assert read.open == []
    assert "waiting1,234 in hand5 dead0 last batch4 min ago" in " ".join("".join(read.texts).split())
    assert read.rows == [
        ["job", "last run", "began", "took", "before that"],
        ["ingest", "succeeded", "5 min ago", "61 s", "\u2013"],
        ["compact", "failed", "3 h ago", "2 h", "succeeded"],
        [EVIL],
        ["table", "files", "small", "size", "last rows"],
        ["busy", "900", "880", "12 KB", "5 h ago"],
        ["calm", "3", "0", "5 MB", "0 s ago"],
    ]


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    read = Reader(page(replace(STATE, alarms=(Alarm(EVIL, EVIL),), name=EVIL)))
    assert (read.asks, "script" in read.open) == ([], False)
    assert page(STATE).count("<script") == 0


def test_the_first_line_says_that_all_is_well() -> None:
    well = replace(STATE, runs=STATE.runs[:1])
    assert "All is well. No alarm rings" in said_by(well).replace("well.No", "well. No")
    assert said_by(well).startswith("well: forebay-dev")


def test_the_first_line_says_what_somebody_must_look_at_the_alarms_first() -> None:
    ringing = Alarm.of(
        {"AlarmName": "forebay-dev-files-wait", "AlarmDescription": "A file waits. Runbook: infra/README.md#files-wait"}
    )
    said = said_by(replace(STATE, alarms=(ringing,), dead=3))
    assert said.startswith("3 to look at: forebay-dev")
    order = [
        said.index(one) for one in ("files-wait: A file waits.", "3 messages are dead", "compact: the last run failed")
    ]
    assert order == sorted(order)
    assert "All is well" not in said
    dead = Alarm("forebay-dev-dead-letters", "A message was never finished.")
    assert said_by(replace(STATE, alarms=(dead,), dead=3)).startswith("2 to look at"), "dead messages are told once"


def test_an_alarm_that_only_wakes_a_function_is_no_trouble() -> None:
    class CloudWatch:
        def get_paginator(self, name: str) -> CloudWatch:
            assert name == "describe_alarms"
            return self

        def paginate(self, **asked: str) -> list[dict[str, list[dict[str, object]]]]:
            assert asked == {"AlarmNamePrefix": "forebay-dev-", "StateValue": "ALARM"}
            told, woken = ["arn:aws:sns:eu-west-1:1:alarms"], ["arn:aws:lambda:eu-west-1:1:function:start"]
            return [
                {"MetricAlarms": [{"AlarmName": "forebay-dev-many-wait", "AlarmActions": woken}]},
                {"MetricAlarms": [{"AlarmName": "forebay-dev-no-batch", "AlarmActions": told}]},
            ]

    assert in_state("ALARM", "forebay-dev", CloudWatch()) == (Alarm("forebay-dev-no-batch"),)


def test_an_alarm_that_has_no_data_is_not_passed_over() -> None:
    calm = replace(STATE, runs=STATE.runs[:2])
    assert "without data" not in said_by(calm)
    assert "Alarms without data yet: 3." in said_by(replace(calm, without_data=3))


def test_a_job_that_is_at_work_again_shows_why_its_run_before_failed() -> None:
    again = (
        Run("ingest", "RUNNING", NOW, 60, ""),
        Run("ingest", "FAILED", NOW - timedelta(hours=1), 60, "no such queue"),
    )
    said = said_by(replace(STATE, runs=again))
    assert "no such queue" in said
    assert "All is well" in said


def test_a_new_service_has_a_page_too_and_one_of_thousands_of_tables_stays_short() -> None:
    empty = page(replace(STATE, tables=(), runs=(), last_batch=None))
    assert empty.count("none yet") == 3
    tables = tuple(Table(f"t{n:05}", n, n, n, None) for n in range(2000))
    text = page(replace(STATE, tables=tables))
    assert "Tables (2,000)" in text
    assert "t01999" in text
    assert "t00001" not in text
    assert len(text) < 100_000


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (180_000, "2 d")]
)
def test_spans_are_short(seconds: float, said: str) -> None:
    assert span(seconds) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2.5e15, "2.5e+03 TB")])
def test_sizes_are_short(count: float, said: str) -> None:
    assert size(count) == said
