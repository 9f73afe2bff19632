"""Finds the reasons for which tables must stay for now, although somebody would drop them.

In: a view of the lake, the declarations in force, and names of tables. Out: problems. The next record or the next merge would
make such a table again, or another table is computed from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from forebay.batch.reasons import PAUSED_TABLE, TABLE_FAILED
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.errors import Problem
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.held import waiting_for


def must_stay(view: LakeView, services: Sequence[Service], names: Sequence[str]) -> list[Problem]:
    return [*_declared(services, names), *_needed(view, services, names), *_waiting(view, services, names)]


# --- inside ---


def _declared(services: Iterable[Service], names: Collection[str]) -> Iterator[Problem]:
    """Problems of tables that the declarations in force would make again with the next record."""
    hint = "remove the declaration, run the ingest job once with the others, then repeat this command"
    for service in services:
        fixed = {one.name: "sends records to it" for one in service.tables}
        fixed |= {one.merge.into: f"computes it from {one.name}" for one in service.tables if one.merge}
        fixed |= {one.name: f"computes it from {', '.join(one.tables)}" for one in service.rollups}
        yield from (
            Problem(f"table {name}", f"service {service.name} {fixed[name]}", hint) for name in names if name in fixed
        )
        for rollup in service.rollups:
            for name in set(rollup.tables) & set(names) if rollup.name not in names else ():
                yield Problem(
                    f"table {name}", f"the rollup {rollup.name} of service {service.name} counts its rows", hint
                )


def _needed(view: LakeView, services: Iterable[Service], names: Collection[str]) -> Iterator[Problem]:
    """Problems of tables from which others are computed, and of states whose changes stay: the next merge would make them
    again."""
    others = [name for name in view.tables() if name not in names]
    for other, of_other in view.origins(others).items():
        if taken := sorted(set(of_other) & set(names)):
            hint = f"name both: forebay tables drop {' '.join((*taken, other))}"
            yield Problem(f"table {taken[0]}", f"{other} is computed from it", hint)
    for service in services:
        for other in others:
            maker = service.maker_of(other)
            if maker is not None and (state := maker.state_of(other)) in names:
                yield Problem(
                    f"table {state}", f"is computed from {other}", f"name both: forebay tables drop {other} {state}"
                )


def _waiting(view: LakeView, services: Sequence[Service], names: Collection[str]) -> Iterator[Problem]:
    """Problems of records in the quarantine that the next start of the job would load, into a table that it makes again."""
    for reason in (TABLE_FAILED, PAUSED_TABLE):
        for name, waits in waiting_for(view, reason).items():
            if name in names and any(service.maker_of(name) is not None for service in services):
                problem = f"{counted(waits.rows, 'record', 'waits')} for it in the quarantine, and would make it again"
                hint = f"forebay quarantine drop --table {name} --reason {reason}"
                yield Problem(f"table {name}", problem, hint)
