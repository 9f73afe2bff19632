"""A run over tables: each is worked on under the lease that all upkeep of it takes, and a failure of one stops no other.

In: names of tables, and the work on one. Out: a result for each table; together they give the exit status, 1 where a table
was not finished. The next run takes a table that another run holds, that a rollback has not finished, or that is left because
the run should stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from forebay.counted import counted
from forebay.errors import Halt
from forebay.events import Emit, Event
from forebay.lake.layout import lease_of
from forebay.lake.lease import Lease, hold
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.rollback_plan import tables_going_back
from forebay.threads import in_threads
from forebay.upkeep.events import TableLeftForLater


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """The result of one table. `reason` and `detail` say why it was not finished, if it was not."""

    table: str
    reason: str = ""
    detail: str = ""


Result = TypeVar("Result", bound=TableResult)


@dataclass(frozen=True, kw_only=True)
class RunResult(Generic[Result]):
    tables: tuple[Result, ...]

    @property
    def left(self) -> tuple[Result, ...]:
        """Tables that were not finished."""
        return tuple(result for result in self.tables if result.reason)

    @property
    def for_a_person(self) -> tuple[Result, ...]:
        """Those of them that the next run would not finish either."""
        return tuple(result for result in self.left if result.reason not in TableLeftForLater.REASONS)

    @property
    def status(self) -> int:
        return 1 if self.left else 0

    def must_leave_none(self, done: str) -> None:
        """`Halt` where a person must act. Work that the next run takes over is not a failure."""
        if wrong := self.for_a_person:
            named = "; ".join(f"{table.table}: {table.reason}" for table in wrong)
            raise Halt(f"{counted(len(wrong), 'table', 'was')} not {done}, or only in part: {named}")


def over_tables(
    names: Iterable[str],
    lake: str,
    work: Callable[[str, Lease], Result],
    *,
    unfinished: Callable[..., Result],
    at_once: int,
    stop: threading.Event,
) -> tuple[Result, ...]:
    """The result of each table, in their order. `unfinished` makes the result of a table that was not worked on."""

    def of_one(table: str) -> Result:
        if stop.is_set():
            detail = "the run was asked to stop; the next run processes the table"
            return unfinished(table=table, reason="stopped", detail=detail)
        try:
            lease = hold(lease_of(lake, table), wait_s=0)
        except LeaseHeld as taken:
            detail = f"{taken.holder} is working on the table; the next run processes it"
            return unfinished(table=table, reason="busy", detail=detail)
        try:
            if table in tables_going_back(lake):
                detail = "a rollback or a drop of it is unfinished: repeat that command, which finishes it"
                return unfinished(table=table, reason="busy", detail=detail)
            return work(table, lease)
        finally:
            lease.let_go()

    return tuple(in_threads(of_one, names, at_once))


def report_unfinished(done: RunResult[Result], service: str, error: Callable[..., Event], emit: Emit) -> None:
    """An event for each table that was not finished: an `error` where a person must act."""
    for result in done.left:
        event = error if result in done.for_a_person else TableLeftForLater
        emit(event(service=service, table=result.table, reason=result.reason, detail=result.detail))
