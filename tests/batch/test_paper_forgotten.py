"""On paper, a version is forgotten while its table cannot be written, and the rows of a later one wait for that table.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from forebay.declaration.loading import parse_service
from forebay.ledger.entry import FORGET, FORGOTTEN
from tests.batch.paper import FIRST, Record, roll_back_in
from tests.batch.test_paper_histories import in_time, plain_play, play_all
from tests.batch.test_paper_rules import Rules

RULES = f'''name = "{FIRST}"
overwritten_below = {{ "new/" = "replace", "old/" = "ignore" }}
[[tables]]
name = "{{game}}"
columns = [{{ name = "event_id" }}]
'''


class Forgets(Rules):
    """No table has two versions of a key, also before the next batch ends what was to be forgotten."""

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        often = {self.forget: 10, self.bring_back: 8, self.pause: 6, self.fail: 6, self.job_starts: 5, self.go_back: 4}
        return {**super().more_deeds(), **often, self.put: 10, self.push: 3}

    def job_starts(self, key: str) -> None:
        if not self.taken:
            self.lake.dies_after = None
            self.start_again()
            self.no_table_has_a_record_twice()
            self.no_table_has_two_versions()

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        for row in ledger:
            if row["file_id"] in self.model.forgotten:
                assert (row["outcome"], row["written"]) == (FORGOTTEN, 0), f"{row['etag']} was to be forgotten"


@in_time
def test_no_table_has_two_versions_while_files_are_forgotten() -> None:
    play_all(Forgets)


@pytest.mark.parametrize("at_once", [False, True], ids=["later", "in the batch that forgets it"])
@pytest.mark.parametrize("how", ["is paused", "fails"])
@pytest.mark.parametrize("records", [[Record("alpha", "2")], [Record("beta", "2")]], ids=["there", "elsewhere"])
def test_what_a_table_has_of_a_forgotten_version_leaves_with_the_retry_of_a_later_one(
    records: list[Record], how: str, at_once: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        play.put("new/a")
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1")]
        play.attempt()
        if how == "is paused":
            play.service = play.service.with_paused(["alpha"])
        else:
            play.lake.failing = {"alpha"}
        play.forget("new/a")
        if not at_once:
            play.attempt()
        play.put("new/a")
        play.lake.answers[play.waiting[-1].file_id] = records
        play.attempt()
        play.lake.failing, play.service = set(), play.service.with_paused(())
        play.start_again()
        rows = [row["id"] for name in ("alpha", "beta") for row in play.lake.rows(name)]
        assert rows == ["2"]
        told = {row["etag"]: (row["outcome"], row["tables"]) for row in play.ledger()}
        assert told == {"new/a-1": ("forget", {}), "new/a-2": ("loaded", {records[0].game: 1})}
        (first, _) = play.model.puts.values()
        play.waiting = [first.file]
        play.attempt()
        assert sorted(row["outcome"] for row in play.ledger()) == [FORGOTTEN, "loaded"]


@pytest.mark.parametrize(("key", "then"), [("new/a", ["1"]), ("old/a", ["1"]), ("add/a", ["1", "2"])])
def test_a_later_version_waits_for_the_next_batch_where_a_rollback_brings_a_forgotten_one_back(
    key: str, then: list[str]
) -> None:
    """The forgotten one does not name it. Where the versions of a key may stand side by side, it need not wait."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.service = parse_service({"service.toml": RULES})
        play.operator_acts = False
        for number in ("1", "2"):
            play.put(key)
            play.lake.answers[play.waiting[0].file_id] = [Record("alpha", number)]
            play.attempt()
            if number == "1":
                play.forget(key)
                play.attempt()
                play.lake.failing = {"alpha"}
        play.lake.failing = set()
        roll_back_in(patch, play.lake, ["alpha"], 1, replay=False)
        play.start_again()
        assert [row["id"] for row in play.lake.rows("alpha")] == then
        play.announce_what_ended_as((FORGET,))
        play.start_again()
        assert [row["id"] for row in play.lake.rows("alpha")] == ["2"]
        assert sorted((row["outcome"], row["written"]) for row in play.ledger()) == [(FORGOTTEN, 0), ("loaded", 1)]
