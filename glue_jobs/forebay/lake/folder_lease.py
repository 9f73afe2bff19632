"""A lease that is a lock of the operating system, which ends with its process."""

from __future__ import annotations

import fcntl
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO

from forebay.events import Emit
from forebay.lake.lease_holder import OBJECT, Holder, LeaseAwaited, LeaseHeld


class FolderLease:
    """A locked file; the operating system lets go of it when the process ends, however it ends."""

    def __init__(self, file: IO[str], epoch: int) -> None:
        self._file, self.epoch = file, epoch

    @classmethod
    def take(cls, folder: Path, *, wait_s: float, emit: Emit = lambda _: None) -> FolderLease:
        folder.mkdir(parents=True, exist_ok=True)
        file, until, reported = (folder / OBJECT).open("a+"), time.monotonic() + wait_s, False
        while True:
            file.seek(0)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                driver = json.loads(file.read() or "{}").get("who", "another driver")
                if time.monotonic() < until:
                    if not reported:
                        reported = True
                        emit(LeaseAwaited(place=str(folder), holder=driver, seconds=None))
                    time.sleep(0.1)
                    continue
                file.close()
                raise LeaseHeld(str(folder), driver, wait_s) from None
            held = Holder.me(json.loads(file.read() or '{"epoch": 0}')["epoch"] + 1, 0)
            file.truncate(0)
            file.write(json.dumps(asdict(held)))
            file.flush()
            return cls(file, held.epoch)

    @classmethod
    def holder(cls, folder: Path) -> Holder | None:
        try:
            file = (folder / OBJECT).open()
        except FileNotFoundError:
            return None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Holder(**json.loads(file.read()))
        return None

    def check(self) -> None:
        """Nobody can take a lock from a process that lives."""

    def let_go(self) -> None:
        self._file.close()
