"""What an object's bytes say once all that is compressed is unpacked: pages of Parquet one by one, and gz.

In: a folder. Out: every object below it, with its bytes as they lie there and, behind them, what they hold. A value that a page
has and no row shows, such as one that is left in a dictionary, is found as well.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CODECS = {"SNAPPY": "snappy", "ZSTD": "zstd", "GZIP": "gzip", "LZ4": "lz4"}
PAGE_KIND, UNPACKED, PACKED, OF_V2 = 1, 2, 3, 8
V2 = 3


def telling(folder: Path, *wanted: bytes) -> list[str]:
    """The names of objects that hold one of these."""
    return [name for name, content in contents(folder) if any(one in content for one in wanted)]


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), unpacked(path.read_bytes())


def unpacked(raw: bytes) -> bytes:
    """An object, and behind it what it holds."""
    return b"\n".join([raw, *_inside(raw)])


def _inside(raw: bytes) -> Iterator[bytes]:
    if raw.startswith(b"PAR1"):
        yield from _pages(raw)
    elif raw.startswith(b"\x1f\x8b"):
        yield gzip.decompress(raw)


def _pages(raw: bytes) -> Iterator[bytes]:
    metadata = pq.ParquetFile(pa.BufferReader(raw)).metadata
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            begins = [at for at in (column.dictionary_page_offset, column.data_page_offset) if at]
            at, end = min(begins), min(begins) + column.total_compressed_size
            while at < end:
                header, at = _struct(raw, at)
                yield _unpacked(raw[at : at + header[PACKED]], header, CODECS.get(column.compression))
                at += header[PACKED]


def _unpacked(page: bytes, header: dict[int, Any], codec: str | None) -> bytes:
    """Levels of a page of the second kind lie before what is compressed, and it may say that nothing is."""
    of_v2 = header[OF_V2] if header[PAGE_KIND] == V2 else {}
    levels = sum(of_v2.get(number, 0) for number in (5, 6))
    size = header[UNPACKED] - levels
    if codec is None or not size or not of_v2.get(7, True):
        return page
    return page[:levels] + pa.decompress(page[levels:], size, codec, asbytes=True)


def _struct(raw: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Thrift's compact protocol, of which page headers use numbers, texts and structs."""
    found, number = dict[int, Any](), 0
    while raw[at]:
        kind, step = raw[at] & 15, raw[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _number(raw, at)
        if kind in (1, 2):
            found[number] = kind == 1
        elif kind in (4, 5, 6):
            found[number], at = _number(raw, at)
        elif kind == 8:
            length, at = _varint(raw, at)
            at += length
        elif kind == 12:
            found[number], at = _struct(raw, at)
        else:
            raise ValueError(f"a page header with a field of kind {kind}")
    return found, at + 1


def _number(raw: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(raw, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (raw[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 128:
            return value, at
