"""The health of a table: small objects in the lake, which every job that changes a table updates.

In: a table's snapshot, and the changes since. Out: `Health`, as `<lake>/_forebay/health/<table>.json`. Compaction and
maintenance write what the log says; ingest adds the files that it appends, now and then, so that it costs a few requests an
hour. So the numbers may be out of date, and never decide about data: they only decide whether a job is worth starting. The
function that starts it reads the same objects, without this package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta

from forebay.aws.retrying import ATTEMPTS
from forebay.events import TableEvent, metric
from forebay.lake.layout import HEALTH
from forebay.lake.log.live_file import Partition
from forebay.lake.log.snapshot import Snapshot
from forebay.lake.objects import Objects, open_objects

SMALL_BELOW_BYTES = 96 << 20
"""The limit of a small file without the table's policy: three quarters of half of 256 MiB, as with the policy's defaults."""
HOUR, HOURS_KEPT = "%Y-%m-%dT%H", 48


@dataclass(frozen=True, kw_only=True)
class Health:
    """A table as of `measured_at`, and what came since. `waiting` are small files that a compaction could do something about:
    those that came since the last look, and those that it had to leave. It is worth starting one when `waiting` reaches
    `wakes_at` and nothing came for `cold_after_s`; or reaches `hot_wakes_at`, whatever comes."""

    table: str
    measured_at: datetime | None = None
    version: int = -1
    files: int = 0
    small_files: int = 0
    bytes: int = 0
    partitions: int = 0
    deleted_rows: int = 0
    log_objects: int = 0
    since_checkpoint: int = 0
    waiting: int = 0
    wakes_at: int = 8
    hot_wakes_at: int | None = 200
    cold_after_s: float = 3600
    newest_at: datetime | None = None
    compacted_at: datetime | None = None
    vacuumed_at: datetime | None = None
    expired_before: Mapping[str, str] = field(default_factory=dict)
    """For the quarantine and the parked records, by service: its rows of earlier days have been deleted, or are about to be."""
    small_below_bytes: int = SMALL_BELOW_BYTES
    ordered: Mapping[str, str] = field(default_factory=dict)
    """When each partition was last put in order as a whole; partitions as JSON."""
    left_out: int = 0
    """Fields that got no column when the limit of columns was reached last; `schema settle` forgets it."""
    left_out_such_as: str = ""
    rows_by_hour: Mapping[str, int] = field(default_factory=dict)
    """Rows that ingest appended in each of the last hours, such as `2026-05-01T12`."""

    @property
    def small_share(self) -> float:
        return self.small_files / self.files if self.files else 0.0

    @property
    def average_bytes(self) -> int:
        return self.bytes // self.files if self.files else 0

    def with_arrivals(self, files: int, size: int, at: datetime, *, rows: int = 0) -> Health:
        hour, first = f"{at:{HOUR}}", f"{at - timedelta(hours=HOURS_KEPT - 1):{HOUR}}"
        by_hour = {**self.rows_by_hour, hour: self.rows_by_hour.get(hour, 0) + rows}
        small = files if size < files * self.small_below_bytes else 0
        return replace(
            self,
            files=self.files + files,
            small_files=self.small_files + small,
            bytes=self.bytes + size,
            waiting=self.waiting + small,
            newest_at=max(at, self.newest_at or at),
            rows_by_hour={one: count for one, count in by_hour.items() if one >= first},
        )

    def ordered_partitions(self) -> dict[Partition, datetime]:
        return {_partition(text): datetime.fromisoformat(at) for text, at in self.ordered.items()}

    def with_ordered(self, partitions: Iterable[Partition], at: datetime) -> Health:
        return replace(self, ordered={**self.ordered, **{json.dumps(p): at.isoformat() for p in partitions}})

    def as_json(self) -> str:
        return json.dumps(asdict(self), default=datetime.isoformat, indent=1)

    @classmethod
    def from_json(cls, content: str) -> Health:
        """Fields of another version of ours are passed over."""
        stored = json.loads(content)
        known = {f.name: stored[f.name] for f in fields(cls) if f.name in stored}
        for name in ("measured_at", "newest_at", "compacted_at", "vacuumed_at"):
            if known.get(name):
                known[name] = datetime.fromisoformat(known[name])
        return cls(**known)


@dataclass(frozen=True, kw_only=True)
class HealthMeasured(TableEvent):
    """A table's health was measured."""

    files: int = metric()
    small_share_percent: float = metric("Percent")
    since_checkpoint: int = metric()
    average_bytes: int
    bytes: int
    log_objects: int
    compacted_at: datetime | None = None
    vacuumed_at: datetime | None = None

    @classmethod
    def of(cls, health: Health, service: str) -> HealthMeasured:
        same = {f.name: getattr(health, f.name) for f in fields(cls) if hasattr(health, f.name)}
        return cls(service=service, small_share_percent=round(100 * health.small_share, 1), **same)


def seen_in(snapshot: Snapshot, before: Health, *, now: datetime) -> Health:
    """The health in a table's log; values that the log lacks stay unchanged."""
    files = snapshot.files
    there = {file.partition for file in files}
    return replace(
        before,
        measured_at=now,
        version=snapshot.version,
        files=len(files),
        small_files=sum(file.bytes < before.small_below_bytes for file in files),
        bytes=sum(file.bytes for file in files),
        partitions=len(there),
        deleted_rows=sum(file.deleted_rows for file in files),
        log_objects=snapshot.listing.objects,
        since_checkpoint=snapshot.version - snapshot.listing.checkpoint_version,
        newest_at=max((file.modified for file in files), default=None),
        ordered={text: at for text, at in before.ordered.items() if _partition(text) in there},
    )


class HealthRecords:
    """The health objects of one lake."""

    def __init__(self, lake: str) -> None:
        self._objects: Objects = open_objects(f"{lake.rstrip('/')}/{HEALTH}")

    def of(self, table: str) -> Health:
        """The health as last written; a table that was never checked has always waited for it."""
        found = self._objects.read(f"{table}.json")
        return _read(table, found)

    def names(self) -> list[str]:
        """The names of the tables that have one."""
        return [found.name.removesuffix(".json") for found in self._objects.found() if found.name.endswith(".json")]

    def all(self) -> Iterator[Health]:
        return map(self.of, self.names())

    def update(self, table: str, change: Callable[[Health], Health]) -> Health:
        """Reads, changes and writes; done again where somebody else wrote meanwhile."""
        name = f"{table}.json"
        for _ in range(ATTEMPTS):
            found = self._objects.read_tagged(name)
            health = change(_read(table, found and found[0]))
            if self._objects.write_over(name, health.as_json().encode(), found and found[1]):
                return health
        return health  # others write it all the time; the next look counts the rest

    def forget(self, table: str) -> None:
        self._objects.delete([f"{table}.json"])


def _partition(text: str) -> Partition:
    return tuple((column, value) for column, value in json.loads(text))


def _read(table: str, content: bytes | None) -> Health:
    try:
        return Health.from_json(content.decode()) if content else Health(table=table)
    except (ValueError, TypeError):  # not ours: the next look replaces it
        return Health(table=table)
