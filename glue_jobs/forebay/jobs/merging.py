"""The ingest job updates states beside its batches, in its own thread.

In: the current declarations of the tables, and a merger. Out: merges at an interval, and one more at the end of a drain. A
batch never waits for a merge. A failure is an event, and the next merge does the remaining work. A separate job would wait
minutes for a cluster each time, which costs money.
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


@contextmanager
def merging(
    merger: Merger, service: Callable[[], Service], every_s: float, *, once_more: bool, emit: Emit
) -> Iterator[None]:
    """Merges while the stream runs. With `every_s` 0 nothing is merged here. `once_more`: the changes of the last batch are
    merged, too. Otherwise the next job merges them, because a stop must not wait."""
    if not every_s:
        yield
        return
    over = threading.Event()

    def look(stop: threading.Event) -> None:
        declared = service()
        try:
            merger.run(declared, (), stop)
        except Exception as problem:  # whatever is wrong with a state, files are taken in
            detail = str(problem) if isinstance(problem, ForebayError) else repr(problem)
            emit(TableNotMerged(service=declared.name, table="", reason="failed", detail=detail))

    def look_again() -> None:
        while not over.wait(every_s):
            look(over)

    thread = threading.Thread(target=look_again, name="merge", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if once_more:
        look(threading.Event())
