"""Messages that forebay could not understand, as the source kept them beside the checkpoint.

In: the checkpoint's folder. Out: `RefusedMessage`s, by their ids. The copies stay until an operator drops them, and `status`
reports them until then. The messages themselves become dead letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from forebay.lake.layout import KEPT_MESSAGES
from forebay.lake.objects import open_objects


@dataclass(frozen=True)
class RefusedMessage:
    """`name` is that of its copy."""

    name: str
    message_id: str
    sent_at: datetime
    reasons: tuple[str, ...]
    body: str


def count_refused(checkpoint: str) -> int:
    return sum(1 for _ in open_objects(checkpoint).found(KEPT_MESSAGES))


def refused_messages(checkpoint: str, *, limit: int) -> list[RefusedMessage]:
    objects = open_objects(checkpoint)
    found = []
    for one in islice(objects.found(KEPT_MESSAGES), limit):
        stored = json.loads(objects.read(one.name) or b"{}")
        if stored:  # else somebody dropped it meanwhile
            sent_at = datetime.fromisoformat(stored["sent_at"])
            found.append(
                RefusedMessage(one.name, stored["message_id"], sent_at, tuple(stored["reasons"]), stored["body"])
            )
    return found


def drop_refused(checkpoint: str, messages: Iterable[RefusedMessage]) -> None:
    """Their copies. Run again, it changes nothing."""
    open_objects(checkpoint).delete([one.name for one in messages])
