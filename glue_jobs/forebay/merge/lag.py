"""The lag of a state behind its log, or of a rollup behind its table, from the two logs alone, without Spark.

In: a lake and the name of a state. Out: a `Lag`, or None for a table that is not a state, and for a rollup of several tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from forebay.lake.layout import DERIVED_BY, TOMBSTONES, table_path
from forebay.lake.log.commit import effect_of
from forebay.lake.log.definition import definition_of
from forebay.lake.log.listing import NoTable, commit_name, committed_at, list_log
from forebay.lake.objects import Objects, open_objects
from forebay.lake.origin import origin_gone, origin_replaced, origins_of

APPS = "forebay-merge:"
"""How the names of a merge's transactions begin; the table's own id and the way to merge follow."""
ROLLUPS = "forebay-rollup:"
"""The same of a rollup's."""
NEWEST = 200
"""Commits of a state that are looked through for a transaction. Compaction makes a few between two merges."""


@dataclass(frozen=True)
class Lag:
    """`merged` is None where no merge is among the newest commits, `newest` where the log is gone. `since` is the first commit
    that is not merged. `trouble`: why no merge succeeds, and what to do. `by_hand`: whose change the next merge undoes."""

    state: str
    log: str
    merged: int | None
    newest: int | None
    since: datetime | None = None
    trouble: str = ""
    by_hand: str = ""

    @property
    def note(self) -> str:
        """All that a person should know of it; empty where all is well."""
        return "; ".join(filter(None, (self.trouble, self.by_hand)))

    @property
    def commits(self) -> int | None:
        return None if self.merged is None or self.newest is None else self.newest - self.merged


def lag_of(lake: str, state: str, configuration: Mapping[str, str]) -> Lag | None:
    """`configuration` are the state's properties. Tombstones are a part of their state, and most merges change none."""
    origins = () if state.startswith(f"{TOMBSTONES}/") else origins_of(configuration)
    if len(origins) != 1:
        return None
    (log,) = origins
    changes = open_objects(table_path(lake, log))
    merged, by_hand = last_merge(open_objects(table_path(lake, state)))
    try:
        newest = list_log(changes).version
    except NoTable:
        return Lag(state, log, merged, None, trouble=origin_gone(state, origins))
    by = configuration.get(DERIVED_BY, "")
    if by.startswith(APPS) and not is_of(by, definition_of(changes).id):
        return Lag(state, log, None, newest, trouble=origin_replaced(state, log))
    note = (
        f"{state}: {by_hand} changed its rows by hand; the next changes of {log} compute it from scratch"
        if by_hand
        else ""
    )
    if merged is None or merged >= newest:
        return Lag(state, log, merged, newest, by_hand=note)
    return Lag(state, log, merged, newest, committed_at(changes, merged + 1), by_hand=note)


def is_of(by: str, log_id: str) -> bool:
    """Whether the transactions of this name belong to this log, or there are none yet."""
    return not by or by.startswith(f"{APPS}{log_id}:")


def last_merge(state: Objects) -> tuple[int | None, str]:
    """The version of the log after the last merge, and a later commit by somebody else that changes rows, such as a RESTORE.
    Each of our own commits that changes rows carries a transaction."""
    last, by_hand = list_log(state).version, ""
    for version in range(last, max(-1, last - NEWEST), -1):
        content = state.read(commit_name(version)) or b""
        actions = [json.loads(line) for line in content.splitlines() if line.startswith((b'{"txn"', b'{"commitInfo"'))]
        txns = [action["txn"] for action in actions if "txn" in action]
        merges = (txn for txn in txns if txn["appId"].startswith((APPS, ROLLUPS)))
        if (merge := next(merges, None)) is not None:
            return int(merge["version"]), by_hand
        if not txns and _changes_rows(content):
            info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
            by_hand = f"version {version} ({info.get('operation', 'of another tool')})"
    return None, by_hand


def _changes_rows(content: bytes) -> bool:
    """New columns come with an append of no rows."""
    effect = effect_of(content)
    return effect.data_change and (effect.rows_added != 0 or effect.files_removed > 0)


def waited_s(log: Objects, version: int) -> float:
    """Seconds since a commit was made; 0 if the log no longer has it."""
    at = committed_at(log, version)
    return 0 if at is None else round((datetime.now(UTC) - at).total_seconds(), 1)
