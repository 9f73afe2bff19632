"""The note of the checks of a queue, beside the checkpoint: since when files wait, and when a message warned that the budget
makes them late. Pure.

In and out: JSON, as the object has it. An invalid text is an empty note. Times are seconds since 1970.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from forebay.capacity.rules import DAY_S

NAME = "waiting.json"
"""The name of the object beside the checkpoint."""


@dataclass(frozen=True)
class Waiting:
    """`since` is 0 where no look has seen files wait, and `warned_at` where no message went out."""

    since: float = 0.0
    warned_at: float = 0.0

    def is_warned(self, now: float) -> bool:
        """Whether the message went out within a day."""
        return now - self.warned_at < DAY_S

    def text(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, text: bytes | None) -> Waiting:
        try:
            found = json.loads(text or b"{}")
            return cls(float(found.get("since", 0)), float(found.get("warned_at", 0)))
        except (ValueError, TypeError, AttributeError):
            return cls()
