"""The ingest job brings states up to date beside its batches, in a thread of its own.

In: what declares the tables now, and a merger. Out: merges, every so many seconds, and one more when the stream has ended. A
batch never waits for a merge. What goes wrong with one is an event, and the next look does what is left. A job of its own would
wait minutes for a cluster each time, and somebody would pay for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from forebay.declaration.service import Service
from forebay.errors import ForebayError
from forebay.events import Emit
from forebay.merge.events import TableNotMerged
from forebay.merge.job import Merger

__all__ = ["merging"]


@contextmanager
def merging(merger: Merger, service: Callable[[], Service], every_s: float, *, emit: Emit) -> Iterator[None]:
    """While the stream runs. With `every_s` 0 nothing is merged here."""
    if not every_s:
        yield
        return
    over = threading.Event()

    def look() -> None:
        declared = service()
        try:
            # Not asked to stop by `over`: the last look is for what the last batch brought.
            merger.run(declared, (), threading.Event())
        except Exception as problem:  # whatever is wrong with a state, files are taken in
            reason, detail = "failed", str(problem) if isinstance(problem, ForebayError) else repr(problem)
            emit(TableNotMerged(service=declared.name, table="", reason=reason, detail=detail))

    def look_again() -> None:
        while not over.wait(every_s):
            look()

    thread = threading.Thread(target=look_again, name="merge", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        look()
