"""Keeps messages that could not be understood, with their bodies and the reasons.

The copy is written once for a message, however often it is redelivered. The message itself is not deleted. It returns to the
queue after growing pauses, so it neither blocks nor spins. The queue's own redrive policy takes it to the dead-letter queue. A
message that was understood in part is kept as well, and then leaves with its batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from forebay.lake.objects import Objects
from forebay.source.queue import Message

_FOLDER = "kept"
_MOST_REMEMBERED = 10_000
_LONGEST_RETURN_S = 900


class KeptMessages:
    """The kept messages of one stream."""

    def __init__(self, store: Objects, queue_url: str) -> None:
        self._store, self._queue_url = store, queue_url
        self._written: set[str] = set()

    def keep(self, message: Message, reasons: Sequence[str]) -> bool:
        """True where this is the first copy, as far as this process knows. The first copy stays."""
        if message.message_id in self._written:
            return False
        content = {
            "message_id": message.message_id,
            "queue": self._queue_url,
            "sent_at": message.sent_at.isoformat(),
            "reasons": list(reasons),
            "body": message.body,
        }
        text = json.dumps(content, indent=1).encode()
        self._store.write_once(f"{_FOLDER}/{quote(message.message_id, safe='')}.json", text)
        if len(self._written) >= _MOST_REMEMBERED:
            self._written.clear()
        self._written.add(message.message_id)
        return True


def return_after_s(receive_count: int) -> int:
    """After how long a message that is not understood shows again. At first at once, so that a usual redrive policy has it
    within seconds. Then ever later, so that a queue without such a policy is not read in a circle."""
    return min(_LONGEST_RETURN_S, (1 << min(max(receive_count, 1) - 1, 10)) - 1)
