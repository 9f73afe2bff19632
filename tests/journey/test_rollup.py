"""The example with rollups: what a dashboard shows follows late sessions, corrections and refunds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forebay.merge.events import TableNotMerged, TableRolledUp
from tests.journey.story import Story

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gold-rollup"


def revenue(told: Story) -> dict[str, tuple[Any, ...]]:
    rows = told.rows("revenue")
    return {row["country"]: (str(row["revenue"]), str(row["largest"]), row["purchases"], row["buyers"]) for row in rows}


def players(told: Story) -> dict[str, tuple[int, int]]:
    return {str(row["day"]): (row["players"], row["sessions"]) for row in told.rows("daily_players")}


def funnel(told: Story) -> list[tuple[int, int]]:
    return sorted((row["level"], row["players"]) for row in told.rows("level_funnel"))


@pytest.mark.deep
def test_a_dashboard_follows_late_sessions_corrections_and_refunds(told: Story) -> None:
    told.service = str(EXAMPLE)
    told.put("morning.json", (EXAMPLE / "samples/in/morning.json").read_bytes())
    assert told.run().differences() == [], "the accounts count what the rollups are computed from, and not them"
    assert revenue(told) == {"DE": ("14.98", "9.99", 2, 2), "FR": ("1.99", "1.99", 1, 1)}
    assert players(told) == {"2026-05-01": (1, 2), "2026-05-02": (1, 1)}
    assert funnel(told) == [(1, 2), (2, 1)]

    told.put("evening.json", (EXAMPLE / "samples/in/evening.json").read_bytes())
    told.take_in()
    assert revenue(told) == {"DE": ("4.99", "4.99", 1, 1), "FR": ("2.99", "2.99", 1, 1)}
    assert players(told) == {"2026-05-01": (2, 3), "2026-05-02": (1, 1)}
    assert funnel(told) == [(1, 2), (2, 2)]
    computed = [
        (one.table, one.computed_anew is None, one.groups) for one in told.events if isinstance(one, TableRolledUp)
    ]
    assert sorted(computed) == [
        ("daily_players", False, 2), ("daily_players", True, 1), ("level_funnel", False, 2), ("level_funnel", True, 1),
        ("revenue", False, 2), ("revenue", True, 2),
    ]  # fmt: skip
    assert [one for one in told.events if isinstance(one, TableNotMerged)] == []
