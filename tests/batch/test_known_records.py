"""Which records stay known to `dedupe` when only some of their file's rows leave."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER
from forebay.landed_file import LandedFile
from tests.batch.paper import Lake, Record, lay_out

DEDUPE = 'columns = [{ name = "event_id" }]\ndedupe = { by = ["event_id"], days = 3 }'
SERVICE = parse_service({"service.toml": f'name = "s"\n[[tables]]\nname = "{{game}}"\n{DEDUPE}\n'})
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FILE, AGAIN = (LandedFile("landing", key, 1, key, None, "0", AT) for key in "ab")
RECORDS = [Record("alpha", "x"), Record("beta", "y")]


def test_records_of_a_replayed_file_stay_known_in_a_table_that_could_not_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = Lake(answers={FILE.file_id: RECORDS, AGAIN.file_id: RECORDS})
    lay_out(monkeypatch, lake, SERVICE, "g0").load([FILE], 0)
    lake.rows(LEDGER)[0]["outcome"] = "replay"
    lake.failing = {"alpha"}
    lay_out(monkeypatch, lake, SERVICE, "g0").load([FILE], 1)
    lake.failing = set()
    lay_out(monkeypatch, lake, SERVICE, "g0").load([AGAIN], 2)
    assert [[(r["id"], r["_file_id"]) for r in lake.rows(name)] for name in ("alpha", "beta")] == [
        [("x", FILE.file_id)],
        [("y", FILE.file_id)],
    ]
