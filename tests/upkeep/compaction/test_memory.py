"""What a run remembers of tables, with delta-rs for an engine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from forebay.events import Event
from forebay.lake.health import HealthMeasured, HealthRecords
from forebay.upkeep.compaction.live_files import TableState, read_tables
from forebay.upkeep.compaction.memory import Memory
from forebay.upkeep.compaction.plan import plan
from forebay.upkeep.compaction.policy import Policy, Thresholds

POLICY = Policy(default=Thresholds(min_small_files=3, order_by=("v",))).eager()


def test_of_a_table_that_was_compacted_the_new_files_and_of_the_others_what_waits(tmp_path: Path) -> None:
    for name in ("done", "undone", "good"):
        for value in range(1 if name == "good" else 5):
            write_deltalake(tmp_path / name, pa.table({"v": [value]}), mode="append")
    now, told = datetime.now(UTC), list[Event]()
    memory = Memory(str(tmp_path), POLICY)
    places = {name: str(tmp_path / name) for name in ("done", "undone", "good")}
    planned = plan(memory.passing(read_tables(places)), POLICY, now=now)
    DeltaTable(tmp_path / "done").optimize.compact()
    memory.write(planned, [t for t in planned.tasks if t.table == "done"], service="games", emit=told.append)
    found = {one.table: one for one in HealthRecords(str(tmp_path)).all()}
    counts = {name: (one.files, one.waiting, one.wakes_at) for name, one in found.items()}
    assert counts == {"done": (1, 0, 2), "undone": (5, 5, 2), "good": (1, 0, 2)}
    assert [name for name, one in found.items() if one.compacted_at] == ["done"]
    assert sorted(e.table for e in told if isinstance(e, HealthMeasured)) == ["done", "good", "undone"]


def test_the_second_round_is_reminded_of_what_is_in_order(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "alpha", pa.table({"v": [1]}))
    now = datetime.now(UTC)
    HealthRecords(str(tmp_path)).update("alpha", lambda was: was.with_ordered([()], now))
    (state,) = read_tables({"alpha": str(tmp_path / "alpha")})
    assert isinstance(state, TableState)
    second = Policy(round="second", default=POLICY.default)
    assert Memory(str(tmp_path), second).reminded(state).ordered == {(): now}
    assert Memory(str(tmp_path), POLICY).reminded(state).ordered == {}
