"""A job that starts passes over states that have all changes, without Spark; others are merged, several at once."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.merge import Merge
from forebay.declaration.rollup import Rollup
from forebay.merge import job
from forebay.merge.current import rollup_has_all, state_has_all
from forebay.merge.job import Merger
from forebay.merge.rollup import app_id_of
from forebay.merge.rollup import way_of as way_of_rollup
from forebay.merge.state import way_of
from forebay.merge.step import Step

SERVICE = """
name = "studio"
[[tables]]
name = "{game}_log"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "{game}_now", keys = ["id"], sequence_by = ["at"] }
"""
MERGE = Merge(into="{game}_now", keys=("id",), sequence_by=("at",))
ROLLUP = Rollup(name="sums", tables=("a_log", "b_log"), group_by={"id": "id"}, columns={"n": "count(*)"})


def table(lake: Path, name: str, *, commits: int = 1, by: str = "", transactions: dict[str, int] | None = None) -> None:
    """A log whose last commit has these transactions."""
    folder = lake / name / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"id": f"id of {name}", "schemaString": "{}", "configuration": {"forebay.derivedBy": by} if by else {}}
    for version in range(commits):
        actions: list[dict[str, Any]] = [{"metaData": metadata}] if version == 0 else [{"commitInfo": {}}]
        if version == commits - 1:
            actions += [{"txn": {"appId": app, "version": at}} for app, at in (transactions or {}).items()]
        lines = "\n".join(json.dumps(one, separators=(",", ":")) for one in actions)
        (folder / f"{version:020}.json").write_text(lines)


def state(lake: Path, game: str, version: int, merge: Merge = MERGE) -> None:
    by = f"{way_of(merge, f'id of {game}_log')}#1"
    table(lake, f"{game}_now", by=by, transactions={by: version})


def merged(lake: Path, monkeypatch: pytest.MonkeyPatch, work: Any, at_once: int = 1) -> dict[str, str]:
    return run(merger_of(lake, monkeypatch, work, at_once))


def merger_of(lake: Path, monkeypatch: pytest.MonkeyPatch, work: Any, at_once: int = 1) -> Merger:
    monkeypatch.setattr(job, "step", lambda session, lake, log, state, merge, **more: work(state))
    spark = SimpleNamespace(newSession=lambda: SimpleNamespace(conf=SimpleNamespace(set=lambda name, value: None)))
    return Merger(cast(Any, spark), str(lake), logs=cast(Any, None), emit=lambda event: None, at_once=at_once)


def run(merger: Merger) -> dict[str, str]:
    ran = merger.run(parse_service({"service.toml": SERVICE}), (), threading.Event()).tables
    return {one.table: one.reason for one in ran}


def test_only_states_that_may_be_behind_are_worked_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for game in ("a", "b", "c", "d", "e"):
        table(tmp_path, f"{game}_log", commits=3)
    state(tmp_path, "a", 2)
    state(tmp_path, "b", 1)
    state(tmp_path, "c", 2, MERGE.model_copy(update={"delete_when": "at = 0"}))
    table(tmp_path, "d_now", by="forebay-merge:id of another log:way#1")
    asked: list[str] = []
    ran = merged(tmp_path, monkeypatch, lambda name: asked.append(name))
    assert sorted(asked) == sorted(ran) == ["b_now", "c_now", "d_now", "e_now"]


def test_a_long_session_notices_a_log_that_was_made_anew_at_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(tmp_path, "a_log", commits=3)
    state(tmp_path, "a", 2)
    merger = merger_of(tmp_path, monkeypatch, lambda name: Step(version=2))
    assert run(merger) == {}
    shutil.rmtree(tmp_path / "a_log")
    table(tmp_path, "a_log", commits=3)
    assert run(merger) == {"a_now": ""}
    assert run(merger) == {}


def test_a_log_that_cannot_be_read_fails_its_own_merge_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for game in ("a", "b"):
        table(tmp_path, f"{game}_log", commits=3)
    (tmp_path / "a_log" / "_delta_log" / f"{1:020}.json").unlink()

    def work(name: str) -> Step:
        if name == "a_now":
            raise OSError("the log is broken")
        return Step(version=2)

    assert merged(tmp_path, monkeypatch, work) == {"a_now": "failed", "b_now": ""}


def test_several_are_merged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for game in "abcd":
        table(tmp_path, f"{game}_log")
    together = threading.Barrier(4, timeout=60)

    def work(name: str) -> Step:
        together.wait()
        return Step(version=0)

    assert set(merged(tmp_path, monkeypatch, work, at_once=4).values()) == {""}


def test_a_rollup_that_has_all_versions_of_its_tables_is_current(tmp_path: Path) -> None:
    versions = {"a_log": 2, "b_log": 0}
    table(tmp_path, "a_log", commits=3)
    table(tmp_path, "b_log")
    assert not rollup_has_all(str(tmp_path), ROLLUP, versions)
    by = f"{way_of_rollup(ROLLUP, ['id of a_log', 'id of b_log'])}#1"
    apps = {app_id_of(name, f"id of {name}", by): version for name, version in versions.items()}
    table(tmp_path, "sums", by=by, transactions=apps)
    assert rollup_has_all(str(tmp_path), ROLLUP, versions)
    assert not rollup_has_all(str(tmp_path), ROLLUP, {**versions, "a_log": 3})
    assert not rollup_has_all(str(tmp_path), ROLLUP.model_copy(update={"columns": {"n": "max(at)"}}), versions)
    assert not state_has_all(str(tmp_path), "sums", "a_log", MERGE, 2)
