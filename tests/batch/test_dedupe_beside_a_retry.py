"""A retry of held records and a batch that load copies of one record at the same time, stopped and mixed at every effect: one
copy stands, the other one is dropped and counted, and a copy that comes later is dropped, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import pytest

import forebay.batch.retrying.reserved as reserved
from forebay.batch.retrying.plan import Choice
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.lake.layout import IDS, LEDGER, QUARANTINE
from forebay.landed_file import LandedFile
from tests.batch.paper import Lake, Record, interleavings, lay_out, retry_in
from tests.batch.world import Died

DEDUPE = 'dedupe = { by = ["event_id"], days = 3 }\n'
SERVICE_TEXT = f'name = "s"\n[[tables]]\nname = "{{game}}"\ncolumns = [{{ name = "event_id" }}]\n{DEDUPE}'
SERVICE = parse_service({"service.toml": SERVICE_TEXT})
WITHOUT = parse_service({"service.toml": SERVICE_TEXT.replace(DEDUPE, "")})
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FIRST, SECOND, THIRD = (LandedFile("landing", name, 1, name, None, "1", AT) for name in "abc")
HELD = [Record("alpha", "1"), Record("alpha", "2"), Record("beta", "3")]
COPIES = [Record("alpha", "1"), Record("alpha", "4"), Record("beta", "3")]
FAILED = Choice("quarantine", reason="table-failed")
MOST_EFFECTS = 18


class Scene:
    """The records of the first file are held, and the second one brings copies of two of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch, self.lake, self.numbers = patch, Lake(), 0
        self.lake.answers = {FIRST.file_id: HELD, SECOND.file_id: COPIES, THIRD.file_id: HELD}
        self.lake.failing = {"alpha", "beta"}
        self.batch(FIRST)
        self.lake.failing = set()
        self.taken = [SECOND]

    def batch(self, file: LandedFile, dies_after: int | None = None) -> None:
        self.lake.dies_after = dies_after
        lay_out(self.patch, self.lake, SERVICE, "g0").load([file], self.numbers)
        self.numbers += 1

    def second(self, dies_after: int | None = None) -> None:
        with suppress(Died):
            self.batch(SECOND, dies_after)
            self.taken = []

    def retry(self, dies_after: int | None = None) -> None:
        self.lake.dies_after = dies_after
        with suppress(Died, Halt):
            retry_in(self.patch, self.lake, SERVICE).run(FAILED)

    def end(self) -> None:
        self.lake.meanwhile, self.lake.failing = None, set()
        if self.taken:
            self.second()
        self.retry()

    def check(self) -> None:
        stand = sorted(row["id"] for name in ("alpha", "beta") for row in self.lake.rows(name))
        assert stand == ["1", "2", "3", "4"]
        there = {name: Counter(row["_file_id"] for row in self.lake.rows(name)) for name in ("alpha", "beta")}
        ledger = {row["file_id"]: row for row in self.lake.rows(LEDGER)}
        for file_id, row in ledger.items():
            assert row["tables"] == {name: rows[file_id] for name, rows in there.items() if rows[file_id]}
            assert (row["records"], row["quarantined"]) == (3, 0)
        assert self.lake.rows(QUARANTINE) == []
        assert [name for name in self.lake.objects if "/plans/" in name or "/tries/" in name] == []
        owners = {(name, row["id"]): row["_file_id"] for name in there for row in self.lake.rows(name)}
        assert {row["id"]: row["file_id"] for row in self.lake.rows(IDS)} == owners, "ids without a row, or the reverse"
        self.batch(THIRD)
        assert sorted(row["id"] for name in there for row in self.lake.rows(name)) == stand


def test_a_retry_in_the_middle_of_a_batch_with_copies_of_its_records() -> None:
    for scene, at, dies_after in interleavings(Scene):
        scene.lake.meanwhile = (at, partial(scene.retry, dies_after))
        scene.second()
        scene.end()
        scene.check()


def test_a_batch_in_the_middle_of_a_retry_of_copies_of_its_records() -> None:
    for scene, at, dies_after in interleavings(Scene):
        scene.lake.meanwhile = (at, partial(scene.second, dies_after))
        scene.retry()
        scene.end()
        scene.check()


def test_a_batch_in_the_middle_of_a_retry_in_which_a_table_fails() -> None:
    """The records of that table stay held, and so their ids must be unknown to the next retry."""
    for scene, at, dies_after in interleavings(Scene):

        def second(scene: Scene = scene, dies_after: int | None = dies_after) -> None:
            scene.lake.failing = set()
            scene.second(dies_after)
            scene.lake.failing = {"beta"}

        scene.lake.failing = {"beta"}
        scene.lake.meanwhile = (at, second)
        scene.retry()
        scene.end()
        scene.check()


def test_a_job_that_starts_ends_a_retry_and_its_own_batch_although_it_no_longer_drops_duplicates() -> None:
    """The retry began under declarations that did, and waits for the batch."""
    waited = 0
    for scene, dies_after, retry_dies_after in interleavings(Scene):
        scene.second(dies_after)
        scene.retry(retry_dies_after)
        waited += all(any(folder in name for name in scene.lake.objects) for folder in ("/plans/", "/tries/"))
        scene.lake.dies_after = None
        lay_out(scene.patch, scene.lake, WITHOUT, "g0").finish_earlier()
        retry_in(scene.patch, scene.lake, WITHOUT).run(FAILED)
        assert [name for name in scene.lake.objects if "/plans/" in name or "/tries/" in name] == []
        assert scene.lake.rows(QUARANTINE) == []
    assert waited > 3


def test_a_retry_waits_for_a_batch_that_a_job_is_about_to_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.second(dies_after=5)
    scene.lake.dies_after = None
    (plan,) = (name.split("/")[-1] for name in scene.lake.objects if "/plans/" in name)
    tries = retry_in(monkeypatch, scene.lake, SERVICE)
    with pytest.raises(Halt, match=rf"batch {plan} is unfinished, .* Start the job: it finishes the batch"):
        tries.run(FAILED)

    def attempts(*_: object, **__: object) -> Iterator[int]:
        yield 0
        scene.second()
        yield 1

    monkeypatch.setattr(reserved, "holder", lambda place: "a job")
    monkeypatch.setattr(reserved, "attempts", lambda *_, **__: [0])
    with pytest.raises(Halt, match=r"did not end, .* Repeat the command once it has ended"):
        tries.run(FAILED)
    monkeypatch.setattr(reserved, "attempts", attempts)
    tries.run(FAILED)
    scene.check()


def test_a_table_that_failed_in_a_retry_that_died_gets_no_rows_without_their_ids() -> None:
    """The table is mended before the retry is finished, and copies of its records come afterwards."""
    for dies_after in range(MOST_EFFECTS):
        with pytest.MonkeyPatch.context() as patch:
            scene = Scene(patch)
            scene.lake.failing = {"alpha"}
            scene.retry(dies_after)
            scene.lake.failing = set()
            scene.retry()
            scene.end()
            scene.check()


def test_a_batch_and_a_retry_whose_table_fails_at_both_commits_hold_their_records() -> None:
    """The batch leaves out copies of records that the retry then cannot write. The ids of these are gone when the batch reads
    its records again, for the quarantine."""
    held = 0
    for scene, at, dies_after in interleavings(Scene):
        scene.lake.failing = {"alpha"}
        scene.retry(dies_after or 0)
        scene.lake.meanwhile = (at, scene.retry)
        scene.second()
        assert scene.taken == []
        held += [row["reason"] for row in scene.lake.rows(QUARANTINE)].count("table-failed")
        scene.end()
        scene.check()
    assert held > 100


def test_a_copy_of_a_record_that_was_dropped_from_the_quarantine_comes_with_a_replay_of_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was left out as a duplicate of the one that was held, and a drop brings no copy back by itself."""
    scene = Scene(monkeypatch)
    scene.lake.failing = {"alpha", "beta"}
    lay_out(monkeypatch, scene.lake, SERVICE, "g0").load([SECOND, THIRD], 1)
    scene.lake.failing = set()
    retry_in(monkeypatch, scene.lake, SERVICE).run(Choice("quarantine", give_up=True))
    assert scene.lake.rows(QUARANTINE) + scene.lake.rows("alpha") + scene.lake.rows("beta") == []
    (row,) = (row for row in scene.lake.rows(LEDGER) if row["file_id"] == THIRD.file_id)
    row["outcome"] = "replay"
    lay_out(monkeypatch, scene.lake, SERVICE, "g0").load([THIRD], 2)
    assert sorted(row["id"] for name in ("alpha", "beta") for row in scene.lake.rows(name)) == ["1", "2", "3"]
