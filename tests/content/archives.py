"""Archives as producers write them, for tests: each function packs bytes, in one part or in several."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable

import pyarrow as pa

from forebay.content.snappy import STREAM_IDENTIFIER, crc32c


def snappy_framed(data: bytes, *, plain: bool = False) -> bytes:
    frames = [STREAM_IDENTIFIER, b"\xfe\x03\x00\x00pad"]
    codec = pa.Codec("snappy")
    for at in range(0, len(data), 65536):
        block = data[at : at + 65536]
        crc = crc32c(block)
        masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
        body = block if plain else codec.compress(block, asbytes=True)
        frames.append(bytes([plain]) + (len(body) + 4).to_bytes(3, "little") + masked.to_bytes(4, "little") + body)
    return b"".join(frames)


def _zstd(data: bytes) -> bytes:
    packed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return packed


def _in_two(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: pack(data[: len(data) // 3]) + pack(data[len(data) // 3 :])


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": lambda data: gzip.compress(data, 1),
    "gzip in two members": _in_two(lambda data: gzip.compress(data, 1)),
    "gzip padded": lambda data: gzip.compress(data, 1) + bytes(100),
    "zstd": _zstd,
    "zstd in two frames": _in_two(_zstd),
    "zstd after a skippable frame": lambda data: b"\x51\x2a\x4d\x18\x02\x00\x00\x00hi" + _zstd(data),
    "bz2": bz2.compress,
    "bz2 in two streams": _in_two(bz2.compress),
    "snappy": snappy_framed,
    "snappy, not compressed": lambda data: snappy_framed(data, plain=True),
    "snappy in two streams": _in_two(snappy_framed),
}
