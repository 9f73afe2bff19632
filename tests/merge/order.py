"""Which change of a key wins: the definition, in plain Python. A test compares Spark's results with it.

In: changes of keys, in any order, any of them any number of times. Out: the current state without deleted keys, or the
versions of each key. The greatest rank wins, and a rank does not depend on when a change arrived. So neither the order nor the
number of batches matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Change:
    """One row of the log. `sequence` are its values of `sequence_by`. Where they are equal, the place of the record decides,
    and its content where one line holds several records. That has no meaning, but the same answer each time."""

    key: tuple[Any, ...]
    sequence: tuple[Any, ...]
    file_id: str
    line: int
    content: int
    deletes: bool
    row: Any

    @property
    def rank(self) -> tuple[tuple[Any, ...], str, int, int]:
        return self.sequence, self.file_id, self.line, self.content


@dataclass(frozen=True)
class Version:
    """A change, and the timestamp of the next one, until which it was in force; None while it is in force."""

    change: Change
    until: Any


def current_state(changes: Iterable[Change]) -> dict[tuple[Any, ...], Change]:
    """The latest change of each key, of those that are not deleted."""
    latest: dict[tuple[Any, ...], Change] = {}
    for change in changes:
        known = latest.get(change.key)
        if known is None or change.rank > known.rank:
            latest[change.key] = change
    return {key: change for key, change in latest.items() if not change.deletes}


def folded_state(changes: Iterable[Change]) -> dict[tuple[Any, ...], Change]:
    """The same where a change without a value for a column leaves the earlier one (`ignore_null_updates`). Rows are mappings. A
    delete clears all columns. Columns of our own, such as `_file_id`, are the latest change's."""
    found: dict[tuple[Any, ...], Change] = {}
    for change in sorted(changes, key=lambda change: change.rank):
        known = found.pop(change.key, None)
        if not change.deletes:
            found[change.key] = change if known is None else replace(change, row=_over(known.row, change.row))
    return found


def _over(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in before.items() if after.get(name) is None and not name.startswith("_")}
    return {**after, **kept}


def snapshot(changes: Iterable[Change]) -> dict[tuple[Any, ...], Change]:
    """The latest row of each key in the newest snapshot. The first of `sequence` names the snapshot that a row is of."""
    found = tuple(changes)
    newest = max((change.sequence[0] for change in found), default=None)
    return current_state(change for change in found if change.sequence[0] == newest)


def history(changes: Iterable[Change]) -> dict[tuple[Any, ...], list[Version]]:
    """The versions of each key, the oldest first. A timestamp is the first of `sequence`. Of changes with the same
    timestamp only the greatest is a version. A delete ends a version, and is none itself."""
    at_moment: dict[tuple[Any, ...], dict[Any, Change]] = {}
    for change in changes:
        moments = at_moment.setdefault(change.key, {})
        known = moments.get(change.sequence[0])
        if known is None or change.rank > known.rank:
            moments[change.sequence[0]] = change
    found: dict[tuple[Any, ...], list[Version]] = {}
    for key, by_time in at_moment.items():
        ends = [*sorted(by_time), None]
        versions = [Version(by_time[at], until) for at, until in pairwise(ends) if not by_time[at].deletes]
        if versions:
            found[key] = versions
    return found
