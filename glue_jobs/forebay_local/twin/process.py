"""A process that outlives the command which started it, known by its pid and by when it started.

A pid alone is not a name: after it has ended, the number goes to somebody else. Works on Linux and macOS.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process, and no later one with its number."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return started_at(self.pid) == self.started

    @property
    def memory_bytes(self) -> int:
        """Its memory now; 0 when it has ended."""
        if not self.alive:
            return 0
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return int(_ps("rss=", self.pid) or 0) * 1024

    def stop(self, *, wait_s: float = 5) -> None:
        """Ask it to end, then make it; returns when it has. Of a process that has ended, nothing."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            if not self.alive:
                return
            os.kill(self.pid, how)
            until = time.monotonic() + wait_s
            while self.alive and time.monotonic() < until:
                time.sleep(0.02)


def start(arguments: Sequence[str], *, environment: Mapping[str, str], log: Path) -> Process:
    """Start it in a session of its own, so that Ctrl-C in our terminal is not for it; both its outputs go to `log`."""
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    pid = os.posix_spawn(
        arguments[0],
        list(arguments),
        dict(environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), write, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, number) for number in _files_of_the_caller()),
        ],
        setsid=True,
    )
    return Process(pid, started_at(pid) or "")


def _files_of_the_caller() -> list[int]:
    """Files that a shell handed down, such as the lock of `flock`. The process would hold them for as long as it runs."""
    found = []
    for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
        with suppress(OSError):  # the listing itself, which is closed by now
            if number > 2 and os.get_inheritable(number):
                found.append(number)
    return found


def started_at(pid: int) -> str | None:
    """When the process with this number started, in the system's own words; None when there is none."""
    _reap(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _said_by_ps(pid)
    # The name, in brackets, may hold anything; after it: state, and 19 fields on, ticks since the machine started.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{_this_boot()}+{fields[18]}"


def _this_boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _said_by_ps(pid: int) -> str | None:
    columns = _ps("stat=,lstart=", pid).split(maxsplit=1)
    return columns[1].strip() if len(columns) == 2 and not columns[0].startswith("Z") else None


def _ps(columns: str, pid: int) -> str:
    return subprocess.run(["ps", "-o", columns, "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def _reap(pid: int) -> None:
    """A child of ours that ended stays a zombie until somebody asks."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:  # no child of this process
        pass
