"""What a batch says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from typing import ClassVar

from forebay.batch.reasons import REASONS
from forebay.events import Event, metric

__all__ = [
    "BatchCommitted",
    "BatchReadTwice",
    "BatchRepeated",
    "DeclarationsChanged",
    "DeclarationsRefused",
    "DuplicatesDropped",
    "ErasedRecordsDropped",
    "ExpectationFailed",
    "ExpectationViolated",
    "FileHeld",
    "LateCommitsAwaited",
    "LeftoversRemoved",
    "NewTablesRefused",
    "OwnRowsAppended",
    "RecordsNotRetried",
    "RecordsQuarantined",
    "RecordsRetried",
    "RowsAppended",
    "TableFailed",
]


@dataclass(frozen=True, kw_only=True)
class BatchCommitted(Event):
    """The ledger has the batch: it is done. Files are read, parsed and routed in one pass, so one figure says how long that
    took. To parse what became columns of its own accord is a part of writing."""

    service: str
    batch: int
    files: int = metric()
    known_files: int = metric(default=0)
    duplicate_files: int = metric(default=0)
    superseded_files: int = metric(default=0)
    ignored_files: int = 0
    forgotten_files: int = 0
    missing_files: int = metric(default=0)
    withheld_files: int = metric(default=0)
    refused_files: int = metric(default=0)
    bytes: int = metric("Bytes")
    records: int = metric()
    written: int = metric()
    quarantined: int = metric()
    parked: int = metric()
    dropped: int = metric(default=0)
    tables: int = metric()
    claim_seconds: float = metric("Seconds")
    read_seconds: float = metric("Seconds")
    write_seconds: float = metric("Seconds")
    ledger_seconds: float = metric("Seconds")
    seconds: float = metric("Seconds")
    latency_p50_seconds: float | None = metric("Seconds", default=None)
    latency_p99_seconds: float | None = metric("Seconds", default=None)
    latency_max_seconds: float | None = metric("Seconds", default=None)


@dataclass(frozen=True, kw_only=True)
class BatchRepeated(Event):
    """Spark replayed a batch that was done already; nothing was written."""

    service: str
    batch: int


@dataclass(frozen=True, kw_only=True)
class BatchReadTwice(Event):
    """Something in the files asks for Spark, so the batch is read once more. Nothing of the first pass was committed."""

    service: str
    batch: int
    why: str


@dataclass(frozen=True, kw_only=True)
class RowsAppended(Event):
    """A table got rows. Of `rescued` of them a part did not fit the table's columns and is in `_rescued`."""

    service: str
    table: str
    batch: int
    rows: int = metric()
    rescued: int = metric(default=0)
    files: int
    bytes: int
    version: int


@dataclass(frozen=True, kw_only=True)
class OwnRowsAppended(Event):
    """One of forebay's own tables got rows, by its place in the lake: the cost of its files is known by it."""

    service: str
    table: str
    batch: int
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExpectationViolated(Event):
    """Rows of a table do not fulfil an expectation; they became what its declaration says."""

    service: str
    table: str
    batch: int
    expectation: str
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class ExpectationFailed(Event):
    """Too many rows violate an expectation, so none of the table's rows of this batch was written: a person must look. They
    are in the quarantine."""

    level: ClassVar[str] = "error"

    service: str
    table: str
    batch: int
    expectation: str
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class ErasedRecordsDropped(Event):
    """Records of erased people came again. The ledger counts them as dropped."""

    service: str
    batch: int
    records: int


@dataclass(frozen=True, kw_only=True)
class DeclarationsChanged(Event):
    """From this batch on, other declarations are in force."""

    service: str
    version: str
    before: str


@dataclass(frozen=True, kw_only=True)
class DeclarationsRefused(Event):
    """The declarations were changed into something that makes no sense: a person must fix them. The old ones are in force."""

    level: ClassVar[str] = "error"

    service: str
    in_force: str
    problems: str
    refused: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class ByReason(Event):
    """How many records of a batch went to the quarantine, by reason; a reason that none had is left out. The reasons are few
    and fixed, so each is a metric of its own: a dimension more would cost one for each reason and table."""

    service: str
    batch: int
    other: int | None = metric(default=None)

    @classmethod
    def of(cls, service: str, batch: int, reasons: Mapping[str, int]) -> ByReason:
        counts: Counter[str] = Counter()
        for reason, records in reasons.items():
            counts[_metric_of(reason) if reason in REASONS else "other"] += records
        return cls(service=service, batch=batch, **counts)


def _metric_of(reason: str) -> str:
    return reason.replace("-", "_")


RecordsQuarantined: type[ByReason] = make_dataclass(
    "RecordsQuarantined",
    [(_metric_of(reason), int | None, metric(default=None)) for reason in REASONS],
    bases=(ByReason,),
    frozen=True,
    kw_only=True,
    namespace={"__module__": __name__, "__doc__": ByReason.__doc__},
)


@dataclass(frozen=True, kw_only=True)
class LeftoversRemoved(Event):
    """Rows of superseded files left a table that could not be written when the newer versions came."""

    service: str
    table: str
    files: int


@dataclass(frozen=True, kw_only=True)
class RecordsNotRetried(Event):
    """The retry at the job's start failed: records of tables that had failed earlier. They stay in the quarantine, for
    `forebay quarantine retry`."""

    level: ClassVar[str] = "error"

    service: str
    error: str


@dataclass(frozen=True, kw_only=True)
class DuplicatesDropped(Event):
    """Records came that had come before; they were left out."""

    service: str
    table: str
    batch: int
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class RecordsRetried(Event):
    """Quarantined or parked records were retried. Those neither written nor dropped are still there."""

    service: str
    held: str
    records: int = metric()
    written: int = metric()
    dropped: int = metric()


@dataclass(frozen=True, kw_only=True)
class FileHeld(Event):
    """A whole file could not be taken; it is in the quarantine, and the ledger says why."""

    service: str
    batch: int
    uri: str
    outcome: str
    reason: str | None
    detail: str | None


@dataclass(frozen=True, kw_only=True)
class LateCommitsAwaited(Event):
    """A driver died in this batch, and a commit of his could still arrive. The next driver waits so long before it
    continues."""

    service: str
    batch: int
    seconds: int = metric("Seconds")
    why: str


@dataclass(frozen=True, kw_only=True)
class NewTablesRefused(Event):
    """More new tables than a day may bring: are the names real? Their rows are in the quarantine."""

    level: ClassVar[str] = "error"

    service: str
    batch: int
    tables: int = metric()
    such_as: str


@dataclass(frozen=True, kw_only=True)
class TableFailed(Event):
    """A table could not be written: a person must look. Its rows are kept and the other tables are done."""

    level: ClassVar[str] = "error"

    service: str
    table: str
    batch: int
    rows: int = metric()
    error: str
