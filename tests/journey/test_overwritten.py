"""A key gets other bytes: what becomes of its earlier rows, under each rule, with the whole accounting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journey.story import Story, event, lines

FIRST = [event("alpha", 1), event("alpha", 2), event("beta", 1), "{broken", '{"event": "no game"}']
SECOND = [event("alpha", 3), event("gamma", 1), '{"event": "no game either"}', '{"event": "nor this"}']


def overwritten(told: Story, folder: Path, rule: str) -> None:
    (folder / "service.toml").write_text(
        f"""
        name = "studio"
        overwritten = "{rule}"
        [[tables]]
        name = "{{game}}"
        columns = [{{ name = "event_id" }}]
        """
    )
    told.service = str(folder)


def test_appended_both_are_there(told: Story, tmp_path: Path) -> None:
    overwritten(told, tmp_path, "append")
    told.put("a.json", lines(FIRST))
    told.run()
    told.put("a.json", lines(SECOND))
    sums = told.run()
    assert sums.differences() == []
    assert sums.files == {"loaded": 2}
    assert sums.rows == {"alpha": 3, "beta": 1, "gamma": 1, "_forebay/quarantine": 1, "_forebay/parked": 3}


@pytest.mark.deep
def test_ignored_the_first_stays_alone(told: Story, tmp_path: Path) -> None:
    overwritten(told, tmp_path, "ignore")
    told.put("a.json", lines(FIRST))
    told.run()
    told.put("a.json", lines(SECOND))
    sums = told.run()
    assert sums.differences() == []
    assert sums.files == {"loaded": 1, "skipped": 1}
    assert sums.rows == {"alpha": 2, "beta": 1, "_forebay/quarantine": 1, "_forebay/parked": 1}
    declaration = tmp_path / "service.toml"
    declaration.write_text('overwritten_below = { "in/a" = "replace" }' + declaration.read_text())
    told.put("a.json", lines([event("alpha", 9)]))
    sums = told.run()
    assert sums.differences() == []
    assert sums.rows == {"alpha": 1, "beta": 0, "_forebay/quarantine": 0, "_forebay/parked": 0}


@pytest.mark.deep
def test_replaced_the_second_takes_the_place_of_the_first_everywhere(told: Story, tmp_path: Path) -> None:
    overwritten(told, tmp_path, "replace")
    told.put("a.json", lines(FIRST))
    told.put("other.json", lines([event("alpha", 7), event("beta", 7), "{broken too"]))
    told.run()
    told.put("a.json", lines(SECOND))
    told.put("more.json", lines([event("alpha", 8), event("delta", 8)]))
    sums = told.run()
    assert sums.differences() == []
    assert sums.files == {"loaded": 3, "superseded": 1}
    assert sums.rows == {"alpha": 3, "beta": 1, "gamma": 1, "delta": 1, "_forebay/quarantine": 1, "_forebay/parked": 2}
    assert (sums.records, sums.dropped) == (5 + 3 + 4 + 2, 5)
    assert {row["event_id"] for row in told.rows("alpha")} == {"alpha-3", "alpha-7", "alpha-8"}
    assert [row["event_id"] for row in told.rows("beta")] == ["beta-7"]
