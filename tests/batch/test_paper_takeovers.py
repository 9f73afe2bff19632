"""Histories on paper in which a driver sleeps through its lease before any effect, and another one takes its place, often with
a new checkpoint. Both have the same messages. The first one wakes up, and goes on until it looks at its lease. Every record
stands once, and no later driver is stopped by what the first one left.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.batch.attempt.takeover import Takeover
from forebay.errors import Halt
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from tests.batch.paper import PaperLedger, lay_out
from tests.batch.test_paper_histories import Play, in_time, play_all, service
from tests.batch.world import Died


class Takeovers(Play):
    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back, self.beside, self.term, self.starts = False, None, 0, True
        self.lake.counts_takeovers = True
        patch.setattr(PaperLedger, "remember", Ledger.remember)  # one that sleeps knows fewer rows than there are

    def driver(self, dies_after: int | None = None) -> Any:
        term = self.term

        def still_ours() -> None:
            if self.term != term:
                raise Halt("another driver has the lease")

        self.lake.dies_after = dies_after
        more: Any = {"clock": self.clock, "still_ours": still_ours}
        made = lay_out(self.patch, self.lake, self.service, self.generation, **more)
        made.skips = SimpleNamespace(among=lambda files: set())  # type: ignore[assignment]
        load, starts, self.starts = made.load, self.starts, True

        def started(files: Sequence[LandedFile], batch: int) -> None:
            if starts:
                made.finish_earlier()
            load(files, batch)
            self.starts = self.draw.random() < 0.3

        made.load = started  # type: ignore[method-assign]
        return made

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.sleep: 16, self.put: 6}

    def sleep(self, key: str) -> None:
        if not self.taken:
            self.taken, self.waiting = self.waiting, []
        if not self.taken:
            return
        at, term = self.draw.randint(0, 20), self.term
        self.said.append(f"{self.generation} {self.batch} sleeps before effect {at}: {[f.etag for f in self.taken]}")
        self.lake.meanwhile, self.in_batch = (at, self.take_over), True
        try:
            self.driver(self.draw.choice((None, None, *range(24)))).load(self.taken, self.batch)
        except (Died, Halt) as stopped:
            self.said.append(f"it stopped: {stopped}")
        except KeyError:  # the other one has deleted data files that replaced rows
            if self.term == term:
                raise
        else:
            if self.term == term:
                self.taken, self.batch = [], self.batch + 1
        finally:
            self.lake.meanwhile, self.in_batch = None, False

    def take_over(self) -> None:
        self.term += 1
        self.said.append("another driver takes over")
        if self.draw.random() < 0.8:
            self.new_checkpoint()
        for _ in range(self.draw.randint(0, 2)):
            self.attempt(self.draw.choice((None, None, *range(24))))
            if self.draw.random() < 0.5:
                self.put(self.draw.choice(self.keys))


@in_time
def test_a_driver_that_sleeps_through_its_lease_doubles_nothing_and_stops_nobody() -> None:
    play_all(Takeovers)


def asleep(play: Play, effect: int, meanwhile: Callable[[], None]) -> None:
    """A driver sleeps through its lease before this effect of its batch."""
    play.lake.meanwhile = (effect, meanwhile)
    with suppress(Halt):
        play.driver().load(play.waiting, 0)
    play.lake.meanwhile = None


@pytest.mark.parametrize("effect", range(16))
@pytest.mark.parametrize("dies_after", range(16))
def test_a_plan_that_a_driver_writes_after_another_stream_took_over_is_carried_out_by_nobody(
    effect: int, dies_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one dies on its way, and a third one continues its stream."""
    play = Takeovers(0, monkeypatch)
    play.dedupe, play.service, play.versioned, play.tables_fail = False, service(False), False, False
    play.put("add/a")
    play.put("new/a")

    def another() -> None:
        play.term, play.generation = play.term + 1, "g1"
        with suppress(Died):
            play.driver(dies_after).load(play.waiting, 0)

    asleep(play, effect, another)
    play.driver().load(play.waiting, 0)
    play.driver().finish_earlier()
    play.check()


def test_of_two_drivers_that_take_over_at_once_one_is_refused(tmp_path: Path) -> None:
    """Also where both have the same stream."""
    one, other = (Takeover(open_objects(str(tmp_path)), "s", lambda: None) for _ in range(2))
    for taking in (one, other):
        taking.look()
    one.complete("g1")
    one.complete("g1")
    with pytest.raises(Halt, match=r"another driver wrote .*/s.json meanwhile"):
        other.complete("g1")


def test_a_driver_without_its_lease_does_not_take_over(tmp_path: Path) -> None:
    def lost() -> None:
        raise Halt("another driver has the lease")

    with pytest.raises(Halt, match="has the lease"):
        Takeover(open_objects(str(tmp_path)), "s", lost).complete("g0")
    assert list(tmp_path.iterdir()) == []
