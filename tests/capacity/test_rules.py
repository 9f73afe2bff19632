"""When a run starts, drains, stays on and ends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.capacity.freshness import in_words, seconds_of
from forebay.capacity.pace import Done, Pace
from forebay.capacity.rules import Rules, Run, Seen, busy_share, share_of_budget

NOW = 1_000_000.0
FIVE = Rules(300)
QUIET = Seen(NOW, 0, None, Pace())
WAITS = replace(QUIET, waiting=10, waiting_since=NOW)
BUSY = Pace(batches=tuple(Done(NOW - 20 * n, 300, 15) for n in range(60, -1, -1)))
"""15 files a second, which take three quarters of the time."""


def test_nothing_starts_while_nothing_waits() -> None:
    for freshness_s in (30, 300, 86_400):
        assert Rules(freshness_s).decide(QUIET).does == "wait"
        assert Rules(freshness_s).decide(replace(QUIET, pace=BUSY)).does == "wait"


def test_a_drain_begins_when_the_next_look_would_be_too_late() -> None:
    waits = [FIVE.decide(replace(WAITS, now=NOW + seconds)).does for seconds in (0, 30, 60, 120)]
    assert waits == ["wait", "wait", "drain", "drain"]
    assert FIVE.decide(replace(WAITS, waiting=5_000)).does == "drain", "their work alone takes minutes"


def test_a_run_stays_on_where_drains_could_not_pause_and_ends_where_they_can() -> None:
    assert FIVE.decide(replace(WAITS, pace=BUSY)).does == "stay"
    at_work = replace(WAITS, pace=BUSY, runs=(Run(NOW - 3600),), staying=True)
    assert FIVE.decide(at_work).does == "wait"
    less = Pace(batches=tuple(Done(NOW - 60 * n, 20, 5) for n in range(20, -1, -1)))
    assert FIVE.decide(replace(at_work, pace=less)).does == "end"
    assert FIVE.decide(replace(at_work, pace=less, runs=(Run(NOW - 60),))).does == "wait", "it has seen too little"


def test_a_freshness_shorter_than_a_start_keeps_a_run_on_while_files_come() -> None:
    tight = Rules(60)
    assert tight.decide(WAITS).does == "stay"
    came = Pace(batches=(Done(NOW - 1700, 1, 10),))
    at_work = replace(QUIET, pace=came, runs=(Run(NOW - 7200),), staying=True)
    assert tight.decide(at_work).does == "wait"
    assert tight.decide(replace(at_work, now=NOW + 200)).does == "end"


def test_a_steady_stream_is_drained_in_parts_and_a_burst_to_its_end() -> None:
    rules = Rules(1800)
    steady = Pace(batches=tuple(Done(NOW - 600 * n, 600, 40) for n in range(6, 0, -1)))
    late = replace(WAITS, waiting=600, waiting_since=NOW - 1500)
    part, whole = rules.decide(replace(late, pace=steady)), rules.decide(late)
    assert (part.does, whole.does, whole.cap_s) == ("drain", "drain", 3600)
    assert 40 < part.cap_s < 120


def test_a_budget_holds_runs_back_and_says_when_freshness_gives_way() -> None:
    half = Rules(300, share=0.5)
    much = (Run(NOW - 50_000, NOW - 1),)
    assert half.decide(replace(WAITS, runs=much)).gives_way is False, "there is time yet"
    held = half.decide(replace(WAITS, now=NOW + 300, runs=much))
    assert (held.does, held.gives_way) == ("wait", True)
    assert half.decide(replace(WAITS, now=NOW + 300, runs=(Run(NOW - 4000, NOW - 1),))).does == "drain"
    ended = half.decide(replace(WAITS, pace=BUSY, runs=(Run(NOW - 50_000),), staying=True))
    assert (ended.does, ended.gives_way) == ("end", True)


def test_a_budget_is_a_share_of_all_hours() -> None:
    assert share_of_budget(0, 0.88) == 1
    assert share_of_budget(730 * 0.88, 0.88) == 0.75
    assert share_of_budget(1e9, 0.88) == 1


def test_how_much_of_a_day_runs_filled_and_of_less_where_they_are_too_many_to_list() -> None:
    assert busy_share([], NOW) == 0
    assert busy_share([Run(NOW - 3600), Run(NOW - 200_000, NOW - 100_000)], NOW) == pytest.approx(1 / 24)
    many = [Run(NOW - 100 * n - 100, NOW - 100 * n - 50) for n in range(200)]
    assert busy_share(many, NOW) == pytest.approx(0.5)


def test_work_between_batches_that_were_seen_and_beyond_them() -> None:
    pace = Pace(batches=(Done(0, 10, 12), Done(1, 1010, 62)))
    assert [pace.work_s(files) for files in (0, 10, 510, 1010, 2020)] == pytest.approx([12, 12, 37, 62, 124])
    assert Pace(batches=(Done(0, 2, 20),)).work_s(102) == 25, "two files say little of a hundred"


def test_a_start_is_measured_and_survives_in_the_text() -> None:
    pace = Pace().with_run(1_000).with_run(5_100).with_batch(Done(1_010, 3, 10))
    assert Pace.of(pace.text()) == pace
    assert (pace.start_s([900, 5_000]), Pace().start_s([900])) == (100, 90)
    for invalid in ('[["a", 1, 2]]', "[[1, null, 2]]", "[[1, 2]]", "[[1, Infinity, 2]]", "[7]"):
        assert Pace.of(f'{{"firsts": [], "batches": {invalid}}}') == Pace()
    assert Pace.of("{broken") == Pace.of(None) == Pace.of('{"firsts": 3}') == Pace()


@given(
    st.integers(30, 86_400),
    st.integers(0, 10**6),
    st.floats(0, 1e5),
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 7200), st.integers(1, 5000), st.floats(0, 600)), max_size=5),
)
def test_any_look_gets_an_answer_that_fits_it(
    freshness_s: int, waiting: int, age: float, staying: bool, batches: list[tuple[float, int, float]]
) -> None:
    done = tuple(Done(NOW - ago, files, seconds) for ago, files, seconds in sorted(batches, reverse=True))
    since = NOW - age if waiting else None
    rules = Rules(freshness_s)
    found = rules.decide(Seen(NOW, waiting, since, Pace(batches=done), (Run(NOW - 9000),), staying))
    assert found.does in (("wait", "end") if staying else ("wait", "stay", "drain"))
    assert waiting or found.does in ("wait", "end")
    assert (found.does == "drain") == (found.cap_s > 0)
    assert not math.isnan(rules.window_s)
    assert 60 <= rules.look_every_s <= max(60, freshness_s / 15)
    assert rules.batch_every_s <= freshness_s / 4
    if age >= freshness_s and waiting and not staying:
        assert found.does != "wait"


@pytest.mark.parametrize(("text", "seconds"), [("5 min", 300), ("90 s", 90), ("1h", 3600), (" 30 min ", 1800)])
def test_a_freshness_is_a_duration(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds == seconds_of(in_words(seconds))


@pytest.mark.parametrize("text", ["", "5", "five min", "5 s", "25 h", "0 min", "-5 min", "5 minutes"])
def test_what_is_no_freshness_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 5 min"):
        seconds_of(text)
