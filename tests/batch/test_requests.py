"""The requests of a batch: it asks for what an earlier attempt could have left only if there may have been one."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.batch.plan import Plans
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER
from forebay.landed_file import LandedFile
from tests.batch.paper import Lake, PaperWriting, Record, lay_out

SERVICE = parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "{game}"\n'})
FILE = LandedFile("landing", "in/a", 1, "e1")


@pytest.mark.parametrize("may_have_begun", [False, True])
def test_only_a_batch_that_may_have_begun_asks_for_its_plan_and_for_its_rows_in_the_quarantine(
    monkeypatch: pytest.MonkeyPatch, may_have_begun: bool
) -> None:
    lake, asked = Lake(), list[str]()

    def noted(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def note(*given: Any) -> Any:
            asked.append(name)
            return real(*given)

        monkeypatch.setattr(owner, name, note)

    noted(Plans, "of")
    noted(PaperWriting, "unwritten_before")
    lake.answers[FILE.file_id] = [Record("alpha", "1")]
    lay_out(monkeypatch, lake, SERVICE, "g0", may_have_begun=lambda batch: may_have_begun).load([FILE], 0)
    assert {*asked} == ({"of", "unwritten_before"} if may_have_begun else set())
    assert [row["outcome"] for row in lake.rows(LEDGER)] == ["loaded"]
