"""After Ctrl-C, the last line of a command says what remains to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_to_do(what: str) -> Iterator[None]:
    """Wraps the long part of a command. A message from deeper inside is kept, because it knows more."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(*(stopped.args or (what,))) from None
