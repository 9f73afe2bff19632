"""Gives an operator's command exclusive access: no service ingests, nothing compacts or maintains its tables, no landed file
is moved or deleted, and no batch or retry is unfinished.

In: a view of the lake, and names of tables. The leases last as long as the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from forebay.batch.retrying.plan import PLAN as RETRY_PLAN
from forebay.errors import Halt
from forebay.lake.layout import LEDGER, PLANS, after_load_of, lease_of, plans_of, writer_of, writers_of
from forebay.lake.lease import Lease, hold, holder
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.objects import open_objects
from forebay.operate.lake_view import LakeView


@contextmanager
def alone(view: LakeView, tables: Iterable[str]) -> Iterator[Callable[[], None]]:
    """Yields a check that it is still so. `Halt` where somebody works there."""
    begun, held = _begun(view), list[Lease]()

    def all_must_be_finished() -> None:
        for service in _services(view, begun):
            _must_be_finished(view.lake, service)

    def must_be_alone() -> None:
        for lease in held:
            lease.check()
        if late := sorted({*_begun(view)} - {*begun}):
            raise Halt(f"a job of {late[0]} began meanwhile")
        all_must_be_finished()  # a retry takes none of these leases

    with ExitStack() as leases:
        for place, does in _places(view, begun, tables).items():
            held.append(_held(place, does))
            leases.callback(held[-1].let_go)
        all_must_be_finished()
        yield must_be_alone


def must_be_free(view: LakeView, tables: Iterable[str]) -> None:
    """`Halt` where something works there that no `forebay stop` ends: no job is stopped in vain."""
    for place, does in _places(view, (), tables).items():
        if (found := holder(place)) is not None:
            raise _is_busy(found.who, does)


def _places(view: LakeView, begun: Iterable[str], tables: Iterable[str]) -> dict[str, str]:
    """The leases that keep others away, with the work of whoever holds one."""
    found = {
        writer_of(view.lake, one): f"is ingesting for {one}: `forebay stop` ends it after its batch" for one in begun
    }
    found |= {lease_of(view.lake, one): f"is compacting, merging or maintaining {one}" for one in sorted(tables)}
    moves = "is moving or deleting landed files of {} (after_load). That may take hours, and the next run continues it"
    return found | {after_load_of(view.lake, one): moves.format(one) for one in _services(view, begun)}


def _held(place: str, does: str) -> Lease:
    try:
        return hold(place, wait_s=0)
    except LeaseHeld as taken:
        raise _is_busy(taken.holder, does) from None


def _is_busy(who: str, does: str) -> Halt:
    return Halt(f"{who} {does}. Nothing was changed. Wait until it has ended or end it, then repeat this command")


def _begun(view: LakeView) -> list[str]:
    """The services whose job has ever begun. Of one that was removed from the lake, no lease is made again."""
    return open_objects(writers_of(view.lake)).folders()


def _services(view: LakeView, begun: Iterable[str]) -> list[str]:
    loaded = [row["service"] for row in view.query(LEDGER, "select distinct service from t")]
    return sorted({*begun, *loaded, *open_objects(f"{view.lake}/{PLANS}").folders()})


def _must_be_finished(lake: str, service: str) -> None:
    if left := open_objects(f"{lake}/{PLANS}").names(service):
        raise Halt(
            f"a batch of {service} is unfinished ({left[0]}): start the job once more, stop it, then repeat this command"
        )
    if retry_is_unfinished(lake, service):
        raise Halt(
            f"a retry of {service} is unfinished: finish it with `forebay quarantine retry`, then repeat this command"
        )


def retry_is_unfinished(lake: str, service: str) -> bool:
    return open_objects(plans_of(lake, service)).read(RETRY_PLAN) is not None
