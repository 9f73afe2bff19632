"""A job that is asked to stop, by Ctrl-C or a termination, ends after its current step. If it has not begun anything, it ends
at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """An interrupt or a termination sets `stop`. To be entered when the session is there: PySpark takes
    the interrupt for itself when it starts, and would cancel the batch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and not stop.is_set():
            _say("forebay: finishes the work that it has begun, then stops")
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def leaving_at_once(left: str = "") -> Iterator[None]:
    """An interrupt ends the process, with one line and status 130, until something else takes over. For a command that has
    not begun anything yet, or that resumes when it is repeated: the line says what is `left` to do. Packages swallow a
    KeyboardInterrupt while they are imported, and PySpark prints a hundred lines for one while it starts. Its JVM ends on its
    own, because the pipe to it closes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _Leave(left))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_wait(
    says: str = "stops as soon as Spark has started; press Ctrl-C again to stop at once",
) -> Iterator[None]:
    """An interrupt takes effect when the block has ended, a second one at once. While Spark starts, PySpark talks to a JVM that
    is only half there. Interrupted, it prints a hundred lines of tracebacks. Where a command leaves at once, it still does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = threading.Event()

    def wait(number: int, frame: FrameType | None) -> None:
        if came.is_set():
            _Leave()(number, frame)
        came.set()
        _say(f"forebay: {says}")

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before if isinstance(before, _Leave) else wait)
    try:
        yield
    finally:
        # Spark has put a handler of its own there, which calls the JVM from within a call to the JVM: a hundred lines again.
        signal.signal(signal.SIGINT, before)
    if came.is_set():
        raise KeyboardInterrupt


class _Leave:
    """Nothing is cleaned up: whoever unwinds the stack now would ask a JVM that is half there."""

    def __init__(self, left: str = "") -> None:
        self._left = left

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.isatty(2):
            os.write(2, b"\x1b[?25h")  # a progress bar hides the cursor
        _say(": ".join(["forebay: stopped", *filter(None, [self._left])]))
        os._exit(128 + signal.SIGINT)


def _say(line: str) -> None:
    """Past Python's buffers: a handler may interrupt whoever holds their lock. A terminal has echoed `^C`: a new line first."""
    os.write(2, ("\n" if os.isatty(2) else "").encode() + f"{line}\n".encode())
