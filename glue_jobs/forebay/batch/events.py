"""The events of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass

from forebay.batch.reasons import REASONS
from forebay.events import BatchEvent, ErrorEvent, ServiceEvent, TableBatchEvent, TableEvent, metric


@dataclass(frozen=True, kw_only=True)
class BatchCommitted(BatchEvent):
    """The ledger has the batch: it is done. Files are read, parsed and routed in one pass, so one figure covers all three. The
    parsing of undeclared fields counts as writing."""

    files: int = metric()
    known_files: int = metric(default=0)
    duplicate_files: int = metric(default=0)
    superseded_files: int = metric(default=0)
    ignored_files: int = 0
    forgotten_files: int = 0
    deleted_files: int = 0
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
    """Spark replayed a batch that was already done; nothing was written."""


@dataclass(frozen=True, kw_only=True)
class BatchReadTwice(BatchEvent):
    """The files are read again, because the first reading showed that other data files are needed. Nothing was committed."""

    why: str


@dataclass(frozen=True, kw_only=True)
class RowsAppended(TableBatchEvent):
    """A table got rows. `rescued` of them have values that did not fit the table's columns and are in `_rescued`."""

    rows: int = metric()
    rescued: int = metric(default=0)
    files: int
    bytes: int
    version: int


@dataclass(frozen=True, kw_only=True)
class OwnRowsAppended(TableBatchEvent):
    """One of forebay's own tables got rows. `table` is its path in the lake, which shows the cost of its files."""

    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExpectationViolated(TableBatchEvent):
    """Rows of a table violate an expectation; its declaration decided what happened to them. `rings` says whether it also asks
    for the alarm."""

    expectation: str
    rows: int = metric()
    rings: bool = False


@dataclass(frozen=True, kw_only=True)
class ExpectationFailed(ErrorEvent, TableBatchEvent):
    """Too many rows violate an expectation, so none of the table's rows of this batch was written. They are in the quarantine.
    A person must act."""

    expectation: str
    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class ErasedRecordsDropped(BatchEvent):
    """Records of erased people arrived again. The ledger counts them as dropped."""

    records: int


@dataclass(frozen=True, kw_only=True)
class _ByReason(BatchEvent):
    """Counts the quarantined records of a batch by reason; reasons without records are left out. The reasons are few
    and fixed, so each is its own metric: another dimension would cost one metric for each reason and table."""

    other: int | None = metric(default=None)

    @classmethod
    def of(cls, service: str, batch: int, reasons: Mapping[str, int]) -> _ByReason:
        counts: Counter[str] = Counter()
        for reason, records in reasons.items():
            counts[_metric_of(reason) if reason in REASONS else "other"] += records
        return cls(service=service, batch=batch, **counts)


def _metric_of(reason: str) -> str:
    return reason.replace("-", "_")


RecordsQuarantined: type[_ByReason] = make_dataclass(
    "RecordsQuarantined",
    [(_metric_of(reason), int | None, metric(default=None)) for reason in REASONS],
    bases=(_ByReason,),
    frozen=True,
    kw_only=True,
    namespace={"__module__": __name__, "__doc__": _ByReason.__doc__},
)


@dataclass(frozen=True, kw_only=True)
class LeftoversRemoved(TableEvent):
    """Rows of superseded files were removed from a table that could not be written when the newer versions arrived."""

    files: int


@dataclass(frozen=True, kw_only=True)
class DuplicatesDropped(TableBatchEvent):
    """Records arrived that had been loaded before; they were left out."""

    rows: int = metric()


@dataclass(frozen=True, kw_only=True)
class RecordsRetried(ServiceEvent):
    """Quarantined or parked records were retried. Those neither written nor dropped are still held."""

    held: str
    records: int = metric()
    written: int = metric()
    dropped: int = metric()


@dataclass(frozen=True, kw_only=True)
class FileHeld(BatchEvent):
    """A whole file could not be loaded; it is in the quarantine, and the ledger has the reason."""

    uri: str
    outcome: str
    reason: str | None
    detail: str | None


@dataclass(frozen=True, kw_only=True)
class LateCommitsAwaited(BatchEvent):
    """A driver died in this batch, and one of its commits could still arrive. The next driver waits for `seconds` before it
    continues."""

    seconds: int = metric("Seconds")
    why: str


@dataclass(frozen=True, kw_only=True)
class NewTablesRefused(ErrorEvent, BatchEvent):
    """The day's limit of new tables was reached: are the names real? Their rows are in the quarantine."""

    tables: int = metric()
    such_as: str


@dataclass(frozen=True, kw_only=True)
class TableFailed(ErrorEvent, TableBatchEvent):
    """A table could not be written: a person must act. Its rows are kept, and the other tables are written."""

    rows: int = metric()
    error: str
