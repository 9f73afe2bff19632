"""Histories on paper in which tables go back to earlier versions while other tables are paused or fail, and rows wait for them.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forebay.batch.retrying.plan import Choice
from forebay.lake.layout import IDS, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.entry import PUT_AGAIN, REPLAY, ROLLED_BACK, tables_of_earlier_reading
from tests.batch.model import Put
from tests.batch.paper import Record, remove_leftovers_in, roll_back_in
from tests.batch.test_paper_histories import AT, TABLES, Play, in_time, plain_play, play_all, service


class Rollbacks(Play):
    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back = self.tables_fail = True
        self.versioned, self.beside = False, None

    def job_starts(self, key: str) -> None:
        if not self.taken:
            self.lake.dies_after = None
            self.start_again()

    def no_id_stands_twice(self) -> None:
        for name in TABLES:
            ids = Counter(row["id"] for row in self.lake.rows(name))
            assert [one for one, times in ids.items() if times > 1] == []


class Ids(Rollbacks):
    """With `dedupe`, versions of a key come one after the other, and single tables go back. No file is read again for that."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.dedupe, self.service, self.keys = True, service(True), ("add/a", "new/a")
        self.operator_acts = False

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        left_out = (self.forget, self.bring_back, self.delete, self.withhold, self.roll_back)
        return {**dict.fromkeys(left_out, 0), self.put: 10, self.pause: 6, self.go_back: 10, self.job_starts: 5}

    def go_back(self, key: str) -> None:
        there = [name for name in TABLES if name in self.lake.tables]
        names = self.draw.sample(there, min(len(there), self.draw.choice((1, 1, 2))))
        self.said.append(f"{names} go back")
        before = {row["file_id"] for row in self.ledger() if row["outcome"] == "superseded" and not row["written"]}
        if names and roll_back_in(self.patch, self.lake, names, self.draw.randint(1, 3), replay=False):
            self.ids_fit()
            if self.draw.random() < 0.6:
                self.said.append("and this is undone")
                assert roll_back_in(self.patch, self.lake, names, 1, replay=False)
                self.ids_fit()
                now = {row["file_id"] for row in self.ledger() if row["outcome"] == "superseded"}
                assert before <= now, "a version is in force without a row"

    def job_starts(self, key: str) -> None:
        super().job_starts(key)
        if not self.taken:
            self.ids_fit()

    def ids_fit(self) -> None:
        """All of them, of exactly the rows that stay."""
        if any("plan" in name for name in self.lake.objects):
            return
        self.every_row_is_known()
        ids = {(row["file_id"], row["id"]) for row in self.lake.rows(IDS)}
        rows = {(row["_file_id"], (name, row["id"])) for name in TABLES for row in self.lake.rows(name)}
        leaving = {row["file_id"] for row in self.ledger() if row["outcome"] == "superseded"}
        assert {one for one in ids if one not in rows or one[0] in leaving} == set()

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        self.ids_fit()

    def waiting_for_tables(self) -> list[dict[str, Any]]:
        """Except those of keys whose earlier versions may be in force."""
        return [row for row in super().waiting_for_tables() if not row["key"].startswith("new/")]

    def every_id_stands_once(self) -> None:
        self.no_id_stands_twice()


@in_time
def test_the_rows_of_tables_that_go_back_are_known_and_no_others() -> None:
    play_all(Ids)


class PutsBack(Rollbacks):
    """Keys get earlier bytes again, in a bucket without versions."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        more = self.draw.choice(("", 'on_delete = "forget"\n'))
        self.dedupe, self.service, self.keys = False, service(False, more), ("add/a", "new/a")
        self.went_back: set[str] = set()
        self.operator_acts = False

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        left_out = (self.retry, self.forget, self.bring_back, self.delete)
        return {**dict.fromkeys(left_out, 0), self.put_back: 12, self.put: 8, self.go_back: 8}

    def go_back(self, key: str) -> None:
        """No file is read again for that."""
        there = [name for name in TABLES if name in self.lake.tables]
        if there:
            self.said.append(f"{(name := self.draw.choice(there))} goes back")
            roll_back_in(self.patch, self.lake, [name], self.draw.randint(1, 3), replay=False)
            self.went_back |= {*self.keys}

    def announce(self, put: Put) -> None:
        super().announce(put)
        self.went_back.discard(put.file.key)

    def waiting_for_tables(self) -> list[dict[str, Any]]:
        """Except those of a version that is not the one in force."""
        return [row for row in super().waiting_for_tables() if row["key"] not in self.went_back]

    def none_is_twice(self, records: Counter[tuple[str, int]]) -> None:
        """Except records that a table refused when their file was read again, before it went back to the earlier reading: a
        retry leaves them."""
        partly = {
            (row["file_id"], name)
            for row in self.ledger()
            for name in tables_of_earlier_reading(row["reason"], row["detail"])
        }
        left = {
            (row["file_id"], row["byte_offset"])
            for row in super().waiting_for_tables()
            if (row["file_id"], row["table"]) in partly
        }
        super().none_is_twice(Counter({one: times for one, times in records.items() if one not in left}))

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        """All of the newest version, if it came after the last of these rollbacks; and nothing of the others. Of a file that
        was the newest before, and is again because nobody could read what came in between, what a rollback left of it."""
        rows = {row["file_id"]: row for row in ledger}
        for put in self.model.puts.values():
            row, newest = rows[put.file.file_id], self.model.newest[put.file.key]
            if put.file.key in self.went_back:
                continue
            if put.file.file_id == newest.file.file_id:
                assert (row["outcome"], row["records"]) == ("loaded", put.records), put.file.etag
                is_known = row["reason"] == ROLLED_BACK and not row["superseded_by"]
                assert self.dedupe or is_known or row["tables"] == put.tables, put.file.etag
            elif put.replaces:
                assert row["written"] == 0, f"{put.file.etag} stands beside {newest.file.etag}"


@in_time
def test_a_key_gets_its_earlier_bytes_again_after_a_rollback() -> None:
    play_all(PutsBack)


class PutsBackKnown(PutsBack):
    """With `dedupe`, while tables are paused that have rows of the earlier bytes."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        more = self.draw.choice(("", 'on_delete = "forget"\n'))
        self.dedupe, self.service, self.keys = True, service(True, more), ("new/a", "new/b")

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        rare = {self.go_back: 1, self.withhold: 1, self.job_starts: 3}
        return {**super().more_deeds(), **rare, self.put_back: 14, self.pause: 10}

    def every_id_stands_once(self) -> None:
        self.no_id_stands_twice()
        self.every_row_is_known()


@in_time
def test_a_key_gets_its_earlier_bytes_again_where_records_are_known() -> None:
    play_all(PutsBackKnown)


class Skips(PutsBackKnown):
    """Keys are skipped and taken back meanwhile, and notices come late once more."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.notices: list[LandedFile] = []
        super().__init__(seed, patch)
        self.dedupe = self.draw.random() < 0.5
        self.service = service(self.dedupe, self.draw.choice(("", 'on_delete = "forget"\n')))

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {**super().more_deeds(), self.skip: 8, self.notice_again: 6, self.go_back: 3}

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 3 * most)

    def announce(self, put: Put) -> None:
        super().announce(put)
        self.notices.append(put.file)

    def notice_again(self, key: str) -> None:
        self.waiting.append(self.draw.choice(self.notices))

    def skip(self, key: str) -> None:
        """Or no longer."""
        self.skipping ^= {put.file.file_id for put in self.model.puts.values() if put.file.key == key}

    def attempt(self, dies_after: int | None = None) -> None:
        super().attempt(dies_after)
        if not self.taken and not any("plan" in name for name in self.lake.objects):
            told = {(name, row["file_id"]): rows for row in self.ledger() for name, rows in row["tables"].items()}
            assert told == Counter((name, row["_file_id"]) for name in TABLES for row in self.lake.rows(name))

    def end(self) -> None:
        self.skipping = set()
        super().end()


@in_time
def test_the_ledger_tells_of_all_rows_while_keys_that_get_earlier_bytes_are_skipped() -> None:
    play_all(Skips)


def first_bytes_stand(
    patch: pytest.MonkeyPatch, how: str, *more: Record, declared: str = "", dedupe: bool = False
) -> tuple[Play, LandedFile]:
    """A key of which alpha has the first bytes, and beta the second ones; and the file with the first bytes."""
    play = plain_play(0, patch, dedupe=dedupe)
    play.operator_acts, play.service = False, service(dedupe, declared)
    for number in ("1", "2"):
        play.put("new/a")
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", number), Record("beta", number), *more]
        play.service = play.service.with_paused(["alpha"] if (how, number) == ("is paused", "2") else ())
        play.attempt()
    play.service = play.service.with_paused(())
    if how == "goes back":
        roll_back_in(patch, play.lake, ["alpha"], 2, replay=False)
    return play, next(put.file for put in play.model.puts.values())


def put_again(first: LandedFile) -> LandedFile:
    """The same bytes, later."""
    return replace(first, sequencer=f"{99:016X}", event_time=AT + timedelta(minutes=1))


def test_bytes_that_come_again_replace_a_later_version_also_where_deletions_are_followed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, "goes back", declared='on_delete = "forget"\n')
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        play.waiting = [put_again(first)]
        play.attempt()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]


@pytest.mark.parametrize("how", ["is paused", "goes back"])
def test_what_s3_withholds_when_a_key_gets_its_first_bytes_again_has_the_later_time_after_a_restart(how: str) -> None:
    """A table has rows of the first bytes. The job that starts knows the file only by the ledger."""
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, how)
        back = put_again(first)
        play.lake.answers[first.file_id] = "unavailable"
        play.waiting = [back]
        play.attempt()
        (row,) = (row for row in play.ledger() if row["outcome"] == REPLAY)
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        play.waiting = [replace(first, sequencer=row["sequencer"], event_time=row["event_time"])]
        play.attempt()
        play.start_again()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]


@pytest.mark.parametrize("how", ["is paused", "goes back"])
def test_a_batch_that_goes_on_after_a_crash_gives_a_first_notice_that_came_late_the_later_time(how: str) -> None:
    """S3 withheld the bytes when they were put again, so the ledger has that time. The driver dies after each effect."""
    dies_after, deaths = 0, set[int]()
    while deaths == {*range(dies_after)}:
        with pytest.MonkeyPatch.context() as patch:
            play, first = first_bytes_stand(patch, how)
            for notice, answer, dies in (
                (put_again(first), "unavailable", None),
                (first, [Record("alpha", "1"), Record("beta", "1")], dies_after),
            ):
                play.lake.answers[first.file_id] = answer  # type: ignore[assignment]
                play.waiting = [notice]
                play.attempt(dies)
            play.attempt()
            assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]
            told = {row["etag"]: (row["outcome"], row["tables"], row["sequencer"]) for row in play.ledger()}
            assert told["new/a-1"] == ("loaded", {"alpha": 1, "beta": 1}, put_again(first).sequencer)
            assert told["new/a-2"][:2] == ("superseded", {})
            deaths |= play.lake.deaths
        dies_after += 1
    assert dies_after > 5


@pytest.mark.parametrize("how", ["is paused", "goes back"])
@pytest.mark.parametrize("at", range(9))
def test_what_waits_for_a_retry_when_a_key_gets_its_first_bytes_again_is_read_after_a_restart(
    how: str, at: int
) -> None:
    """The batch comes before each effect of a retry that moves records of the later version."""
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, how, Record(None, ""))
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        play.waiting = [put_again(first)]
        play.lake.meanwhile = (at, play.attempt)
        play.retries(Choice("quarantine" if how == "is paused" else "parked"))
        play.lake.meanwhile = None
        play.start_again()
        rows = [row for row in play.ledger() if row["outcome"] in (REPLAY, "unavailable")]
        play.waiting += [replace(first, sequencer=row["sequencer"], event_time=row["event_time"]) for row in rows]
        play.attempt()
        play.start_again()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]
        told = {row["etag"]: (row["outcome"], row["tables"]) for row in play.ledger()}
        assert told == {"new/a-1": ("loaded", {"alpha": 1, "beta": 1}), "new/a-2": ("superseded", {})}


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_copy_is_loaded_beside_rows_of_a_file_that_is_back_while_its_table_is_paused(when: str) -> None:
    """Its ids left with the later version, its rows could not."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        play.operator_acts = False

        def loads(key: str, *records: Record) -> None:
            play.put(key)
            play.lake.answers[play.waiting[-1].file_id] = [*records]
            play.attempt()

        play.put("new/a")
        (first,) = play.waiting
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "2")]
        play.attempt()
        play.service = play.service.with_paused(["alpha"])
        play.put("new/a")
        second = play.waiting[-1]
        play.lake.answers[second.file_id] = [Record("beta", "3")]
        play.attempt()
        if when == "before":
            loads("add/x", Record("alpha", "1"))
        play.lake.answers |= {first.file_id: [Record("alpha", "1"), Record("beta", "2")], second.file_id: "changed"}
        play.waiting = [put_again(first)]
        play.attempt()
        play.service = play.service.with_paused(())
        play.start_again()
        if when == "after":
            loads("add/x", Record("alpha", "1"))
        assert [row["id"] for row in play.lake.rows("alpha")] == ["1"]


def two_versions(play: Play) -> None:
    """Of one key, beside another file. When the second version comes, alpha is paused."""
    play.operator_acts = False
    for key, number in (("add/a", "0"), ("new/a", "1"), ("new/a", "2")):
        play.put(key)
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", number), Record("beta", number)]
        play.service = play.service.with_paused(["alpha"] if number == "2" else ())
        play.attempt()
    play.service = play.service.with_paused(())


def test_no_version_is_in_force_again_whose_rows_in_another_table_have_lost_their_ids() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        two_versions(play)
        assert not roll_back_in(patch, play.lake, ["beta"], 2, replay=False)
        play.start_again()
        assert roll_back_in(patch, play.lake, ["beta"], 2, replay=False)
        play.every_row_is_known()
        assert [[row["id"] for row in play.lake.rows(name)] for name in TABLES] == [["0", "2"], ["0", "1"]]


def test_a_copy_is_loaded_after_rows_of_a_superseded_version_came_back_and_left() -> None:
    """The version lost its rows in alpha by the same rollback, so it stays superseded."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        two_versions(play)
        assert roll_back_in(patch, play.lake, ["alpha", "beta"], 2, replay=False)
        play.start_again()
        play.put("add/b")
        play.lake.answers[play.waiting[0].file_id] = [Record("beta", "1")]
        play.attempt()
        assert [row["id"] for row in play.lake.rows("beta")] == ["0", "1"]


@pytest.mark.parametrize("declared", ["", 'on_delete = "forget"\n'], ids=["", "forget"])
def test_a_key_ends_with_its_first_bytes_although_a_paused_table_still_had_rows_of_them(declared: str) -> None:
    """Also where the job stops before the table is written again, and the first notice comes once more."""
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, "is paused", dedupe=True, declared=declared)
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        for notice in (put_again(first), first):
            play.waiting = [notice]
            play.attempt()
            told = {row["etag"]: (row["outcome"], row["reason"]) for row in play.ledger()}
            assert told == {"new/a-1": ("superseded", PUT_AGAIN), "new/a-2": ("loaded", "paused")}
        play.start_again()
        (row,) = (row for row in play.ledger() if row["reason"] == PUT_AGAIN)
        play.waiting = [replace(first, sequencer=row["sequencer"], event_time=row["event_time"])]
        play.attempt()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]
        play.every_row_is_known()


def test_a_file_that_waits_for_its_rows_to_leave_is_announced_less_and_less_often() -> None:
    """Also by a job that starts: each of these drivers is another one, and knows the tries by the ledger."""
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, "is paused", dedupe=True)
        tries = []
        for batch in range(play.batch, play.batch + 3):
            (driver := play.driver()).load([put_again(first)], batch)
            (row,) = (row for row in play.ledger() if row["reason"] == PUT_AGAIN)
            (waits,) = driver.ledger.withheld.take_due(AT + timedelta(days=1), 2)
            tries.append((row["tries"], waits.tries, waits.file.sequencer))
        assert tries == [(n, n, put_again(first).sequencer) for n in (1, 2, 3)]


@pytest.mark.parametrize("dedupe", [True, False])
def test_rows_of_an_earlier_version_leave_also_where_the_declarations_no_longer_replace_anything(dedupe: bool) -> None:
    """And with them the reason for which a rollback was refused."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=dedupe)
        two_versions(play)
        play.retries(Choice("quarantine", give_up=True))  # what waited for alpha
        play.service = play.service.model_copy(update={"overwritten_below": {}})
        remove_leftovers_in(patch, play.lake, play.service, AT)
        assert [row["id"] for row in play.lake.rows("alpha")] == ["0"]
        assert roll_back_in(patch, play.lake, ["beta"], 2, replay=False)


def test_rows_of_an_earlier_version_leave_once_records_of_the_later_one_are_dropped_that_are_refused_by_now() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        two_versions(play)
        for row in play.lake.rows(QUARANTINE):
            row["fate"] = "quarantine"
        play.start_again()
        assert [row["id"] for row in play.lake.rows("alpha")] == ["0", "1"]
        play.retries(Choice("quarantine", give_up=True))
        play.start_again()
        assert [row["id"] for row in play.lake.rows("alpha")] == ["0"]


def test_a_first_notice_that_comes_late_once_more_is_no_older_than_the_bytes_that_were_put_again() -> None:
    """The rows have left, and the file that waited is announced after that."""
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, "is paused", dedupe=True)
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        play.waiting = [put_again(first)]
        play.attempt()
        play.start_again()
        play.waiting = [first]
        play.attempt()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]


@pytest.mark.parametrize("has_left", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_a_file_that_waits_or_waited_is_read_also_where_a_table_goes_back(name: str, has_left: bool) -> None:
    """To before its rows, or to its rows."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        two_versions(play)
        first = next(put.file for put in play.model.puts.values() if put.file.key == "new/a")
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        play.waiting = [put_again(first)]
        play.attempt()
        if has_left:
            play.start_again()
        assert roll_back_in(patch, play.lake, [name], 2 if has_left or name == "beta" else 1, replay=False) != (
            name == "beta" and not has_left
        )
        for _ in range(2):
            play.start_again()
            (row,) = (row for row in play.ledger() if row["file_id"] == first.file_id)
            play.waiting = [replace(first, sequencer=row["sequencer"], event_time=row["event_time"])]
            play.attempt()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name) if row["key"] == "new/a"] == ["1", "1"]
        play.every_row_is_known()


@pytest.mark.parametrize("how", ["is paused", "goes back"])
@pytest.mark.parametrize("dedupe", [True, False])
def test_a_key_that_is_skipped_when_it_gets_its_first_bytes_again_is_read_after_that(how: str, dedupe: bool) -> None:
    """The ledger still tells of the rows that stand meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        play, first = first_bytes_stand(patch, how, dedupe=dedupe)
        before = [(row["file_id"], row["outcome"], row["tables"]) for row in play.ledger()]
        play.lake.answers[first.file_id] = [Record("alpha", "1"), Record("beta", "1")]
        play.skipping = {first.file_id}
        play.waiting = [put_again(first)]
        play.attempt()
        now = [(row["file_id"], row["outcome"], row["tables"]) for row in play.ledger()]
        assert now == [
            (one, REPLAY if (how, one) == ("goes back", first.file_id) else out, there) for one, out, there in before
        ]
        play.skipping = set()
        play.start_again()
        (row,) = (row for row in play.ledger() if row["file_id"] == first.file_id)
        play.waiting = [replace(first, sequencer=row["sequencer"], event_time=row["event_time"])]
        play.attempt()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "1"]


@in_time
def test_tables_go_back_beside_tables_that_fail_and_every_record_stands_once() -> None:
    play_all(Rollbacks)


def test_a_superseded_version_that_is_gone_when_it_was_to_be_read_again_stays_superseded() -> None:
    """S3 withheld its bytes when they were put again, and then the key got the later bytes back. A table that was paused still
    has its rows, which leave for those of the later version."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        two_versions(play)
        first, second = (put.file for put in play.model.puts.values() if put.file.key == "new/a")
        back = replace(second, sequencer=f"{100:016X}", event_time=AT + timedelta(minutes=2))
        for answer, notice in (("unavailable", put_again(first)), ("changed", back), ("changed", put_again(first))):
            play.lake.answers[first.file_id] = answer  # type: ignore[assignment]
            play.waiting = [notice]
            play.attempt()
        told = {row["file_id"]: row["outcome"] for row in play.ledger() if row["key"] == "new/a"}
        assert told == {first.file_id: "superseded", second.file_id: "loaded"}
        play.start_again()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name) if row["key"] == "new/a"] == ["2", "2"]
