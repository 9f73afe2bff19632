"""Random histories of `after_load`: files come, change and are put right, and maintenance runs, dies and is refused.

What may leave the landing bucket is decided by a plain model. FOREBAY_AFTER_LOAD_HISTORIES plays more of them.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.batch.plan import Plan, Plans
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.service import Service
from forebay.events import Event
from forebay.lake.layout import PLANS
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.upkeep.after_load import job
from forebay.upkeep.after_load.job import clear_landed, landed_due
from tests.operate.ledger import AT, write_ledger
from tests.upkeep.after_load.test_after_load import DELETE, MOVE, S3, Killed, refusal, row, service, write_table

Version = tuple[str, str, str | None]
"""Key, etag and version id."""
OPEN: list[dict[str, Any]] = [
    *({"outcome": outcome} for outcome in ("denied", "missing", "unreadable", "replay", "forget")),
    {"quarantined": 1},
    {"parked": 1},
    {"reason": "rolled-back"},
]
"""Rows of files that a replay or a retry still needs."""
CLEAR: list[dict[str, Any]] = [{}, {}, {"outcome": "duplicate", "tables": {}}]
STAYS: list[dict[str, Any]] = [{"outcome": outcome, "tables": {}} for outcome in ("empty", "superseded", "forgotten")]
"""Final, but not named by `only`."""


@dataclass
class Play:
    """One history. `rows` are the ledger's, and `theirs` those of another service, by the version of the file."""

    draw: random.Random
    place: Path
    rule: str
    versioned: bool
    shared: bool
    days: int
    now: datetime = AT
    s3: S3 = field(default_factory=S3)
    rows: dict[Version, dict[str, Any]] = field(default_factory=dict)
    theirs: dict[Version, dict[str, Any]] = field(default_factory=dict)
    put_again: set[Version] = field(default_factory=set)
    read_again: set[Version] = field(default_factory=set)
    """Their rows may be of a later day, whose notes do not have them."""
    copies: dict[str, str] = field(default_factory=dict)
    taken: list[Version] = field(default_factory=list)
    number: int = 0
    busy: set[str] = field(default_factory=set)
    """The keys of a batch that has a plan, and no rows in the ledger yet."""

    def begin(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        write_table(self.place / "alpha", AT, "another")
        if self.shared:
            keep_in_force(str(self.place), service("").model_copy(update={"name": "others"}))

    def lands(self) -> None:
        self.number += 1
        name, etag = f"{self.draw.randrange(4)}.json", f"e{self.number}"
        version = f"v{self.number}" if self.versioned else None
        self.s3.put(name, etag=etag, version=version)
        one = f"in/{name}", etag, version
        self.rows[one] = self._row(one, self.draw.choice([*CLEAR, *CLEAR, *OPEN, *STAYS]))
        if self.shared and self.draw.random() < 0.8:
            self.theirs[one] = self._their_row(one, self.draw.choice([*CLEAR, *CLEAR, *OPEN]))

    def comes_again(self) -> None:
        """The same bytes under the same key, in a bucket without versions: the ledger knows the file already."""
        if self.rows and not self.versioned:
            one = self.draw.choice([*self.rows])
            self.s3.put(one[0].removeprefix("in/"), etag=one[1])
            self.put_again.add(one)

    def is_put_right(self) -> None:
        """A retry or a replay: the file has a new row."""
        if self.rows:
            one = self.draw.choice([*self.rows])
            self.rows[one] = self._row(one, self.draw.choice(CLEAR))
            self.read_again.add(one)

    def is_wanted_again(self) -> None:
        if self.rows:
            one = self.draw.choice([*self.rows])
            self.rows[one] = {**self.rows[one], "outcome": "replay"}

    def loses_rows(self) -> None:
        """By a rollback: the object may be the only copy."""
        if self.rows:
            one = self.draw.choice([*self.rows])
            self.rows[one] = {**self.rows[one], "reason": "rolled-back"}

    def a_batch_begins(self) -> None:
        """Another version of some of the keys, or a replay."""
        self.a_batch_ends()
        keys = {key for key, _, _ in self.rows}
        self.busy = {*self.draw.sample(sorted(keys), self.draw.randint(0, len(keys)))}
        files = tuple(LandedFile("landing", key, 1, "of another version") for key in sorted(self.busy))
        plan = Plan(generation="g", batch=1, began_at=AT, service={}, files=files, ends=(), fates=())
        Plans(open_objects(f"{self.place}/{PLANS}"), "games").pin(plan)

    def a_batch_ends(self) -> None:
        shutil.rmtree(self.place / PLANS, ignore_errors=True)
        self.busy = set()

    def is_put_right_there(self) -> None:
        if self.theirs:
            one = self.draw.choice([*self.theirs])
            self.theirs[one] = self._their_row(one, {})

    def is_deleted(self) -> None:
        """By its producer."""
        if self.rows:
            self.s3.objects.pop(("landing", self.draw.choice([*self.rows])[0]), None)

    @property
    def declared(self) -> Service:
        return service(self.rule.replace(" }", f", after_days = {self.days} }}"))

    def time_passes(self) -> None:
        self.now += timedelta(hours=self.draw.choice([1, 24, 72, 168]))

    def maintenance_runs(self, *, undisturbed: bool = False) -> None:
        """And is killed, or refused, at any request: S3's clock is `now`, so no file is too young for the end."""
        before, left = dict(self.s3.objects), self.draw.randrange(12)
        refuses = self.draw.choice(["", "", "copy", "delete", "head"])

        def disturb(verb: str, key: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            if verb == refuses:
                raise refusal(403, "AccessDenied")

        self.s3.before = (lambda verb, key: None) if undisturbed else disturb
        self._write_ledger()
        may_leave = {one for one in self.rows if self._may_leave(one)}
        with suppress(Killed), patch.object(job, "CHUNK", 2), patch.object(job, "AT_ONCE", 1):
            clear_landed(
                str(self.place),
                self.declared,
                emit=list[Event]().append,
                now=self.now,
                stop=threading.Event(),
                s3=self.s3,
            )
        self.s3.before = lambda verb, key: None
        for (bucket, key), (etag, version) in before.items():
            if bucket == "landing" and (bucket, key) not in self.s3.objects:
                assert (key, etag, version) in may_leave, f"{key} {etag} left, which something still needs"
                self.taken.append((key, etag, version))
        self._check_copies()

    def ends(self) -> None:
        """All files are old, and then everything is put right: what may leave has left, and nothing else."""
        self.now += timedelta(days=8)
        self.maintenance_runs(undisturbed=True)
        self.a_batch_ends()
        open_ones = [one for one, row in self.rows.items() if not self._is_clear(row)]
        self.rows |= {one: self._row(one, {}) for one in open_ones}
        self.read_again.update(open_ones)
        self.theirs = {one: self._their_row(one, {}) for one in self.theirs}
        self.now += timedelta(days=40)
        self.maintenance_runs(undisturbed=True)
        left = {(key, *self.s3.objects["landing", key]) for key in self.s3.landed}
        assert left <= self.put_again, "a file stays that nothing needs"
        found = DeltaTable(f"{self.place}/_forebay/after_load").to_pyarrow_table().to_pylist()
        ended = Counter(row["file_id"] for row in found if row["action"] != "started")
        assert ended.keys() == {row["file_id"] for row in self.rows.values()}, "each file has a note of its end"
        assert all(ended[row["file_id"]] == 1 for one, row in self.rows.items() if one not in self.read_again)
        again = landed_due(str(self.place), self.declared, now=self.now)
        assert (again.files, again.waiting) == (0, 0)

    def _check_copies(self) -> None:
        """What was moved is in the archive as it was, and stays there. What was only deleted is nowhere."""
        for bucket, key in self.s3.objects:
            if bucket != "landing":
                assert self.copies.setdefault(key, self.s3.objects[bucket, key][0]) == self.s3.objects[bucket, key][0]
        assert self.copies.keys() == {key for bucket, key in self.s3.objects if bucket != "landing"}
        if self.rule == MOVE:
            assert {etag for _, etag, _ in self.taken} <= {*self.copies.values()}

    def _may_leave(self, one: Version) -> bool:
        mine, theirs = self.rows[one], self.theirs.get(one)
        is_young = mine["committed_at"] > self.now - timedelta(days=self.days)
        if is_young or one[0] in self.busy or not self._is_clear(mine):
            return False
        if theirs is not None:
            return self._is_clear(theirs)
        return not self.theirs or mine["committed_at"] < self.now - timedelta(days=30)

    def _is_clear(self, row: dict[str, Any]) -> bool:
        held = row["quarantined"] or row["parked"] or row["reason"] == "rolled-back"
        return row["outcome"] in ("loaded", "duplicate") and not held

    def _row(self, one: Version, more: dict[str, Any]) -> dict[str, Any]:
        key, etag, version = one
        return row(key.removeprefix("in/"), etag=etag, version_id=version, at=self.now, **more)

    def _their_row(self, one: Version, more: dict[str, Any]) -> dict[str, Any]:
        return {**self._row(one, more), "service": "others", "file_id": f"other-{one[1]}"}

    def _write_ledger(self) -> None:
        shutil.rmtree(self.place / "_forebay" / "ledger", ignore_errors=True)
        write_ledger(self.place, *self.rows.values(), *self.theirs.values())

    def play(self) -> None:
        self.begin()
        steps = {
            self.lands: 6, self.comes_again: 1, self.is_put_right: 2, self.is_wanted_again: 1, self.is_put_right_there: 1,
            self.is_deleted: 1, self.loses_rows: 1, self.a_batch_begins: 1, self.a_batch_ends: 1, self.time_passes: 4,
            self.maintenance_runs: 4,
        }  # fmt: skip
        for step in self.draw.choices([*steps], [*steps.values()], k=30):
            step()
        self.ends()


@settings(max_examples=int(os.environ.get("FOREBAY_AFTER_LOAD_HISTORIES", "20")))
@given(
    seed=st.integers(min_value=0),
    rule=st.sampled_from([MOVE, DELETE]),
    versioned=st.booleans(),
    shared=st.booleans(),
    days=st.sampled_from([0, 7]),
)
def test_whatever_happens_only_files_that_nothing_needs_leave_and_all_of_them_do(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rule: str, versioned: bool, shared: bool, days: int
) -> None:
    Play(random.Random(seed), tmp_path_factory.mktemp("lake"), rule, versioned, shared, days).play()
