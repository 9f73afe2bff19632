"""A job that is asked to stop, by Ctrl-C or a termination, ends at a good place."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interrupts_wait", "stopping_on_signals"]


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


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """An interrupt takes effect when the block has ended, a second one at once. While Spark starts, PySpark talks to a JVM that
    is only half there. Interrupted, it prints a hundred lines of tracebacks, and leaves that JVM running for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = threading.Event()

    def wait(*_: object) -> None:
        if came.is_set():
            raise KeyboardInterrupt
        came.set()
        print("forebay: stops as soon as Spark has started; once more: at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        # Spark has put a handler of its own there, which calls the JVM from within a call to the JVM: a hundred lines again.
        signal.signal(signal.SIGINT, before)
    if came.is_set():
        raise KeyboardInterrupt
