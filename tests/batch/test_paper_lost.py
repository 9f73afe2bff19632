"""Histories on paper in which somebody deletes what forebay keeps: the ledger, before any effect of a batch or a retry, until
it is restored; or the plan of a batch, which is restored where the batch asks for it; or the records that were held. Somebody
restores older versions of the ledger and of the ids, and then the newest ones again. Others append rows of their own. Nothing
ends for it, no other row is lost, none comes twice, and the rows of others stay.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from forebay.batch.plan import Plan
from forebay.batch.retrying.plan import Choice
from forebay.errors import Halt
from forebay.lake.layout import IDS, LEDGER, PARKED, QUARANTINE
from tests.batch.paper import FIRST, PLACE, Record, Table, retry_in
from tests.batch.test_paper_histories import HELD, TABLES, Play, in_time, plain_play, play_all

OTHERS = "rows of others"


class Lost(Play):
    """A driver that starts refuses a lake without its ledger, as `jobs.lost_ledger` does."""

    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back = self.versioned = False
        self.beside = None
        self.kept: Table | None = None
        self.lost_plans: dict[str, bytes] = {}
        self.appended = Counter[str]()
        self.gone: dict[str, Counter[str]] = {name: Counter() for name in HELD}

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        deeds = {self.lose_ledger: 10, self.delete_plan: 10, self.append: 3, self.lose_held: 3}
        return deeds | {self.make_older: 10, self.bring_held_back: 10, self.restore_ids: 6}

    def lose_ledger(self, key: str) -> None:
        """Right before one of the next effects."""
        self.put(key)
        self.lake.meanwhile = (self.draw.randint(0, 16), self.ledger_goes)
        if self.tables_fail and self.draw.random() < 0.5:
            self.retries(Choice("quarantine"))
        else:
            self.attempt()
        self.lake.meanwhile = None
        self.ledger_comes()

    def ledger_goes(self) -> None:
        self.kept = self.lake.tables.pop(LEDGER, None)
        self.said.append(f"the ledger is {'deleted' if self.kept else 'not there yet'}")

    def ledger_comes(self) -> None:
        if self.kept is not None:
            assert LEDGER not in self.lake.tables, "an empty ledger was begun"
            self.lake.tables[LEDGER], self.kept = self.kept, None

    def retries(self, choice: Choice, dies_after: int | None = None) -> None:
        try:
            super().retries(choice, dies_after)
        except KeyError as gone:
            assert gone.args == (LEDGER,)  # noqa: PT017 (most of them end)
            self.said.append("a retry found no ledger")

    def delete_plan(self, key: str) -> None:
        """Whatever became of the landed files. The job that starts ends a retry that is under way."""
        for name, plan in self.plans():
            if plan.settled:
                self.said.append(f"somebody deletes {name}")
                self.lost_plans[name] = self.lake.objects.pop(name)
                self.retries(Choice("quarantine", reason="table-failed"))
        self.attempt(self.draw.choice((None, *range(12))))

    def attempt(self, dies_after: int | None = None) -> None:
        """A batch that other tables have asks for its plan, before anything happens, and gets it."""
        super().attempt(dies_after)
        gone = [name for name in self.lost_plans if f"{name} is gone" in self.said[-1]]
        if gone or not self.taken:
            self.lake.objects |= {name: self.lost_plans[name] for name in gone}
            self.lost_plans = {}

    def new_checkpoint(self) -> None:
        if not self.lost_plans:
            super().new_checkpoint()

    def end(self) -> None:
        self.attempt()
        super().end()

    def plans(self) -> list[tuple[str, Plan]]:
        return [(name, Plan.decode(told)) for name, told in self.lake.objects.items() if "/plans/" in name]

    def make_older(self, key: str) -> None:
        """A driver that starts refuses both: older objects, and a `RESTORE` of the ledger. What a batch has committed that has
        not ended is the plan's."""
        kept = self.lake.objects.get(f"{PLACE}/_forebay/last-versions/{FIRST}.json")
        name, by_hand = self.draw.choice(((LEDGER, False), (LEDGER, True), (IDS, False)))
        if kept is None or not (self.taken or self.waiting) or name not in self.lake.tables:
            return
        last, table = json.loads(kept), self.lake.tables[name]
        ends = (last["ids"] if name == IDS else last["ledger"]) or 0
        older = [to for to in range(ends) if not by_hand or len(table.versions[to]) < last["rows"]]
        if not older:
            return
        to = self.draw.choice(older)
        self.said.append(f"somebody restores version {to} of {name}{' by hand' if by_hand else ''}")
        if by_hand:
            self.lake.tables[name] = replace(
                table, versions=[*table.versions, table.versions[to]], rows=table.versions[to]
            )
        else:
            self.lake.tables[name] = Table(table.versions[to], versions=table.versions[: to + 1], at=table.at[: to + 1])
        before = {one: there.version for one, there in self.lake.tables.items()}
        older_still = pytest.raises(Halt, match=f"service {FIRST}: {name} .*Somebody restored an older version")
        with older_still:
            self.driver().load(self.taken or self.waiting, self.batch)
        if not by_hand:  # a retry counts no rows
            with older_still:
                retry_in(self.patch, self.lake, self.service).run(Choice("quarantine"))
        assert {one: there.version for one, there in self.lake.tables.items()} == before
        self.lake.tables[name] = table

    def restore_ids(self, key: str) -> None:
        """By hand, before any effect of a batch. The batch halts before it commits anything, or it goes by the ids from before
        and the next one halts. Then the ids from before come back, with those that the batch added."""
        for _ in range(2):
            self.put(key)
            self.attempt()
        table = self.lake.tables.get(IDS)
        if table is None or not self.dedupe or self.taken:
            return
        self.put(key)
        older = [to for to in range(table.version) if table.versions[to] != table.rows]
        if not older:
            return
        done: list[tuple[int, int]] = []

        def somebody() -> None:
            self.said.append(f"somebody restores version {(to := self.draw.choice(older))} of the ids")
            table.restore(to)
            done.append((table.version - 1, to))

        self.lake.meanwhile = (self.draw.randint(0, 10), somebody)
        self.attempt(self.draw.choice((None, None, *range(12))))
        self.lake.meanwhile = None
        if done:
            ((before, to),) = done
            self.put(key)
            rows = [row for name in TABLES for row in self.lake.rows(name)]
            with pytest.raises(Halt, match=f"a RESTORE took _forebay/ids back from version {before}"):
                self.driver().load(self.taken or self.waiting, self.batch)
            assert rows == [row for name in TABLES for row in self.lake.rows(name)]
            stand = {(row["_file_id"], (name, row["id"])) for name in TABLES for row in self.lake.rows(name)}
            known = [*table.versions[before], *(row for row in table.rows if row not in table.versions[to])]
            table.change([row for row in known if (row["file_id"], row["id"]) in stand])
            table.restores.clear()

    def bring_held_back(self, key: str) -> None:
        """An older version of the quarantine or of the parked records, with some that a retry has moved. A retry refuses it."""
        name = self.draw.choice((QUARANTINE, PARKED))
        table = self.lake.tables.get(name)
        open_ones = self.lost_plans or any("plan" in one for one in self.lake.objects)
        if table is None or open_ones or self.gone[name]:
            return
        counted = {row["file_id"]: row[HELD[name]] for row in self.lake.rows(LEDGER)}
        older = [rows for rows in table.versions if Counter(row["file_id"] for row in rows) - Counter(counted)]
        if not older:
            return
        self.said.append(f"somebody restores an older {name}")
        rows = self.draw.choice(older)
        self.lake.tables[name], self.lake.dies_after = replace(table, rows=rows, versions=[rows], at=table.at[:1]), None
        before = {one: there.version for one, there in self.lake.tables.items()}
        with pytest.raises(Halt, match=f"{name} has .*Somebody restored an older version"):
            retry_in(self.patch, self.lake, self.service).run(Choice(name.rpartition("/")[2]))  # type: ignore[arg-type]
        assert {one: there.version for one, there in self.lake.tables.items()} == before
        assert not any("plan" in one for one in self.lake.objects)
        self.lake.tables[name] = table

    def lose_held(self, key: str) -> None:
        """The quarantine or the parked records, while no plan names files of theirs. Nobody can restore them."""
        name = self.draw.choice((QUARANTINE, PARKED))
        planned = any("plan" in one for one in self.lake.objects)
        if name in self.lake.tables and not self.dedupe and not planned:
            self.gone[name].update(row["_file_id"] for row in self.lake.tables.pop(name).rows)

    def append(self, key: str) -> None:
        there = [name for name in TABLES if name in self.lake.tables]
        if there:
            name = self.draw.choice(there)
            table = self.lake.tables[name]
            self.appended[name] += 1
            row = {"_file_id": OTHERS, "byte_offset": self.appended.total(), "id": f"{OTHERS} {self.appended.total()}"}
            table.change([*table.rows, row])

    def sums_must_hold(self, told: dict[str, Counter[str]], there: dict[str, Counter[str]]) -> None:
        assert {name: rows.pop(OTHERS) for name, rows in there.items() if OTHERS in rows} == self.appended
        for name, gone in self.gone.items():
            lacking = told[name] - there[name]
            assert lacking <= gone
            there[name] += lacking
        super().sums_must_hold(told, there)

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        super().what_should_stand(ledger)
        assert self.kept is None


@in_time
def test_whatever_of_ours_is_deleted_and_restored_every_record_comes_once() -> None:
    play_all(Lost)


@pytest.mark.parametrize("effect", range(12))
def test_a_driver_that_runs_notices_ids_that_are_restored_before_any_effect_of_its_batch(
    effect: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a record whose id is gone comes with that batch, or with the next one."""
    play = plain_play(0, monkeypatch, dedupe=True)
    driver = play.driver()
    for _ in range(4):
        play.put("add/a")
    for file, names in zip(play.waiting, ("12", "34", "51", "63"), strict=True):
        play.lake.answers[file.file_id] = [Record("alpha", name) for name in names]
    for number, file in enumerate(play.waiting[:2]):
        driver.load([file], number)
    ids = play.lake.tables[IDS]
    play.lake.effects, play.lake.meanwhile = 0, (effect, lambda: ids.restore(0))
    for number, file in enumerate(play.waiting[2:], 2):
        with suppress(Halt):
            driver.load([file], number)
        if play.lake.meanwhile is not None:  # such a batch has fewer effects
            ids.restore(0)
    with pytest.raises(Halt, match="a RESTORE took _forebay/ids back from version"):
        driver.load(play.waiting[3:], 4)
    rows = [row["id"] for row in play.lake.rows("alpha")]
    assert len(rows) == len(set(rows)), "a duplicate passed"
