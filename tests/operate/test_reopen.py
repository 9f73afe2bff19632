"""Hours that are open again because rows of their files went, or came back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.ledger.periods import FeedPeriod
from forebay.operate.changing.reopen import WHY, reopen
from forebay.operate.lake_view import LakeView
from forebay.upkeep.complete.look import periods_of
from tests.operate.ledger import AT, entry, write_ledger

SERVICE = """
name = "games"
[[feeds]]
name = "hourly"
prefix = "in/"
complete = { folder = "in/%Y/%m/%d/%H/", marker = "_DONE" }
[[feeds]]
name = "other"
prefix = "app/"
[[tables]]
name = "{game}"
"""
KEYS = ("in/2026/11/21/10/a.json", "in/2026/11/21/11/b.json", "in/odd.json", "app/c.json", "away/d.json")
"""Of two hours, one of which nobody has judged; of no hour; of a feed without a rule; and of no feed."""


def test_only_hours_that_were_judged_are_open_again(tmp_path: Path) -> None:
    lake = str(tmp_path)
    keep_in_force(lake, parse_service({"service.toml": SERVICE}))
    entries = [entry(key) for key in KEYS]
    write_ledger(tmp_path, *entries)
    hours = [
        FeedPeriod(
            service="games",
            feed="hourly",
            period=at,
            ends=at + timedelta(hours=1),
            since=at,
            complete_at=at,
            revision=1,
        )
        for at in (AT, AT - timedelta(hours=1))
    ]
    reopen(LakeView(lake), [one["file_id"] for one in entries])
    assert periods_of(lake).rows() == {}
    periods_of(lake).change(lambda _: hours)
    reopen(LakeView(lake), [])
    assert all(one.complete_at for one in periods_of(lake).rows().values())
    reopen(LakeView(lake), [one["file_id"] for one in entries])
    found = periods_of(lake).rows()
    assert [(found[one.key].complete_at, found[one.key].why) for one in hours] == [(None, WHY), (hours[1].period, "")]
