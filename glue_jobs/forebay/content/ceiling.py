"""Limits the memory of this process, so that a file that needs too much is refused and does not kill its worker.

In: the number of bytes that the process may map beyond those of now. Inside, an allocation that does not fit raises
`MemoryError`. Only Linux enforces it; elsewhere nothing changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def ceiling(more_bytes: int) -> Iterator[None]:
    """Restores the previous limit afterwards. A lower limit that is in force stays."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _mapped_bytes() + more_bytes
    lowest = min(limit for limit in (before, hard, wanted) if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_AS, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def _mapped_bytes() -> int:
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
