"""The rows of an Avro file become records.

In: the file's bytes, an object container with its schema. Out: parts, a few thousand rows at a time; the place of a row is its
number, from 0. A truncated file is `NotTaken`, and so is one that expands to more than an archive may. Nobody can detect a
file that was cut between two blocks.
"""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.content.formats.avro_values import Cursor, Writer, writer_of
from forebay.content.formats.part import Part, part_of_rows
from forebay.content.limits import Limits
from forebay.content.outcome import NotTaken, TooMany
from forebay.content.unpack import most_expanded_bytes
from forebay.counted import counted

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
BATCH_BYTES, BATCH_ROWS = 8 << 20, 20_000


def avro_parts(data: bytes, limits: Limits) -> Iterator[Part]:
    try:
        yield from _parts(data, limits)
    except RecursionError as deep:
        raise NotTaken("wrong-format", "its schema is nested too deep") from deep
    except (ValueError, KeyError, TypeError, struct.error, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise NotTaken("corrupt-file", f"an Avro file that cannot be read: {error}") from error


def _parts(data: bytes, limits: Limits) -> Iterator[Part]:
    cursor = Cursor(data, len(MAGIC), limits.max_records)
    file = _header(cursor)
    row, size, texts = 0, 0, list[bytes]()
    for text in file.rows(cursor, limits):
        texts.append(text)
        size += len(text)
        if len(texts) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _part(texts, row, limits)
            row, size, texts = row + len(texts), 0, []
    if texts:
        yield _part(texts, row, limits)


def _part(texts: list[bytes], row: int, limits: Limits) -> Part:
    places = np.arange(row, row + len(texts))
    return part_of_rows([pa.array(texts, pa.binary())], places + 1, places, limits, len(texts), counts="row")


def _header(cursor: Cursor) -> _File:
    metadata = {cursor.take(cursor.number()): cursor.take(cursor.number()) for _ in cursor.items()}
    if b"avro.schema" not in metadata:
        raise ValueError("it has no schema")
    name = metadata.get(b"avro.codec", b"null").decode()
    if name not in CODECS:
        raise ValueError(f"no codec is called {name!r}; there are {', '.join(CODECS)}")
    return _File(writer_of(json.loads(metadata[b"avro.schema"])), CODECS[name], cursor.take(SYNC_BYTES))


@dataclass(frozen=True, slots=True)
class _File:
    write: Writer
    expanded: Callable[[bytes, int], bytes]
    sync: bytes

    def rows(self, cursor: Cursor, limits: Limits) -> Iterator[bytes]:
        """A block has a count, a size, its rows, and the mark that the header named."""
        most = most_expanded_bytes(len(cursor.data), limits)
        rows = 0
        while cursor.at < len(cursor.data):
            count = cursor.number()
            if count < 0:
                raise ValueError(f"a block of {counted(count, 'row')}, at byte {cursor.at}")
            block = cursor.take(cursor.number())
            if cursor.take(SYNC_BYTES) != self.sync:
                raise ValueError(f"a block at byte {cursor.at} does not have the length that it states")
            rows += count
            if rows > limits.max_records:
                raise TooMany("too-many-records", f"{limits.max_records} is the limit")
            content = self.expanded(block, most)
            if len(content) > most:
                raise NotTaken("expansion-bomb", f"its blocks expand to more than {most} bytes")
            most -= len(content)
            yield from self._rows_of_block(content, count, limits)

    def _rows_of_block(self, content: bytes, count: int, limits: Limits) -> Iterator[bytes]:
        inner = Cursor(content)
        for _ in range(count):
            inner.most_items = limits.max_record_bytes
            yield self.write(inner).encode("utf-8", "surrogateescape")
        if inner.at < len(content):
            raise ValueError(f"a block has {len(content) - inner.at} bytes after its rows")


def _fed(begin: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """Feeds the decompressor, and stops at most one byte after the limit."""

    def expanded(block: bytes, most: int) -> bytes:
        codec = begin()
        content: bytes = codec.decompress(block, most + 1)
        if not codec.eof and len(content) <= most:
            raise ValueError("a compressed block ends too early")
        return content

    return expanded


def _snappy(block: bytes, most: int) -> bytes:
    size, shift = 0, 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > most:
        raise NotTaken("expansion-bomb", f"its blocks expand to more than {most} bytes")
    content: bytes = pa.Codec("snappy").decompress(block[:-4], size, asbytes=True)
    if zlib.crc32(content) != int.from_bytes(block[-4:], "big"):
        raise ValueError("a block does not match its checksum")
    return content


def _zstd(block: bytes, most: int) -> bytes:
    content: bytes = pa.CompressedInputStream(pa.BufferReader(block), "zstd").read(most + 1)
    return content


CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda block, _: block,
    "deflate": _fed(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    "snappy": _snappy,
    "zstandard": _zstd,
    "bzip2": _fed(bz2.BZ2Decompressor),
    "xz": _fed(lzma.LZMADecompressor),
}
