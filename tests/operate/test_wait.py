"""`forebay wait`: its answers, and how it ends."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forebay.declaration.complete import Complete, Period
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import load_service
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.periods import FeedPeriod, Periods
from forebay.operate.looking.wait import Open, wait
from forebay.upkeep.complete.judge import Known, folder_uri, judge
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger

TEN = datetime(2026, 11, 24, 10, tzinfo=UTC)
RULE = 'complete = { folder = "in/%Y/%m/%d/%H/", marker = "_DONE" }'
SERVICE = f"""name = "games"
[[feeds]]
name = "clicks"
prefix = "in/"
{RULE}
[[feeds]]
name = "bills"
prefix = "bills/"
[[tables]]
name = "pages"
where = {{ "@feed" = "clicks" }}
[[tables]]
name = "rest"
[[tables]]
name = "changes"
mode = "merge"
where = {{ "@feed" = "clicks", op = {{ exists = true }} }}
columns = [{{ name = "user" }}, {{ name = "at", type = "timestamp" }}]
merge = {{ into = "users", keys = ["user"], sequence_by = ["at"] }}
[[rollups]]
name = "by_day"
tables = ["pages"]
group_by = {{ day = "date(_ingested_at)" }}
columns = {{ pages = "count(*)" }}
"""


@pytest.fixture
def lake(tmp_path: Path) -> str:
    (tmp_path / "service.toml").write_text(SERVICE)
    write_ledger(tmp_path / "lake", entry("in/2026/11/24/10/a"))
    rows = [
        FeedPeriod(service="games", feed="clicks", period=at, ends=at + timedelta(hours=1), since=at, **more)  # type: ignore[arg-type]
        for at, more in ((TEN, {"complete_at": TEN}), (TEN - timedelta(hours=1), {"why": "waits for _DONE"}))
    ]
    Periods(open_objects(f"{tmp_path}/lake/_forebay/complete")).change(lambda _: rows)
    return str(tmp_path / "lake")


def waited(lake: str, *arguments: str) -> tuple[str, ...]:
    return ("wait", *arguments, "--lake", lake, "--service", str(Path(lake).parent))


@pytest.mark.parametrize("name", ["clicks", "pages"])
def test_an_hour_that_is_complete_ends_the_wait_well(lake: str, name: str) -> None:
    said = ran(*waited(lake, name, "--until", "2026-11-24T11:00"))
    assert said == f"{name} is complete from 2026-11-24T10:00Z until 2026-11-24T11:00Z\n"


@pytest.mark.parametrize("until", ["2026-11-24T11:00Z", "2026-11-24 11:00:00+00:00", "2026-11-24T12:00+01:00"])
def test_a_time_may_have_a_zone_as_schedulers_and_our_own_answers_write_it(lake: str, until: str) -> None:
    said = ran(*waited(lake, "clicks", "--until", until))
    assert said == "clicks is complete from 2026-11-24T10:00Z until 2026-11-24T11:00Z\n"


def test_no_earlier_hour_is_called_complete_than_those_that_were_asked_for(lake: str) -> None:
    """09:00 is open."""
    periods, asked = Periods(open_objects(f"{lake}/_forebay/complete")), ("clicks", "--until", "2026-11-24T11:00")
    assert ran(*waited(lake, *asked)) == "clicks is complete from 2026-11-24T10:00Z until 2026-11-24T11:00Z\n"
    periods.change(lambda rows: [replace(row, complete_at=TEN) for row in rows.values()])
    asked = (*asked, "--since", "2026-11-24T08:30")
    assert ran(*waited(lake, *asked)) == "clicks is complete from 2026-11-24T09:00Z until 2026-11-24T11:00Z\n"


def test_what_is_open_is_said_with_what_it_waits_for(lake: str) -> None:
    said = failed(4, *waited(lake, "clicks", "--until", "2026-11-24T11:00", "--since", "2026-11-24T08:00"))
    assert said.splitlines() == [
        "clicks 2026-11-24T09:00Z: waits for _DONE",
        "clicks 2026-11-24T08:00Z: no file of this time is in the ledger yet",
    ]


def test_a_wait_for_a_file_names_the_command_that_leaves_it_out(lake: str) -> None:
    rule, hour = Complete(folder="in/%Y/%m/%d/%H/", marker="_DONE"), Period(TEN, TEN + timedelta(hours=1))
    file = LandedFile("landing", "in/2026/11/24/10/a", 1, "e", event_time=TEN)
    known = Known(services=("games",), listed=[file], markers={folder_uri(rule, file): b""}, rows={})
    why = judge(rule, hour, known, TEN + timedelta(days=1)).why
    assert Open("clicks", TEN, why).waits_for_files
    Periods(open_objects(f"{lake}/_forebay/complete")).change(
        lambda rows: [replace(one, complete_at=None, why=why) for one in rows.values()]
    )
    said = failed(4, *waited(lake, "clicks", "--until", "2026-11-24T11:00"))
    assert said.splitlines()[1:] == [
        "if a file can never be loaded, `forebay files skip s3://BUCKET/KEY` leaves it out; --file-id, only this version"
    ]


def test_json_has_a_line_for_each_that_is_open(lake: str) -> None:
    (line,) = failed(4, *waited(lake, "clicks", "--until", "2026-11-24T10:00", "--json")).splitlines()
    assert json.loads(line) == {"feed": "clicks", "start": "2026-11-24T09:00:00+00:00", "why": "waits for _DONE"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("clicks", "--until", "2026-11-24T10:30"), "no hour ends then"),
        (("clicks", "--until", "10:00"), "'10:00' is not a time, such as 2026-05-01T12:00"),
        (("clicks", "--until", "0001-01-01"), "--until 1-01-01T00:00: no hour ends then"),
        (("clicks", "--until", "2026-11-24T10:00", "--since", "2026-11-24T10:00"), "is not after --since"),
        (("clicks", "--until", "2026-11-24T10:00", "--since", "0206-11-24"), "more than 100,000 hours before --until"),
        (("clicks", "--until", "2026-11-24T10:00", "--timeout", "soon"), "is not a duration"),
        (("cliks", "--until", "2026-11-24T10:00"), "is neither a feed nor a table (did you mean clicks?)"),
        (("users", "--until", "2026-11-24T10:00"), "is computed from another table (wait for changes;"),
        (("by_day", "--until", "2026-11-24T10:00"), "is computed from another table (wait for pages;"),
        (("bills", "--until", "2026-11-24T10:00"), "does not declare when it is complete (write"),
    ],
)
def test_wrong_use_is_refused(lake: str, arguments: tuple[str, ...], told: str) -> None:
    assert told in failed(2, *waited(lake, *arguments))


def test_an_hour_that_an_earlier_declaration_called_complete_is_not_the_day_that_begins_with_it(lake: str) -> None:
    told, midnight = Path(lake).parent / "service.toml", TEN.replace(hour=0)
    told.write_text(SERVICE.replace(RULE, 'complete = { folder = "in/%Y/%m/%d/", period = "day", marker = "_DONE" }'))
    hour = FeedPeriod(
        service="games", feed="clicks", period=midnight, ends=midnight + timedelta(hours=1), since=TEN, complete_at=TEN
    )
    Periods(open_objects(f"{lake}/_forebay/complete")).change(lambda _: [hour])
    assert "no file of this time is in the ledger yet" in failed(
        4, *waited(lake, "clicks", "--until", "2026-11-25T00:00")
    )


def test_a_table_that_several_feeds_fill_needs_all_of_them(lake: str) -> None:
    assert "feed bills: does not declare" in failed(2, *waited(lake, "rest", "--until", "2026-11-24T11:00"))


def test_a_feed_with_the_name_of_a_table_that_others_fill_too_is_said_to_be_meant(lake: str) -> None:
    service = Path(lake).parent / "service.toml"
    service.write_text(SERVICE.replace('name = "rest"', 'name = "clicks"'))
    said = failed(0, *waited(lake, "clicks", "--until", "2026-11-24T11:00"))
    assert "waits for the feed clicks alone; the table clicks may also have rows of bills" in said


@pytest.mark.parametrize("named", [True, False])
def test_it_waits_for_the_first_job_of_the_lake_too(lake: str, named: bool) -> None:
    """In its first seconds, the job has written nothing, and then only its leases."""
    there, kept = Path(lake) / "_forebay", Path(lake).parent / "kept"
    there.rename(kept)
    service = load_service(str(Path(lake).parent))

    def begin() -> None:
        time.sleep(0.3)
        (there / "writers" / "games").mkdir(parents=True)
        time.sleep(0.3)
        keep_in_force(lake, service)
        for table in ("ledger", "complete"):
            (kept / table).rename(there / table)

    job = threading.Thread(target=begin)
    job.start()
    asked = waited(lake, "clicks", "--until", "2026-11-24T11:00", "--timeout", "1m", "--every-s", "0.1")
    ended = given(asked if named else asked[:-2], "")
    job.join()
    assert ended[:2] == (0, "clicks is complete from 2026-11-24T10:00Z until 2026-11-24T11:00Z\n")
    assert ended[2].startswith(f"waits for the first job of {lake}\n")


def test_while_it_waits_it_says_for_what_once_and_again_when_that_changes(lake: str) -> None:
    """A log of a scheduler shows the reason at once, not only after the whole timeout."""
    before = failed(4, *waited(lake, "clicks", "--until", "2026-11-24T10:00"))
    periods = Periods(open_objects(f"{lake}/_forebay/complete"))

    def go_on() -> None:
        time.sleep(0.5)
        periods.change(lambda rows: [replace(row, why="waits for _LAST") for row in rows.values() if row.period < TEN])
        time.sleep(0.5)
        periods.change(lambda rows: [replace(row, complete_at=TEN) for row in rows.values() if row.period < TEN])

    job = threading.Thread(target=go_on)
    job.start()
    asked = waited(lake, "clicks", "--until", "2026-11-24T10:00", "--timeout", "1 min", "--every-s", "0.1")
    ended = given(asked, "")
    job.join()
    said = before + before.replace("waits for _DONE", "waits for _LAST")
    assert ended == (0, "clicks is complete from 2026-11-24T09:00Z until 2026-11-24T10:00Z\n", said)


def test_a_lake_that_no_job_begins_is_told_when_the_time_is_over_and_a_mistake_at_once(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(SERVICE)
    asked = ("--until", "2026-11-24T11:00", "--timeout", "1s", "--every-s", "0.1")
    lake = str(tmp_path / "lake")
    for service in (("--service", str(tmp_path)), ()):
        said = failed(2, "wait", "clicks", *asked, "--lake", lake, *service)
        assert said.startswith(f"waits for the first job of {lake}\n")
        assert f"lake {lake}: no job has written there" in said
    said = failed(2, "wait", "cliks", *asked, "--lake", lake, "--service", str(tmp_path))
    assert said.startswith("forebay: cliks: is neither a feed nor a table (did you mean clicks?")


def test_it_looks_until_nothing_is_open_or_the_time_is_over() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def look() -> list[Open]:
        return [Open("clicks", TEN, "waits")] if now[0] < 40 else []

    assert wait(look, 60, 15, clock=lambda: now[0], sleep=sleep) == []
    assert now == [45]
    now[0] = 0
    assert wait(look, 20, 15, clock=lambda: now[0], sleep=sleep) == [Open("clicks", TEN, "waits")]
    assert now == [20]
