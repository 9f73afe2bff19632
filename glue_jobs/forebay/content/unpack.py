"""The bytes of an object become the bytes that were packed into it.

In: bytes from S3. Out: the expanded bytes, or `Unread`: corrupt-archive, expansion-bomb. The content decides: producers use
wrong names, and a file named `.gz` that contains text is text.

A broken archive is refused whole, even if its beginning could be read. The producer will send the file again as a new object.
Records from the broken one would then be loaded twice.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from forebay.content import snappy
from forebay.content.limits import Limits
from forebay.content.outcome import Unread

SUFFIXES = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".sz", ".snappy")

FIRST_FEED_BYTES, FEED_BYTES = 1 << 10, 256 << 10
"""The bytes of an archive that are read at a time. The next of them count as used: a file may begin with many equal records."""
CHUNK_BYTES = 4 << 20

SLACK_BYTES = 16 << 20
"""No archive is a bomb before it has expanded to this much, however small it is."""

MOST_LAYERS = 4
"""How many times a content may be compressed."""

Chunks = Iterator[tuple[bytes, int]]
"""Expanded bytes, and how many bytes of the archive were used up so far."""


def expand(data: bytes, limits: Limits) -> bytes | Unread:
    """The content; `data` itself where it is not an archive. An archive within an archive is unpacked as well.
    Content that was compressed twice expands to the same limit."""
    most = most_expanded_bytes(len(data), limits)
    for _ in range(MOST_LAYERS):
        unpack = _unpacker(data)
        if unpack is None:
            return data
        try:
            content = _within_limits(unpack(data), limits, most)
        except (ValueError, EOFError, OSError, zlib.error) as error:
            return Unread("unreadable", "corrupt-archive", str(error))
        if isinstance(content, Unread):
            return content
        data = content
    if _unpacker(data) is None:
        return data
    return Unread("unreadable", "expansion-bomb", f"archives are nested more than {MOST_LAYERS} deep")


def most_expanded_bytes(archive_bytes: int, limits: Limits) -> int:
    return min(limits.max_expanded_bytes, SLACK_BYTES + limits.max_expansion * archive_bytes)


def is_archive(head: bytes) -> bool:
    return _unpacker(head) is not None


def is_named_archive(key: str) -> bool:
    return key.lower().endswith(SUFFIXES)


def without_archive_suffix(key: str) -> str:
    """The name without the archive's suffix, in lowercase letters."""
    name = key.lower()
    while suffix := next((s for s in SUFFIXES if name.endswith(s)), None):
        name = name.removesuffix(suffix)
    return name


def _within_limits(chunks: Chunks, limits: Limits, most: int) -> bytes | Unread:
    parts: list[bytes] = []
    expanded = 0
    for chunk, used in chunks:
        parts.append(chunk)
        expanded += len(chunk)
        if expanded > min(most, most_expanded_bytes(used + FEED_BYTES, limits)):
            return Unread("unreadable", "expansion-bomb", f"{used} bytes of the archive expand to more than {expanded}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unpacker(head: bytes) -> Callable[[bytes], Chunks] | None:
    if head.startswith(b"\x1f\x8b"):
        return _gzip
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return _zstd
    if head.startswith(b"BZh") and head[4:10] in (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"):
        return _bz2
    if head.startswith(snappy.STREAM_IDENTIFIER):
        return snappy.blocks
    return None


def _gzip(data: bytes) -> Chunks:
    return _members(data, lambda: zlib.decompressobj(wbits=31), _zlib_leftover, b"\x1f\x8b")


def _bz2(data: bytes) -> Chunks:
    return _members(data, bz2.BZ2Decompressor, _bz2_leftover, b"BZh")


Leftover = Callable[[Any], bytes | None]
"""The bytes that a decompressor needs before anything new; None when it needs something new."""


def _members(data: bytes, begin: Callable[[], Any], leftover: Leftover, magic: bytes) -> Chunks:
    """Archive after archive. Zeros after the last are padding, as some writers leave it; anything else is damage."""
    view, at = memoryview(data), 0
    while True:
        member = begin()
        for chunk, used in _member(member, leftover, view, at):
            yield chunk, used
            at = used
        at -= len(member.unused_data)
        rest = view[at:]
        if bytes(rest[: len(magic)]) != magic:
            break
    if bytes(rest).strip(b"\0"):
        raise ValueError(f"data that is not an archive follows its end at byte {at}")


def _member(member: Any, leftover: Leftover, data: memoryview, at: int) -> Chunks:
    """Reads and expands in small bounded steps, so that it detects a bomb early. An archive may have a member for each record,
    and what is fed beyond a member's end is copied for nothing: so the first steps are smaller."""
    feed_bytes = FIRST_FEED_BYTES
    while not member.eof:
        fed = leftover(member)
        if fed is None:
            fed = data[at : at + feed_bytes].tobytes()
            at, feed_bytes = at + len(fed), min(2 * feed_bytes, FEED_BYTES)
            ended = not fed
        else:
            ended = False
        chunk = member.decompress(fed, CHUNK_BYTES)
        if ended and not chunk and not member.eof:
            raise EOFError(f"the archive ends too early, after {len(data)} bytes")
        yield chunk, at


def _zlib_leftover(member: Any) -> bytes | None:
    return member.unconsumed_tail or None


def _bz2_leftover(member: Any) -> bytes | None:
    """The unused input of a bz2 decompressor, which does not expose it."""
    return None if member.needs_input else b""


def _zstd(data: bytes) -> Chunks:
    source = pa.BufferReader(data)
    stream = pa.CompressedInputStream(source, "zstd")
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk, source.tell()
