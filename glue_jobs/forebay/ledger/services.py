"""The services of a lake. Several may load the same objects, each into its own tables.

A service knows the files that it loaded itself, and those of the services with which it declares to share files. So the ledger
has a row for each service that loaded an object, and each row has its own id. The ids of a lake's first service do not contain
its name, as in a lake with one service. `LandedFile.service` names all others.

In: the ledger's data files, read without Spark. Out: the first service, and the tables that other services fill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import data_files, plainly_typed, services_in

FIRST = "first"


def first_service(services: Objects, ledger: Objects, service: str) -> str:
    """The first service of a lake: the first caller in an empty lake. In lakes that are older than this note, a service that
    has rows. The answer never changes."""
    content = services.read(FIRST)
    if content is None:
        found = _likely_first(ledger, service)
        if services.write_once(FIRST, found.encode()):
            return found
        content = services.read(FIRST)
    return (content or b"").decode()


def as_new(services: Objects, ledger: Objects, service: str) -> str:
    """`LandedFile.service` of files that the ledger does not have, as the next batch of this service will know them."""
    content = services.read(FIRST)
    first = _likely_first(ledger, service) if content is None else content.decode()
    return "" if service == first else service


def _likely_first(ledger: Objects, service: str) -> str:
    there = services_of_ledger(ledger)
    return service if service in there or not there else min(there)


def services_of_ledger(ledger: Objects) -> frozenset[str]:
    """All that have rows."""
    return frozenset().union(*map(services_in, data_files(ledger)))


def as_services_know(file: LandedFile, names: Iterable[str]) -> list[LandedFile]:
    """The file with each of the ids by which these services may know it."""
    return [replace(file, service=name) for name in ("", *names)]


def tables_of_others(ledger: Objects, names: Collection[str]) -> Mapping[str, frozenset[str]]:
    """The tables that services of other names filled, by service."""
    found: dict[str, set[str]] = defaultdict(set)
    for parquet in data_files(ledger):
        others = services_in(parquet) - set(names)
        if not others:
            continue
        rows = plainly_typed(parquet.read(columns=["service", "tables"]))
        for other in others:
            maps = rows.filter(pc.equal(rows["service"], other))["tables"]
            for part in maps.chunks:
                found[other] |= {*part.drop_null().keys.cast(pa.string()).unique().to_pylist()}
    return {name: frozenset(tables) for name, tables in found.items()}
