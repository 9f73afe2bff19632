"""The reconcile job, as Glue, EMR and the laptop run it. It announces recent files that the ledger does not know, as S3
should have done.

In: `ReconcileSettings`. Out: `Reconciled`. The newest hours are left out: their files may be on their way. A file that has
waited for longer than that is announced again, which is harmless, and so is one whose message became a dead letter. It counts
as missed unless its message may still be in the queue: the count of missed files is reduced by the number of messages there.
Files of a batch that has not ended are on their way. A second run announces them again, and loaded files are not loaded again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from forebay.aws.announce import announce, messages_in
from forebay.aws.client import client, queue_client
from forebay.aws.preflight import check_lake, check_queue
from forebay.declaration.kept.in_force import service_for
from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.layout import LEDGER, services_of, table_path
from forebay.lake.objects import open_objects
from forebay.lake.s3_objects import s3_client
from forebay.landed_file import LandedFile
from forebay.ledger.services import as_new, as_services_know
from forebay.ledger.withheld import withheld_in
from forebay.settings import ReconcileSettings
from forebay.upkeep.accounts.open_batches import open_batches
from forebay.upkeep.complete.look import Landing, Looker, periods_of, rules_of
from forebay.upkeep.complete.tell import sender
from forebay.upkeep.complete.watch import look_and_tell
from forebay.upkeep.reconcile.events import FilesReconciled
from forebay.upkeep.reconcile.known import known_since, unknown
from forebay.upkeep.reconcile.landed import landed_files, prefixes_of
from forebay.upkeep.reconcile.last import LastReconcile, keep

CLOCKS_DIFFER = timedelta(hours=1)
"""S3's clock may be ahead of ours, so files that were written just now are counted, too."""


@dataclass(frozen=True)
class Reconciled:
    """`missed` files have the ids by which the next batch of the service knows them. Some of them may still wait in the queue.
    `too_new`: files of the newest hours, which are left out because their notifications may be on their way. `withheld`: files
    in the ledger that S3 did not give."""

    looked_at: int
    missed: tuple[LandedFile, ...]
    may_wait: int = 0
    refused: tuple[str, ...] = ()
    too_new: int = 0
    withheld: tuple[LandedFile, ...] = ()

    @property
    def surely_missed(self) -> int:
        return len(self.missed) - self.may_wait


def reconcile(settings: ReconcileSettings, *, emit: Emit, now: datetime | None = None) -> Reconciled:
    began, service = time.monotonic(), service_for(settings.service, settings.lake, settings.deployed_service)
    now = now or datetime.now(UTC)
    check_lake(settings.lake)
    check_queue(settings.queue_url)
    sqs = queue_client(settings.queue_url)
    found = find_missed(settings, s3=s3_client(), sqs=sqs, now=now)
    # A queue keeps no order, but mostly that of a message: so the version that comes last is the latest one.
    again = sorted((*found.missed, *found.withheld), key=lambda file: file.event_time or now)
    refused = announce(sqs, settings.queue_url, again)
    such_as = found.missed[0].uri if found.surely_missed else ""
    keep(settings.lake, LastReconcile(now, found.looked_at, found.surely_missed, len(found.withheld), such_as))
    emit(
        FilesReconciled(
            service=service.name,
            files=found.looked_at,
            missed=found.surely_missed,
            may_wait=found.may_wait,
            withheld=len(found.withheld),
            refused=len(refused),
            such_as=such_as,
            seconds=round(time.monotonic() - began, 3),
        )
    )
    see_whether_complete(settings, service, emit)
    return replace(found, refused=tuple(refused))


def see_whether_complete(settings: ReconcileSettings, service: Service, emit: Emit) -> None:
    """Checks all open hours and days, also those for which no job ran at the end of their quiet time."""
    if not rules_of(service):
        return
    periods, buckets = periods_of(settings.lake), [place.split("/")[2] for place in settings.landing.split(",")]
    looker = Looker(settings.lake, periods, Landing(s3_client, sorted(set(buckets))), emit=emit)
    wanted = [one.key for one in periods.rows().values() if one.complete_at is None]
    look_and_tell(looker, periods, service, settings.lake, wanted, sender(partial(client, "events")), emit)


def find_missed(settings: ReconcileSettings, *, s3: Any, sqs: Any, now: datetime) -> Reconciled:
    """Announces nothing. Only files that the ledger lacks are held until the bucket was listed. Then the ledger is read once
    more, for files that were loaded meanwhile."""
    service = service_for(settings.service, settings.lake, settings.deployed_service)
    names = (service.name, *service.shares_files_with)
    since, until = now - timedelta(hours=settings.look_back_hours), now - timedelta(hours=settings.settle_hours)
    ledger = open_objects(table_path(settings.lake, LEDGER))
    known = known_since(ledger, since, names)

    def look(page: list[LandedFile]) -> Reconciled:
        files = [file for file in page if file.event_time is not None and file.event_time < until]
        return Reconciled(len(files), unknown(files, known, names), too_new=len(page) - len(files))

    pages = list(_landed(settings, s3, since, now, look, without_deleted=service.on_delete == "forget"))
    missed, messages = tuple(file for page in pages for file in page.missed), 0
    if missed:
        messages = messages_in(sqs, settings.queue_url)  # before the last look, by which their files may be loaded
        on_their_way = {
            file_id for one in open_batches(settings.lake) if one.service in names for file_id in one.file_ids
        }
        own = as_new(open_objects(services_of(settings.lake)), ledger, service.name)
        missed = tuple(replace(file, service=own) for file in missed if not _is_among(on_their_way, file, names))
        missed = unknown(missed, known_since(ledger, since, names), names)
    withheld = tuple(one.file for one in withheld_in(ledger, service.name))
    looked_at, too_new = sum(page.looked_at for page in pages), sum(page.too_new for page in pages)
    return Reconciled(looked_at, missed, min(messages, len(missed)), too_new=too_new, withheld=withheld)


def _is_among(file_ids: Collection[str], file: LandedFile, services: Collection[str]) -> bool:
    return any(one.file_id in file_ids for one in as_services_know(file, services))


def _landed(
    settings: ReconcileSettings,
    s3: Any,
    since: datetime,
    now: datetime,
    look: Callable[[list[LandedFile]], Reconciled],
    *,
    without_deleted: bool,
) -> Iterator[Reconciled]:
    """Without deleted versions where a deletion takes rows out: the ledger may be younger than the deletion."""
    span = {"since": since, "until": now + CLOCKS_DIFFER}
    for place in settings.landing.split(","):
        bucket, _, pattern = place.removeprefix("s3://").partition("/")
        prefixes = prefixes_of(pattern, since, now)
        yield from landed_files(s3, bucket, prefixes, **span, say=look, without_deleted=without_deleted)
