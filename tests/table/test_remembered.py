"""What the driver remembers of a table, once another writer created it again. Without Spark."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, cast

import pytest

from forebay.table.commit import LogFailed, Txn
from forebay.table.kernel import Seen, TableLogs


def test_a_remembered_table_that_was_created_again_is_loaded_again() -> None:
    """By its remembered state, Kernel reads a commit that is another one now, and refuses it. So would every later look."""
    logs = TableLogs.__new__(TableLogs)
    before, now = (Seen("t", n, n, cast(Any, None), (), "none", "") for n in (7, 2))
    logs._lock, logs._seen = threading.Lock(), OrderedDict(t=before)
    looks = []

    def load(path: str) -> Seen:
        looks.append(path)
        return logs._remember(now)

    def last_version(seen: Seen, app_id: str) -> int:
        if seen is before or app_id == "broken":
            raise LogFailed(
                "UncheckedIOException", "is another commit than before: the table was deleted and created again"
            )
        return 5

    logs._load, logs.last_version = load, last_version  # type: ignore[method-assign]
    assert (logs.has("t", Txn("app", 5)), logs.has("t", Txn("app", 6)), looks) == (True, False, ["t"])
    logs._seen["t"] = now
    assert (logs.last_version_at("t", "app"), looks) == (5, ["t"]), "a look that succeeds reads nothing"
    with pytest.raises(LogFailed, match="created again"):
        logs.has("t", Txn("broken", 1))
