"""Texts in one Arrow array, and their bytes: one after the other, so that numpy searches all of them at once.

In: a `pyarrow.StringArray`, perhaps a slice of another one. Out: the offsets of its texts in their buffer, pieces of a text as
an array, and what Arrow's JSON parser reads of records in it.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

BLANK = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)
"""For the borders of values: numbers stay texts, however long they are."""
SMALLEST_BLOCK = 16
"""Arrow refuses some smaller ones."""


def borders_of(texts: pa.StringArray) -> Any:
    """Where each text begins in `bytes_of`, and where the last one ends."""
    return np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, texts.offset * 4)


def bytes_of(texts: pa.StringArray) -> Any:
    """The bytes of the whole array, even if `texts` is a slice of it."""
    return np.frombuffer(texts.buffers()[2] or b"", np.uint8)


def listed(array: pa.Array) -> list[Any]:
    """`to_pylist` of texts or numbers, ten times as quick. In numpy, whole numbers beside nulls would become floats."""
    if array.null_count and not pa.types.is_string(array.type):
        return list(array.to_pylist())
    return list(array.to_numpy(zero_copy_only=False).tolist())


def pieces(text: Any, starts: Any, ends: Any) -> pa.StringArray:
    """These pieces of the bytes; they are sorted and do not overlap."""
    borders = pa.py_buffer(np.stack((starts, ends), axis=1).astype(np.int32))
    between = pa.StringArray.from_buffers(max(0, 2 * len(starts) - 1), borders, pa.py_buffer(text))
    return between.take(pa.array(np.arange(0, 2 * len(starts), 2)))


def read_json(texts: pa.StringArray, known: pa.Schema | None, *, others: str) -> pa.Table:
    """Records with these fields; `others` is how `ParseOptions` treats unexpected ones. Raises `pa.ArrowInvalid`."""
    borders = borders_of(texts)
    first, last = int(borders[0]), int(borders[-1])
    return pj.read_json(
        pa.BufferReader(texts.buffers()[2].slice(first, last - first)),
        pj.ReadOptions(use_threads=False, block_size=max(SMALLEST_BLOCK, last - first + 1)),
        pj.ParseOptions(explicit_schema=known, newlines_in_values=True, unexpected_field_behavior=others),
    )
