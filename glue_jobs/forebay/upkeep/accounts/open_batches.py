"""Batches that began and have not ended: their rows are in some tables, but not in the ledger yet.

In: the place of a lake. Out: an `OpenBatch` for each plan of a batch whose transaction the ledger lacks. The running job, or
the next start, finishes it. A plan that other code wrote is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial

from forebay.counted import counted
from forebay.errors import Halt
from forebay.lake.layout import LEDGER, PLANS, application, table_path
from forebay.lake.log.commit import rows_of_transaction
from forebay.lake.objects import Objects, open_objects
from forebay.landed_file import LandedFile

Ended = Callable[[str, int], bool]
"""Whether the ledger has the batch of this number, of this application's id."""


@dataclass(frozen=True, order=True)
class OpenBatch:
    began_at: datetime
    service: str
    batch: int
    landed: tuple[LandedFile, ...] = field(repr=False, compare=False)

    @property
    def files(self) -> int:
        return len(self.landed)

    @cached_property
    def file_ids(self) -> frozenset[str]:
        return frozenset(file.file_id for file in self.landed)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Earlier versions of them may be in the process of removal."""
        return frozenset(file.key for file in self.landed)

    def __str__(self) -> str:
        begun = f"{self.began_at:%Y-%m-%d %H:%M:%S}"
        return f"batch {self.batch} of {self.service}, begun at {begun}, with {counted(self.files, 'file')}"


def open_batches(lake: str, ended: Ended | None = None) -> list[OpenBatch]:
    """The oldest first. Unless somebody else can tell, the newest commits of the ledger are read to see what `ended`."""
    lake = lake.rstrip("/")
    plans = open_objects(f"{lake}/{PLANS}")
    ended = ended or partial(_ended, open_objects(table_path(lake, LEDGER)))
    return sorted(found for service in plans.folders() for found in _of(service, plans, ended))


def _ended(ledger: Objects, app_id: str, batch: int) -> bool:
    return rows_of_transaction(ledger, app_id, batch) is not None


def _of(service: str, plans: Objects, ended: Ended) -> Iterator[OpenBatch]:
    if not plans.names(service):
        return  # else everything that reads declarations would be imported
    from forebay.batch.plan import Plans

    try:
        left = Plans(plans, service).left()
    except Halt:
        return
    for plan in left:
        if not ended(application(service, plan.generation), plan.batch):
            yield OpenBatch(plan.began_at, service, plan.batch, plan.files)
