"""Keeps a batch that replaces or replays a file and a retry that moves its held records from running at once.

In: the files of a batch, and the plan of a retry, if there is one. Out: the files that wait. A batch makes its own plan
durable before its last check, and a retry does the same, so one of them sees the other. A file that waits counts as one that
S3 withholds: its earlier rows stay, and it will be received again. The batch does not change the ledger's row of a replay that
waits, for the retry may be changing its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from forebay.batch.retrying.plan import PLAN
from forebay.content.end import FileEnd, unread_end
from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.versions import Sorted, Superseded

RETRY_UNDER_WAY = "retry-under-way"
DETAIL = (
    "a retry of held records is under way, and it may move records of the version that this one replaces. "
    "If that retry died, `forebay quarantine retry` finishes it"
)


class Turns:
    """`tries` is where a service's retries keep their plan."""

    def __init__(self, tries: Objects) -> None:
        self._tries = tries

    def taken(self, split: Sorted) -> frozenset[str]:
        """The ids of new files that would let records go which a retry may be moving."""
        ids = frozenset(one.by.file_id for one in _held(split.superseded))
        return ids if ids and self._tries.read(PLAN) is not None else frozenset()

    @staticmethod
    def watched(split: Sorted) -> list[Superseded]:
        """The earlier versions that a retry or an operator may be changing, too."""
        return [*split.leaving, *split.replays.values()]

    def lost(self, split: Sorted, claim_again: Callable[[], Claim], waiting: Collection[str] = ()) -> bool:
        """Once the batch's plan is durable: whether a retry is under way, or moved records since the claim. Or whether an
        operator changed a mark of a file in the batch, or of one that leaves: such a command looks for plans afterwards. The
        batch changes no row of replays that are `waiting`."""
        watched = [one for one in self.watched(split) if one.by.file_id not in waiting]
        if _held(watched) and self._tries.read(PLAN) is not None:
            return True
        if not watched:
            return False
        rows = {seen.file.file_id: seen.row for some in claim_again().earlier.values() for seen in some}
        return any(rows.get(one.earlier.file.file_id) != one.earlier.row for one in watched)


def waiting_in(ends: Iterable[FileEnd]) -> set[str]:
    """The ids of the files that wait."""
    return {end.file.file_id for end in ends if end.reason == RETRY_UNDER_WAY}


def waiting_end(file: LandedFile) -> FileEnd:
    """The end of a waiting file, like that of a file that S3 did not return."""
    return unread_end(file, "unavailable", RETRY_UNDER_WAY, DETAIL)


def _held(superseded: Iterable[Superseded]) -> list[Superseded]:
    return [one for one in superseded if one.earlier.row["quarantined"] or one.earlier.row["parked"]]
