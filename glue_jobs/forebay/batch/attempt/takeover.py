"""Which stream loads a service's files: the one whose driver took over last.

A driver that sleeps through its lease may still write a plan, and looks at the lease only after that. If another stream took
over meanwhile, it loads the same files by plans of its own. So a small object in the lake names the last stream. A driver
reads it before it finishes earlier plans, and writes it before its own first plan. A plan of another stream that is there after
that binds nobody.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

from forebay.batch.plan import Plan
from forebay.errors import Halt
from forebay.lake.objects import Objects


class Takeover:
    """By one driver. `streams` is where the lake keeps the names of streams."""

    def __init__(self, streams: Objects, service: str, still_ours: Callable[[], None]) -> None:
        self._store, self._name, self._still_ours = streams, f"{service}.json", still_ours
        self._before: str | None = None
        self._tag: str | None = None
        self._looked = self._done = False

    def look(self) -> None:
        """Before earlier plans are finished."""
        content, self._tag = self._store.read_tagged(self._name) or (None, None)
        self._before = None if content is None else json.loads(content)["generation"]
        self._looked = True

    def binds(self, plan: Plan) -> bool:
        """Whether the plan is of the stream that was the last one then. Without the object, any plan is."""
        return self._before in (None, plan.generation)

    def complete(self, generation: str) -> None:
        """Before the first plan of this driver. Of two drivers that looked at the same object, one is refused."""
        if self._done:
            return
        if not self._looked:
            self.look()
        self._still_ours()
        # Equal bytes have equal tags: without the nonce, a driver of the same stream would not refuse the other one.
        content = json.dumps({"generation": generation, "nonce": uuid.uuid4().hex}).encode()
        written = self._store.write_over(self._name, content, self._tag)
        if not written and self._store.read(self._name) != content:  # an answer may be lost
            raise Halt(f"another driver wrote {self._store.place}/{self._name} meanwhile: stop one, then start again")
        self._done = True
