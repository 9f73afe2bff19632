"""Arrow columns become JSON text, a column at a time: every value as its producer wrote it.

In: arrays of any type that Parquet can hold. Out: binary arrays of JSON, without nulls. Whole numbers and decimals keep their
digits, floats are the shortest text that gives them back, times are ISO 8601, UUIDs as people write them, and bytes are
base64. NaN and infinity are bare words, as Python writes them, and are treated as in JSON lines; `strict` JSON, for other
readers, has them as texts. A type without a text form is `Wordless`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

QUOTE, BACKSLASH, SPACE = b'"\\ '
NULL = pa.scalar(b"null")
NOTHING = pa.scalar(b"")
ESCAPES = {ord("\n"): b"\\n", ord("\r"): b"\\r", ord("\t"): b"\\t", QUOTE: b'\\"', BACKSLASH: b"\\\\"}

_PLAIN_TEXT = (kinds.is_integer, kinds.is_decimal, kinds.is_boolean)
_QUOTED_TEXT = (kinds.is_date, kinds.is_time)
_TEXT = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
_BYTES = (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary, kinds.is_binary_view)
_LISTS = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)


class Wordless(ValueError):
    """There is no JSON for values of this type."""

    def __init__(self, kind: Any) -> None:
        super().__init__(f"values of type {kind} are not read")


def spelt(key: str) -> bytes:
    return json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass")


def documents(keys: Sequence[bytes], columns: Sequence[Any], rows: int) -> Any:
    """An object for each row. Columns are JSON."""
    if not keys:
        return pa.array([b"{}"] * rows, pa.binary())
    parts: list[Any] = []
    for before, key, column in zip([b"{", *[b","] * len(keys)], keys, columns, strict=False):
        parts += [before + key + b":", column]
    return pc.binary_join_element_wise(*parts, b"}", b"")


def documents_of_texts(keys: Sequence[bytes], texts: Any, places: Any, is_null: Any) -> Any:
    """An object for each row of `places`, which say where in `texts` its values are, escaped. The text between two values
    is put behind the texts, once for each case of nulls beside it. Then one `take` writes all documents."""
    rows, count = places.shape
    between = [
        close + before + key + behind
        for before, key in [(b"{", keys[0] + b":"), *((b",", key + b":") for key in keys[1:]), (b"}", b"")]
        for close in ((b'"', b"") if before != b"{" else (b"", b""))
        for behind in ((b'"', b"") if before != b"}" else (b"", b""))
    ]
    everything = pa.concat_arrays([texts, pa.array([*between, b"null"], pa.binary())])
    picks = np.empty((rows, 2 * count + 1), np.int32)
    picks[:, 0::2] = len(texts) + 4 * np.arange(count + 1)
    picks[:, 1::2] = places
    if is_null.any():
        picks[:, 1::2][is_null] = len(everything) - 1
        picks[:, 2::2] += 2 * is_null
        picks[:, 0:-1:2] += is_null
    taken = everything.take(pa.array(picks.ravel()))
    borders = np.frombuffer(taken.buffers()[1], np.int32)[taken.offset :: 2 * count + 1][: rows + 1]
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(borders.copy()), taken.buffers()[2]])


def escaped(texts: Any) -> Any:
    """Texts as JSON has them between quotes."""
    held = texts.buffers()[2]
    seen = np.frombuffer(held or b"", np.uint8)
    there = [byte for byte in (QUOTE, BACKSLASH) if (seen == byte).any()]
    if (seen < SPACE).any():
        there += np.unique(seen[seen < SPACE]).tolist()
    for byte in sorted(there, key=lambda byte: byte != BACKSLASH):  # first of all, as the others bring more of it
        texts = pc.replace_substring(texts, bytes([byte]), ESCAPES.get(byte, b"\\u%04x" % byte))
    return texts


def quoted(texts: Any) -> Any:
    """Escaped texts in quotes; null where the text is null."""
    return _or_null(texts, pc.binary_join_element_wise(b'"', pc.fill_null(texts, b""), b'"', b""))


def json_of(values: Any, *, strict: bool = False) -> Any:
    """Raises `Wordless`."""
    kind, inner = values.type, partial(json_of, strict=strict)
    if isinstance(values, pa.ExtensionArray):
        return quoted(_uuids(values.storage)) if kind.extension_name == "arrow.uuid" else inner(values.storage)
    if kinds.is_dictionary(kind):
        return inner(values.dictionary_decode())
    if kinds.is_null(kind):
        return pa.array([b"null"] * len(values), pa.binary())
    if any(fits(kind) for fits in _PLAIN_TEXT):
        return _or_null(values, _text(values))
    if kinds.is_floating(kind):
        return _or_null(values, _floats(values, strict=strict))
    if kinds.is_duration(kind):
        return json_of(values.cast(pa.int64()))
    if any(fits(kind) for fits in _TEXT):
        return quoted(escaped(values.cast(pa.binary())))
    if any(fits(kind) for fits in _QUOTED_TEXT):
        return quoted(_text(values))
    if kinds.is_timestamp(kind):
        return quoted(_moments(values))
    if any(fits(kind) for fits in _BYTES):
        encoded = [None if value is None else base64.b64encode(value) for value in values.to_pylist()]
        return quoted(pa.array(encoded, pa.binary()))
    if kinds.is_struct(kind):
        fields = [inner(child) for child in values.flatten()]
        return _or_null(values, documents([spelt(field.name) for field in kind], fields, len(values)))
    if kinds.is_map(kind):
        return _or_null(values, _objects(values.take(pa.array(np.arange(len(values)))), inner))
    if any(fits(kind) for fits in _LISTS):
        lengths = pc.fill_null(pc.list_value_length(values), 0)
        return _or_null(values, _enclosed(b"[", inner(values.flatten()), lengths, b"]"))
    raise Wordless(kind)


def _text(values: Any) -> Any:
    return values.cast(pa.string()).cast(pa.binary())


def _or_null(values: Any, texts: Any) -> Any:
    return pc.if_else(values.is_null(), NULL, texts) if values.null_count else texts


def _floats(values: Any, *, strict: bool) -> Any:
    """A float without decimals is written as 1.0, so that it stays a float."""
    values = values.cast(pa.float32()) if kinds.is_float16(values.type) else values
    texts = _text(values)
    is_whole = pc.invert(pc.match_substring_regex(texts, "[.enE]"))
    texts = pc.binary_join_element_wise(texts, pc.if_else(is_whole, b".0", NOTHING), b"")
    is_finite = pc.is_finite(values)
    if pc.all(is_finite).as_py() is False:
        infinite = pc.if_else(pc.less(values, pa.scalar(0, values.type)), b"-Infinity", pa.scalar(b"Infinity"))
        texts = pc.if_else(pc.is_inf(values), infinite, texts)
        texts = pc.if_else(pc.is_nan(values), pa.scalar(b"NaN"), texts)
        texts = pc.if_else(is_finite, texts, quoted(texts)) if strict else texts
    return texts


def _moments(values: Any) -> Any:
    """With a Z for an instant, and without one for a local time."""
    texts = pc.replace_substring_regex(_text(values.cast(pa.timestamp(values.type.unit))), r"^([^< ]+) ", r"\1T")
    return texts if values.type.tz is None else pc.binary_join_element_wise(texts, b"Z", b"")


def _uuids(values: Any) -> Any:
    return pa.array([value if value is None else uuid_of(value) for value in values.to_pylist()], pa.binary())


def uuid_of(value: bytes) -> str:
    """The UUID with these sixteen bytes."""
    return str(UUID(bytes=value))


def _objects(maps: Any, inner: Callable[[Any], Any]) -> Any:
    members = pc.binary_join_element_wise(_keys(maps), inner(maps.items), b":")
    offsets = maps.offsets.to_numpy()
    return _enclosed(b"{", members, pa.array(offsets[1:] - offsets[:-1]), b"}")


def _keys(maps: Any) -> Any:
    """A key that is not text in JSON, such as a number, becomes text."""
    keys = json_of(maps.keys)
    if pc.any(pc.match_substring_regex(keys, r"^[{\[]")).as_py():
        raise Wordless(maps.type)
    return pc.if_else(pc.starts_with(keys, b'"'), keys, quoted(keys))


def _enclosed(opening: bytes, elements: Any, lengths: Any, closing: bytes) -> Any:
    offsets = np.concatenate(([0], np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), elements)
    return pc.binary_join_element_wise(opening, pc.binary_join(lists, b","), closing, b"")
