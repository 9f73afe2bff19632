"""A job that is asked to stop, by Ctrl-C or a termination, ends at a good place."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stopping_on_signals"]


@contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """An interrupt or a termination sets `stop`. To be entered when the session is there: PySpark takes
    the interrupt for itself when it starts, and would cancel the batch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
