"""Records beside the checkpoint how fast the job works: a sink of events. The function that starts runs reads it.

In: `BatchCommitted`. Out: `<checkpoint>/pace.json`, at most every half minute, and at the end. Two runs of one checkpoint never
write it at once, because the lease keeps the second one out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from forebay.batch.events import BatchCommitted
from forebay.capacity.pace import NAME, Done, Pace
from forebay.events import Event
from forebay.lake.objects import Objects, open_objects
from forebay.settings import IngestSettings, JobSettings

EVERY_S = 30.0


class Pacing:
    """A sink. A note that cannot be written is written with a later batch."""

    def __init__(self, checkpoint: Objects, *, clock: Callable[[], float] = time.time) -> None:
        self._checkpoint, self._clock = checkpoint, clock
        self._pace: Pace | None = None
        self._written_at = 0.0
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        if not isinstance(event, BatchCommitted):
            return
        now = self._clock()
        with self._lock:
            if self._pace is None:
                self._pace = Pace.of(self._checkpoint.read(NAME)).with_run(now - event.seconds)
            self._pace = self._pace.with_batch(Done(now, event.files, event.seconds))
            if now - self._written_at < EVERY_S:
                return
            self._written_at = now
        self.flush()

    def flush(self) -> None:
        with self._lock:
            if self._pace is not None:
                self._checkpoint.write(NAME, self._pace.text().encode())


def pacing_of(settings: JobSettings) -> Pacing | None:
    """The pacing of the ingest job alone."""
    return Pacing(open_objects(settings.checkpoint_folder)) if isinstance(settings, IngestSettings) else None
