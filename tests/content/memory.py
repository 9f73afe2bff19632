"""A bucket in memory, and a reading as plain values: what the tests of this room read from and compare.

`Memory` stands in for S3 below the retries: it answers a `Get` and remembers what it was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.outcome import Unread
from forebay.content.piece import cut
from forebay.content.reading import read_pieces
from forebay.declaration.form import FOUND, Form, Forms
from forebay.landed_file import LandedFile


@dataclass
class Memory:
    objects: Mapping[str, bytes | Unread]
    asked: list[tuple[str, int, int | None]] = field(default_factory=list)

    def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        self.asked.append((file.key, start, stop))
        content = self.objects[file.key]
        if isinstance(content, Unread):
            return content
        if start and start >= len(content):
            return Unread("unreadable", "range-refused", "416 InvalidRange")
        return content[start:stop]

    def files(self) -> list[LandedFile]:
        return [
            LandedFile("landing", key, None if isinstance(content, Unread) else len(content), etag=f"etag-of-{key}")
            for key, content in self.objects.items()
        ]


@dataclass(frozen=True)
class Document:
    key: str
    line: int
    byte_offset: int
    value: str


@dataclass(frozen=True)
class RefusedRow:
    key: str
    line: int
    byte_offset: int
    value: str
    problem: str
    detail: str


@dataclass(frozen=True)
class Reading:
    documents: list[Document]
    refused: list[RefusedRow]
    files: dict[str, FileEnd]

    def of(self, key: str) -> list[str]:
        return [d.value.rstrip() for d in self.documents if d.key == key]


def batches_of(memory: Memory, forms: Forms | None = None) -> list[pa.RecordBatch]:
    """All objects, read as one batch."""
    return list(read_pieces(cut(memory.files(), Limits()), memory, Limits(), forms=forms))


def read(
    objects: Mapping[str, bytes | Unread],
    limits: Limits | None = None,
    memory: Memory | None = None,
    form: Form = FOUND,
    forms: Forms | None = None,
) -> Reading:
    """Reads all objects as one batch; the lines of cut files are counted through, as the batch does it."""
    limits = limits or Limits()
    memory = memory or Memory(objects)
    pieces = cut(memory.files(), limits)
    rows = [
        row
        for batch in read_pieces(pieces, memory, limits, forms=forms or Forms(forms=(form,)))
        for row in batch.to_pylist()
    ]
    ends = [PieceEnd.from_row(r["piece"], r["value"], r["problem"], r["detail"]) for r in rows if r["line"] is None]
    files = {end.file.key: end for end in file_ends(pieces, ends)}
    documents: list[Document] = []
    refused: list[RefusedRow] = []
    for r in rows:
        if r["line"] is None:
            continue
        key = pieces[r["piece"]].file.key
        line = r["line"] + files[key].lines_before[r["piece"]]
        if r["problem"] is None:
            documents.append(Document(key, line, r["byte_offset"], r["value"]))
        else:
            refused.append(RefusedRow(key, line, r["byte_offset"], r["value"], r["problem"], r["detail"]))
    return Reading(
        sorted(documents, key=lambda d: (d.key, d.byte_offset)),
        sorted(refused, key=lambda d: (d.key, d.byte_offset)),
        files,
    )


def read_one(content: bytes, key: str = "file.json", limits: Limits | None = None) -> Reading:
    return read({key: content}, limits)
