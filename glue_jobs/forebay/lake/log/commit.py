"""What one commit did: files and rows that came, and files and rows that went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["CommitEffect", "effect_of"]


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


def _rows(files: list[dict[str, Any]]) -> int | None:
    counted = [_rows_of(file) for file in files]
    return None if None in counted else sum(count or 0 for count in counted)


def _rows_of(file: dict[str, Any]) -> int | None:
    rows = json.loads(file.get("stats") or "{}").get("numRecords")
    return None if rows is None else rows - (file.get("deletionVector") or {}).get("cardinality", 0)
