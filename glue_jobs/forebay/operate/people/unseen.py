"""Finds landed objects that may hold a person's records, although no row says so. Only reading them can tell.

In: the ledger, and the tables that were searched. Out: `Unseen`. Records of such an object were dropped: late ones of erased
people, duplicates, records dropped by a rule, expired rows. Or the object was not loaded, or no longer counts as loaded:
skipped, superseded, forgotten. Or its rows are in a table without a subject.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from forebay.declaration.service import Service
from forebay.lake.health import HealthRecords
from forebay.lake.layout import LEDGER
from forebay.ledger.entry import HELD
from forebay.operate.changing.replay import STANDING
from forebay.operate.lake_view import LakeView, quoted


@dataclass(frozen=True)
class Unseen:
    """`bytes` of all versions of the object that the ledger has."""

    bucket: str
    key: str
    bytes: int


def unseen(view: LakeView, service: Service, searched: Collection[str]) -> list[Unseen]:
    """The unseen objects, in order of their keys."""
    may = " or ".join(_where(view, service, searched))
    rows = view.query(
        LEDGER,
        f"select bucket, key, sum(size) as bytes from t where {_of(service)} and ({may}) group by bucket, key order by 1, 2",
    )
    return [Unseen(row["bucket"], row["key"], row["bytes"] or 0) for row in rows]


def _where(view: LakeView, service: Service, searched: Collection[str]) -> Iterator[str]:
    """Conditions on a row of the ledger."""
    yield f"outcome not in ({', '.join(map(quoted, STANDING))})"
    yield "dropped > 0"
    health = HealthRecords(view.lake)
    for table, count in HELD.items():
        if table not in searched:
            yield f"{count} > 0"
        elif until := health.of(table).expired_before.get(service.name):  # the ledger still counts records that expired
            yield f"({count} > 0 and day <= date {quoted(until)})"
    written = view.query(LEDGER, f"select distinct unnest(map_keys(tables)) as name from t where {_of(service)}")
    for name in sorted({row["name"] for row in written} - set(searched)):
        yield f"array_has(map_keys(tables), {quoted(name)})"


def _of(service: Service) -> str:
    return f"service = {quoted(service.name)}"
