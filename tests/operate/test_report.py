"""`forebay report`: a page of how it is going, which nothing from data can break, and which needs nothing else to be shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.batch.held import COLUMNS
from forebay.lake.health import Health, HealthRecords
from forebay.operate.lake_view import LakeView
from forebay.operate.report import Report, report_of
from forebay.operate.report_page import page
from forebay.operate.status import status_of
from tests.operate.command import ran
from tests.operate.ledger import entry, schema_of, write_ledger

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
EVIL = '<script>alert("x")</script>&amp;'
VOID = ("meta", "rect", "line", "polyline", "!doctype")


@pytest.fixture
def lake(tmp_path: Path) -> str:
    def loaded(key: str, at: datetime, late_s: float, **tables: int) -> dict[str, object]:
        return entry(key, at=at - timedelta(seconds=late_s), committed_at=at, day=at.date(), tables=tables)

    write_ledger(
        tmp_path,
        loaded("in/old.json", NOW - timedelta(days=3), 1, alpha=100),
        loaded("in/a.json", NOW - timedelta(hours=2), 30, alpha=3, beta=1),
        loaded("in/b.json", NOW - timedelta(hours=2, minutes=5), 90, alpha=2),
        loaded("in/c.json", NOW, 10, beta=7),
    )
    HealthRecords(str(tmp_path)).update(
        "alpha", lambda was: Health(table=was.table, files=9, small_files=4, newest_at=NOW)
    )
    held = {**dict.fromkeys(schema_of(COLUMNS).names), "line": 1, "table": EVIL, "reason": "table-failed", "at": NOW}
    write_deltalake(tmp_path / "_forebay" / "quarantine", pa.Table.from_pylist([held], schema_of(COLUMNS)))
    return str(tmp_path)


def reported(lake: str) -> Report:
    view = LakeView(lake)
    return report_of(view, status_of(view, now=NOW), hours=4)


def test_each_hour_and_each_table_has_its_numbers(lake: str) -> None:
    found = reported(lake)
    assert [(hour.at.hour, hour.files, hour.records) for hour in found.hours] == [
        (9, 0, 0),
        (10, 2, 6),
        (11, 0, 0),
        (12, 1, 7),
    ]
    assert (found.hours[1].latency_max_s, found.hours[3].latency_p50_s) == (90, 10)
    assert [(table.name, table.rows) for table in found.tables] == [("beta", (0, 1, 0, 7)), ("alpha", (0, 5, 0, 0))]
    assert [table.health.files if table.health else None for table in found.tables] == [None, 9]


class Reader(HTMLParser):
    """Tags that are open, and whatever is asked for from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.asks: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        if tag not in VOID:
            self.open.append(tag)
        self.asks += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_is_whole_asks_for_nothing_and_data_stays_text(lake: str) -> None:
    text = page(reported(lake))
    read = Reader(text)
    assert (read.open, read.asks) == ([], [])
    assert not re.search(r"url\(|@import|https?:", text)
    said = " ".join(read.texts)
    assert EVIL in said
    assert "1 to look at." in said
    assert "11-21 10:00: 6" in said


def test_a_lake_without_batches_has_a_page_too(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    said = " ".join(Reader(page(reported(str(tmp_path)))).texts)
    assert "Nothing to look at." in said
    assert said.count("none") >= 3


def test_a_report_is_written_where_it_is_wanted(lake: str, tmp_path: Path) -> None:
    out = tmp_path / "week.html"
    assert ran("report", "--lake", lake, "--hours", "168", "--out", str(out)) == f"wrote {out}\n"
    assert out.read_text().startswith("<!doctype html>")
