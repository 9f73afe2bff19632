"""The processor time of this process and of all processes that it started, but not of the twin."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

PARENT, TIMES = 1, slice(11, 15)
"""Fields of `/proc/PID/stat` after the name: the parent, and the times of a process and of its children that ended."""


def seconds(*, without: int) -> float:
    """Of the process tree of this process, less that of the process `without`. It needs Linux."""
    times: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It ended meanwhile, and its parent has its time.
        pid = int(stat.parent.name)
        times[pid] = sum(map(int, fields[TIMES]))
        children[int(fields[PARENT])].append(pid)
    ticks, tree = 0, [os.getpid()]
    while tree:
        pid = tree.pop()
        ticks += times.get(pid, 0)
        tree += [child for child in children[pid] if child != without]
    return ticks / os.sysconf("SC_CLK_TCK")
