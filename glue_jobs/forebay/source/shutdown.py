"""An orderly shutdown of the planner, also while it waits for the queue.

Spark ends the planner by a signal, or by closing the connection, whichever comes first. (A terminal's signal reaches only the
driver: PySpark makes all other processes ignore it.) A process that dies in the middle of a long poll takes a message with it.
The queue has handed it out, and shows it again only after the visibility timeout. So the process waits for a poll in progress,
and returns its messages to the queue. Then it emits its last events and ends. It also ends when its patience is over.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE_S = 45
"""A look at the queue takes 20 s at most where the queue answers; the rest is for giving back."""


def is_planner() -> bool:
    """Whether Spark started this process to run a source in, so that its signals are ours to answer."""
    started_by_spark = any(name.startswith("PYTHON_WORKER_FACTORY_") for name in os.environ)
    return started_by_spark and threading.current_thread() is threading.main_thread()


class Shutdown:
    """The last actions of a process that gets a termination. They run in the main thread, one after the other, and so do
    signal handlers. So the code that they interrupt holds no lock while it waits for Spark."""

    def __init__(self, last_words: Callable[[], None]) -> None:
        self._last_words = last_words
        self._questions = 0
        self._reported = False
        self.requested = False

    def expect(self) -> None:
        """From now on the signal to end is answered, and an ordinary end as well."""
        atexit.register(self._say_last_words)
        signal.signal(signal.SIGTERM, self._on_signal)

    @contextmanager
    def question(self) -> Iterator[None]:
        """Spark's question is being answered: not to be interrupted."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            self._go_if_requested()

    def _on_signal(self, number: int, frame: object) -> None:
        self.requested = True
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_PATIENCE_S)
        self._go_if_requested()

    def _go_if_requested(self) -> None:
        if self.requested and not self._questions and not self._reported:  # otherwise it goes when that is done
            self._say_last_words()
            os._exit(0)

    def _say_last_words(self) -> None:
        if not self._reported:
            self._reported = True
            self._last_words()
