"""Erases people: their rows are removed from every table, and later from disk, when that is due.

In: a view of the lake, the declarations, and people. Out: a report. The order is: a durable plan; the list of erased people,
which keeps their late records out; the end of every batch that does not know the list yet; the vault, if there is one; one
commit for each table, for all people at once; the ledger, which counts the removed rows as dropped; the landing bucket, as
declared. Each step can be repeated, and then does the rest. Ingest, merges and compactions continue in the meantime. No plan,
list, log or report names a person.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from forebay.batch.plan import Plans
from forebay.batch.retrying.plan import PLAN as RETRY_PLAN
from forebay.batch.retrying.plan import RetryPlan
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.errors import ForebayError, Halt
from forebay.lake.layout import (
    DERIVED_FROM,
    LEDGER,
    PLANS,
    TOMBSTONES,
    lease_of,
    plans_of,
    table_path,
)
from forebay.lake.lease import hold
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.objects import open_objects
from forebay.lake.rollback_plan import must_not_be_half_rolled_back
from forebay.ledger.entry import HELD
from forebay.operate.lake_view import LakeView
from forebay.operate.people.erase_report import report_of
from forebay.operate.people.landing import (
    Landed,
    clear_landing,
    held_by_us,
    holding,
    landed_of,
    moved_away,
)
from forebay.operate.people.outlook import tables_of_service
from forebay.operate.people.unseen import unseen
from forebay.privacy.erased import add_erased, list_number
from forebay.upkeep.erase.counts import change_ledger
from forebay.upkeep.erase.due import OtherSecret, erasure_of, gone_from, must_be_its_secret, tables_due
from forebay.upkeep.erase.plan import Done, ErasePlan, Erasures
from forebay.upkeep.erase.table import Refused
from forebay.upkeep.erase.vault import forget

UNCHANGED = (Refused, UnsupportedTable, BrokenLog)
"""Why one table stays unchanged, and the others do not."""
FOR_EVER = datetime.max.replace(tzinfo=UTC)


def begin(view: LakeView, service: Service, tokens: Iterable[str], *, search_landing: bool = False) -> ErasePlan:
    """Makes the plan durable. From then on, the next erasure finishes it."""
    assert service.privacy is not None
    at, anonymise = datetime.now(UTC).isoformat(), service.privacy.erased_rows == "anonymised"
    who, subject = tuple(sorted(set(tokens))), service.privacy.subject or ""
    plan = ErasePlan(0, at, service.name, who, anonymise, search_landing=search_landing, subject=subject)
    return Erasures(view.lake, service.name).begin(plan)


def unfinished(view: LakeView, service: Service) -> list[ErasePlan]:
    """Erasures whose rows have not all left yet."""
    return [plan for plan in Erasures(view.lake, service.name).plans() if not plan.ended]


def carry_out(
    view: LakeView,
    service: Service,
    plan: ErasePlan,
    *,
    wait_s: float,
    tell: Callable[[str], None] = lambda line: None,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """The report. One process at a time does it. It waits for another one, as the lease of one that died runs out; then
    `LeaseHeld` says who has it."""
    must_be_its_secret(service, plan)
    lease = held_by_us(view.lake, service, wait_s, tell)
    try:
        must_not_be_half_rolled_back(view.lake)
        erasures = Erasures(view.lake, service.name)
        plan = erasures.as_kept(plan)
        if plan.ledger_version < 0:
            erased = add_erased(view.lake, service.name, plan.tokens)
            _wait_for_batches(view, service, erased, wait_s, tell, sleep)
            ledger = view.table(LEDGER)
            assert ledger is not None
            now = datetime.now(UTC).isoformat()
            plan = replace(plan, erased=erased, ledger_version=ledger.version(), ledger_at=now)
            erasures.keep(plan)
        plan = _forgotten(service, plan, erasures)
        for name in tables_of_service(view, service):
            lease.check()
            tell(f"{name} ...")
            with _no_retry(view, service, wait_s) if name in HELD else nullcontext():
                _erase_from(view, service, plan, erasures, name, wait_s)
        _note_dropped(view, plan, erasures)
        lease.check()
        must_not_be_half_rolled_back(view.lake)  # its plan has the counts of before
        leaving = _counted(view, plan, erasures.done(plan).values())
        at = datetime.fromisoformat(plan.ledger_at or plan.at)
        # Other erasures may have ended since this one was interrupted, so its transaction has a name of its own.
        app_id = f"{plan.app_id}/{plan.number}"
        change_ledger(view.lake, app_id, plan.number, leaving, as_of=plan.ledger_version, at=at)
        tell("landing ...")
        plan = replace(_landing_cleared(view, service, plan, erasures, tell), ended=True)
        erasures.keep(plan)
        report = report_of(view, service, plan)
        erasures.keep_report(plan, report)
        return report
    finally:
        lease.let_go()


def erase_now(view: LakeView, service: Service, *, due_only: bool, wait_s: float) -> int:
    """Deletes the leftovers on disk: of all tables, or of those where they are due. Returns the number of objects."""
    went, now, stay = 0, datetime.now(UTC) if due_only else FOR_EVER, list[str]()
    for name in tables_due(view.lake, service, now):
        lease = hold(lease_of(view.lake, name), wait_s=wait_s)
        try:
            went += gone_from(
                view.lake, name, service, write_checkpoint=partial(_write_checkpoint, view, name), now=now
            )
        except UNCHANGED as why:
            stay.append(f"{name}: its old files stay: it {_reason(why)}")
        except OtherSecret as why:
            stay.append(f"{name}: its old files stay: {why}")
        finally:
            lease.let_go()
    if stay:
        raise Halt("; ".join(stay))
    return went


# --- inside ---


def _reason(why: ForebayError) -> str:
    return str(why) if isinstance(why, Refused) else f"cannot be read: {why}"


def _write_checkpoint(view: LakeView, name: str, version: int) -> None:
    if (table := view.table(name)) is not None:
        table.create_checkpoint()


def _erase_from(
    view: LakeView, service: Service, plan: ErasePlan, erasures: Erasures, name: str, wait_s: float
) -> None:
    erasure = erasure_of(view.lake, name, service, plan, note=lambda done: erasures.note(plan, done))
    lease = hold(lease_of(view.lake, name), wait_s=wait_s)
    try:
        erasure.erase(erasures.done(plan).get(name))
    except NoTable:
        pass
    except UNCHANGED as why:
        at = datetime.now(UTC).isoformat()
        erasures.note(plan, Done(name, -1, 0, {}, 0, at, at, refused=_reason(why)))
    finally:
        lease.let_go()


@contextmanager
def _no_retry(view: LakeView, service: Service, wait_s: float) -> Iterator[None]:
    """A retry that chose its records before they leave would count them as dropped once more."""
    place = plans_of(view.lake, service.name)
    lease = hold(place, wait_s=wait_s)
    try:
        if open_objects(place).read(RETRY_PLAN) is not None:
            raise Halt("a retry is unfinished; `forebay quarantine retry` finishes it. Repeat the command to continue")
        yield
    finally:
        lease.let_go()


def _note_dropped(view: LakeView, plan: ErasePlan, erasures: Erasures) -> None:
    """A table may have been dropped since an earlier run noted which files its rows were from."""
    now, before = datetime.now(UTC).isoformat(), erasures.done(plan)
    for name in _dropped_before(view):
        noted = before.get(name) or Done(name, -1, 0, {}, 0, now, now)
        erasures.note(plan, replace(noted, refused="", searched=False, dropped=True))


def _dropped_before(view: LakeView) -> list[str]:
    """Tables whose objects were all deleted, and whose old versions a bucket keeps."""
    states = open_objects(table_path(view.lake, TOMBSTONES)).folders_of_old_versions()
    tables = [name for name in open_objects(view.lake).folders_of_old_versions() if not name.startswith(("_", "."))]
    return [*tables, *(f"{TOMBSTONES}/{state}" for state in states)]


def _counted(view: LakeView, plan: ErasePlan, done: Iterable[Done]) -> dict[str, dict[str, int]]:
    """Rows that the ledger counts, by file and table. Rows of computed tables belong to no file, and anonymised rows stay."""
    leaving: dict[str, dict[str, int]] = {}
    for one in done:
        table = view.table(one.table) if one.rows and one.table not in HELD else None
        is_files = table is not None and DERIVED_FROM not in table.metadata().configuration
        if one.table in HELD or (is_files and not plan.anonymise):
            for file_id, rows in one.files.items():
                leaving.setdefault(file_id, {})[one.table] = rows
    return leaving


def _landing_cleared(
    view: LakeView, service: Service, plan: ErasePlan, erasures: Erasures, tell: Callable[[str], None]
) -> ErasePlan:
    done = [*erasures.done(plan).values()]
    known = landed_of(view, done)
    keys = {(one.bucket, one.key) for one in known}
    searched = [one.table for one in done if one.searched and not one.refused]
    others = [one for one in unseen(view, service, searched) if (one.bucket, one.key) not in keys]
    if plan.search_landing:
        tell(f"reads {counted(len(others), 'more landed object')} ...")
        known += holding(service, plan, [Landed(one.bucket, one.key) for one in others])
        away = moved_away(view)
        others = [one for one in others if (one.bucket, one.key) in away]
    erasures.note_landing(plan, clear_landing(view, service, plan, known))
    return replace(plan, unseen_objects=len(others), unseen_bytes=sum(one.bytes for one in others))


def _forgotten(service: Service, plan: ErasePlan, erasures: Erasures) -> ErasePlan:
    """By the vault. The notes stay, also where the rows had left when the run died."""
    noted = [plan]

    def note(done: Done) -> None:
        rows = max(plan.vault_rows, done.rows)
        noted.append(replace(plan, vault_rows=rows, vault_unjudged=done.unjudged_objects))
        erasures.keep(noted[-1])

    forget(service, plan, note=note)
    return noted[-1]


def _wait_for_batches(
    view: LakeView,
    service: Service,
    erased: str,
    wait_s: float,
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
) -> None:
    """Until no batch and no retry is left that goes by an older list."""
    until, reported = time.monotonic() + wait_s, False
    while waits := next(_going_by_older(view, service, erased), ""):
        if time.monotonic() >= until:
            raise Halt(f"{waits}. No row was changed; repeat the command to continue")
        if not reported:
            tell(f"waits: {waits}")
        reported = True
        sleep(1.0)


def _going_by_older(view: LakeView, service: Service, erased: str) -> Iterator[str]:
    for plan in Plans(open_objects(f"{view.lake}/{PLANS}"), service.name).left():
        if list_number(plan.service.get("erased", "")) < list_number(erased):
            yield (
                f"batch {plan.batch} began before and is unfinished; the ingest job finishes it: start it if it is not running"
            )
    found = open_objects(plans_of(view.lake, service.name)).read(RETRY_PLAN)
    if found is not None and list_number(RetryPlan.of_json(found).service.get("erased", "")) < list_number(erased):
        yield "a retry began before and is unfinished; `forebay quarantine retry` finishes it"
