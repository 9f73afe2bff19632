"""One driver at a time: the holder of a folder's lease may work there; a second driver waits, or ends with a message.

In: a folder, such as a checkpoint. Out: a `Lease` that renews itself until it is released, with an epoch that grows with every
holder. A process that sleeps longer than its lease may lose it to another driver. `check` then halts; it is called before a
batch is marked as done.

In S3 the lease is an object, in a folder a lock of the operating system.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from forebay.address import is_s3, local_folder
from forebay.aws.client import client
from forebay.errors import InvalidConfiguration
from forebay.events import Emit
from forebay.lake.folder_lease import FolderLease
from forebay.lake.lease_holder import Holder
from forebay.lake.s3_lease import RENEWALS, S3Lease, look, place, write_over

LASTS_S = 60.0


class Lease(Protocol):
    """A lease that is held."""

    epoch: int

    def check(self) -> None:
        """Halts if the lease is no longer ours."""

    def let_go(self) -> None:
        """Lets the next driver in at once. Harmless when run twice."""


def hold(folder: str, *, wait_s: float, lasts_s: float = LASTS_S, s3: Any = None, emit: Emit = lambda _: None) -> Lease:
    """Takes the lease, waiting for at most `wait_s`; `LeaseHeld` says who has it."""
    if is_s3(folder):
        return S3Lease.take(s3 or client("s3"), folder, wait_s=wait_s, lasts_s=lasts_s, emit=emit)
    return FolderLease.take(local_folder(folder), wait_s=wait_s, emit=emit)


def holder(folder: str, *, s3: Any = None) -> Holder | None:
    """The current holder of the lease, or None."""
    if not is_s3(folder):
        return FolderLease.holder(local_folder(folder))
    there = look(s3 or client("s3"), *place(folder))
    return there.holder if there and there.left_s > 0 else None


def renewed_lately(folder: str) -> float | None:
    """The seconds since the lease was renewed, if no renewal is missing: its holder lives, or died right after it.
    None where one was missed. A lock is held by a process that lives."""
    if not is_s3(folder):
        return 0.0 if FolderLease.holder(local_folder(folder)) else None
    there = look(client("s3"), *place(folder))
    lately = there is not None and there.left_s > 0 and there.age_s <= there.holder.lasts_s / RENEWALS
    return there.age_s if there and lately else None


def break_lease(folder: str, seen: Holder) -> None:
    """Ends the lease of the holder that was seen; `InvalidConfiguration` where somebody else has it by now, or where it is a
    lock."""
    if not is_s3(folder):
        raise InvalidConfiguration.one(
            folder, f"is locked by {seen.who}, which is running", "end the process: its lock ends with it"
        )
    s3 = client("s3")
    there = look(s3, *place(folder))
    if (
        there is None
        or there.holder != seen
        or not write_over(s3, *place(folder), replace(seen, lasts_s=0), there.etag)
    ):
        raise InvalidConfiguration.one(
            folder, f"is no longer held by {seen.who}, or was renewed", "`forebay lease show` shows the holder"
        )
