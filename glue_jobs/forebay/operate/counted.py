"""Numbers of things, as a person reads them."""

from __future__ import annotations

__all__ = ["counted", "rows_wait"]


def counted(count: int, noun: str) -> str:
    """Such as `1 record` and `1,200 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rows_wait(count: int) -> str:
    return f"{counted(count, 'row')} {'waits' if count == 1 else 'wait'}"
