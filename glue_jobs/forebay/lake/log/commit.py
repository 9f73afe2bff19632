"""The files and rows that one commit added and removed; and which commit carries a transaction."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from forebay.lake.log.listing import LOG, commit_name, list_log, version_of_commit
from forebay.lake.objects import Objects

NEWEST = 1000
"""Commits that are looked through for a transaction; each is a request."""
FEW = 20
"""The same where nobody needs to know for certain."""


@dataclass(frozen=True)
class CommitEffect:
    """`rows_added` and `rows_removed` are None where the log does not say; deleted rows are not counted."""

    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    rows_added: int | None
    rows_removed: int | None
    data_change: bool


def effect_of(content: bytes) -> CommitEffect:
    """From a commit's text."""
    actions = [json.loads(line) for line in content.splitlines() if line.strip()]
    added = [action["add"] for action in actions if "add" in action]
    removed = [action["remove"] for action in actions if "remove" in action]
    return CommitEffect(
        len(added),
        len(removed),
        sum(one["size"] for one in added),
        sum(one.get("size") or 0 for one in removed),
        _rows(added),
        _rows(removed),
        any(one["dataChange"] for one in (*added, *removed)),
    )


def rows_of_transaction(table: Objects, app_id: str, version: int) -> int | None:
    """The number of rows that came with this transaction; None if no recent commit carries it."""
    actions = _commit_of(table, app_id, version)
    return None if actions is None else _rows_that_came(actions)


def has_transaction(table: Objects, app_id: str, version: int) -> bool:
    """Whether a recent commit carries it, whatever else the table's log asks of a reader."""
    return _commit_of(table, app_id, version) is not None


def _commit_of(table: Objects, app_id: str, version: int) -> list[dict[str, Any]] | None:
    """The newest commits are looked at first: they are asked for what was committed last."""
    names = [found.name for found in table.found(LOG) if version_of_commit(found.name) is not None]
    for name in reversed(names[-NEWEST:]):
        actions = [json.loads(line) for line in (table.read(name) or b"").splitlines() if line.strip()]
        txns = [action["txn"] for action in actions if "txn" in action]
        if any(txn["appId"] == app_id and txn["version"] == version for txn in txns):
            return actions
    return None


def transactions_of(table: Objects, version: int) -> dict[str, int]:
    """The transactions that one commit carries; none if it is gone."""
    lines = (table.read(commit_name(version)) or b"").splitlines()
    txns = (json.loads(line)["txn"] for line in lines if line.startswith(b'{"txn"'))
    return {txn["appId"]: int(txn["version"]) for txn in txns}


def info_of(table: Objects, version: int) -> dict[str, Any]:
    """The `commitInfo` of one commit, such as its `operation`; empty if the commit is gone, or has none."""
    for line in (table.read(commit_name(version)) or b"").splitlines():
        if line.startswith(b'{"commitInfo"'):
            found: dict[str, Any] = json.loads(line)["commitInfo"]
            return found
    return {}


def newest_transactions(table: Objects, app_ids: Collection[str]) -> dict[str, int]:
    """The last versions of these applications, as far as a few of the newest commits carry them."""
    found: dict[str, int] = {}
    last = list_log(table).version
    for version in range(last, max(-1, last - FEW), -1):
        for app_id, number in transactions_of(table, version).items():
            if app_id in app_ids:
                found.setdefault(app_id, number)
        if len(found) == len(app_ids):
            break
    return found


def _rows_that_came(actions: list[dict[str, Any]]) -> int | None:
    """Spark's overwrites copy rows that stay into new files, and say how many; Kernel copies nothing, and says nothing."""
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    metrics = info.get("operationMetrics") or {}
    if "numOutputRows" in metrics:
        return int(metrics["numOutputRows"]) - int(metrics.get("numCopiedRows", 0))
    return _rows([action["add"] for action in actions if "add" in action])


def _rows(files: list[dict[str, Any]]) -> int | None:
    counted = [_rows_of(file) for file in files]
    return None if None in counted else sum(count or 0 for count in counted)


def _rows_of(file: dict[str, Any]) -> int | None:
    rows = json.loads(file.get("stats") or "{}").get("numRecords")
    return None if rows is None else rows - (file.get("deletionVector") or {}).get("cardinality", 0)
