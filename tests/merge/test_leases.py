"""A state is worked on by one at a time: a merge, a compaction or maintenance. Its changes are taken in meanwhile."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.declaration.loading import parse_service
from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.events import Event
from forebay.lake.layout import lease_of, tombstones_of
from forebay.lake.lease import Lease, hold
from forebay.lake.lease_holder import LeaseHeld
from forebay.merge import job
from forebay.merge.events import TableNotMerged
from forebay.merge.job import Merger, TableMerge
from forebay.merge.step import Step, step
from forebay.upkeep.events import TableLeftForLater
from forebay.upkeep.run import TableResult, over_tables
from tests.operate import command

SERVICE = """
name = "studio"
[[tables]]
name = "player_changes"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "players", keys = ["id"], sequence_by = ["at"] }
"""


class Merges:
    """Runs of a merger without Spark: a step does what the test says."""

    def __init__(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake, self.said = str(lake), list[Event]()
        write_deltalake(f"{lake}/player_changes", pa.table({"id": ["a"], "at": [1]}))
        self.within = lambda: None
        monkeypatch.setattr(job, "step", self._step)
        spark = SimpleNamespace(newSession=lambda: SimpleNamespace(conf=SimpleNamespace(set=lambda name, value: None)))
        self.merger = Merger(cast(Any, spark), self.lake, logs=cast(Any, None), emit=self.said.append, at_once=1)

    def _step(self, *given: Any, **more: Any) -> Step:
        self.within()
        return Step(version=0)

    def run(self) -> TableMerge:
        (ran,) = self.merger.run(service(), (), threading.Event()).tables
        return ran


def service() -> Service:
    return parse_service({"service.toml": SERVICE})


def upkeep(lake: str, table: str) -> TableResult:
    """As compaction and maintenance go over tables."""

    def work(name: str, lease: Lease) -> TableResult:
        return TableResult(table=name)

    (ran,) = over_tables([table], lake, work, unfinished=TableResult, at_once=1, stop=threading.Event())
    return ran


@pytest.fixture
def merges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Merges:
    return Merges(tmp_path / "lake", monkeypatch)


@pytest.mark.parametrize("table", ["players", tombstones_of("players")])
def test_a_merge_leaves_a_table_that_upkeep_works_on_and_takes_it_later(merges: Merges, table: str) -> None:
    lease = hold(lease_of(merges.lake, table), wait_s=0)
    ran = merges.run()
    assert (ran.reason, ran.steps) == ("busy", ())
    assert [type(one) for one in merges.said][:1] == [TableLeftForLater], "nobody needs to look"
    lease.let_go()
    assert [one.version for one in merges.run().steps] == [0]


def test_upkeep_leaves_a_state_that_is_merged_and_appends_go_on(merges: Merges) -> None:
    met: dict[str, str] = {}

    def look() -> None:
        for table in ("players", tombstones_of("players"), "player_changes"):
            met[table] = upkeep(merges.lake, table).reason
        write_deltalake(f"{merges.lake}/player_changes", pa.table({"id": ["b"], "at": [2]}), mode="append")

    merges.within = look
    merges.run()
    assert met == {"players": "busy", tombstones_of("players"): "busy", "player_changes": ""}
    assert upkeep(merges.lake, "players").reason == ""


def test_a_rollup_whose_tables_are_all_gone_is_told_and_one_whose_tables_never_came_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merges, asked = Merges(tmp_path / "lake", monkeypatch), list[str]()

    def roll_up(session: Any, lake: str, rollup: Rollup, **more: Any) -> None:
        asked.append(rollup.name)

    monkeypatch.setattr(job, "roll_up", roll_up)
    rollups = (
        '[[rollups]]\nname = "{}"\ntables = ["players"]\ngroup_by = {{ id = "id" }}\ncolumns = {{ n = "count(*)" }}\n'
    )
    declared = parse_service({"service.toml": SERVICE + rollups.format("never") + rollups.format("daily")})
    write_deltalake(f"{tmp_path}/lake/daily", pa.table({"id": ["a"], "n": [1]}))
    for _ in range(2):
        merges.merger.run(declared, ("daily", "never"), threading.Event())
    assert asked == ["daily"] * 2


def test_two_mergers_never_work_on_one_state(merges: Merges) -> None:
    refused: list[str] = []

    def other() -> None:
        merges.within = lambda: None
        with pytest.raises(LeaseHeld) as held:
            hold(lease_of(merges.lake, "players"), wait_s=0)
        refused.append(held.value.folder)
        assert merges.run().reason == "busy"

    merges.within = other
    assert merges.run().reason == ""
    assert len(refused) == 1


@pytest.mark.parametrize("left", ["nothing", "a folder without a log"])
def test_a_state_whose_changes_were_deleted_is_told_each_time_and_stays(
    merges: Merges, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    monkeypatch.setattr(job, "step", step)
    state_of("player_changes", f"{merges.lake}/players")
    Path(f"{merges.lake}/{tombstones_of('players')}").mkdir(parents=True)
    shutil.rmtree(f"{merges.lake}/player_changes/_delta_log" if left != "nothing" else f"{merges.lake}/player_changes")
    for _ in range(2):
        ran = merges.run()
        assert (ran.table, ran.reason) == ("players", "failed")
        assert "players stays unchanged, because player_changes, which it is computed from, is gone" in ran.detail
    assert len([one for one in merges.said if isinstance(one, TableNotMerged)]) == 2
    assert len(DeltaTable(f"{merges.lake}/players").to_pyarrow_table()) == 1
    assert ran.detail in command.ran("tables", "health", "--lake", merges.lake)


def test_states_of_other_services_and_changes_that_never_came_are_no_trouble(merges: Merges) -> None:
    state_of("their_changes", f"{merges.lake}/theirs")
    for name in ("theirs", "never"):
        Path(f"{merges.lake}/{tombstones_of(name)}").mkdir(parents=True)
    shutil.rmtree(f"{merges.lake}/player_changes")
    assert merges.merger.run(service(), (), threading.Event()).tables == ()


def state_of(log: str, path: str) -> None:
    """delta-rs makes no table with a property that it does not know."""
    known = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, pa.table({"id": ["a"], "at": [1]}), configuration=known)
    first = Path(path) / "_delta_log" / f"{0:020}.json"
    told = '"delta.enableChangeDataFeed":"true"'
    first.write_text(first.read_text().replace(told, f'{told},"forebay.derivedFrom":"{log}"'))
