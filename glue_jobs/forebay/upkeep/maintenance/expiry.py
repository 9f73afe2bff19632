"""Records that were set aside, and verdicts on rows, that are past the time for which they are kept.

In: the quarantine, the parked records or the verdicts, and for how long a service keeps them. Out: its rows of the days before
are deleted, except rows of a paused table, which will land. Another service in this lake may keep its own longer. The day is
written down before the first row goes. So the accounts, which compare held records with the ledger, never miss an expired row.
The next run repeats a run that was killed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from forebay.batch.reasons import PAUSED_TABLE
from forebay.declaration.service import Service
from forebay.lake.health import Health, HealthRecords
from forebay.lake.layout import PARKED, QUALITY, QUARANTINE
from forebay.lake.log.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASIDE = (QUARANTINE, PARKED)
VERDICTS = QUALITY


def keep_days_of(service: Service, name: str) -> int:
    """The days for which one of our own tables keeps its rows; 0: for ever."""
    if name == VERDICTS:
        return service.keep_verdicts_days
    return service.keep_aside_days if name in ASIDE else 0


def expire(
    spark: SparkSession,
    path: str,
    name: str,
    snapshot: Snapshot,
    *,
    service: str,
    keep_days: int,
    now: datetime,
    records: HealthRecords,
) -> date | None:
    """The first day that stays; None where all of them do."""
    until = (now - timedelta(days=keep_days)).date()
    if not keep_days or not _has_older(snapshot, until):
        return None

    def noted(was: Health) -> Health:
        latest = max(was.expired_before.get(service, ""), until.isoformat())
        return replace(was, expired_before={**was.expired_before, service: latest})

    records.update(name, noted)
    waits = f" AND NOT reason <=> '{PAUSED_TABLE}'" if name == QUARANTINE else ""
    old = f"day < DATE'{until}' AND service <=> '{service}'"
    spark.sql(f"DELETE FROM delta.`{path.replace('`', '``')}` WHERE {old}{waits}")
    return until


def _has_older(snapshot: Snapshot, until: date) -> bool:
    days = (dict(file.partition).get("day") for file in snapshot.files)
    return any(day is not None and day < until.isoformat() for day in days)
