"""The running job announces files that S3 withheld again, after growing pauses.

In: the ledger's entries of them, and the queue. Out: messages in the queue: such a file arrives like any other. At most
`MOST_AT_ONCE` files are announced every `LOOK_EVERY`, so a wrong key policy costs little, even if it lasts a day. No failure
here ends the job. A file that could not be announced is due again at the next check, and when the next job starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from forebay.events import Emit, Event, ServiceEvent
from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile
from forebay.ledger.withheld import Withheld, withheld_in

LOOK_EVERY = timedelta(minutes=5)
MOST_AT_ONCE = 2_000


@dataclass(frozen=True, kw_only=True)
class FilesRetried(ServiceEvent):
    """Files that S3 withheld were announced again. The queue `refused` some, which a later check announces."""

    files: int
    refused: int = 0
    such_as: str


@dataclass(frozen=True, kw_only=True)
class FilesNotRetried(Event):
    """Files that S3 withheld could not be announced again. The job retries in a few minutes. It needs sqs:SendMessage on its
    queue; `forebay files retry` announces them from elsewhere."""

    level: ClassVar[str] = "warning"
    service: str
    error: str


class Announcer:
    """One job's. `announce` returns the keys that the queue refused."""

    def __init__(
        self,
        service: str,
        withheld: Withheld,
        ledger: Objects,
        announce: Callable[[Sequence[LandedFile]], list[str]],
        *,
        emit: Emit,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._service, self._withheld, self._ledger, self._announce = service, withheld, ledger, announce
        self._emit, self._clock = emit, clock
        self._next, self._loaded = clock(), False

    def look(self) -> None:
        """Checks for files that are due. It may be called at any rate: between two checks it does nothing."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + LOOK_EVERY
        try:
            if not self._loaded:
                self._withheld.add(withheld_in(self._ledger, self._service))
                self._loaded = True
            self._announce_due(now)
        except Exception as problem:  # whatever is wrong with the ledger's files, the queue or their answers
            self._emit(FilesNotRetried(service=self._service, error=str(problem)))

    def _announce_due(self, now: datetime) -> None:
        due = self._withheld.take_due(now, MOST_AT_ONCE)
        if not due:
            return
        left = set(range(len(due)))
        try:
            refused = set(self._announce([one.file for one in due]))
            left = {n for n, one in enumerate(due) if one.file.key in refused}
        finally:
            self._withheld.add(due[n] for n in left)
        such_as = due[0].file.uri
        self._emit(FilesRetried(service=self._service, files=len(due) - len(left), refused=len(left), such_as=such_as))
