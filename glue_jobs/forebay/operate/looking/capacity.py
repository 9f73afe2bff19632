"""The arrivals of a lake's last days, and how fast its batches were, from the ledger.

In: a view of the lake. Out: arrivals by the minute, in seconds, the time from which they are, and a `Pace`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forebay.capacity.pace import Done, Pace
from forebay.capacity.rules import DAY_S
from forebay.capacity.simulation import Arrivals
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import LEDGER
from forebay.operate.lake_view import LakeView, known_service, quoted

LOADED = "outcome in ('loaded', 'empty', 'unreadable', 'superseded', 'duplicate')"
"""Files that a batch read or knew; others take no time."""
BATCHES = 240


def rows_of_service(view: LakeView, named: str) -> str:
    """SQL for the rows of one service: each has runs of its own. `InvalidConfiguration` if there are several and none is
    named."""
    if named:
        return f"service = {quoted(known_service(view, named))}"
    found = view.query(LEDGER, "select distinct service from t where service is not null order by service")
    there = [row["service"] for row in found]
    if len(there) > 1:
        several = f"is needed, because {view.lake} has the services {', '.join(there)}"
        raise InvalidConfiguration.one("--of", several, "name one: each has runs of its own")
    return "true"


def arrivals_of(view: LakeView, *, days: int, of: str = "true", now: datetime | None = None) -> tuple[Arrivals, float]:
    """When S3 took the files; when a batch did, where a file's notification has no time. Files that were announced long after
    their time (a backfill) are arrivals of their batch. The seconds are those since a younger lake's first file, a day at
    least. `of` chooses rows. They begin at a whole hour: a replay looks for files at the same times whenever somebody asks."""
    now = now or datetime.now(UTC)
    since = (now - timedelta(days=days)).replace(minute=0, second=0, microsecond=0)
    came = (
        "case when event_time is null or event_time < claimed_at - interval '1' day then claimed_at else event_time end"
    )
    rows = view.query(
        LEDGER,
        f"select date_trunc('minute', {came}) as minute, count(*) as files from t "
        f"where day >= date '{since.date()}' and {of} and {LOADED} group by 1 order by 1",
    )
    found = [((row["minute"].astimezone(UTC) - since).total_seconds(), row["files"]) for row in rows]
    arrivals, span_s = [(at, files) for at, files in found if at >= 0], (now - since).total_seconds()
    if not arrivals or view.query(LEDGER, f"select 1 from t where day < date '{since.date()}' and {of} limit 1"):
        return arrivals, span_s
    begin = min(arrivals[0][0], span_s - DAY_S) // 3600 * 3600
    return [(at - begin, files) for at, files in arrivals], span_s - begin


def pace_of(view: LakeView, of: str = "true") -> Pace:
    """The pace of the last batches. A batch that a later run finished took longer than its work, so the slowest tenth is left
    out."""
    rows = view.query(
        LEDGER,
        "select count(*) as files, min(claimed_at) as began, max(committed_at) as ended from t "
        f"where {of} and {LOADED} and batch is not null group by service, generation, batch order by 3 desc limit {BATCHES}",
    )
    done = [Done(row["ended"].timestamp(), row["files"], (row["ended"] - row["began"]).total_seconds()) for row in rows]
    usual = sorted(done, key=lambda one: one.seconds / one.files)[: max(1, len(done) * 9 // 10)]
    return Pace(batches=tuple(sorted(usual, key=lambda one: one.at)))
