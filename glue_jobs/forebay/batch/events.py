"""The events of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass

from forebay.batch.reasons import REASONS
from forebay.events import BatchEvent, ErrorEvent, ServiceEvent, TableBatchEvent, TableEvent, metric

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
class BatchCommitted(BatchEvent):
    """The ledger has the batch: it is done. Files are read, parsed and routed in one pass, so one figure says how long that
    took. To parse what became columns of its own accord is a part of writing."""

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
class BatchRepeated(BatchEvent):
    """Spark replayed a batch that was done already; nothing was written."""


@dataclass(frozen=True, kw_only=True)
class BatchReadTwice(BatchEvent):
    """The files are read once more, for the rows showed a reason for other data files. Nothing was committed."""

    why: str


@dataclass(frozen=True, kw_only=True)
class RowsAppended(TableBatchEvent):
    """A table got rows. Of `rescued` of them a part did not fit the table's columns and is in `_rescued`."""

    rows: int = metric()
    rescued: int = metric(default=0)
    files: int
    bytes: int
    version: int


@dataclass(frozen=True, kw_only=True)
class OwnRowsAppended(TableBatchEvent):
    """One of forebay's own tables got rows, by its place in the lake: the cost of its files is known by it."""

    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExpectationViolated(TableBatchEvent):
    """Rows of a table do not fulfil an expectation; they became what its declaration says."""

    expectation: str
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class ExpectationFailed(ErrorEvent, TableBatchEvent):
    """Too many rows violate an expectation, so none of the table's rows of this batch was written: a person must look. They
    are in the quarantine."""

    expectation: str
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class ErasedRecordsDropped(BatchEvent):
    """Records of erased people came again. The ledger counts them as dropped."""

    records: int


@dataclass(frozen=True, kw_only=True)
class DeclarationsChanged(ServiceEvent):
    """From this batch on, other declarations are in force."""

    version: str
    before: str


@dataclass(frozen=True, kw_only=True)
class DeclarationsRefused(ErrorEvent, ServiceEvent):
    """The declarations were changed into something that makes no sense: a person must fix them. The old ones are in force."""

    in_force: str
    problems: str
    refused: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class ByReason(BatchEvent):
    """How many records of a batch went to the quarantine, by reason; a reason that none had is left out. The reasons are few
    and fixed, so each is a metric of its own: a dimension more would cost one for each reason and table."""

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
class LeftoversRemoved(TableEvent):
    """Rows of superseded files left a table that could not be written when the newer versions came."""

    files: int


@dataclass(frozen=True, kw_only=True)
class RecordsNotRetried(ErrorEvent, ServiceEvent):
    """The retry at the job's start failed: records of tables that had failed earlier. They stay in the quarantine, for
    `forebay quarantine retry`."""

    error: str


@dataclass(frozen=True, kw_only=True)
class DuplicatesDropped(TableBatchEvent):
    """Records came that had come before; they were left out."""

    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class RecordsRetried(ServiceEvent):
    """Quarantined or parked records were retried. Those neither written nor dropped are still there."""

    held: str
    records: int = metric()
    written: int = metric()
    dropped: int = metric()


@dataclass(frozen=True, kw_only=True)
class FileHeld(BatchEvent):
    """A whole file could not be taken; it is in the quarantine, and the ledger says why."""

    uri: str
    outcome: str
    reason: str | None
    detail: str | None


@dataclass(frozen=True, kw_only=True)
class LateCommitsAwaited(BatchEvent):
    """A driver died in this batch, and a commit of his could still arrive. The next driver waits so long before it
    continues."""

    seconds: int = metric("Seconds")
    why: str


@dataclass(frozen=True, kw_only=True)
class NewTablesRefused(ErrorEvent, BatchEvent):
    """More new tables than a day may bring: are the names real? Their rows are in the quarantine."""

    tables: int = metric()
    such_as: str


@dataclass(frozen=True, kw_only=True)
class TableFailed(ErrorEvent, TableBatchEvent):
    """A table could not be written: a person must look. Its rows are kept and the other tables are done."""

    rows: int = metric()
    error: str
