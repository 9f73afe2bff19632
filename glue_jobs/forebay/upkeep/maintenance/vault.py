"""The table of a vault is maintained as those of the lake are. Whoever does it cannot decrypt what is in it.

In: a session, a service, and what day it is. Out: `Cared`; None where there is no vault, or nothing in it yet. Rows past their
days leave, keys and values in one. The small files of past days become few. Nobody travels back in a vault, so removed files go
after a day; by then every writer has committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from forebay.declaration.service import Service
from forebay.lake.log.listing import NoTable
from forebay.lake.log.snapshot import Snapshot, read_snapshot
from forebay.lake.objects import open_objects
from forebay.privacy.vault import values_of
from forebay.upkeep.maintenance.care import Cared, care_for
from forebay.upkeep.maintenance.retention import FILES, LOG, Retention

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = {FILES: "interval 24 hours", LOG: "interval 48 hours"}
SMALL_BYTES = 64 << 20
MANY = 8
"""Small files of a day, from which on they are put together."""


def tend_vault(spark: SparkSession, service: Service, *, now: datetime, checkpoint_after: int) -> Cared | None:
    if service.privacy is None or not service.privacy.vault:
        return None
    path = values_of(service.privacy.vault)
    try:
        snapshot = read_snapshot(open_objects(path))
    except NoTable:
        return None
    quoted, days = f"delta.`{path.replace('`', '``')}`", _files_by_day(snapshot)
    if keep := service.privacy.vault_keep_days:
        until = (now - timedelta(days=keep)).date()
        if any(day < until for day in days):
            spark.sql(f"DELETE FROM {quoted} WHERE day < DATE'{until}' AND service <=> '{service.name}'")
    if many := [f"DATE'{day}'" for day, files in sorted(days.items()) if files >= MANY and day < now.date()]:
        spark.sql(f"OPTIMIZE {quoted} WHERE day IN ({', '.join(many)})")
    properties = {name: value for name, value in KEPT.items() if snapshot.configuration.get(name) != value}
    retention = Retention(None, properties)
    return care_for(spark, path, retention, vacuum="lite", checkpoint_after=checkpoint_after, version=snapshot.version)


def _files_by_day(snapshot: Snapshot) -> Mapping[date, int]:
    """How many of them are small."""
    found = Counter[date]()
    for file in snapshot.files:
        if day := dict(file.partition).get("day"):
            found[date.fromisoformat(day)] += file.bytes < SMALL_BYTES
    return found
