"""Compaction inside the stream: after every k-th batch, and never a reason to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.declaration.service import parse_service
from forebay.errors import Halt
from forebay.events import Event
from forebay.settings import CompactSettings, JobSettings
from forebay.upkeep.compaction.declared import policy_of
from forebay.upkeep.compaction.events import TableNotCompacted
from forebay.upkeep.compaction.inline import BUDGET_BYTES, Inline
from forebay.upkeep.compaction.plan import plan
from tests.upkeep.compaction.tables import NOW, files, table

SERVICE = parse_service(
    {
        "service.toml": """
        name = "studio"
        [[tables]]
        name = "players"
        compaction = { every_batches = 3 }
        [[tables]]
        name = "{game}_scores"
        compaction = { every_batches = 2 }
        [[tables]]
        name = "{game}_events"
        """
    }
)


class Runs:
    def __init__(self, problem: Exception | None = None) -> None:
        self.asked: list[CompactSettings] = []
        self.problem = problem

    def __call__(self, settings: CompactSettings, **_: Any) -> None:
        self.asked.append(settings)
        if self.problem:
            raise self.problem


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for name in ("players", "a_scores", "b_scores", "a_events"):
        write_deltalake(tmp_path / name, pa.table({"v": [1]}))
    return str(tmp_path)


def test_after_every_kth_batch_the_tables_that_say_so_are_compacted(lake: str) -> None:
    runs = Runs()
    inline = Inline(JobSettings(lake=lake), emit=lambda event: None, run=runs)
    asked = []
    for batch in range(6):
        inline.after(batch, SERVICE)
        asked.append([settings.table_names for settings in runs.asked])
        runs.asked.clear()
    scores = ["a_scores", "b_scores"]
    assert asked == [[], [scores], [["players"]], [scores], [], [[*scores, "players"]]]
    inline.after(1, SERVICE)
    assert (runs.asked[0].hot, runs.asked[0].now, runs.asked[0].budget_bytes) == (True, False, BUDGET_BYTES)


def test_declarations_that_were_pushed_meanwhile_count_from_their_batch_on(lake: str) -> None:
    runs = Runs()
    inline = Inline(JobSettings(lake=lake), emit=lambda event: None, run=runs)
    inline.after(0, SERVICE)
    pushed = '[[tables]]\nname = "players"\ncompaction = { every_batches = 1 }'
    inline.after(1, parse_service({"service.toml": f'name = "studio"\n{pushed}'}))
    assert [settings.table_names for settings in runs.asked] == [["players"]]


def test_what_goes_wrong_is_told_and_the_stream_goes_on(lake: str) -> None:
    told: list[Event] = []
    Inline(JobSettings(lake=lake), emit=told.append, run=Runs(Halt("no lease"))).after(1, SERVICE)
    (event,) = told
    assert isinstance(event, TableNotCompacted)
    assert (event.table, event.detail) == ("*_scores", "Halt: no lease")


def test_where_nobody_else_is_at_work_no_partition_is_too_hot() -> None:
    hot = table(*files(*[1] * 20, age=NOW - NOW), name="players")
    policy = policy_of(SERVICE)
    assert [skip.reason for skip in plan([hot], policy, now=NOW).skipped] == ["too-hot"]
    (task,) = plan([hot], policy.heatless(), now=NOW).tasks
    assert not task.hot
    few = table(*files(1, 1, age=NOW - NOW), name="players")
    assert plan([few], policy.heatless(), now=NOW).tasks == ()
