"""What a log says of the data files that came and went between two of its versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forebay.lake.objects import open_objects
from forebay.merge import difference as module
from forebay.merge.difference import Difference, Unknown, difference

FILE = {"partitionValues": {}, "size": 9}


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, **FILE, "modificationTime": 5, "dataChange": True, "stats": "{}", **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, **FILE, "deletionTimestamp": 5, "dataChange": True, **more}}


def log(place: Path, *commits: list[dict[str, Any]]) -> Path:
    (place / "_delta_log").mkdir()
    for version, actions in enumerate(commits):
        lines = [json.dumps(one, separators=(",", ":")) for one in [{"commitInfo": {}}, *actions]]
        (place / "_delta_log" / f"{version:020}.json").write_text("\n".join(lines))
        for one in actions:
            (place / next(iter(one.values()))["path"]).touch()
    return place


def of(place: Path, before: int, now: int) -> tuple[list[str], list[str]]:
    found = difference(open_objects(str(place)), before, now)
    assert isinstance(found, Difference)
    came, left = ([json.loads(one)["add"]["path"] for one in files] for files in (found.came, found.left))
    return came, left


def test_files_that_came_and_went_are_told_and_compactions_are_not(tmp_path: Path) -> None:
    compacted = [remove("a", dataChange=False), remove("b", dataChange=False), add("ab", dataChange=False)]
    place = log(tmp_path, [add("a")], [add("b")], compacted, [remove("ab"), add("c")])
    assert of(place, 0, 1) == (["b"], [])
    assert of(place, 1, 2) == ([], [])


def test_what_came_and_was_compacted_has_left_where_rows_left_the_compacted_file(tmp_path: Path) -> None:
    compacted = [remove("a", dataChange=False), remove("b", dataChange=False), add("ab", dataChange=False)]
    place = log(tmp_path, [add("a")], [add("b")], compacted, [remove("ab"), add("c")], [add("d")])
    assert of(place, 0, 4) == (["c", "d"], ["ab", "b"])
    found = difference(open_objects(str(place)), 0, 3)
    assert isinstance(found, Difference)
    assert [json.loads(one)["add"]["path"] for one in found.passing] == ["b"]
    assert of(place, 0, 2) == (["b"], [])
    (place / "b").unlink()
    assert difference(open_objects(str(place)), 0, 2) == Unknown(
        "maintenance deleted b, which the changes no longer have"
    )


def test_what_came_and_left_again_has_left(tmp_path: Path) -> None:
    place = log(tmp_path, [add("a")], [add("b")], [remove("b")])
    assert of(place, 0, 2) == ([], ["b"])


def test_what_left_and_came_back_has_left_so_that_its_keys_are_looked_for(tmp_path: Path) -> None:
    place = log(tmp_path, [add("a")], [remove("a")], [add("a")])
    assert of(place, 0, 2) == ([], ["a"])


def test_another_deletion_vector_makes_it_another_file(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "cardinality": 1}
    place = log(tmp_path, [add("a")], [remove("a"), add("a", deletionVector=vector)])
    found = difference(open_objects(str(place)), 0, 1)
    assert isinstance(found, Difference)
    assert [json.loads(one)["add"].get("deletionVector") for one in found.came] == [vector]
    assert [json.loads(one)["add"].get("deletionVector") for one in found.left] == [None]


def test_what_left_is_read_without_its_deletion_vector_which_may_be_gone_before_its_file(tmp_path: Path) -> None:
    one, other = ({"storageType": "u", "pathOrInlineDv": path, "cardinality": 1} for path in "xy")
    place = log(
        tmp_path, [add("a", deletionVector=one)], [remove("a", deletionVector=one), add("a", deletionVector=other)]
    )
    found = difference(open_objects(str(place)), 0, 1)
    assert isinstance(found, Difference)
    assert [json.loads(file)["add"].get("deletionVector") for file in (*found.came, *found.left)] == [other, None]


def test_a_step_takes_so_many_commits_and_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COMMITS", 2)
    found = difference(open_objects(str(log(tmp_path, [add("a")], [add("b")], [add("c")], [add("d")]))), 0, 3)
    assert isinstance(found, Difference)
    assert (found.version, len(found.came)) == (2, 2)


def test_another_partitioning_is_not_compared_file_by_file(tmp_path: Path) -> None:
    place = log(tmp_path, [add("a")], [remove("a"), add("b", partitionValues={"day": "2026-11-22"})])
    assert difference(open_objects(str(place)), 0, 1) == Unknown("the partitioning of the changes has changed")


def test_no_old_version_is_read_for_rows_that_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COMMITS", 1)
    place = log(tmp_path, [add("a")], [remove("a")], [add("c")])
    assert isinstance(difference(open_objects(str(place)), 0, 2), Unknown)
    assert isinstance(difference(open_objects(str(place)), 1, 2), Difference)


def test_what_came_last_is_live_and_need_not_be_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = log(tmp_path, [add("a")], [add("b")], [add("c")])
    for name in "bc":
        (place / name).unlink()
    assert of(place, 0, 2) == (["b", "c"], [])
    monkeypatch.setattr(module, "MOST_COMMITS", 1)
    assert of(place, 1, 2) == (["c"], [])
    gone = "maintenance deleted b, which the changes no longer have"  # what came in a step that is not the last may have left
    assert difference(open_objects(str(place)), 0, 2) == Unknown(gone)


@pytest.mark.parametrize("lost", ["commit", "data file", "size", "partitionValues"])
def test_what_is_not_known_any_more_is_said(tmp_path: Path, lost: str) -> None:
    removed = {"remove": {name: value for name, value in remove("a")["remove"].items() if name != lost}}
    place = log(tmp_path, [add("a")], [removed], [add("b")])
    if lost == "commit":
        (place / "_delta_log" / f"{1:020}.json").unlink()
    if lost == "data file":
        (place / "a").unlink()
    assert isinstance(difference(open_objects(str(place)), 0, 2), Unknown)


def test_files_that_came_and_left_in_between_are_told_apart_from_those_that_stood(tmp_path: Path) -> None:
    place = log(tmp_path, [add("a")], [add("b")], [remove("b"), remove("a"), add("c")])
    found = difference(open_objects(str(place)), 0, 2)
    assert isinstance(found, Difference)
    assert [json.loads(one)["add"]["path"] for one in found.passing] == ["b"]
    assert of(place, 0, 2) == (["c"], ["b", "a"])
