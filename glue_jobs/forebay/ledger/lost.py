"""The problem of a lake whose ledger was lost. A job that continued would begin an empty one, and load files a second time."""

from __future__ import annotations

from forebay.errors import Problem
from forebay.lake.layout import LEDGER


def lost_ledger(lake: str, but: str) -> Problem:
    """`but` says what shows that there was a ledger."""
    return Problem(
        f"lake {lake}",
        f"has no ledger ({LEDGER}), but {but}: their files would be loaded again",
        "restore the ledger, or load the landed files into another lake. See docs/disasters.md, The ledger",
    )
