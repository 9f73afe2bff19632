"""Deletes the files that an erasure left for readers of older versions, once they are due.

In: a lake, a service, and one of its tables, which nobody else maintains in the meantime. Out: how many objects were deleted.
An erasure is not due before all its rows have left. The table is searched once more before: a merge may have added an old row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from typing import BinaryIO

from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import DERIVED_FROM, PARKED, QUARANTINE, table_path
from forebay.lake.log.listing import NoTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import Snapshot, read_snapshot
from forebay.lake.objects import Objects, open_objects
from forebay.privacy.known_secret import must_be_known_secret
from forebay.privacy.secret import secret_at
from forebay.privacy.token import token_of
from forebay.upkeep.erase.keeping import must_keep_subject
from forebay.upkeep.erase.places import Place, is_of_nobody, keys_of, personal_columns, subject_places
from forebay.upkeep.erase.plan import Done, ErasePlan, Erasures
from forebay.upkeep.erase.purge import WriteCheckpoint, purge
from forebay.upkeep.erase.rows import Change, Erased, Found, found_in, null_in
from forebay.upkeep.erase.table import Find, Leaving, Refused, TableErasure

USUAL = timedelta(days=7)


def readable_for(table: str, service: Service) -> timedelta:
    """How long older versions of a table can be read; the longest where several declarations may give the name."""
    days = [one.time_travel_days for one in service.tables if any(fnmatchcase(table, glob) for glob in one.globs)]
    return max((timedelta(days=number) for number in days), default=USUAL)


def erasure_of(
    lake: str, table: str, service: Service, plan: ErasePlan, *, note: Callable[[Done], None]
) -> TableErasure:
    leaving = Leaving(
        plan.app_id,
        plan.number,
        partial(_finder, table, service, erased_by(plan, service)),
        partial(_nulled, table, service, plan),
    )
    objects = open_objects(table_path(lake, table))
    return TableErasure(table, objects, leaving, keep=readable_for(table, service), note=note)


def erased_by(plan: ErasePlan, service: Service) -> Erased:
    assert service.privacy is not None
    return Erased(frozenset(plan.tokens), secret_at(service.privacy.secret), service.name)


class OtherSecret(InvalidConfiguration):
    """An erasure began with another secret."""


def must_be_its_secret(service: Service, plan: ErasePlan) -> None:
    """With another secret nobody would be found, and the report would call them erased. A token is its own token under one
    secret. Earlier versions accepted a new secret, so a lake may know two, and erasures of both."""
    assert service.privacy is not None
    secret = secret_at(service.privacy.secret)
    if any(token_of(token, secret) != token for token in plan.tokens):
        problem = "began with a different secret than these declarations name; no row was changed"
        raise OtherSecret.one(f"erasure {plan.number}", problem, "name its declarations with --service")


def places_in(snapshot: Snapshot, table: str, service: Service) -> tuple[Place, ...]:
    log = snapshot.configuration.get(DERIVED_FROM)
    return subject_places(table, service, snapshot.columns, log, keys_of(snapshot.said_of))


def _finder(table: str, service: Service, erased: Erased, snapshot: Snapshot) -> Find | None:
    places = places_in(snapshot, table, service)

    def find(content: BinaryIO, file: LiveFile) -> Found:
        found = found_in(content, places, erased, file.partition)
        if found.rows and any(place.column in dict(file.partition) for place in places):
            raise Refused("is partitioned by its subject, so its log names people")
        return found

    return find if places or is_of_nobody(table, service) else None


def _nulled(table: str, service: Service, plan: ErasePlan, snapshot: Snapshot) -> Change | None:
    """From a table that is computed from another one, rows are removed in any case: the next merge restores those that
    stay."""
    kept_or_computed = table in (QUARANTINE, PARKED) or DERIVED_FROM in snapshot.configuration
    if kept_or_computed or not plan.anonymise:
        return None
    return partial(null_in, personal_columns(table, service, snapshot.columns, keys_of(snapshot.said_of)))


def tables_due(lake: str, service: Service, now: datetime) -> list[str]:
    """The tables with files that must be deleted by now."""
    erasures = Erasures(lake, service.name)
    plans = [plan for plan in erasures.plans() if plan.ended and not plan.gone_at]
    return sorted({one.table for plan in plans for one in erasures.done(plan).values() if _is_due(one, now)})


def _is_due(done: Done, now: datetime) -> bool:
    return done.gone is None and not done.refused and datetime.fromisoformat(done.due_at) <= now


def _has_objects(table: Objects) -> bool:
    """Whether a dropped table still has files, or a bucket keeps their versions: nobody examines these."""
    return any(True for _ in table.found()) or any(True for _ in table.old_versions())


def gone_from(
    lake: str,
    table: str,
    service: Service,
    *,
    write_checkpoint: WriteCheckpoint,
    now: datetime | None = None,
) -> int:
    """A caller that must not wait passes a later `now`. `OtherSecret` comes last: no other erasure waits for that one."""
    must_keep_subject(lake, service)
    if not service.subject:
        return 0
    now, erasures, went = now or datetime.now(UTC), Erasures(lake, service.name), 0
    refused: OtherSecret | None = None
    for plan in erasures.plans():
        done = erasures.done(plan).get(table) if plan.ended and not plan.gone_at else None
        if done is None or not _is_due(done, now):
            continue
        must_be_known_secret(lake, service)
        try:
            must_be_its_secret(service, plan)
        except OtherSecret as other:
            refused = refused or other
            continue
        objects = open_objects(table_path(lake, table))
        erasure = erasure_of(lake, table, service, plan, note=lambda _: None)
        try:
            again = erasure.erase(None)
        except NoTable:
            if not _has_objects(objects):
                erasures.note(plan, replace(done, gone=0))
            continue
        since = again.version if again.rows else done.version
        places = places_in(read_snapshot(objects), table, service)
        purged = purge(objects, places, erased_by(plan, service), since=since, write_checkpoint=write_checkpoint)
        judged = replace(done, unjudged_rows=again.unjudged_rows, unjudged_objects=purged.unjudged)
        erasures.note(plan, replace(judged, gone=purged.deleted))
        if all(one.gone is not None for one in erasures.done(plan).values()):
            erasures.keep(replace(plan, gone_at=datetime.now(UTC).isoformat()))
        went += purged.deleted
    if refused is not None:
        raise refused
    return went
