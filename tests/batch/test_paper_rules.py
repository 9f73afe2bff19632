"""Histories on paper with declarations that change between two readings of a file: records are refused that were loaded
before, and the other way round, or they belong into another table. Replays and retries come while tables fail or are paused. No
table ever has a record twice, and in the end each record stands as the last declarations want it.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from forebay.batch.retrying.plan import PLAN, Choice
from forebay.ledger.entry import PARTLY_REPLAYED, tables_of_earlier_reading
from tests.batch.paper import FIRST, Record, roll_back_in, table_of
from tests.batch.test_paper_histories import HELD, TABLES, Play, in_time, plain_play, play_all, service


class Rules(Play):
    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.dedupe, self.service, self.tables_fail = False, service(False), True
        self.rolls_back, self.versioned, self.beside = False, False, None
        self.keys = ("add/a", "new/a")

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        rare = (self.delete, self.withhold, self.forget, self.bring_back, self.announce_again)
        return {
            **dict.fromkeys(rare, 1),
            self.put: 6,
            self.push: 16,
            self.replay: 6,
            self.retry: 12,
            self.partly_replay: 12,
            self.take_back: 6,
            self.go_back: 6,
        }

    def push(self, key: str) -> None:
        """Declarations that judge a record of this key in another way, if the file is there to be read."""
        put = self.model.newest.get(key)
        if put is None or isinstance(self.lake.answers[put.file.file_id], str) or put.file in self.taken:
            return
        if any(name.endswith(PLAN) for name in self.lake.objects):
            return  # a retry under way goes by the declarations that it began with
        records = list(self.contents[put.file.file_id])
        at = min(self.draw.randrange(len(records)), self.draw.randrange(len(records)))
        change = {"broken": not records[at].broken} if self.draw.random() < 0.7 else {"game": self.draw.choice(TABLES)}
        records[at] = replace(records[at], **change)
        self.contents[put.file.file_id] = self.lake.answers[put.file.file_id] = records  # type: ignore[assignment]
        tables = Counter(record.game for record in records if record.game and not record.broken)
        self.model.put(replace(put, tables=dict(tables), held=len(records) - tables.total()))
        for row in (row for name in HELD for row in self.lake.rows(name)):
            if (row["file_id"], row["byte_offset"]) == (put.file.file_id, at):
                fate = "quarantine" if records[at].broken else "write" if records[at].game else "park"
                row.update(fate=fate, table=records[at].game and table_of(FIRST, records[at].game), declared=0)
        if self.draw.random() < 0.5:
            self.replay(key)

    def partly_replay(self, key: str) -> None:
        """By other declarations, while a table of the file cannot be written."""
        self.lake.failing, self.lake.fails_early = {self.draw.choice(TABLES)}, self.draw.random() < 0.5
        self.push(key)
        self.replay(key)
        self.attempt()
        self.lake.failing = set()

    def take_back(self, key: str) -> None:
        """Tables go back after a replay in part, one after the other, and some files are not read again for that."""
        self.partly_replay(key)
        self.go_back(key)

    def go_back(self, key: str) -> None:
        for name in self.draw.sample(TABLES, 2):
            if name in self.lake.tables and self.draw.random() < 0.7:
                back = self.draw.randint(1, 3)
                self.said.append(f"{name} goes back {back}")
                roll_back_in(self.patch, self.lake, [name], back, replay=self.draw.random() < 0.3)

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 2 * most)

    def attempt(self, dies_after: int | None = None) -> None:
        super().attempt(dies_after)
        self.no_table_has_a_record_twice()
        self.no_table_has_two_versions()

    def retries(self, choice: Choice, dies_after: int | None = None) -> None:
        super().retries(choice, dies_after)
        self.no_table_has_a_record_twice()
        self.no_table_has_two_versions()

    def no_table_has_a_record_twice(self) -> None:
        for name in TABLES:
            rows = Counter((row["_file_id"], row["byte_offset"]) for row in self.lake.rows(name))
            assert [one for one, times in rows.items() if times > 1] == [], f"{name} has a record twice"

    def no_table_has_two_versions(self) -> None:
        """Of a key whose versions are replaced."""
        for name, key in product(TABLES, self.keys):
            rows = {row["_file_id"] for row in self.lake.rows(name) if row["key"] == key}
            assert key.startswith("add/") or len(rows) <= 1, f"{name} has rows of {len(rows)} versions of {key}"

    def none_is_twice(self, records: Counter[tuple[str, int]]) -> None:
        """Except of a version that went before it could be replayed again: a table keeps the rows of its earlier reading."""
        partly = self.partly()
        super().none_is_twice(Counter({one: times for one, times in records.items() if one[0] not in partly}))

    def partly(self) -> set[str]:
        return {row["file_id"] for row in self.ledger() if row["reason"] == PARTLY_REPLAYED}

    def waiting_for_tables(self) -> list[dict[str, Any]]:
        """Except records that are refused by now, and those of a table with rows of an earlier reading."""
        return [
            row
            for row in super().waiting_for_tables()
            if row["fate"] == "write" and row["file_id"] not in self.partly()
        ]

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        """Of a version that is no longer there, the last reading stands."""
        self.newest_stand(ledger)

    def end(self) -> None:
        """What operators gave up comes back as well."""
        super().end()
        for row in self.ledger():
            if row["outcome"] == "loaded":
                row["outcome"] = "replay"
        self.announce_what_ended_as(("replay",))


@in_time
def test_no_table_has_a_record_twice_while_declarations_change_between_replays() -> None:
    play_all(Rules)


@pytest.mark.parametrize("how", ["fails at its commit", "fails early", "is paused"])
def test_a_refused_record_that_still_stands_from_an_earlier_reading_is_not_retried_until_its_file_is_replayed_again(
    how: str,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        play.put("add/a")
        file_id = play.waiting[0].file_id
        good, refused = [Record("alpha", "1"), Record("alpha", "2")], Record("alpha", "2", broken=True)
        play.lake.answers[file_id] = good
        play.attempt()
        if how == "is paused":
            play.service = play.service.with_paused(["alpha"])
        else:
            play.lake.failing, play.lake.fails_early = {"alpha"}, how == "fails early"
        play.lake.answers[file_id] = [good[0], refused]
        play.replay("add/a")
        play.attempt()
        assert play.ledger()[0]["reason"] == PARTLY_REPLAYED
        play.lake.failing, play.service = set(), play.service.with_paused(())
        for row in play.lake.rows("_forebay/quarantine"):
            row["fate"] = "write"
        play.retries(Choice("quarantine"))
        assert sorted(row["id"] for row in play.lake.rows("alpha")) == ["1", "2"]
        play.lake.answers[file_id] = good
        play.replay("add/a")
        play.attempt()
        (row,) = play.ledger()
        assert (row["reason"], row["tables"], row["quarantined"]) == (None, {"alpha": 2}, 0)


def partly_replayed(play: Play) -> None:
    """Declarations refuse the second record of a file now, while `alpha` has it still. Its third one is in `beta`."""
    play.operator_acts = False
    refused = Record("alpha", "2", broken=True)
    play.put("add/b")
    play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "0"), Record("beta", "0")]
    play.attempt()
    play.put("add/a")
    file_id = play.waiting[0].file_id
    for failing, second in ((set(), Record("alpha", "2")), ({"alpha"}, refused)):
        play.lake.failing = failing
        play.lake.answers[file_id] = [Record("alpha", "1"), second, Record("beta", "3")]
        play.attempt()
        play.replay("add/a")
    for row in play.ledger():
        row["outcome"] = "loaded"
    play.lake.failing, play.waiting = set(), []


def retry_what_was_refused(play: Play) -> list[str]:
    """By declarations that take it. The records that are in `alpha` then."""
    for row in play.lake.rows("_forebay/quarantine"):
        row["fate"] = "write"
    play.retries(Choice("quarantine"))
    return sorted(row["id"] for row in play.lake.rows("alpha"))


@pytest.mark.parametrize("tables", [["beta"], ["alpha"], ["alpha", "beta"]], ids=" ".join)
def test_a_rollback_and_its_undo_do_not_hide_that_a_table_has_rows_of_an_earlier_reading(tables: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        partly_replayed(play)
        back = {name: play.lake.tables[name].version for name in tables}
        for name in tables:
            roll_back_in(patch, play.lake, [name], back[name], replay=False)
        if tables != ["beta"]:
            assert [row["id"] for row in play.lake.rows("alpha")] == ["0"]
            for name in tables:
                roll_back_in(patch, play.lake, [name], 1, replay=False)
        assert retry_what_was_refused(play) == ["0", "1", "2"]


def test_a_retry_adds_to_a_table_from_which_the_rows_of_an_earlier_reading_left() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        partly_replayed(play)
        roll_back_in(patch, play.lake, ["alpha"], 1, replay=False)
        assert retry_what_was_refused(play) == ["0", "2"]


def test_records_of_a_later_version_stay_where_an_earlier_one_came_back_and_was_replayed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        files = []
        for records in ([Record("alpha", "1")], [Record("alpha", "2"), Record("alpha", "3", broken=True)]):
            play.put("new/a")
            files.append(play.waiting[0])
            play.lake.answers[files[-1].file_id] = records  # type: ignore[assignment]
            play.attempt()
        roll_back_in(patch, play.lake, ["alpha"], 2, replay=False)
        assert [row["id"] for row in play.lake.rows("alpha")] == ["1"]
        for row in play.ledger():
            if row["file_id"] == files[0].file_id:
                row["outcome"] = "replay"
        play.lake.answers[files[0].file_id] = [Record("alpha", "1")]
        play.waiting = [files[0]]
        play.attempt()
        assert retry_what_was_refused(play) == ["1"]


@pytest.mark.parametrize("versions", [2, 3, 4])
def test_no_record_of_a_later_version_enters_a_table_whose_rows_of_the_first_one_came_back(versions: int) -> None:
    """However many versions came in between. Records of the last one waited for the table."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        for number in range(versions):
            play.put("new/a")
            record = Record("alpha", f"{number}") if number in (0, versions - 1) else Record("beta", f"{number}")
            play.lake.answers[play.waiting[0].file_id] = [record]
            play.lake.failing = {"alpha"} if number == versions - 1 > 1 else set()
            play.attempt()
        play.lake.failing = set()
        roll_back_in(patch, play.lake, ["alpha"], play.lake.tables["alpha"].version, replay=False)
        play.start_again()
        assert [row["id"] for row in play.lake.rows("alpha")] == ["0"]


@pytest.mark.parametrize("dies_after", [None, *range(1, 8)])
@pytest.mark.parametrize("late", [False, True], ids=["in one batch", "announced late"])
def test_a_later_version_is_read_again_where_rows_come_back_of_one_that_it_outdid_unread(
    late: bool, dies_after: int | None
) -> None:
    """That one was forgotten, and wanted again when the later version came, or after that."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        play.put("new/a")
        (first,) = play.waiting
        play.lake.answers[first.file_id] = [Record("alpha", "1")]
        play.attempt()
        play.forget("new/a")
        play.attempt()
        play.put("new/a")
        (second,) = play.waiting
        play.lake.answers[second.file_id] = [Record("beta", "2")]
        if late:
            play.attempt()
        play.bring_back("new/a")
        play.attempt(dies_after)
        play.attempt()
        outcomes = {row["file_id"]: row["outcome"] for row in play.ledger()}
        assert outcomes == {first.file_id: "superseded", second.file_id: "loaded"}
        roll_back_in(patch, play.lake, ["alpha"], play.lake.tables["alpha"].version)
        outcomes = {row["file_id"]: row["outcome"] for row in play.ledger()}
        assert outcomes == {first.file_id: "loaded", second.file_id: "replay"}


def read_twice(play: Play, later: list[Record]) -> None:
    """A file with the records 1 and 2, as declarations read it at first, and as others read it now."""
    play.operator_acts = False
    play.put("add/a")
    file_id = play.waiting[0].file_id
    for records in ([Record("alpha", "1"), Record("alpha", "2")], later):
        play.lake.answers[file_id] = records  # type: ignore[assignment]
        play.attempt()
        play.replay("add/a")
    play.waiting = []
    for row in play.ledger():
        row["outcome"] = "loaded"


LATER = {
    "a record is refused": [Record("alpha", "1"), Record("alpha", "2", broken=True)],
    "another record comes": [Record("alpha", "1"), Record("alpha", "2", broken=True), Record("alpha", "3")],
    "another table takes it": [Record("alpha", "1"), Record("alpha", "2", broken=True), Record("beta", "3")],
}


@pytest.mark.parametrize("later", LATER)
def test_a_retry_leaves_a_refused_record_whose_row_came_back_in_an_earlier_reading(later: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        read_twice(play, LATER[later])
        roll_back_in(patch, play.lake, ["alpha"], 2, replay=False)
        assert retry_what_was_refused(play) == ["1", "2"]
        (row,) = play.ledger()
        assert (row["reason"], row["tables"]["alpha"]) == (PARTLY_REPLAYED, 2)
        assert tables_of_earlier_reading(row["reason"], row["detail"]) == {"alpha"}
        roll_back_in(patch, play.lake, ["alpha"], 1, replay=False)
        there = [row["id"] for row in play.lake.rows("alpha")]
        (row,) = play.ledger()
        assert row["reason"] != PARTLY_REPLAYED
        assert retry_what_was_refused(play) == sorted([*there, "2"])


@pytest.mark.parametrize("later", LATER)
def test_a_file_whose_earlier_reading_comes_back_is_read_again_with_the_rollback(later: str) -> None:
    """Also where as many rows come as leave."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        read_twice(play, LATER[later])
        roll_back_in(patch, play.lake, ["alpha"], 2)
        assert sorted(row["id"] for row in play.lake.rows("alpha")) == ["1", "2"]
        assert [row["outcome"] for row in play.ledger()] == ["replay"]


@pytest.mark.parametrize("answer", ["is there", "missing", "denied"])
@pytest.mark.parametrize("dies_after", [None, *range(1, 6)])
def test_a_retry_beside_a_batch_that_replays_its_file_is_counted(dies_after: int | None, answer: str) -> None:
    """The first retry dies before it moves anything. Another one finishes it before an effect of the batch, or dies there."""
    for effect in range(10):
        with pytest.MonkeyPatch.context() as patch:
            play = plain_play(0, patch, dedupe=False)
            play.operator_acts = False
            play.put("add/a")
            file_id = play.waiting[0].file_id
            play.lake.answers[file_id] = [Record("alpha", "1"), Record("beta", "2")]
            play.lake.failing = {"beta"}
            play.attempt()
            play.lake.failing = set()
            play.retries(Choice("quarantine"), dies_after=2)
            play.replay("add/a")
            if answer != "is there":
                play.lake.answers[file_id] = answer  # type: ignore[assignment]

            def retry(play: Play = play) -> None:
                play.retries(Choice("quarantine"), dies_after)

            play.lake.meanwhile = (effect, retry)
            play.attempt()
            play.lake.meanwhile = None
            play.retries(Choice("quarantine"))
            (row,) = play.ledger()
            in_tables = {name: len(play.lake.rows(name)) for name in TABLES if play.lake.rows(name)}
            assert (row["tables"], row["quarantined"]) == (in_tables, len(play.lake.rows("_forebay/quarantine")))
