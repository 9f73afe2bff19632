"""The page says what there is, in HTML that nothing from outside can break, and needs nothing else to be shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from lambdas.status_page.page import Run, State, Table, page, size, span

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
    runs=(Run("ingest", "SUCCEEDED", NOW, 61, ""), Run("compact", "FAILED", NOW + timedelta(hours=1), 7200, EVIL)),
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
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_the_page_says_how_files_runs_and_tables_are() -> None:
    read = Reader(page(STATE))
    assert read.open == []
    said = "".join(read.texts)
    assert "1,234 messages wait, 5 are in hand, 0 are dead. Last batch: 4 min ago." in said
    assert "No alarm rings." in said
    assert read.rows == [
        ["job", "state", "began", "took", "error"],
        ["compact", "FAILED", "2026-05-01 13:00", "2 h", EVIL],
        ["ingest", "SUCCEEDED", "2026-05-01 12:00", "61 s", ""],
        ["table", "files", "small", "size", "last rows"],
        ["busy", "900", "880", "12 KB", "5 h ago"],
        ["calm", "3", "0", "5 MB", "0 s ago"],
    ]


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    read = Reader(page(replace(STATE, alarms=(EVIL,), name=EVIL)))
    assert (read.asks, "script" in read.open) == ([], False)
    assert page(STATE).count("<script") == 0


def test_an_alarm_that_rings_is_named() -> None:
    text = page(replace(STATE, alarms=("forebay-dev-dead-letters",), dead=3))
    assert "forebay-dev-dead-letters" in text
    assert "No alarm rings" not in text
    assert '<span class="bad">3</span>' in text


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
