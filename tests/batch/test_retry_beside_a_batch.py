"""A retry of held records while a batch replays or replaces the file that they came from, stopped and mixed at every effect:
no row stands twice, none is lost, and the ledger says where each is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import pytest

import forebay.batch.retrying.planning as planning
from forebay.batch.attempt.turns import RETRY_UNDER_WAY
from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import PLAN, Choice, RetryPlan
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER, QUARANTINE
from forebay.lake.lease_holder import LeaseHeld
from forebay.landed_file import LandedFile
from tests.batch.paper import Lake, PaperMoving, Record, interleavings, lay_out, retry_in
from tests.batch.world import Died

SERVICE = parse_service({"service.toml": 'name = "s"\noverwritten = "replace"\n[[tables]]\nname = "{game}"\n'})
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FIRST, SECOND = (LandedFile("landing", "a", 1, f"a-{n}", None, f"{n:016X}", AT) for n in (1, 2))
RECORDS = [Record("alpha", "1"), Record("beta", "2"), Record("beta", "3"), Record(None, "", broken=True)]
FAILED = Choice("quarantine", reason="table-failed")
MOST_EFFECTS = 15


class Scene:
    """The first version is loaded, but for its rows of table beta. Then it is to be read again, or it has a newer version."""

    def __init__(self, patch: pytest.MonkeyPatch, how: str, failing: Collection[str] = ("beta",)) -> None:
        self.patch, self.lake, self.numbers = patch, Lake(), 0
        self.lake.answers = {FIRST.file_id: RECORDS, SECOND.file_id: RECORDS[:2]}
        self.lake.failing = {*failing}
        self.batch(FIRST)
        self.lake.failing = set()
        if how == "replays":
            self.lake.rows(LEDGER)[0]["outcome"] = "replay"
        self.newest = FIRST if how == "replays" else SECOND

    def batch(self, file: LandedFile, dies_after: int | None = None) -> None:
        self.lake.dies_after = dies_after
        lay_out(self.patch, self.lake, SERVICE, "g0").load([file], self.numbers)
        self.numbers += 1

    def dying(self, dies_after: int | None) -> None:
        with suppress(Died):
            self.batch(self.newest, dies_after)

    def retry(self, dies_after: int | None = None, choice: Choice = FAILED) -> None:
        self.lake.dies_after = dies_after
        with suppress(Died):
            retry_in(self.patch, self.lake, SERVICE).run(choice)

    def end(self) -> None:
        """The batch is repeated until it ends, what was begun is finished, and what waits for a retry comes again."""
        self.lake.meanwhile = None
        if self.numbers == 1:
            self.batch(self.newest)
        self.retry()
        self.batch(self.newest)

    def check(self) -> None:
        (row,) = [row for row in self.lake.rows(LEDGER) if row["file_id"] == self.newest.file_id]
        there = {name: Counter(r["_file_id"] for r in self.lake.rows(name)) for name in ("alpha", "beta")}
        newest, beta = self.newest.file_id, 2 if self.newest == FIRST else 1
        assert there == {"alpha": {newest: 1}, "beta": {newest: beta}}
        assert (row["outcome"], row["tables"], row["quarantined"]) == ("loaded", {"alpha": 1, "beta": beta}, beta - 1)
        assert Counter(r["_file_id"] for r in self.lake.rows(QUARANTINE)) == ({newest: 1} if beta == 2 else {})
        assert [name for name in self.lake.objects if "/plans/" in name or "/tries/" in name] == []


@pytest.mark.parametrize("how", ["replays", "replaces"])
def test_a_retry_in_the_middle_of_a_batch(how: str) -> None:
    for scene, at, dies_after in interleavings(partial(Scene, how=how)):
        scene.lake.meanwhile = (at, partial(scene.retry, dies_after))
        scene.batch(scene.newest)
        scene.end()
        scene.check()


@pytest.mark.parametrize("how", ["replays", "replaces"])
def test_a_batch_in_the_middle_of_a_retry(how: str) -> None:
    for scene, at, dies_after in interleavings(partial(Scene, how=how)):
        scene.lake.meanwhile = (at, partial(scene.dying, dies_after))
        scene.retry()
        scene.end()
        scene.check()


@pytest.mark.parametrize("how", ["replays", "replaces"])
def test_a_batch_whose_driver_dies_and_a_retry_before_the_next_one(how: str) -> None:
    for scene, dies, dies_too in interleavings(partial(Scene, how=how)):
        scene.dying(dies)
        scene.retry(dies_too)
        scene.end()
        scene.check()


def test_a_replay_that_brings_more_held_records_is_not_taken_for_a_restored_quarantine() -> None:
    """Its driver dies between the commits of the quarantine and of the ledger. The retry chooses other records."""
    for dies in range(MOST_EFFECTS):
        with pytest.MonkeyPatch.context() as patch:
            scene = Scene(patch, "replays", failing=())
            scene.lake.answers[FIRST.file_id] = [*RECORDS, Record("alpha", "4", broken=True)]
            scene.dying(dies)
            scene.retry()
            scene.end()
            (row,) = scene.lake.rows(LEDGER)
            assert row["quarantined"] == len(scene.lake.rows(QUARANTINE)) == 2


def test_a_second_retry_at_the_same_time_in_which_a_table_fails() -> None:
    """Both would have one plan: rows that the first one writes after the other one left them out are counted nowhere."""
    for scene, at, dies_after in interleavings(partial(Scene, how="replays", failing={"alpha", "beta"})):

        def second(scene: Scene = scene, dies_after: int | None = dies_after) -> None:
            scene.lake.failing = {"beta"}
            with suppress(LeaseHeld):
                scene.retry(dies_after)
            scene.lake.failing = set()

        scene.lake.meanwhile = (at, second)
        scene.retry()
        scene.end()
        scene.check()


def test_a_table_that_is_dropped_while_a_retry_is_unfinished_does_not_stop_later_ones() -> None:
    """What the ledger counts as moved leaves the quarantine, also when its table is gone by then."""
    for dies_after in range(MOST_EFFECTS):
        with pytest.MonkeyPatch.context() as patch:
            scene = Scene(patch, "replays")
            scene.lake.rows(LEDGER)[0]["outcome"] = "loaded"
            scene.retry(dies_after)
            scene.lake.tables.pop("beta", None)
            scene.retry()
            scene.retry()
            (row,) = scene.lake.rows(LEDGER)
            held = Counter(one["reason"] for one in scene.lake.rows(QUARANTINE))
            assert (row["tables"], row["quarantined"], held) == ({"alpha": 1, "beta": 2}, 1, {"not-json": 1})


def test_a_retry_goes_by_the_list_of_an_erasure_or_the_erasure_sees_its_plan() -> None:
    """An erasure writes its list, then looks for plans that go by an older one."""
    for at in range(MOST_EFFECTS):
        with pytest.MonkeyPatch.context() as patch:
            scene, lists, by = Scene(patch, "replays"), [""], list[str]()
            has_waited = list[bool]()

            def erase(scene: Scene = scene, lists: list[str] = lists, waited: list[bool] = has_waited) -> None:
                lists.append("new")
                plans = [text for name, text in scene.lake.objects.items() if name.endswith(PLAN)]
                waited.append(any(RetryPlan.of_json(text).service["erased"] < "new" for text in plans))

            def moved(self: PaperMoving, by: list[str] = by, waited: list[bool] = has_waited) -> Retried:
                by += [str(self.plan.service["erased"])] if waited == [False] else []
                return Moving.run(self)

            patch.setattr(planning, "without_erased", lambda service, _, lists=lists: service.with_erased(lists[-1]))
            patch.setattr(PaperMoving, "run", moved)
            scene.lake.meanwhile = (at, erase)
            scene.retry()
            assert {*by} <= {"new"}
            assert at > 0 or has_waited == [False]


def test_a_file_whose_records_are_being_moved_waits_for_its_turn() -> None:
    with pytest.MonkeyPatch.context() as patch:
        scene = Scene(patch, "replaces")
        scene.retry(dies_after=2)
        scene.batch(SECOND)
        outcomes = {row["etag"]: (row["outcome"], row["reason"]) for row in scene.lake.rows(LEDGER)}
        assert outcomes == {"a-1": ("loaded", "table-failed"), "a-2": ("unavailable", RETRY_UNDER_WAY)}


def test_records_of_a_file_that_a_batch_has_begun_to_replace_are_left_out() -> None:
    with pytest.MonkeyPatch.context() as patch:
        scene = Scene(patch, "replaces")
        scene.dying(5)
        assert [name for name in scene.lake.objects if "/plans/" in name]
        scene.lake.dies_after = None
        assert retry_in(patch, scene.lake, SERVICE).run(FAILED) == Retried(waiting=1)
