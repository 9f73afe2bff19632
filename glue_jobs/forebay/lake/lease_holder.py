"""The holder of a lease, and the event and the error that name it."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass

from forebay.errors import Halt
from forebay.events import Event

OBJECT = "lease.json"


@dataclass(frozen=True)
class Holder:
    """The holder of a lease, for the error of a second driver. `id` distinguishes two holders with the same name of the machine
    and number of the process, as in containers."""

    who: str
    epoch: int
    lasts_s: float
    id: str = ""

    @classmethod
    def me(cls, epoch: int, lasts_s: float) -> Holder:
        return cls(f"process {os.getpid()} on {socket.gethostname()}", epoch, lasts_s, uuid.uuid4().hex)


@dataclass(frozen=True, kw_only=True)
class LeaseAwaited(Event):
    """Another driver holds a lease that this driver needs. If that driver is dead, its lease ends in `seconds`, and this driver
    continues. If it runs, this driver waits for `lease_wait_s`, then leaves."""

    place: str
    holder: str
    seconds: int | None


class LeaseHeld(Halt):
    """Somebody else holds it."""

    def __init__(self, folder: str, holder: str, wait_s: float) -> None:
        self.folder, self.holder, self.wait_s = folder, holder, wait_s
        super().__init__(
            f"{folder} is in use by {holder}, which did not end within {wait_s:g} s. Only one driver at a time may "
            "work there: stop the other one, then start again"
        )

    def __reduce__(self) -> tuple[type[LeaseHeld], tuple[str, str, float]]:
        return type(self), (self.folder, self.holder, self.wait_s)
