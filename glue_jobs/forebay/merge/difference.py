"""The data files that a table gained and lost between two of its versions, from its commits.

In: the table's objects and two versions. Out: a `Difference`, or `Unknown` with a reason. Compactions change no row, so their
files do not count (`dataChange` is false). Files that were added and removed in between count as removed: an interrupted merge
may have seen them. So do files that were removed and restored, and files that were added and compacted, if rows of a compacted
file were removed. Keys of such files are looked for in the whole table, which is always correct.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from forebay.lake.log.listing import commit_name
from forebay.lake.objects import Objects

MOST_COMMITS = 500
"""The most commits of one step. If there are more, the step stops there, and another one follows."""
OF_A_FILE = ("path", "partitionValues", "size", "deletionVector")


@dataclass(frozen=True)
class Difference:
    """Files as the JSON of Delta's action `add`, up to this version. `passing` are those of `left` that came in between."""

    version: int
    came: tuple[str, ...]
    left: tuple[str, ...]
    passing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unknown:
    """The commits are gone; the caller must read the whole table."""

    reason: str


def difference(table: Objects, before: int, now: int) -> Difference | Unknown:
    """The changes after `before`, up to `now` or to the limit of commits of one step. An old version of the table may be
    unreadable by now, so if its rows are needed, the whole current table is read."""
    came: dict[str, str] = {}
    left: dict[str, str] = {}
    new: set[str] = set()
    compacted: set[str] = set()
    compactions: set[str] = set()
    last = min(now, before + MOST_COMMITS)
    for version in range(before + 1, last + 1):
        content = table.read(commit_name(version))
        if content is None:
            return Unknown(f"commit {version} of the changes is no longer in their log")
        for action in _of_files(content):
            if not all(fields.get("dataChange", True) for fields in action.values()):
                if "add" in action:
                    compactions.add(_identity(action["add"]))
                else:
                    compacted.add(_identity(action["remove"]))
            elif "add" in action:
                one = _identity(action["add"])
                came[one] = _as_add(action["add"])
                if one not in left:
                    new.add(one)
            elif "partitionValues" not in action["remove"] or "size" not in action["remove"]:
                return Unknown(f"commit {version} of the changes does not describe the files that it removed")
            else:
                left[_identity(action["remove"])] = _as_removed(action["remove"])
    if not compactions.isdisjoint(left):
        left |= {one: came[one] for one in came if one in compacted and one not in left}
    replaced = came if last < now else {one: came[one] for one in came if one in compacted}
    for file in {**replaced, **left}.values():
        path = unquote(json.loads(file)["add"]["path"])
        if not _is_there(table, path):
            return Unknown(f"maintenance deleted {path}, which the changes no longer have")
    if (
        len({tuple(sorted(json.loads(file)["add"]["partitionValues"])) for file in (*came.values(), *left.values())})
        > 1
    ):
        return Unknown("the partitioning of the changes has changed")
    if left and last < now:
        return Unknown("rows were removed from the changes, and more commits followed than one step processes")
    came_to_stay = tuple(file for one, file in came.items() if one not in left)
    return Difference(last, came_to_stay, tuple(left.values()), tuple(left[one] for one in left if one in new))


def _of_files(content: bytes) -> Iterator[Mapping[str, Any]]:
    return (json.loads(line) for line in content.splitlines() if line.startswith((b'{"add"', b'{"remove"')))


def _identity(action: Mapping[str, Any]) -> str:
    """Another deletion vector makes it another thing in the log."""
    return json.dumps([action["path"], action.get("deletionVector")], sort_keys=True)


def _as_add(action: Mapping[str, Any]) -> str:
    fields = {name: action[name] for name in OF_A_FILE if action.get(name) is not None}
    return json.dumps({"add": {**fields, "modificationTime": 0, "dataChange": True}})


def _as_removed(action: Mapping[str, Any]) -> str:
    """With the rows that had left before: looking for these as well does no harm. Their deletion vector may be gone, while the
    file is there still, with another one."""
    return _as_add({name: value for name, value in action.items() if name != "deletionVector"})


def _is_there(table: Objects, path: str) -> bool:
    found = table.open(path)
    if found is None:
        return False
    found.close()
    return True
