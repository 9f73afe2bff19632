"""The Delta table `<lake>/_forebay/ledger`, and what the driver asks of it.

In: the files of a batch; later, the entry of each. Out: which of the files are new, and a commit that makes the batch
done. The ledger is written last, in one commit that carries the batch's transaction id: where that id is, the whole
batch is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from forebay.landed_file import LandedFile
from forebay.ledger.entry import COLUMNS, Entry, file_hash, key_hash
from forebay.ledger.index import Index

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Ledger", "Sorted"]

_LOADED = ("loaded", "empty")


@dataclass(frozen=True)
class Sorted:
    """The files of a batch: those to load, those that the ledger has, and the entries of those that a rule leaves out."""

    fresh: tuple[LandedFile, ...]
    known: tuple[LandedFile, ...]
    left_out: tuple[Entry, ...]


class Ledger:
    """One driver's view of the ledger. It is loaded once; what other drivers add later it does not see (they are kept out by
    the lease)."""

    def __init__(self, spark: SparkSession, lake: str, *, overwritten: str = "append") -> None:
        self.path = f"{lake}/_forebay/ledger"
        self._spark, self._overwritten = spark, overwritten
        self._index: Index | None = None

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = self._load()
        return self._index

    def sort(self, files: Sequence[LandedFile]) -> Sorted:
        """Tells new files from known ones. Run twice it says the same, until `remember` is told otherwise."""
        unsure = [f for f in files if self.index.knows_file(file_hash(f)) or self.index.knows_key(key_hash(f))]
        versions = self._versions_of(unsure) if unsure else {}
        fresh, known, left_out = [], [], []
        in_batch: dict[tuple[str, str], list[LandedFile]] = {}
        for file in files:
            key = (file.bucket, file.key)
            earlier = versions.get(key, [])
            if any(seen.file_id == file.file_id for seen in earlier):
                known.append(file)
                continue
            loaded = [seen.etag for seen in earlier if seen.outcome in _LOADED]
            loaded += [f.etag for f in in_batch.get(key, [])]
            if file.etag and file.etag in loaded:
                left_out.append(Entry(file=file, outcome="duplicate", reason="same-key-same-bytes"))
            elif loaded and self._overwritten == "ignore":
                left_out.append(Entry(file=file, outcome="skipped", reason="overwritten"))
            else:
                in_batch.setdefault(key, []).append(file)
                fresh.append(file)
        return Sorted(tuple(fresh), tuple(known), tuple(left_out))

    def frame(self, entries: Iterable[Entry], **of_the_batch: object) -> DataFrame:
        """The entries as rows for the commit."""
        rows = [entry.row(**of_the_batch) for entry in entries]
        return self._spark.createDataFrame(rows, COLUMNS)

    def remember(self, files: Iterable[LandedFile]) -> None:
        """To be called when the batch's commit is in: from now on these files are known."""
        self.index.add((file_hash(f), key_hash(f)) for f in files)

    def rows(self) -> DataFrame | None:
        """The whole table; None before its first commit."""
        from delta.tables import DeltaTable

        if not DeltaTable.isDeltaTable(self._spark, self.path):
            return None
        return self._spark.read.format("delta").load(self.path)

    def _load(self) -> Index:
        rows = self.rows()
        if rows is None:
            return Index()
        hashes = rows.select("file_hash", "key_hash").toArrow()
        return Index(hashes["file_hash"].to_numpy(), hashes["key_hash"].to_numpy())

    def _versions_of(self, files: Sequence[LandedFile]) -> dict[tuple[str, str], list[_Seen]]:
        """Exactly what the ledger has of these keys: the index only hints. Rare, so it may cost a query."""
        from pyspark.sql import functions as F

        rows = self.rows()
        found: dict[tuple[str, str], list[_Seen]] = {}
        if rows is None:
            return found
        hashes = sorted({key_hash(f) for f in files})
        wanted = rows.where(F.col("key_hash").isin(hashes))
        for row in wanted.select("bucket", "key", "file_id", "etag", "outcome", "committed_at").collect():
            seen = _Seen(row.file_id, row.etag or "", row.outcome, row.committed_at)
            found.setdefault((row.bucket, row.key), []).append(seen)
        return found


@dataclass(frozen=True)
class _Seen:
    file_id: str
    etag: str
    outcome: str
    committed_at: datetime
