"""`forebay report`: a page of how it is going, from the lake alone, or with what AWS knows of the deployment."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.lake.health import Health, HealthRecords
from forebay.lake.paused import pause
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.queue import Depth
from forebay.operate.looking.report import report_of
from forebay.operate.looking.status import health_objects, status_of
from forebay.operate.page.content import Page
from forebay.operate.page.rendering import render
from tests.operate.command import ran
from tests.operate.ledger import entry, schema_of, write_ledger, write_tables
from tests.operate.reader import EVIL, Reader

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


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
        {**loaded("in/gone.json", NOW, 86_400), "outcome": "missing"},
    )
    HealthRecords(str(tmp_path)).update(
        "alpha", lambda was: Health(table=was.table, files=9, small_files=4, newest_at=NOW)
    )
    held = {**dict.fromkeys(schema_of(COLUMNS).names), "line": 1, "table": EVIL, "reason": "table-failed", "at": NOW}
    write_deltalake(tmp_path / "_forebay" / "quarantine", pa.Table.from_pylist([held], schema_of(COLUMNS)))
    write_tables(tmp_path, "alpha", "beta")
    return str(tmp_path)


def reported(lake: str) -> Page:
    view = LakeView(lake)
    health = health_objects(lake)
    return report_of(view, status_of(view, health=health, now=NOW), health, hours=4)


def test_a_report_reads_the_health_of_each_table_once(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = HealthRecords.of
    monkeypatch.setattr(HealthRecords, "of", lambda records, name: read.append(name) or real(records, name))
    ran("report", "--lake", lake, "--out", str(tmp_path / "r.html"))
    assert read == ["alpha"]


def test_a_report_for_machines_writes_no_file(lake: str, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    (line,) = ran("report", "--lake", lake, "--out", str(out), "--json").splitlines()
    told = json.loads(line)
    assert told["name"] == lake
    assert [one["name"] for one in told["tables"]] == ["alpha"]
    assert not out.exists()


@pytest.mark.parametrize(("letters", "says"), [(0, ""), (3, "not understood, or received too often")])
def test_dead_letters_are_explained_where_there_are_any(lake: str, letters: int, says: str) -> None:
    status = replace(status_of(LakeView(lake), now=NOW), dead=Depth("q", letters, 0))
    last = report_of(LakeView(lake), status, [], hours=4).journey[-1]
    assert (last.name, last.says, last.is_bad, last.is_end) == ("dead letters", says, letters > 0, True)


def test_each_hour_and_each_table_has_its_numbers(lake: str) -> None:
    found = reported(lake)
    records, files, latency = found.charts
    assert [(at.hour, value) for at, value in records.values] == [(9, 0), (10, 6), (11, 0), (12, 7)]
    assert [value for _, value in files.values] == [0, 2, 0, 1]
    assert [value for _, value in latency.values][3] == 10
    assert "the slowest file took 90 s" in latency.says
    assert [(table.name, table.rows) for table in found.tables] == [("beta", (0, 1, 0, 7)), ("alpha", (0, 5, 0, 0))]
    assert [table.files for table in found.tables] == [None, 9]
    assert [(one.reason, one.table, one.records) for one in found.reasons] == [("table-failed", EVIL, 1)]


def test_what_was_not_asked_is_said_and_not_shown_as_nothing(lake: str) -> None:
    found = reported(lake)
    assert (found.runs, found.cost) == (None, None)
    assert [note[:21] for note in found.notes] == ["The queue is not show", "Alarms, runs of jobs "]


def test_a_paused_table_is_marked(lake: str) -> None:
    pause(lake, ["beta"])
    assert [(table.name, table.state) for table in reported(lake).tables] == [("beta", "paused"), ("alpha", "")]


def test_data_stays_text_on_the_page(lake: str) -> None:
    said = " ".join(Reader(render(reported(lake))).texts)
    assert EVIL in said
    assert "One thing to look at." in said
    assert "11-21 10:00: 6" in said


def test_a_lake_without_batches_has_a_page_too(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    said = " ".join(Reader(render(reported(str(tmp_path)))).texts)
    assert "All is well." in said
    assert "no batch yet" in said
    assert said.count("none") >= 3


def test_a_report_is_written_where_it_is_wanted(lake: str, tmp_path: Path) -> None:
    out = tmp_path / "week.html"
    assert ran("report", "--lake", lake, "--hours", "168", "--out", str(out)) == f"wrote {out}\n"
    assert out.read_text().startswith("<!doctype html>")
