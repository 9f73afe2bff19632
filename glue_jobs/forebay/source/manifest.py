"""The manifest of a batch: its rows, and the receipts of the messages that announced them, as one small durable object.

It is written before Spark learns of the batch, under a number that counts up, and never changed. So batch 18 has the same
rows after any crash. The offset is that number. If another manifest has the number, a second driver runs the same stream: a
`Halt`. A missing manifest that should exist is a `Halt`, too.

The object is gzipped JSON lines, for people with `zcat` as well: a head, then rows, then receipts.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from forebay.errors import Halt
from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile
from forebay.source.queue import Receipt

RETAINED = 100
"""The number of manifests that are kept, as many as Spark keeps of its own logs (`spark.sql.streaming.minBatchesToRetain`)."""

_FOLDER = "batches"
_SUFFIX = ".jsonl.gz"
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class AnnouncedFile:
    """A row of the source: a file, and the message that announced it first."""

    file: LandedFile
    sent_at: datetime
    receive_count: int
    message_id: str
    again: bool = False

    @property
    def mark(self) -> bytes:
        """Equal for redeliveries of this file: its identity and S3's sequencer of the put; with `again` its message id."""
        return mark_of(self.file, self.message_id if self.again else None)


def mark_of(file: LandedFile, message_id: str | None = None) -> bytes:
    """Sixteen bytes instead of a few hundred, because many batches of them are in memory. The same bytes put twice are two
    announcements: only the ledger knows the outcome of the first one."""
    announcement = file.sequencer if message_id is None else message_id
    return blake2b(bytes.fromhex(file.file_id) + (announcement or "").encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One batch. `committed` is the last batch that was known to be committed when this one was made."""

    number: int
    committed: int
    rows: tuple[AnnouncedFile, ...]
    receipts: tuple[Receipt, ...]

    def encode(self) -> bytes:
        head = {"manifest": self.number, "committed": self.committed, "files": len(self.rows), "version": 1}
        lines = [head, *map(_row_out, self.rows), *({"id": r.message_id, "receipt": r.handle} for r in self.receipts)]
        # The same batch gives the same bytes (no time in the gzip header), which is how write_once knows its own.
        return gzip.compress("\n".join(map(_ENCODE, lines)).encode(), compresslevel=1, mtime=0)

    @classmethod
    def decode(cls, content: bytes) -> Manifest:
        head, *rest = (json.loads(line) for line in gzip.decompress(content).split(b"\n"))
        files: int = head["files"]
        return cls(
            head["manifest"],
            head["committed"],
            tuple(map(_row_in, rest[:files])),
            tuple(Receipt(line["id"], line["receipt"]) for line in rest[files:]),
        )


_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def _row_out(row: AnnouncedFile) -> dict[str, Any]:
    file = row.file
    fields = {
        "bucket": file.bucket,
        "key": file.key,
        "size": file.size,
        "etag": file.etag,
        "version_id": file.version_id,
        "sequencer": file.sequencer,
        "event_time": file.event_time.isoformat() if file.event_time else None,
        "sent_at": row.sent_at.isoformat(),
        "receive_count": row.receive_count,
        "message_id": row.message_id,
    }
    return fields | {"again": True} if row.again else fields


def _row_in(line: dict[str, Any]) -> AnnouncedFile:
    event_time = line["event_time"]
    file = LandedFile(
        line["bucket"],
        line["key"],
        line["size"],
        line["etag"],
        line["version_id"],
        line["sequencer"],
        datetime.fromisoformat(event_time) if event_time else None,
    )
    return AnnouncedFile(
        file,
        datetime.fromisoformat(line["sent_at"]),
        line["receive_count"],
        line["message_id"],
        line.get("again", False),
    )


class Manifests:
    """The manifests of one stream, in their store."""

    def __init__(self, store: Objects) -> None:
        self._store = store

    @property
    def path(self) -> str:
        return f"{self._store.place}/{_FOLDER}"

    def write(self, manifest: Manifest) -> None:
        """Durable when it returns; run twice with the same manifest it changes nothing."""
        if not self._store.write_once(_name(manifest.number), manifest.encode()):
            raise Halt(
                f"{self._store.place}/{_name(manifest.number)} was written by another run: two drivers share this "
                "manifestPath and checkpoint; stop one of them and start again, nothing was deleted"
            )

    def read(self, number: int) -> Manifest:
        content = self._store.read(_name(number))
        if content is None:
            raise Halt(
                f"{self._store.place}/{_name(number)} no longer exists, but the checkpoint still needs that batch: does this "
                "manifestPath belong to this checkpoint? Each checkpoint needs its own. Restore what was deleted"
            )
        return Manifest.decode(content)

    def numbers(self) -> list[int]:
        """The numbers of the existing manifests, ascending."""
        names = self._store.names(_FOLDER)
        return sorted(int(name[:_DIGITS]) for name in names if name.endswith(_SUFFIX) and name[:_DIGITS].isdigit())

    def read_all(self, numbers: Iterable[int], pool: Executor) -> Iterator[Manifest]:
        """Those of `numbers` that can be read, ascending; one that is being cleaned away meanwhile does not matter."""
        for content in pool.map(lambda number: self._store.read(_name(number)), numbers):
            if content is not None:
                yield Manifest.decode(content)

    def outdated(self, numbers: Iterable[int], committed: int) -> list[int]:
        """Those of `numbers` that no replay can request now."""
        return sorted(number for number in numbers if number <= committed - RETAINED)

    def clean(self, numbers: Iterable[int]) -> None:
        self._store.delete(map(_name, numbers))


def _name(number: int) -> str:
    return f"{_FOLDER}/{number:0{_DIGITS}d}{_SUFFIX}"


class RecentFiles:
    """The files of recent batches, to recognize redeliveries. Bounded: the ledger recognizes older ones."""

    def __init__(self, *, most: int = 500_000) -> None:
        self._most = most
        self._batch_of: dict[bytes, int] = {}
        self._marks_of: dict[int, tuple[bytes, ...]] = {}

    def __contains__(self, mark: bytes) -> bool:
        return mark in self._batch_of

    def __len__(self) -> int:
        return len(self._batch_of)

    @property
    def batches(self) -> list[int]:
        return sorted(self._marks_of)

    def remember(self, manifest: Manifest) -> None:
        marks = tuple(row.mark for row in manifest.rows)
        self._marks_of[manifest.number] = marks
        self._batch_of.update(dict.fromkeys(marks, manifest.number))
        for oldest in self.batches[:-2]:
            if len(self._batch_of) <= self._most:
                break
            self.forget(oldest)

    def forget(self, number: int) -> None:
        for mark in self._marks_of.pop(number, ()):
            if self._batch_of.get(mark) == number:
                del self._batch_of[mark]
