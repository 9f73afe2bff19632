"""The services of a lake that load from the landing buckets: which still need a file, and which would load its copy.

In: the ledger, the declarations that the lake keeps, and which rows are lost. Out: `Readers`. A service reads a bucket if its
feed names it, or if it loaded something from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from forebay.address import bucket_and_key, is_s3
from forebay.declaration.kept.in_force import kept_services
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import LEDGER, table_path
from forebay.lake.objects import Objects, open_objects
from forebay.lake.rows import python_rows
from forebay.ledger.data_files import data_files, plainly_typed, services_in, values_in
from forebay.upkeep.after_load.due import COLUMNS, Version, is_clear, version_of
from forebay.upkeep.after_load.originals import DUPLICATE, keys_of_needed_duplicates

WRITTEN = ("part-0.parquet", "part-0.json")
WAITS_DAYS = 30
"""So long a file waits for another service that has not loaded it. A queue and its dead letters keep a message for 14 days."""


@dataclass
class Readers:
    """`buckets` are those from which each service loaded. Of services that share no files with this one: `needed` are versions
    that will perhaps be read again, and `loaded` are those that each has loaded lately. Rows that `are_lost` come back
    with a replay of their file. Duplicates with the keys `only_copies` may be read in place of their original."""

    service: Service
    others: tuple[Service, ...] = ()
    buckets: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    needed: set[Version] = field(default_factory=set)
    loaded: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    are_lost: Callable[[Mapping[str, Any]], bool] = lambda row: False
    only_copies: Callable[[], Collection[tuple[str, str]]] = frozenset

    def loads(self, bucket: str, key: str) -> str:
        """The name of the service that would load an object there; empty if none does."""
        return next((one.name for one in (self.service, *self.others) if self._reads(one, bucket, key)), "")

    def forgets(self, bucket: str, key: str) -> str:
        """The name of the other service that would take the rows out, if the object was deleted."""
        forgetting = (one for one in self.others if one.on_delete == "forget")
        return next((one.name for one in forgetting if self._reads(one, bucket, key)), "")

    def wait_for(self, row: Mapping[str, Any], now: datetime) -> bool:
        """Whether another service may read this file later, again or for the first time, or this one needs it and would find no
        copy."""
        rule = self.service.after_load
        version = version_of(row)
        if version in self.needed or (rule is not None and rule.delete and self._is_only_copy(row)):
            return True
        if row["committed_at"] < now - timedelta(days=WAITS_DAYS):
            return False
        reading = (one.name for one in self.others if self._reads(one, row["bucket"], row["key"]))
        return any(hash(version) not in self.loaded[name] for name in reading)

    def _is_only_copy(self, row: Mapping[str, Any]) -> bool:
        if row["outcome"] == DUPLICATE:
            return (row["bucket"], row["key"]) in self.only_copies()
        return self.are_lost(row)

    def _reads(self, one: Service, bucket: str, key: str) -> bool:
        feed = one.feed_of(bucket, key)
        return feed is not None and (bool(feed.bucket) or bucket in self.buckets[one.name])


def readers_of(
    ledger: Objects,
    service: Service,
    kept: Iterable[Service],
    *,
    now: datetime,
    are_lost: Callable[[Mapping[str, Any]], bool],
) -> Readers:
    """`kept` are all services of the lake. Those that share files with this one need none of their own."""
    others = (one for one in kept if one.name != service.name and not _share(one, service))
    only_copies = cache(lambda: keys_of_needed_duplicates(ledger, are_lost))
    found = Readers(service, tuple(others), are_lost=are_lost, only_copies=only_copies)
    lately = now - timedelta(days=2 * WAITS_DAYS)
    for parquet in data_files(ledger):
        if services_in(parquet) <= {service.name}:
            found.buckets[service.name].update(values_in(parquet, "bucket"))
            continue
        for row in python_rows(plainly_typed(parquet.read(columns=[*COLUMNS, "service"]))):
            name = row["service"] or service.name
            found.buckets[name].add(row["bucket"])
            if name != service.name and (not is_clear(row) or found.are_lost(row)):
                found.needed.add(version_of(row))
            elif name != service.name and row["committed_at"] >= lately:
                found.loaded[name].add(hash(version_of(row)))
    return found


def must_not_be_landed(lake: str, place: str) -> None:
    """S3 may announce what is written there, and then the service that lands files there would load it."""
    if not is_s3(place):
        return
    bucket, prefix = bucket_and_key(place)
    found: dict[str, set[str]] = defaultdict(set)
    for parquet in data_files(open_objects(table_path(lake, LEDGER))):
        for name in services_in(parquet):
            found[name].update(values_in(parquet, "bucket"))
    for service in kept_services(lake):
        readers = Readers(service, buckets=found)
        if any(readers.loads(bucket, f"{prefix.rstrip('/')}/table/{name}".lstrip("/")) for name in WRITTEN):
            what = f"is where service {service.name} takes in files: it would load what is written there"
            raise InvalidConfiguration.one(place, what, "name a place in another bucket")


def _share(one: Service, other: Service) -> bool:
    return one.name in other.shares_files_with or other.name in one.shares_files_with
