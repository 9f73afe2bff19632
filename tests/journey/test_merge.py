"""Purchases with corrections and deletes, out of order: from files in S3 to the current state, and back by a rollback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from forebay.cli.main import app
from forebay.errors import InvalidConfiguration
from forebay.merge.events import TableMerged, TableNotMerged
from forebay.operate.changing.rollback import plan_rollback, roll_back
from forebay.operate.lake_view import LakeView
from tests.journey.story import Story, lines

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def both_examples() -> str:
    """The current state and Debezium's feed as one service, in which overwritten files replace."""
    state, debezium = ((EXAMPLES / name / "service.toml").read_text() for name in ("current-state", "debezium"))
    return f'overwritten = "replace"\n{state}\n[[tables]]{debezium.partition("[[tables]]")[2]}'


def change(key: str | None, version: Any, amount: str = "1.00", op: str = "put") -> dict[str, Any]:
    return {"kind": "purchase", "purchase": key, "version": version, "op": op, "amount": amount}


def purchases(told: Story) -> dict[str, str]:
    return {row["purchase"]: str(row["amount"]) for row in told.rows("purchases")}


@pytest.mark.deep
def test_corrections_deletes_and_late_changes_leave_the_current_state(told: Story, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(both_examples())
    told.service = str(tmp_path)
    told.put("a.json", lines([change("p1", 1), change("p2", 1), change("p3", 2, op="delete")]))
    told.put("odd.json", lines([change(None, 1), change("p9", None), change("p9", "soon")]))
    for name in ("current-state", "debezium"):
        told.put(f"{name}.jsonl", (EXAMPLES / name / "samples" / "changes.jsonl").read_bytes())
    sums = told.run()
    assert sums.differences() == [], "the accounts count the changes, and not the state"
    assert (sums.written, sums.quarantined) == (3 + 7 + 4, 3)
    reasons = told.rows("_forebay/quarantine", "select reason from t order by reason")
    assert [row["reason"] for row in reasons] == ["no-key", "no-sequence", "no-sequence"]
    assert purchases(told) == {"a-1": "7.99", "p1": "1.00", "p2": "1.00"}
    assert {row["player"]: row["level"] for row in told.rows("players")} == {"p1": 2, "p2": 7}
    assert [(row["id"], row["state"]) for row in told.rows("orders")] == [(1, "paid")]

    # A correction, a delete before nothing, and an insert that comes after the delete that is newer than it.
    told.put("b.json", lines([change("p1", 2, "7.77"), change("p3", 1), change("p2", 2, op="delete")]))
    assert told.run().differences() == []
    assert purchases(told) == {"a-1": "7.99", "p1": "7.77"}

    # The file gets other bytes, and takes the place of what it said before: p2 was not deleted after all.
    told.put("b.json", lines([change("p1", 2, "8.88"), change("p4", 1, "4.00")]))
    assert told.run().differences() == []
    assert purchases(told) == {"a-1": "7.99", "p1": "8.88", "p2": "1.00", "p4": "4.00"}
    merges = [one for one in told.events if isinstance(one, TableMerged) and one.table == "purchases"]
    assert [one.computed_anew is None for one in merges] == [False, True, True]
    assert [one for one in told.events if isinstance(one, TableNotMerged)] == []

    view = LakeView(told.lake)
    with pytest.raises(InvalidConfiguration, match="is computed from purchase_changes"):
        plan_rollback(view, ["purchases"], 0, replay=False)
    roll_back(view, plan_rollback(view, ["purchase_changes"], 1, replay=False))
    merged = CliRunner().invoke(app, ["merge", "purchases", "--lake", told.lake, "--service", told.service, "--json"])
    assert merged.exit_code == 0, merged.output
    assert json.loads(merged.stdout)["table"] == "purchases"
    assert purchases(told) == {"a-1": "7.99", "p1": "7.77"}
    assert told.accounts().differences() == []
