"""Whether a lake has a ledger, and the problem of one whose ledger was lost. A job that continued would begin an empty one, and
load files a second time.
"""

from __future__ import annotations

from forebay.errors import Problem
from forebay.lake.layout import LEDGER, table_path
from forebay.lake.log.listing import has_log
from forebay.lake.objects import open_objects


def has_ledger(lake: str) -> bool:
    """Whether a batch was ever loaded there."""
    return has_log(open_objects(table_path(lake, LEDGER)))


def lost_ledger(lake: str, but: str) -> Problem:
    """`but` says what shows that there was a ledger."""
    return Problem(
        f"lake {lake}",
        f"has no ledger ({LEDGER}), but {but}: their files would be loaded again",
        "restore the ledger, or load the landed files into another lake. See docs/disasters.md, The ledger",
    )
