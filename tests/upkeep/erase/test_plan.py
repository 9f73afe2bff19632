"""Plans of erasures and their progress, as every release reads them."""

from __future__ import annotations

import json
from pathlib import Path

from forebay.upkeep.erase.plan import Done, ErasePlan, Erasures


def test_after_a_rollback_of_the_code_what_later_code_kept_is_read(tmp_path: Path) -> None:
    """A job reads the newest plan at its start."""
    erasures = Erasures(str(tmp_path), "games")
    plan = erasures.begin(ErasePlan(0, "2026-11-21T00:00:00+00:00", "games", ("tok_a",), subject="user_id"))
    done = Done("alpha", 3, 1, {"f": 1}, 1, "2026-11-28T00:00:00+00:00", "2026-11-21T00:00:00+00:00")
    erasures.note(plan, done)
    for path in (tmp_path / "_forebay/erased/games").rglob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "new": 1}))
    assert (erasures.newest(), [*erasures.plans()]) == (plan, [plan])
    assert erasures.done(plan) == {"alpha": done}
