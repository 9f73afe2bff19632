"""Stops the ingest job of a checkpoint, wherever it runs, between two batches.

In: the checkpoint's folder. Out: the driver that ended, or None. If the job needs longer than the wait to finish its batch,
the result is `TryAgain`, and the request remains. It also remains after an interrupt, whose message says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from forebay.errors import TryAgain
from forebay.lake.lease import holder
from forebay.lake.lease_holder import Holder
from forebay.lake.objects import open_objects
from forebay.lake.stop import StopRequest


def stop(folder: str, *, wait_s: float, sleep: Callable[[float], None] = time.sleep) -> Holder | None:
    runs = holder(folder)
    if runs is None:
        return None
    StopRequest(open_objects(folder)).ask()
    try:
        _wait(folder, runs, wait_s, sleep)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{runs.who} was asked to stop, and will still end after its batch") from None
    return runs


def _wait(folder: str, runs: Holder, wait_s: float, sleep: Callable[[float], None]) -> None:
    until = time.monotonic() + wait_s
    while (now := holder(folder)) is not None and now.epoch == runs.epoch:
        if time.monotonic() >= until:
            raise TryAgain(
                f"{runs.who} is still working on its batch after {wait_s:g} s; it will stop when the batch is done. "
                "If it was killed, its lease ends within a minute"
            )
        sleep(0.5)
