"""How far a state is behind its log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forebay.merge.lag import lag_of


def table(lake: Path, name: str, *commits: list[dict[str, Any]]) -> None:
    (lake / name / "_delta_log").mkdir(parents=True)
    for version, actions in enumerate(commits):
        lines = "\n".join(json.dumps(one, separators=(",", ":")) for one in actions)
        (lake / name / "_delta_log" / f"{version:020}.json").write_text(lines)


def merged(version: int) -> list[dict[str, Any]]:
    return [{"commitInfo": {}}, {"txn": {"appId": "forebay-merge:id:way", "version": version}}]


def test_a_state_tells_how_many_commits_of_its_log_it_lacks(tmp_path: Path) -> None:
    table(tmp_path, "changes", *([{"commitInfo": {}}] for _ in range(4)))
    table(tmp_path, "state", merged(0), merged(1), [{"txn": {"appId": "compaction", "version": 9}}])
    lag = lag_of(str(tmp_path), "state", {"forebay.derivedFrom": "changes"})
    assert lag is not None
    assert (lag.log, lag.merged, lag.newest, lag.commits) == ("changes", 1, 3, 2)
    assert lag.since is not None


def test_a_state_that_has_all_is_not_behind_and_another_table_is_no_state(tmp_path: Path) -> None:
    table(tmp_path, "changes", [{"commitInfo": {}}])
    table(tmp_path, "state", merged(0))
    lag = lag_of(str(tmp_path), "state", {"forebay.derivedFrom": "changes"})
    assert lag is not None
    assert (lag.commits, lag.since) == (0, None)
    assert lag_of(str(tmp_path), "changes", {}) is None


def test_a_rollup_tells_how_far_it_is_behind_its_table(tmp_path: Path) -> None:
    table(tmp_path, "events", *([{"commitInfo": {}}] for _ in range(3)))
    table(tmp_path, "daily", [{"commitInfo": {}}, {"txn": {"appId": "forebay-rollup:id:way", "version": 1}}])
    lag = lag_of(str(tmp_path), "daily", {"forebay.derivedFrom": "events"})
    assert lag is not None
    assert lag.commits == 1
    assert lag_of(str(tmp_path), "daily", {"forebay.derivedFrom": "events,others"}) is None


def test_a_state_without_a_merge_says_so(tmp_path: Path) -> None:
    table(tmp_path, "changes", [{"commitInfo": {}}])
    table(tmp_path, "state", [{"commitInfo": {}}])
    lag = lag_of(str(tmp_path), "state", {"forebay.derivedFrom": "changes"})
    assert lag is not None
    assert lag.commits is None


def test_a_state_whose_log_was_deleted_says_so_and_what_to_do(tmp_path: Path) -> None:
    table(tmp_path, "changes", [{"commitInfo": {}}])
    table(tmp_path, "state", merged(0))
    shutil.rmtree(tmp_path / "changes")
    lag = lag_of(str(tmp_path), "state", {"forebay.derivedFrom": "changes"})
    assert lag is not None
    assert (lag.newest, lag.commits) == (None, None)
    assert lag.trouble.startswith("state stays unchanged, because changes, which it is computed from, is gone; restore")
    assert lag_of(str(tmp_path), "daily", {"forebay.derivedFrom": "events,others"}) is None


def test_a_state_with_another_log_at_the_place_of_its_own_does_not_claim_to_have_its_changes(tmp_path: Path) -> None:
    table(tmp_path, "changes", [{"metaData": {"id": "new", "schemaString": "{}"}}])
    table(tmp_path, "state", merged(7))
    for its, replaced in (("old", True), ("new", False)):
        by = {"forebay.derivedFrom": "changes", "forebay.derivedBy": f"forebay-merge:{its}:way#1"}
        lag = lag_of(str(tmp_path), "state", by)
        assert lag is not None
        assert ("was computed from another changes" in lag.trouble) == replaced


def test_tombstones_are_never_behind_because_a_commit_without_a_delete_changes_none(tmp_path: Path) -> None:
    table(tmp_path, "changes", *([{"commitInfo": {}}] for _ in range(4)))
    table(tmp_path, "_forebay/tombstones/state", merged(0))
    assert lag_of(str(tmp_path), "_forebay/tombstones/state", {"forebay.derivedFrom": "changes"}) is None


def by_hand(operation: str, *, rows: int = 3, removed: bool = False, **more: Any) -> list[dict[str, Any]]:
    file = {"path": "a", "size": 1, "dataChange": True, **more}
    actions: list[dict[str, Any]] = [{"commitInfo": {"operation": operation}}]
    return [*actions, {"add": {**file, "stats": json.dumps({"numRecords": rows})}}, *([{"remove": file}] * removed)]


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        (by_hand("RESTORE", removed=True), "version 2 (RESTORE)"),
        (by_hand("DELETE", rows=0, removed=True), "version 2 (DELETE)"),
        (by_hand("WRITE"), "version 2 (WRITE)"),
        (by_hand("OPTIMIZE", removed=True, dataChange=False), ""),
        (by_hand("WRITE", rows=0), ""),
        ([{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, {"metaData": {"id": "state"}}], ""),
        ([*by_hand("DELETE", removed=True), {"txn": {"appId": "forebay/games/erase", "version": 1}}], ""),
    ],
)
def test_a_state_that_somebody_changed_by_hand_is_named_until_the_next_merge(
    commit: list[dict[str, Any]], said: str, tmp_path: Path
) -> None:
    table(tmp_path, "changes", *([{"commitInfo": {}}] for _ in range(4)))
    table(tmp_path, "state", merged(0), merged(3), commit, [{"commitInfo": {"operation": "VACUUM END"}}])
    lag = lag_of(str(tmp_path), "state", {"forebay.derivedFrom": "changes"})
    assert lag is not None
    wanted = f"state: {said} changed its rows by hand; the next changes of changes compute it from scratch"
    assert (lag.trouble, lag.by_hand) == ("", wanted if said else "")
    table(tmp_path, "later", merged(0), commit, merged(3))
    lag = lag_of(str(tmp_path), "later", {"forebay.derivedFrom": "changes"})
    assert lag is not None
    assert lag.note == ""
