"""A driver that is killed at its n-th PUT of a batch that writes all that a batch can write.

Data files, the plan and each commit are a PUT. Once the plan binds, the landing objects are deleted, denied or overwritten
before the restart, and the driver may be killed again on its way. The lake is then what it is without a crash.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import forebay.batch.commits as commits
import forebay.batch.writing as writing
import forebay.table.removal as removal
from forebay.batch.plan import Plan
from forebay.content.outcome import ReadOutcome
from forebay.declaration.loading import parse_service
from forebay.lake.folder_objects import FolderObjects
from forebay.operate.lake_view import LakeView
from forebay.operate.people.person import vault_values
from forebay.privacy.keys import add_local_key
from forebay.privacy.secret import make_secret
from forebay.table.data_files.storage import Storage
from forebay.table.kernel import TableLogs
from tests.batch.test_one_pass import lake_of, must_be_equal
from tests.batch.world import Died, World, unread

SERVICE = """
name = "studio"
overwritten = "replace"
[privacy]
subject = "user"
secret = "{place}/secret"
vault = "{place}/vault"
vault_key = "{place}/key"
personal = [{{ path = "user", become = "token" }}, {{ path = "email", become = "masked", vault = true }}]
[[tables]]
name = "{{game}}"
columns = [{{ name = "event_id" }}]
dedupe = {{ by = ["event_id"] }}
"""
GAMES = ("alpha", "beta", "gamma")
NEW, REPLACING = (("a.json", 1), ("b.json", 1)), (("old.json", 2), ("b.json", 1))
EVERY = int(os.environ.get("FOREBAY_CRASH_EVERY", "7"))
"""The suite kills at each seventh PUT. 1 kills at each."""
GONE: tuple[ReadOutcome, ...] = ("missing", "denied", "changed")


def line(name: str, game: str | None) -> str:
    told = f'"game": "{game}", ' if game else ""
    return f'{{{told}"event_id": "{name}", "user": "{name}", "email": "{name}@example.org"}}\n'


def content(name: str) -> bytes:
    """A record for each table, each of them twice, one that no table wants, and one that is none."""
    lines = [line(f"{name}-{game}", game) for game in GAMES]
    return "".join([*lines, *lines, line(f"{name}-nowhere", None), "{broken\n"]).encode()


class Puts:
    """Counts what a driver makes visible. It is dead after so many."""

    def __init__(self, most: int | None) -> None:
        self.most, self.done = most, 0

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def put(*given: Any, **more: Any) -> Any:
            self.must_live()
            answer = real(*given, **more)
            self.done += 1
            self.must_live()
            return answer

        return put

    def must_live(self) -> None:
        if self.most is not None and self.done >= self.most:
            raise Died


@contextmanager
def killed_after(patch: pytest.MonkeyPatch, most: int | None) -> Iterator[None]:
    puts = Puts(most)
    objects = [(FolderObjects, name) for name in ("write", "write_once", "write_over")]
    commits_of_spark = [(writing, "replace"), (commits, "replace"), (removal, "remove")]
    with patch.context() as patched:
        for owner, name in [(Storage, "put"), (TableLogs, "_commit"), *objects, *commits_of_spark]:
            patched.setattr(owner, name, puts.around(getattr(owner, name)))
        yield


class Walk:
    """Of a prepared lake, which each step copies, and a batch of `files`: keys and versions."""

    def __init__(self, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch, files: Any) -> None:
        self.spark, self.folder, self.patch, self.files = spark, folder, patch, files
        self.prepared = folder / "prepared"
        self.prepared.mkdir()
        make_secret(f"{self.prepared}/secret")
        add_local_key(f"{self.prepared}/key")
        world = self.world(self.prepared)
        world.try_batch(0, [world.file("old.json")])

    def world(self, place: Path) -> World:
        made = World(self.spark, f"file://{place}/lake", self.patch, service=SERVICE.format(place=place))
        names = [f"{key}-{version}" for key, version in (("old.json", 1), *self.files)]
        made.answers |= {name: content(name) for name in names}
        return made

    def step(self, n: int) -> tuple[World, Path]:
        place = Path(shutil.copytree(self.prepared, self.folder / f"step-{n}"))
        return self.world(place), place

    def tried(self, world: World, most: int | None) -> bool:
        """Whether the driver lived to the end. One table is paused."""
        world.paused = GAMES[-1:]
        with killed_after(self.patch, most):
            try:
                world.try_batch(1, [world.file(*file) for file in self.files])
            except Died:
                return False
        return True


def binds(world: World) -> bool:
    """Whether a plan does, or the ledger has the batch."""
    plans = [Plan.decode(path.read_bytes()) for path in world.plans()]
    return any(plan.settled for plan in plans) or any(row["batch"] == 1 for row in world.entries())


def seen(world: World, walk: Walk) -> tuple[dict[str, Any], list[str]]:
    """All of the lake, and the values in the vault."""
    told, view = parse_service({"service.toml": world.service}), LakeView(world.lake)
    names = [f"{key}-{version}-{where}" for key, version in walk.files for where in (*GAMES, "nowhere")]
    world.tables_agree_with_the_ledger(*GAMES)
    assert world.plans() == []
    return lake_of(world), [str(one.value) for name in names for one in vault_values(view, told, name)]


@pytest.mark.deep
@pytest.mark.parametrize(("files", "killed_again"), [(NEW, None), (REPLACING, 3)], ids=["new", "replacing-again"])
def test_killed_at_any_put_it_is_the_lake_without_a_crash_although_the_objects_are_gone_once_a_plan_binds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Any, killed_again: int | None
) -> None:
    walk, steps = Walk(spark, tmp_path, monkeypatch, files), Counter[bool]()
    world, _ = walk.step(0)
    assert walk.tried(world, None)
    whole, values = seen(world, walk)
    assert len(values) == len({*values}) == 8
    assert {row["reason"] for row in world._table("_forebay/quarantine")} == {"paused", "not-json"}
    for n in count(1, EVERY):
        world, place = walk.step(n)
        if walk.tried(world, n):
            break
        if planned := binds(world):
            gone = unread(GONE[steps[True] % len(GONE)])
            world.answers |= {f"{key}-{version}": gone for key, version in files}
        steps[planned] += 1
        if killed_again is None or not walk.tried(world, killed_again):
            assert walk.tried(world, None)
        lake, found = seen(world, walk)
        must_be_equal(lake, whole)
        assert found == values
        shutil.rmtree(place)
    assert min(steps[True], steps[False]) >= max(1, 6 // EVERY), steps
