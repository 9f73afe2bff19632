"""The commit of a dead driver that arrives while the next one works on the same batch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.batch.late_commits import LateCommits
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.lake.layout import LEDGER, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.table.commit import Txn
from tests.batch.paper import Lake, Record, lay_out
from tests.batch.world import Died

SERVICE = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "{game}"\n'})
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FILE, OTHER = (LandedFile("landing", key, 1, key, None, "0", AT) for key in "ab")
RECORDS = [Record("alpha", "1"), Record("alpha", "2"), Record("beta", "3")]
PLANNED, BEFORE_BETA = 4, 5
"""Effects: the names of new tables, the files of alpha and of beta, the plan, and the commit of alpha."""


class Scene:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch, self.lake, self.now, self.waited = patch, Lake(), AT, list[float]()
        self.lake.answers = {FILE.file_id: RECORDS, OTHER.file_id: "denied"}
        self.late: tuple[str, int] | None = None

    def batch(self, dies_after: int | None = None) -> None:
        self.driver(dies_after).load([FILE, OTHER], 0)

    def driver(self, dies_after: int | None = None) -> Any:
        self.lake.dies_after = dies_after
        more: dict[str, Any] = {"late_commit_wait_s": 960, "sleep": self.sleep, "clock": lambda: self.now}
        return lay_out(self.patch, self.lake, SERVICE, "g0", **more)

    def driver_dies(self, after: int) -> None:
        with pytest.raises(Died):
            self.batch(after)

    def sleep(self, seconds: float) -> None:
        """Meanwhile the dead driver's commit arrives, if one is on its way."""
        self.waited.append(seconds)
        self.now += timedelta(seconds=seconds)
        if self.late is not None:
            table, rows = self.late
            of_file = [{"_file_id": FILE.file_id, "byte_offset": n} for n in range(rows)]
            self.lake.commit(table, Txn("forebay/s/g0", 0), of_file, (), "_file_id")

    def tables(self) -> Any:
        return {entry["key"]: (entry["outcome"], entry["tables"]) for entry in self.lake.rows(LEDGER)}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def held(lake: Lake) -> Sequence[str]:
    return [row["table"] for row in lake.rows(QUARANTINE)]


def test_a_commit_that_arrives_after_the_next_driver_was_refused_leaves_no_rows_in_both_places(scene: Scene) -> None:
    scene.driver_dies(BEFORE_BETA)
    scene.lake.failing, scene.late = {"beta"}, ("beta", 1)
    scene.batch()
    assert (scene.tables()["a"], held(scene.lake)) == (("loaded", {"alpha": 2, "beta": 1}), [])


def test_a_table_fails_once_nothing_can_arrive_any_more(scene: Scene) -> None:
    scene.driver_dies(BEFORE_BETA)
    scene.lake.failing = {"alpha", "beta"}
    scene.batch()
    assert scene.waited == [960], "once for the batch"
    assert (scene.tables()["a"], held(scene.lake)) == (("loaded", {"alpha": 2}), ["beta"])


@pytest.mark.parametrize(("since_s", "left"), [(0, [960]), (-86400, [960]), (959.5, [0.5]), (960, []), (2000, [])])
def test_the_wait_lasts_until_nothing_can_arrive_and_is_told_if_there_is_one(since_s: float, left: list[float]) -> None:
    waited, told, now = list[float](), list[Any](), AT + timedelta(seconds=since_s)
    names: dict[str, Any] = {"emit": told.append, "clock": lambda: now, "sleep": waited.append}
    LateCommits(service="s", since=AT, wait_s=960, **names).wait_out(7, "said the test")
    assert (waited, [event.seconds for event in told]) == (left, [round(one) for one in left])


def test_a_driver_that_began_the_batch_itself_waits_for_nobody(scene: Scene) -> None:
    scene.lake.failing = {"beta"}
    scene.batch()
    assert (scene.waited, held(scene.lake)) == ([], ["beta"])


@pytest.mark.parametrize("now", [RECORDS, "missing", "denied"])
def test_a_batch_that_is_taken_up_waits_for_nobody_whatever_its_files_answer_now(scene: Scene, now: Any) -> None:
    scene.driver_dies(PLANNED)
    scene.lake.answers |= {FILE.file_id: now, OTHER.file_id: RECORDS}
    scene.batch()
    assert scene.waited == []
    assert scene.tables() == {"a": ("loaded", {"alpha": 2, "beta": 1}), "b": ("denied", {})}


def test_a_new_checkpoint_carries_out_a_plan_and_waits_for_nobody(scene: Scene) -> None:
    scene.driver_dies(PLANNED)
    scene.lake.answers[FILE.file_id] = "missing"
    scene.driver().finish_earlier()
    assert (scene.waited, scene.tables()["a"]) == ([], ("loaded", {"alpha": 2, "beta": 1}))


def test_a_table_that_fails_now_halts_the_batch_where_its_records_cannot_be_read_any_more(scene: Scene) -> None:
    """Nothing of them is lost: once the table takes rows again, they come from the data files."""
    scene.driver_dies(PLANNED)
    scene.lake.answers[FILE.file_id], scene.lake.failing = "missing", {"beta"}
    with pytest.raises(Halt, match="The rows are safe in data files"):
        scene.batch()
    scene.lake.failing = set()
    scene.batch()
    assert (scene.tables()["a"], held(scene.lake)) == (("loaded", {"alpha": 2, "beta": 1}), [])
