"""The snappy framing format, one frame at a time, with its checksums.

https://github.com/google/snappy/blob/main/framing_format.txt

In: the bytes of a stream. Out: its expanded blocks, each at most 64 KiB. Raises `ValueError` for anything that the format
forbids. pyarrow expands the blocks, but supports neither the framing nor CRC-32C, so those are here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

STREAM_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
LONGEST_BLOCK = 65536
COMPRESSED, PLAIN, IDENTIFIER = 0x00, 0x01, 0xFF
FIRST_SKIPPABLE = 0x80

LANES = 128
"""A checksum goes byte by byte; numpy makes it quick by walking this many stretches of the block side by side."""


def blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Each expanded block, and how many bytes of the stream it took to get there."""
    at, codec = 0, pa.Codec("snappy")
    while at < len(data):
        kind, length = data[at], int.from_bytes(data[at + 1 : at + 4], "little")
        frame = data[at + 4 : at + 4 + length]
        if at + 4 > len(data) or len(frame) < length:
            raise ValueError(f"the stream ends within the frame at byte {at}")
        if kind == IDENTIFIER and frame != STREAM_IDENTIFIER[4:]:
            raise ValueError(f"a wrong stream identifier at byte {at}")
        if IDENTIFIER > kind > PLAIN and kind < FIRST_SKIPPABLE:
            raise ValueError(f"a frame of unknown kind {kind:#04x} at byte {at}")
        at += 4 + length
        if kind in (COMPRESSED, PLAIN):
            yield _block(codec, kind, frame), at


def _block(codec: Any, kind: int, frame: bytes) -> bytes:
    promised, body = int.from_bytes(frame[:4], "little"), frame[4:]
    length = _expanded_length(body) if kind == COMPRESSED else len(body)
    if len(frame) < 4 or length > LONGEST_BLOCK:
        raise ValueError(f"a block of {length} bytes, and {LONGEST_BLOCK} is the format's limit")
    try:
        block: bytes = codec.decompress(body, length, asbytes=True) if kind == COMPRESSED else body
    except OSError as error:
        raise ValueError(str(error)) from error
    if _masked(crc32c(block)) != promised:
        raise ValueError("a block does not match its checksum")
    return block


def _expanded_length(body: bytes) -> int:
    """A little-endian base-128 number leads each compressed block."""
    value = 0
    for n, byte in enumerate(body[:5]):
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return value
    raise ValueError("a block without its length")


def _masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), as iSCSI and snappy use it."""
    stretch = len(data) // LANES
    crc = 0xFFFFFFFF
    if stretch:
        crc = _joined(_lanes(np.frombuffer(data, np.uint8, stretch * LANES).reshape(LANES, stretch)), crc, stretch)
    table = _table_as_list()
    for byte in data[stretch * LANES :]:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _lanes(rows: Any) -> list[int]:
    """The remainder of each row by itself, starting from nothing."""
    table, crc = _table(), np.zeros(LANES, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 0xFF] ^ (crc >> np.uint32(8))
    return [int(c) for c in crc]


def _joined(remainders: list[int], crc: int, stretch: int) -> int:
    """CRC is linear: push what came before through `stretch` zero bytes, then add the next row's own remainder."""
    a, b, c, d = _zeros(stretch)
    for remainder in remainders:
        crc = a[crc & 0xFF] ^ b[crc >> 8 & 0xFF] ^ c[crc >> 16 & 0xFF] ^ d[crc >> 24] ^ remainder
    return crc


@cache
def _zeros(count: int) -> tuple[list[int], ...]:
    """A table of the values after `count` zero bytes, for each byte of a CRC and each of its values."""
    table = _table()
    crc = np.concatenate([np.arange(256, dtype=np.uint32) << np.uint32(8 * n) for n in range(4)])
    for _ in range(count):
        crc = table[crc & 0xFF] ^ (crc >> np.uint32(8))
    return tuple(part.tolist() for part in crc.reshape(4, 256))


@cache
def _table() -> Any:
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> np.uint32(1)) ^ np.uint32(0x82F63B78), crc >> np.uint32(1))
    return crc


@cache
def _table_as_list() -> list[int]:
    return [int(c) for c in _table()]
