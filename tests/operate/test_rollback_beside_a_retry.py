"""A rollback and a retry of held records never work side by side: each leaves its plan before it looks for the other's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from forebay.batch.plan import Plans
from forebay.batch.retrying.plan import PLAN, Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import load_service
from forebay.errors import Halt
from forebay.lake.folder_lease import FolderLease
from forebay.lake.layout import plans_of, rollback_of
from forebay.lake.objects import open_objects
from forebay.lake.rollback_plan import rollback_plan
from forebay.operate.changing.rollback import finish_earlier, plan_rollback, roll_back
from forebay.operate.lake_view import LakeView
from forebay.table.kernel import TableLogs
from tests.operate.ledger import entry, write_ledger
from tests.operate.test_rollback import Killed, append, dies, rows

UNFINISHED = b'{"number": "n", "tables": [{"table": "alpha", "now": 9, "to": 0, "changes": {}}], "replay": false}'


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for key, count in (("in/a.json", 3), ("in/b.json", 2)):
        append(tmp_path, "alpha", key, count)
        write_ledger(tmp_path, entry(key, tables={"alpha": count}))
    return str(tmp_path)


def retry_of(lake: str) -> Retry:
    """One that goes as far as it can without Spark."""
    zero = {"version_at": lambda *_, **__: 0, "last_version_at": lambda *_, **__: 0}
    logs = SimpleNamespace(look=lambda *_, **__: SimpleNamespace(version=0), **zero)
    spark = cast(Any, None)
    return Retry(spark, load_service(""), lake=lake, emit=lambda event: None, logs=cast(TableLogs, logs))


@pytest.mark.parametrize("left_before", [False, True])
def test_no_retry_begins_while_a_rollback_is_half_done(
    lake: str, left_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = retry_of(lake)
    if left_before:  # by one that was killed as soon as it had said what it intends
        with monkeypatch.context() as patched:
            patched.setattr(Plans, "left", dies(Plans.left, before=True))
            with pytest.raises(Killed):
                tries.run(Choice("quarantine"))
        assert tries.planning.left() is not None
    open_objects(rollback_of(lake)).write("plan.json", UNFINISHED)
    with pytest.raises(Halt, match="repeat `forebay rollback alpha --to 0` to finish it"):
        tries.run(Choice("quarantine"))
    assert tries.planning.left() is None, "the rollback would wait for it"
    assert finish_earlier(LakeView(lake)) is not None


def test_a_rollback_does_nothing_where_a_retry_begins_meanwhile(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    view = LakeView(lake)
    plan = plan_rollback(view, ["alpha"], 0, replay=False)

    def a_retry_begins(lease: FolderLease) -> None:
        open_objects(plans_of(lake, "games")).write(PLAN, b"")

    monkeypatch.setattr(FolderLease, "check", a_retry_begins)
    with pytest.raises(Halt, match="a retry of games is unfinished"):
        roll_back(view, plan)
    assert (rows(lake, "alpha"), rollback_plan(lake)) == (5, None)
