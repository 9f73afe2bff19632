"""Rows of the ledger that delta-rs wrote, as `forebay replay` and `rollback` do, are read like all others."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable

from forebay.lake.objects import open_objects
from forebay.ledger.entry import file_hash
from forebay.ledger.withheld import withheld_in
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.operate.looking.files import FileChoice
from forebay.upkeep.reconcile.known import known_since
from tests.operate.ledger import entry, write_ledger


def test_a_ledger_that_delta_rs_changed_is_read_by_the_job_by_reconcile_and_by_the_accounts(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/a.json"), entry("in/b.json", batch=2))
    view = LakeView(str(tmp_path))
    mark(view, replay_of(view, FileChoice(batch=1)))
    assert DeltaTable(tmp_path / "_forebay" / "ledger").version() == 1
    ledger = open_objects(str(tmp_path / "_forebay" / "ledger"))
    (waits,) = withheld_in(ledger, "games")
    assert waits.file.key == "in/a.json"
    assert file_hash(waits.file) in known_since(ledger, datetime(2026, 1, 1, tzinfo=UTC), ["games"]).tolist()
    assert accounts(view).differences() == []
