"""Parquet: every row is a record, and every value is the one that was written."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content.formats import parquet
from forebay.content.limits import Limits
from forebay.declaration.form import Explosion, Form
from tests.content.memory import Reading, read

MOMENT = dt.datetime(2026, 11, 22, 10, 30, 0, 123456, tzinfo=dt.UTC)


def file_of(table: pa.Table | dict[str, Any], **options: Any) -> bytes:
    written = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), written, **options)
    return written.getvalue()


def read_parquet(content: bytes, limits: Limits | None = None) -> Reading:
    return read({"a.parquet": content}, limits)


WRITTEN: dict[str, tuple[Any, str]] = {
    "a whole number": (pa.array([2**63 - 1]), "9223372036854775807"),
    "an unsigned one": (pa.array([2**64 - 1], pa.uint64()), "18446744073709551615"),
    "a double": (pa.array([0.1]), "0.1"),
    "a whole double": (pa.array([1.0]), "1.0"),
    "a large double": (pa.array([1e300]), "1e+300"),
    "a float": (pa.array([0.1], pa.float32()), "0.1"),
    "no number": (pa.array([float("nan")]), "NaN"),
    "minus infinity": (pa.array([float("-inf")]), "-Infinity"),
    "a decimal": (pa.array([Decimal("12345678901234567.890")]), "12345678901234567.890"),
    "a boolean": (pa.array([True]), "true"),
    "null": (pa.array([None], pa.int64()), "null"),
    "a text": (pa.array(['a"b\\c\n\x01é']), '"a\\"b\\\\c\\n\\u0001é"'),
    "a text of a dictionary": (pa.array(["x"]).dictionary_encode(), '"x"'),
    "bytes": (pa.array([b"\xff\x00"]), '"/wA="'),
    "a uuid": (pa.array([bytes(range(16))], pa.uuid()), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
    "no uuid": (pa.array([None], pa.uuid()), "null"),
    "uuids of a list": (
        pa.ListArray.from_arrays([0, 1], pa.array([bytes(15) + b"\xff"], pa.uuid())),
        '["00000000-0000-0000-0000-0000000000ff"]',
    ),
    "a moment": (pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")), '"2026-11-22T10:30:00.123456Z"'),
    "nanoseconds": (pa.array([1], pa.timestamp("ns", "UTC")), '"1970-01-01T00:00:00.000000001Z"'),
    "the time of a wall clock": (pa.array([MOMENT.replace(tzinfo=None)]), '"2026-11-22T10:30:00.123456"'),
    "a date": (pa.array([MOMENT.date()]), '"2026-11-22"'),
    "a time of day": (pa.array([MOMENT.time()]), '"10:30:00.123456"'),
    "a list": (pa.array([[1, None]]), "[1,null]"),
    "an empty list": (pa.array([[]], pa.list_(pa.string())), "[]"),
    "an object": (pa.array([{"a": 1, "b": [{"c": None}]}]), '{"a":1,"b":[{"c":null}]}'),
    "a map": (pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())), '{"k":1.5}'),
    "a map of numbers": (pa.array([[(7, "x")]], pa.map_(pa.int32(), pa.string())), '{"7":"x"}'),
    "a map of doubles": (pa.array([[(0.5, "x")]], pa.map_(pa.float64(), pa.string())), '{"0.5":"x"}'),
    "a map of bytes": (pa.array([[(b"\xff\x00", 1)]], pa.map_(pa.binary(), pa.int64())), '{"/wA=":1}'),
    "a map of moments": (
        pa.array([[(MOMENT, 1)]], pa.map_(pa.timestamp("us", "UTC"), pa.int64())),
        '{"2026-11-22T10:30:00.123456Z":1}',
    ),
    "a map of uuids": (
        pa.MapArray.from_arrays([0, 1], pa.array([bytes(15) + b"\xff"], pa.uuid()), pa.array([1])),
        '{"00000000-0000-0000-0000-0000000000ff":1}',
    ),
    "a map with a quote in a key": (pa.array([[('a"b', 1)]], pa.map_(pa.string(), pa.int64())), '{"a\\"b":1}'),
}


@pytest.mark.parametrize(("value", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_value_is_the_one_that_was_written(value: Any, text: str) -> None:
    (row,) = read_parquet(file_of({"v": value})).documents
    assert row.value == f'{{"v":{text}}}'


def test_a_map_by_lists_or_objects_has_no_json() -> None:
    keys = pa.array([[1, 2]])
    end = read_parquet(file_of({"m": pa.MapArray.from_arrays([0, 1], keys, pa.array([1]))})).files["a.parquet"]
    assert (end.reason, "are not read" in str(end.detail)) == ("wrong-format", True)


def test_moments_of_int96_are_those_that_were_written_in_all_years() -> None:
    """As Hive, Impala and older Sparks write them; some mean "for ever" by the year 9999."""
    moments = [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2026, 11, 22, 10, 30, 0, 123456)]
    content = file_of({"at": pa.array(moments, pa.timestamp("us"))}, use_deprecated_int96_timestamps=True)
    assert [json.loads(row.value)["at"] for row in read_parquet(content).documents] == [
        "9999-12-31T00:00:00.000000",
        "0001-01-01T00:00:00.000000",
        "2026-11-22T10:30:00.123456",
    ]


def test_rows_are_known_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    content = file_of({"a": list(range(10))}, row_group_size=3)
    reading = read_parquet(content)
    assert [(json.loads(row.value)["a"], row.byte_offset, row.line) for row in reading.documents] == [
        (n, n, n + 1) for n in range(10)
    ]
    monkeypatch.setattr(parquet, "BATCH_ROWS", 4)
    assert read_parquet(content).documents == reading.documents
    assert read({"a.parquet": content}, Limits(piece_bytes=100)).documents == reading.documents


@pytest.mark.parametrize("where", ["the end", "the middle", "the beginning"])
def test_a_torn_file_is_refused_whole(where: str) -> None:
    whole = file_of({"a": [f"text {n}" for n in range(1000)]}, write_page_checksum=True)
    middle = len(whole) // 4
    torn = {
        "the end": whole[:-5],
        "the middle": whole[:middle] + bytes(8) + whole[middle + 8 :],
        "the beginning": whole[:100],
    }[where]
    end = read_parquet(torn).files["a.parquet"]
    assert (end.lands, end.reason, end.documents) == (False, "corrupt-file", 0)
    assert "a Parquet file that cannot be read" in str(end.detail)


def test_what_is_declared_parquet_and_is_none_is_refused_in_words() -> None:
    end = read({"a": b'{"a": 1}'}, form=Form(format="parquet")).files["a"]
    assert (end.reason, end.detail) == ("wrong-format", "parquet is declared, but it begins like text")
    assert read({"a": b""}, form=Form(format="parquet")).files["a"].outcome == "empty"
    end = read({"a": file_of({"a": [1]})}, form=Form(format="json")).files["a"]
    assert (end.reason, end.detail) == ("not-json", "it begins like a Parquet file")


def test_two_columns_of_one_name_are_refused() -> None:
    inner = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    for table in (pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), pa.table({"s": inner})):
        end = read_parquet(file_of(table)).files["a.parquet"]
        assert (end.reason, end.detail) == ("bad-header", "two columns are called 'x'")


def test_rows_whose_arrays_a_table_explodes_are_refused_in_words() -> None:
    form = Form(exploded=(Explosion(("items",)),))
    end = read({"a": file_of({"items": [[{"x": 1}], []]})}, form=form).files["a"]
    assert (end.lands, end.reason) == (False, "wrong-format")
    assert "rows of parquet cannot be exploded" in str(end.detail)
    assert len(read({"a": file_of({"items": ["no array"]})}, form=form).documents) == 1


def test_files_without_rows_or_columns() -> None:
    assert read_parquet(file_of({"a": pa.array([], pa.int64())})).files["a.parquet"].outcome == "empty"


def test_a_small_file_of_very_many_rows_is_refused() -> None:
    content = file_of({"a": pa.nulls(2_000_000, pa.int64())})
    assert len(content) < 10_000
    assert read_parquet(content).files["a.parquet"].reason == "too-many-records"


def test_a_small_file_that_repeats_a_long_value_is_refused() -> None:
    content = file_of({"a": pa.array(["x" * 100_000]).take(pa.array([0] * 500))})
    assert len(content) < 20_000
    end = read_parquet(content, Limits(max_expanded_bytes=10_000_000)).files["a.parquet"]
    assert (end.lands, end.reason) == (False, "expansion-bomb")


def test_a_large_or_unreadable_row_is_refused_by_its_number() -> None:
    broken = pa.array([b"x", b"\xff", b"y" * 200]).view(pa.string())
    reading = read_parquet(file_of({"a": broken}), Limits(max_record_bytes=100, raw_bytes=10))
    assert [row.value for row in reading.documents] == ['{"a":"x"}']
    assert [(row.problem, row.byte_offset, row.line) for row in reading.refused] == [
        ("not-utf8", 1, 2),
        ("record-too-large", 2, 3),
    ]
    assert "from row 2 of the content" in reading.refused[1].detail


SCALARS = st.none() | st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": SCALARS,
            "x": st.none() | st.floats(allow_nan=False),
            "t": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            "b": st.none() | st.booleans(),
            "l": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3),
            "o": st.none()
            | st.fixed_dictionaries({"p": SCALARS, "q": st.lists(st.text("ab", max_size=2), max_size=2)}),
        }
    ),
    min_size=1,
    max_size=6,
)
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "x": pa.float64(),
        "t": pa.string(),
        "b": pa.bool_(),
        "l": pa.list_(pa.int64()),
        "o": pa.struct({"p": pa.int64(), "q": pa.list_(pa.string())}),
    }
)


@given(ROWS, st.integers(1, 4))
def test_rows_are_those_that_json_lines_would_be(rows: list[dict[str, Any]], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet, "BATCH_ROWS", at_once)
        reading = read_parquet(file_of(pa.Table.from_pylist(rows, SCHEMA)))
    lines = read({"a.json": "\n".join(map(json.dumps, rows)).encode()})
    assert [json.loads(r.value) for r in reading.documents] == [json.loads(r.value) for r in lines.documents] == rows


class Keys(pe.KmsClient):  # type: ignore[misc]
    """A vault of keys that hides nothing."""

    def __init__(self, _: pe.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_file_is_refused_as_such(plaintext_footer: bool) -> None:
    wanted = pe.EncryptionConfiguration("footer", column_keys={"columns": ["a"]}, plaintext_footer=plaintext_footer)
    properties = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), wanted)
    content = file_of({"a": [1], "b": [2]}, encryption_properties=properties)
    for form in (Form(), Form(format="parquet")):
        (end,) = read({"a.parquet": content}, form=form).files.values()
        assert (end.outcome, end.reason) == ("unreadable", "encrypted")


@pytest.mark.parametrize("word", ["PARENT", "ORCHARD"])
def test_a_text_that_begins_as_the_name_of_a_binary_format_is_a_text(word: str) -> None:
    reading = read({"a.csv": f"{word},n\nx,1\n".encode(), "b.orc": b"ORC" + bytes(100) + b"ORC\x18"})
    assert [json.loads(row.value) for row in reading.documents] == [{word: "x", "n": "1"}]
    assert reading.files["b.orc"].detail == "it begins like an ORC file"
