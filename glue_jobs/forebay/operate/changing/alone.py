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
from forebay.lake.lease import Lease, hold
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
        for place in (
            *(writer_of(view.lake, one) for one in begun),
            *(lease_of(view.lake, one) for one in sorted(tables)),
            *(after_load_of(view.lake, one) for one in _services(view, begun)),
        ):
            held.append(hold(place, wait_s=0))
            leases.callback(held[-1].let_go)
        all_must_be_finished()
        yield must_be_alone


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
