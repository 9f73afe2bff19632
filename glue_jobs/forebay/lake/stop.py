"""An operator's request to stop a running job: an object beside its checkpoint, where the job looks for it.

In: the checkpoint's store. A job that sees the request finishes its batch, forgets the request and ends; a job that starts
removes older requests. It works where no signal reaches a job: on Glue and EMR.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from forebay.errors import ForebayError
from forebay.lake.objects import Objects

NAME = "stop"


class StopRequest:
    """Looked for every few seconds at most, however often it is asked for: each look is a request."""

    def __init__(self, store: Objects, *, every_s: float = 5, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._every_s, self._clock = store, every_s, clock
        self._looked, self._asked = clock(), False

    def ask(self) -> None:
        self._store.write(NAME, b"")

    def asked(self) -> bool:
        if not self._asked and self._clock() - self._looked >= self._every_s:
            self._looked = self._clock()
            # S3 may not answer for a moment. That ends no job; the next look is soon.
            with suppress(ForebayError):
                self._asked = self._store.read(NAME) is not None
        return self._asked

    def forget(self) -> None:
        self._store.delete([NAME])
