"""A ceiling on the memory of this process, so that a file which takes too much is refused instead of killing its worker.

In: how many bytes more than now the process may have mapped. Within, what does not fit raises `MemoryError`. Only Linux
holds a process to it; elsewhere nothing changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ceiling"]


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
