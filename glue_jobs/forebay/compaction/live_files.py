"""What a table consists of: its live data files, read from its log without Spark and without a JVM.

In: names of tables and where they lie; the storage options of delta-rs. Out: a `TableState` for each, or an `Unreadable`
that says which table it is and why: one that is gone or broken never stops the others. No data file is opened; deletion
vectors are, where a table may have them, because delta-rs does not say their cardinality in any other way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["LiveFile", "Partition", "TableState", "Unreadable", "read_table", "read_tables"]

Partition = tuple[tuple[str, str | None], ...]
"""A partition's columns and values, in the table's order; a value is text as in the log, or None for null."""

TABLES_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file that the newest version of its table reads. `rows` counts the deleted ones too; None: not in the log."""

    path: str
    partition: Partition
    bytes: int
    rows: int | None
    modified: datetime
    deleted_rows: int = 0

    @property
    def deleted_share(self) -> float:
        """All of it where rows are deleted but nobody knows of how many: so does Delta see it, and a rewrite mends it."""
        if not self.deleted_rows:
            return 0.0
        return min(1.0, self.deleted_rows / self.rows) if self.rows else 1.0

    @property
    def live_bytes(self) -> int:
        """About what stays of it when the deleted rows are left out."""
        if not self.deleted_rows or not self.rows:
            return self.bytes
        return self.bytes * max(0, self.rows - self.deleted_rows) // self.rows


@dataclass(frozen=True)
class TableState:
    """A table at one version. `ordered` says when a partition was last put in order (Z-order, clustering) as a whole: its
    log does not tell, whoever orders must remember."""

    name: str
    files: Sequence[LiveFile]
    version: int = 0
    clustered: bool = False
    ordered: Mapping[Partition, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Unreadable:
    """A table that cannot be looked at. `reason`: not-found, unsupported or unreadable-log."""

    name: str
    reason: str
    detail: str


def read_tables(
    places: Mapping[str, str], *, storage_options: Mapping[str, str] | None = None, at_once: int = TABLES_AT_ONCE
) -> Iterator[TableState | Unreadable]:
    """The tables in the order given, each as soon as it and those before it are read. At most `at_once` are held."""
    under_way: deque[Future[TableState | Unreadable]] = deque()
    with ThreadPoolExecutor(at_once, "live-files") as pool:
        for name, place in places.items():
            if len(under_way) == at_once:
                yield under_way.popleft().result()
            under_way.append(pool.submit(read_table, name, place, storage_options=storage_options))
        while under_way:
            yield under_way.popleft().result()


def read_table(name: str, place: str, *, storage_options: Mapping[str, str] | None = None) -> TableState | Unreadable:
    """The live files of the newest version. What can be wrong with a table is an answer, not an exception."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError

    place = place.replace("s3a://", "s3://")
    try:
        table = DeltaTable(place, storage_options=dict(storage_options) if storage_options else None)
        features = table.protocol()
        files = _files(table, with_deletions="deletionVectors" in (features.reader_features or ()))
        return TableState(name, files, table.version(), clustered="clustering" in (features.writer_features or ()))
    except TableNotFoundError as failure:
        return Unreadable(name, "not-found", f"{place}: {failure}")
    except DeltaProtocolError as failure:
        return Unreadable(name, "unsupported", f"{place}: {failure}")
    except (DeltaError, OSError, ValueError) as failure:
        # delta-rs has no class for a table that needs what it cannot do: only the text tells.
        reason = "unsupported" if "Unsupported" in str(failure) else "unreadable-log"
        return Unreadable(name, reason, f"{place}: {type(failure).__name__}: {failure}")


def _files(table: DeltaTable, *, with_deletions: bool) -> list[LiveFile]:
    import pyarrow as pa

    added = pa.table(table.get_add_actions(flatten=True))
    deleted = _deleted_rows(table) if with_deletions else {}
    columns: list[list[Any]] = [
        added[name].to_pylist() for name in ("path", "size_bytes", "num_records", "modification_time")
    ]
    known: dict[
        Partition, Partition
    ] = {}  # the same tuple for all files of a partition: memory, and quicker to compare
    return [
        LiveFile(
            path,
            known.setdefault(partition, partition),
            size,
            rows,
            datetime.fromtimestamp(modified_ms / 1000, UTC),
            deleted.get(_last_part(path), 0),
        )
        for path, size, rows, modified_ms, partition in zip(*columns, _partitions(table, added), strict=True)
    ]


def _partitions(table: DeltaTable, added: Any) -> list[Partition]:
    names = table.metadata().partition_columns
    if not names:
        return [()] * added.num_rows
    values = [_as_text(added[f"partition.{name}"]) for name in names]
    return [tuple(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _as_text(column: Any) -> list[str | None]:
    import pyarrow as pa

    text: list[str | None] = column.cast(pa.string()).to_pylist()
    return text


def _deleted_rows(table: DeltaTable) -> dict[str, int]:
    """By the file's name without its folders, which carries a UUID: addresses differ in how they are escaped."""
    import pyarrow as pa

    deleted = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        addresses, kept = batch.column("filepath").to_pylist(), batch.column("selection_vector")
        for row, address in enumerate(addresses):
            mask = kept[row].values
            deleted[_last_part(address)] = len(mask) - (mask.true_count or 0)
    return deleted


def _last_part(address: str) -> str:
    return unquote(address).rsplit("/", 1)[-1]
