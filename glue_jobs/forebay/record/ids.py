"""The ids of rows, by which a table leaves out records that came before.

In: the columns that identify a record of a table. Out: sixteen bytes for each row; null if none of them has a value. Texts are
those of Spark, and a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import md5
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

ID = "_id"
ID_BYTES = 16
ESCAPED = re.compile(r"\\(u00[01][0-9a-f]|.)")


def ids_of(table: str, columns: Sequence[pa.Array]) -> pa.FixedSizeBinaryArray:
    before = f"[{_quoted(table)},"
    made: list[bytes | None] = []
    for values in zip(*map(_texts, columns), strict=True):
        if all(value is None for value in values):
            made.append(None)
            continue
        parts = ",".join("null" if value is None else _quoted(value) for value in values)
        made.append(md5(f"{before}{parts}]".encode(), usedforsecurity=False).digest())
    return pa.array(made, pa.binary(ID_BYTES))


def _quoted(text: str) -> str:
    """The text as Spark's `to_json` writes it."""
    quoted: str = encode_basestring(text)
    return ESCAPED.sub(_upper, quoted) if "\\u00" in quoted else quoted


def _upper(escape: re.Match[str]) -> str:
    return f"\\u{escape[1][1:].upper()}" if len(escape[1]) > 1 else escape[0]


def _texts(values: pa.Array) -> list[str | None]:
    """The texts as Spark's cast to a string writes them."""
    kind = values.type
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if pa.types.is_timestamp(kind):
        texts: list[Any] = values.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        return [None if text is None else text.rstrip("0").rstrip(".") for text in texts]
    found: list[str | None] = values.cast(pa.string()).to_pylist()
    return found
