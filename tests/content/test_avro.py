"""Avro: every row is a record, every value is the one that was written, and no file makes the reader do more than it may."""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content.formats import avro
from forebay.content.limits import Limits
from tests.content.avro_files import SYNC, avro_file, number
from tests.content.memory import Reading, read


def read_avro(content: bytes, limits: Limits | None = None) -> Reading:
    return read({"a.avro": content}, limits)


def record_of(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": meaning, **more}


WRITTEN: dict[str, tuple[Any, Any, str]] = {
    "a long": ("long", -(2**63), "-9223372036854775808"),
    "a whole double": ("double", 1.0, "1.0"),
    "a float": ("float", 0.1, "0.1"),
    "no number": ("double", float("nan"), "NaN"),
    "a boolean": ("boolean", True, "true"),
    "a text": ("string", 'a"b\\\n\x01é', '"a\\"b\\\\\\n\\u0001é"'),
    "bytes": ("bytes", b"\xff\x00", '"/wA="'),
    "null of a union": (["null", "long"], None, "null"),
    "a value of a union": (["null", "long"], 7, "7"),
    "an enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", '"B"'),
    "a fixed": ({"type": "fixed", "name": "F", "size": 2}, b"ab", '"YWI="'),
    "a uuid": (
        logical("fixed", "uuid", name="U", size=16),
        bytes(range(16)),
        '"00010203-0405-0607-0809-0a0b0c0d0e0f"',
    ),
    "an array": ({"type": "array", "items": ["null", "long"]}, [1, None], "[1,null]"),
    "a map": ({"type": "map", "values": "double"}, {"k": 0.5}, '{"k":0.5}'),
    "a record": (record_of(x="int") | {"name": "Inner"}, {"x": 1}, '{"x":1}'),
    "a decimal": (
        logical("bytes", "decimal", scale=3),
        (-12345678901234567890).to_bytes(9, "big", signed=True),
        "-12345678901234567.890",
    ),
    "a small decimal": (logical("fixed", "decimal", name="D", size=2, scale=3), b"\xff\xff", "-0.001"),
    "a moment": (logical("long", "timestamp-micros"), -1, '"1969-12-31T23:59:59.999999Z"'),
    "nanoseconds": (logical("long", "timestamp-nanos"), 1, '"1970-01-01T00:00:00.000000001Z"'),
    "a moment that is none": (logical("long", "timestamp-millis"), 2**62, str(2**62)),
    "the time of a wall clock": (logical("long", "local-timestamp-millis"), 0, '"1970-01-01T00:00:00.000"'),
    "a date": (logical("int", "date"), 20_000, '"2024-10-04"'),
    "a date that is none": (logical("int", "date"), 2**30, str(2**30)),
    "a time of day": (logical("int", "time-millis"), 1, '"00:00:00.001"'),
    "a type that is not known": (logical("long", "fortnights"), 3, "3"),
}


@pytest.mark.parametrize(("kind", "value", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_value_is_the_one_that_was_written(kind: Any, value: Any, text: str) -> None:
    reading = read_avro(avro_file(record_of(v=kind), [{"v": value}]))
    assert [(row.value, row.byte_offset, row.line) for row in reading.documents] == [(f'{{"v":{text}}}', 0, 1)]


def test_a_record_may_name_itself_and_types_of_its_namespace() -> None:
    suit = {"type": "enum", "name": "Suit", "symbols": ["X"]}
    fields = [{"name": "a", "type": suit}, {"name": "b", "type": "Suit"}, {"name": "next", "type": ["null", "n.R"]}]
    schema = {"type": "record", "name": "R", "namespace": "n", "fields": fields}
    inner = number(0) + number(0) + number(0)
    body = number(0) + number(0) + number(1) + inner
    content = avro_file(schema, []) + number(1) + number(len(body)) + body + SYNC
    assert [json.loads(row.value) for row in read_avro(content).documents] == [
        {"a": "X", "b": "X", "next": {"a": "X", "b": "X", "next": None}}
    ]


ROWS = [{"a": n, "t": f"text {n}"} for n in range(20)]
SCHEMA = record_of(a="long", t="string")
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": lambda body: pa.compress(body, "zstd", asbytes=True),
    "snappy": lambda body: pa.compress(body, "snappy", asbytes=True) + zlib.crc32(body).to_bytes(4, "big"),
}


def packed(codec: str, body: bytes, count: int) -> bytes:
    block = PACKED[codec](body)
    return avro_file(SCHEMA, [], codec=codec) + number(count) + number(len(block)) + block + SYNC


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_rows_of_many_blocks_are_numbered_through(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "BATCH_ROWS", 3)
    reading = read_avro(avro_file(SCHEMA, ROWS, codec=codec))
    assert [json.loads(row.value) for row in reading.documents] == ROWS
    assert [(row.byte_offset, row.line) for row in reading.documents] == [(n, n + 1) for n in range(20)]


@pytest.mark.parametrize("codec", PACKED)
def test_every_codec_is_read(codec: str) -> None:
    body = b"".join(number(n) + number(1) + b"x" for n in range(9))
    assert [json.loads(row.value)["a"] for row in read_avro(packed(codec, body, 9)).documents] == list(range(9))


@pytest.mark.parametrize("codec", ["deflate", *PACKED])
def test_a_bomb_is_refused(codec: str) -> None:
    body = bytes(40 << 20)
    if codec == "deflate":
        packer = zlib.compressobj(wbits=-15)
        block = packer.compress(body) + packer.flush()
        content = avro_file(SCHEMA, [], codec=codec) + number(1) + number(len(block)) + block + SYNC
    else:
        content = packed(codec, body, 1)
    end = read_avro(content, Limits(max_expanded_bytes=1 << 20)).files["a.avro"]
    assert (end.lands, end.reason) == (False, "expansion-bomb")


WHOLE = avro_file(SCHEMA, ROWS)
ENDLESS = number(2**60)
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "torn in a block": (WHOLE[:-3], "corrupt-file", "a value of 16 bytes"),
    "torn in the header": (WHOLE[:20], "corrupt-file", "are left"),
    "a wrong mark": (WHOLE[:-1] + b"x", "corrupt-file", "does not have the length that it states"),
    "no schema": (b"Obj\x01" + number(0) + SYNC, "corrupt-file", "it has no schema"),
    "an unknown codec": (avro_file(SCHEMA, [], codec="lzo"), "corrupt-file", "no codec is called 'lzo'"),
    "rows that are no records": (avro_file("long", [1]), "corrupt-file", "its rows are not records"),
    "a type of nowhere": (avro_file(record_of(a="Gone"), []), "corrupt-file", "no type is 'Gone'"),
    "a snappy block with a wrong checksum": (
        packed("snappy", b"", 0)[:-17] + b"x" + SYNC,
        "corrupt-file",
        "does not match its checksum",
    ),
    "rows without end": (avro_file(record_of(), []) + ENDLESS + number(0) + SYNC, "too-many-records", "is the limit"),
    "an array without end": (
        avro_file(record_of(a={"type": "array", "items": "null"}), []) + number(1) + number(9) + ENDLESS + SYNC,
        "corrupt-file",
        "more elements than a record may have bytes",
    ),
    "a long text that is not there": (
        avro_file(record_of(a="string"), []) + number(1) + number(9) + ENDLESS + SYNC,
        "corrupt-file",
        "and 0 are left",
    ),
    "a record within itself without end": (
        avro_file(record_of(a="R"), []) + number(1) + number(0) + SYNC,
        "wrong-format",
        "too deep",
    ),
}


@pytest.mark.parametrize(("content", "reason", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_a_file_is_refused_whole(content: bytes, reason: str, said: str) -> None:
    end = read_avro(content).files["a.avro"]
    assert (end.lands, end.reason, end.documents) == (False, reason, 0)
    assert said in str(end.detail)


def test_a_row_that_is_no_utf8_is_refused_by_itself() -> None:
    reading = read_avro(avro_file(record_of(t="string"), [{"t": "a"}, {"t": "\udcff"}, {"t": "b"}]))
    assert [json.loads(row.value)["t"] for row in reading.documents] == ["a", "b"]
    assert [(row.problem, row.byte_offset) for row in reading.refused] == [("not-utf8", 1)]


FIELDS = {
    "n": (["null", "long"], st.none() | st.integers(-(2**63), 2**63 - 1)),
    "x": ("double", st.floats(allow_nan=False)),
    "t": (["null", "string"], st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    "b": ("boolean", st.booleans()),
    "l": ({"type": "array", "items": ["null", "int"]}, st.lists(st.none() | st.integers(-9, 9), max_size=3)),
    "m": ({"type": "map", "values": "string"}, st.dictionaries(st.text("ab\n"), st.text("xy"), max_size=2)),
}


@given(
    st.lists(st.fixed_dictionaries({name: values for name, (_, values) in FIELDS.items()}), min_size=1, max_size=6),
    st.sampled_from(["null", "deflate"]),
)
def test_rows_are_those_that_json_lines_would_be(rows: list[dict[str, Any]], codec: str) -> None:
    reading = read_avro(avro_file(record_of(**{name: kind for name, (kind, _) in FIELDS.items()}), rows, codec=codec))
    lines = read({"a.json": "\n".join(map(json.dumps, rows)).encode()})
    assert [json.loads(r.value) for r in reading.documents] == [json.loads(r.value) for r in lines.documents] == rows
