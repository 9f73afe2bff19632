"""The resources of this machine for a local session: its cores, and memory for the JVM.

In: the operating system's figures. Out: numbers for Spark's settings. A laptop keeps most of its memory for other programs,
and for the Python workers, which take theirs beside the JVM.
"""

from __future__ import annotations

import os
from pathlib import Path

FEWEST_CORES, MOST_CORES = 2, 8
"""Below two, a stream and its sink would wait for each other. Beyond eight, local batches get no faster."""
SHARE, LEAST_GB, MOST_GB = 8, 2, 8
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def cores(available: int | None = None) -> int:
    """Those that this process may use."""
    if available is None:
        affinity = getattr(os, "sched_getaffinity", None)
        available = len(affinity(0)) if affinity else os.cpu_count() or FEWEST_CORES
    return min(MOST_CORES, max(FEWEST_CORES, available))


def jvm_gigabytes(memory_bytes: int | None = None) -> int:
    """An eighth of the memory, of the container's where it has less than the machine."""
    memory_bytes = _memory_bytes() if memory_bytes is None else memory_bytes
    return min(MOST_GB, max(LEAST_GB, (memory_bytes >> 30) // SHARE))


def _memory_bytes() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [path.read_text().strip() for path in LIMITS if path.exists()]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit())])
