"""People are erased while a batch is under way: it goes by their list, or their erasure sees its plan and waits for it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

import forebay.batch.attempt.beginning as beginning
import forebay.batch.batch as heart
from forebay.batch.attempt.attempt import Begun
from forebay.batch.attempt.carrying_out import CarryingOut
from forebay.batch.plan import Plan
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER
from forebay.landed_file import LandedFile
from tests.batch.paper import Lake, Record, lay_out

SERVICE = parse_service(
    {
        "service.toml": 'name = "s"\nprivacy = { subject = "user", secret = "s3://secrets/s" }\n[[tables]]\nname = "{game}"\n'
    }
)
FILE = LandedFile("landing", "a", 1, "a", None, "1", datetime(2026, 11, 21, 10, tzinfo=UTC))


def test_a_batch_goes_by_the_list_of_an_erasure_or_the_erasure_sees_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure writes its list, then looks for plans that go by an older one. Rows of a batch that is over are in the
    tables that it searches."""
    carried_out, seen = CarryingOut.run, Counter[tuple[bool, str]]()
    for at in range(12):
        with monkeypatch.context() as patch:
            lake, lists, waits, by = (
                Lake(answers={FILE.file_id: [Record("alpha", "1")]}),
                [""],
                list[bool](),
                list[str](),
            )

            def erase(lake: Lake = lake, lists: list[str] = lists, waits: list[bool] = waits) -> None:
                lists.append("new")
                plans = [Plan.decode(text) for name, text in lake.objects.items() if "/plans/" in name]
                is_over = bool(lake.rows(LEDGER))
                waits.append(is_over or any(plan.service["erased"] < "new" for plan in plans))

            def run(self: CarryingOut, begun: Begun, by: list[str] = by) -> None:
                by.append(self.service.erased)
                assert begun.plan.service["erased"] == self.service.erased
                carried_out(self, begun)

            patch.setattr(CarryingOut, "run", run)
            for module in (heart, beginning):
                patch.setattr(module, "without_erased", lambda service, _, lists=lists: service.with_erased(lists[-1]))
            driver = lay_out(patch, lake, SERVICE, "g0")
            lake.meanwhile = (at, erase)
            driver.load([FILE], 0)
            assert [row["id"] for row in lake.rows("alpha")] == ["1"]
            if waits:
                seen[waits[0], by[0]] += 1
    assert {*seen} == {(False, "new"), (True, "")}
