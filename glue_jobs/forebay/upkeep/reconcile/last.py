"""The result of the last reconcile: one small object in the lake, for `forebay status`.

In: `LastReconcile`. Out: the same. A run writes over that of the run before.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from forebay.lake.layout import HOME, LAST_RECONCILE
from forebay.lake.objects import open_objects

NAME = LAST_RECONCILE.rpartition("/")[2]


@dataclass(frozen=True)
class LastReconcile:
    """`missed`: files that S3 had not announced, such as `such_as`. They are announced now; `withheld` ones again."""

    at: datetime
    looked_at: int
    missed: int
    withheld: int = 0
    such_as: str = ""


def keep(lake: str, found: LastReconcile) -> None:
    text = json.dumps({**asdict(found), "at": found.at.isoformat()})
    open_objects(f"{lake.rstrip('/')}/{HOME}").write(NAME, text.encode())


def last_reconcile(lake: str) -> LastReconcile | None:
    content = open_objects(f"{lake.rstrip('/')}/{HOME}").read(NAME)
    if content is None:
        return None
    stored = json.loads(content)
    return LastReconcile(**{**stored, "at": datetime.fromisoformat(stored["at"])})
