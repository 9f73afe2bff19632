"""The status page: it says first whether somebody must act, nothing from outside can break it, and it needs nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forebay.operate.page.content import Chart, Cost, Page, Reason, Run, Station, TableLine, size, span
from forebay.operate.page.rendering import render
from tests.operate.reader import EVIL, Reader

NOW = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
HOURS = [NOW.replace(minute=0) - timedelta(hours=47 - n) for n in range(48)]
ROWS = tuple((n % 24) ** 2 for n in range(48))
PAGE = Page(
    name="forebay-dev",
    at=NOW,
    journey=(
        Station("messages in the queue", "1,234", "5 in flight"),
        Station("ingest job", "runs", "last batch 4 min ago"),
        Station("dead letters", "3", "received too often", is_bad=True, is_end=True),
    ),
    charts=(Chart("Records loaded", tuple(zip(HOURS, map(float, ROWS), strict=True))),),
    tables=(
        TableLine("busy", ROWS, 900, 880, 12_000, NOW - timedelta(hours=5)),
        TableLine("a_game_with_a_long_name_events", ROWS, 3, 0, 5_000_000, NOW, "paused"),
    ),
    reasons=(Reason("not-json", 1204), Reason("table-failed", 7, "busy", NOW)),
    runs=(
        Run("ingest", "SUCCEEDED", NOW - timedelta(minutes=5), 61),
        Run("compact", "SUCCEEDED", NOW - timedelta(hours=9), 60),
        Run("compact", "FAILED", NOW - timedelta(hours=3), 7200, EVIL),
    ),
    cost=Cost({"jobs": 12.3, "files": 1.25}, "By list prices of 2026-01-01."),
    counts={"parked": "17"},
)


def said_by(page: Page) -> str:
    return " ".join("".join(Reader(render(page)).texts).split())


def test_the_page_says_how_files_tables_jobs_and_cost_are() -> None:
    read = Reader(render(PAGE))
    assert read.open == []
    assert read.rows == [
        ["table", "rows by hour", "rows", "newest rows", "files", "small", "size"],
        ["busy", "", "8,648", "5 h ago", "900", "880", "12 KB"],
        ["a_game_with_a_long_name_events paused", "", "8,648", "0 s ago", "3", "0", "5 MB"],
        ["reason", "table", "records", "newest"],
        ["not-json", "\u2013", "1,204", "\u2013"],
        ["table-failed", "busy", "7", "05-01 12:30"],
        ["job", "last run", "began", "took", "before that"],
        ["ingest", "succeeded", "5 min ago", "61 s", "\u2013"],
        ["compact", "failed", "3 h ago", "2 h", "succeeded"],
        [EVIL],
        ["part", "USD"],
        ["jobs", "12.30"],
        ["files", "1.25"],
    ]
    said = said_by(PAGE)
    assert "13.55 USD" in said
    assert "Records loaded at most 529 in an hour" in said
    assert "dead letters3received too often" in said


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    evil = replace(
        PAGE,
        name=EVIL,
        troubles=(EVIL,),
        notes=(EVIL,),
        journey=(Station(EVIL, EVIL, EVIL),),
        charts=(Chart(EVIL, ((NOW, 1.0),), says=EVIL),),
        tables=(TableLine(EVIL, state=EVIL),),
        reasons=(Reason(EVIL, 1, EVIL),),
        runs=(Run(EVIL, EVIL, NOW, 1), Run(EVIL, "FAILED", NOW, 1, EVIL)),
        cost=Cost({EVIL: 1.0}, EVIL),
        counts={EVIL: EVIL},
    )
    text = render(evil)
    assert (Reader(text).asks, "<script" in text) == ([], False)
    assert not re.search(r"url\(|@import|https?:", text)


def test_the_first_line_and_the_title_say_whether_somebody_must_act() -> None:
    assert said_by(PAGE).startswith("well: forebay-dev")
    assert "All is well." in said_by(PAGE)
    said = said_by(replace(PAGE, troubles=("a table failed", "a letter is dead")))
    assert said.startswith("2 to look at: forebay-dev")
    assert "2 things to look at. a table failed a letter is dead".replace(" ", "") in said.replace(" ", "")


def test_a_job_that_is_at_work_again_shows_why_its_run_before_failed() -> None:
    again = (Run("ingest", "RUNNING", NOW, 60), Run("ingest", "FAILED", NOW - timedelta(hours=1), 60, "no such queue"))
    assert "no such queue" in said_by(replace(PAGE, runs=again))


def test_what_nobody_knows_is_left_out() -> None:
    said = said_by(Page("forebay-dev", NOW, journey=PAGE.journey))
    assert "Jobs" not in said
    assert "Cost" not in said
    assert "Tables (0)" in said


def test_a_page_of_thousands_of_tables_stays_short() -> None:
    text = render(replace(PAGE, tables=tuple(TableLine(f"t{n:05}") for n in range(2000))))
    assert "Tables (2,000)" in text
    assert "t00499" in text
    assert "t00500" not in text


@pytest.mark.parametrize(
    ("said", "by"),
    [(span(119), "119 s"), (span(7200), "2 h"), (size(999), "999 B"), (size(8_120_000_000), "8.12 GB")],
)
def test_numbers_are_told_in_fitting_units(said: str, by: str) -> None:
    assert said == by


# --- as a browser shows it ---

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MEASURE = """<script>
const wide = [...document.querySelectorAll("body *")].filter(one => !one.closest(".scroll") || one.matches(".scroll"))
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName + "." + one.className);
document.title = JSON.stringify({wide, ground: getComputedStyle(document.body).color, width: innerWidth});
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize(("theme", "width"), [("light", 1100), ("dark", 1100), ("light", 360)])
def test_a_browser_shows_it_in_the_readers_colours_and_nothing_is_cut(theme: str, width: int, tmp_path: Path) -> None:
    """A headless window is 500 pixels wide at least, so the page stands in a frame."""
    assert CHROMIUM is not None
    troubled = replace(
        PAGE, troubles=("alpha: rows wait (`forebay quarantine retry --table " + "a_long_name_" * 9 + "`)",)
    )
    page, frame, shot = tmp_path / "page.html", tmp_path / "frame.html", tmp_path / "page.png"
    page.write_text(render(troubled).replace("</body>", f"{MEASURE}</body>"))
    frame.write_text(
        f'<!doctype html><style>body {{ margin: 0 }}</style><iframe id=it src="page.html" width={width} height=1400 '
        'frameborder=0 onload="document.title = it.contentDocument.title; '
        'document.body.dataset.said = it.contentDocument.title"></iframe>'
    )
    told = subprocess.run(
        [
            CHROMIUM,
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"),
            f"--user-data-dir={tmp_path / 'browser'}",
            f"--blink-settings=preferredColorScheme={0 if theme == 'dark' else 1}",
            f"--window-size={max(width, 500)},1400",
            f"--screenshot={shot}",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert f'"width":{width}'.replace('"', "&quot;") in told, told
    assert "&quot;wide&quot;:[]" in told, told
    bright = "rgb(255, 255, 255)" in told
    assert bright == (theme == "dark"), told
    if shot.exists():
        assert shot.stat().st_size > 10_000
