"""The table of periods: rows change in commits of which each stands on the one before, also beside other writers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable

from forebay.lake.objects import open_objects
from forebay.ledger.periods import FeedPeriod, Periods, opened

AT = datetime(2026, 11, 24, 10, tzinfo=UTC)


def period(hours: int = 0, feed: str = "clicks", **more: object) -> FeedPeriod:
    start = AT + timedelta(hours=hours)
    one = FeedPeriod(service="s", feed=feed, period=start, ends=start + timedelta(hours=1), since=AT)
    return replace(one, **more)  # type: ignore[arg-type]


def periods(lake: Path) -> Periods:
    return Periods(open_objects(str(lake)))


def test_a_batch_opens_the_periods_of_its_files_once(tmp_path: Path) -> None:
    mine, seen = periods(tmp_path), [period(), period(24 * 30)]
    assert mine.rows() == {}
    assert mine.change(lambda rows: opened(rows, seen, [one.key for one in seen], AT))
    assert not mine.change(lambda rows: opened(rows, seen, [one.key for one in seen], AT))
    assert periods(tmp_path).rows() == {one.key: one for one in seen}


def test_a_file_takes_back_what_was_complete_and_a_marker_does_not(tmp_path: Path) -> None:
    mine, done = periods(tmp_path), period(complete_at=AT, revision=1, files=3)
    mine.change(lambda rows: [done])
    assert not mine.change(lambda rows: opened(rows, [period()], (), AT))
    assert mine.change(lambda rows: opened(rows, [period()], [done.key], AT))
    (row,) = periods(tmp_path).rows().values()
    assert (row.complete_at, row.revised_at, row.revision, row.told, row.files) == (None, AT, 1, False, 3)


def test_a_day_takes_the_row_of_an_hour_that_an_earlier_declaration_had(tmp_path: Path) -> None:
    mine, day = periods(tmp_path), period(ends=AT + timedelta(days=1))
    mine.change(lambda rows: [period(complete_at=AT, revision=3, files=2)])
    assert mine.change(lambda rows: opened(rows, [day], [day.key], AT))
    assert mine.rows() == {day.key: replace(day, revision=3)}
    assert not mine.change(lambda rows: opened(rows, [day], [day.key], AT))


def test_whoever_marked_a_period_sees_that_a_batch_took_the_mark_away(tmp_path: Path) -> None:
    mine = periods(tmp_path)
    mine.change(lambda rows: [period(check="m")])
    assert mine.change(lambda rows: opened(rows, [period()], [period().key], AT))
    assert mine.rows()[period().key].check == ""


def test_a_change_beside_another_writer_is_made_again_from_newer_rows(tmp_path: Path) -> None:
    mine, theirs, asked = periods(tmp_path), periods(tmp_path), []

    def change(rows: object) -> list[FeedPeriod]:
        asked.append(rows)
        if len(asked) == 1:
            theirs.change(lambda _: [period(feed="views")])
        return [period()]

    assert mine.change(change)
    assert [len(rows) for rows in asked] == [0, 1]  # type: ignore[arg-type]
    assert sorted(one.feed for one in theirs.rows().values()) == ["clicks", "views"]


def test_other_readers_see_the_same_rows_and_every_month_has_one_file(tmp_path: Path) -> None:
    mine = periods(tmp_path)
    for hours in (0, 1, 2, 24 * 30):
        mine.change(lambda rows, hours=hours: [period(hours, why="waits"), period(hours, "views")])  # type: ignore[misc]
    table = DeltaTable(tmp_path)
    rows = table.to_pyarrow_table().to_pylist()
    assert {(row["feed"], row["period"]) for row in rows} == {(one.feed, one.period) for one in mine.rows().values()}
    assert sorted({row["month"] for row in rows}) == ["2026-11", "2026-12"]
    assert (len(table.file_uris()), table.version(), len(rows)) == (2, 3, 8)


def test_a_change_of_two_months_writes_each_row_once(tmp_path: Path) -> None:
    mine, seen = periods(tmp_path), [period(), period(1), period(24 * 30)]
    mine.change(lambda rows: seen)
    mine.change(lambda rows: [replace(one, why="waits") for one in (seen[0], seen[2])])
    rows = DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
    assert sorted((row["month"], row["why"]) for row in rows) == [
        ("2026-11", ""),
        ("2026-11", "waits"),
        ("2026-12", "waits"),
    ]


def test_it_goes_on_behind_a_checkpoint_and_a_compaction_of_another_writer(tmp_path: Path) -> None:
    mine = periods(tmp_path)
    for hours in range(3):
        mine.change(lambda rows, hours=hours: [period(hours)])  # type: ignore[misc]
    DeltaTable(tmp_path).create_checkpoint()
    DeltaTable(tmp_path).optimize.compact()
    mine.change(lambda rows: [replace(rows[period(1).key], complete_at=AT)])
    periods(tmp_path).change(lambda rows: [period(4)])
    assert sorted(one.period.hour for one in mine.rows().values()) == [10, 11, 12, 14]
    assert [one.period.hour for one in mine.rows().values() if one.complete_at] == [11]
