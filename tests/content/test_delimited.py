"""CSV, TSV and plain lines: every value is the text that was written, and every row has its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content.formats import fields
from forebay.content.formats.fields import Dialect, Torn, rows_of
from forebay.content.limits import Limits
from forebay.declaration.form import Form
from tests.content.memory import Reading, read

CSV = Form(format="csv")


def read_csv(content: str | bytes, form: Form = CSV, limits: Limits | None = None, key: str = "a.csv") -> Reading:
    return read({key: content.encode() if isinstance(content, str) else content}, limits, form=form)


def rows(reading: Reading) -> list[Any]:
    return [json.loads(row.value) for row in reading.documents]


def test_values_are_the_texts_that_were_written() -> None:
    text = 'id,price,code,at\n007,1.10,1e5,NA\n-0,"1,000",,"say ""hi"", ok"\n'
    reading = read_csv(text)
    assert rows(reading) == [
        {"id": "007", "price": "1.10", "code": "1e5", "at": "NA"},
        {"id": "-0", "price": "1,000", "code": None, "at": 'say "hi", ok'},
    ]
    assert [(row.line, row.byte_offset) for row in reading.documents] == [(2, 17), (3, text.index("-0"))]
    assert (reading.files["a.csv"].outcome, reading.files["a.csv"].documents) == ("loaded", 2)


def test_quoted_newlines_are_not_torn_and_lines_are_those_of_the_file() -> None:
    reading = read_csv('a,b\r\n1,"x\r\ny"\r\n\r\n2,z\r\n')
    assert rows(reading) == [{"a": "1", "b": "x\r\ny"}, {"a": "2", "b": "z"}]
    assert [row.line for row in reading.documents] == [2, 5]


@pytest.mark.parametrize("odd", ["", 'say ""hi""', "\\", "\t", "\x01", "\r", "\n", ","])
def test_an_empty_text_is_not_a_null(odd: str) -> None:
    """Whether or not the texts beside it are written otherwise in JSON."""
    found = rows(read_csv(f'a,b,c\n"",,"{odd}"\n,x,""\n,,y\n'))
    last = odd.replace('""', '"')
    assert found == [
        {"a": "", "b": None, "c": last},
        {"a": None, "b": "x", "c": ""},
        {"a": None, "b": None, "c": "y"},
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1", "1 field, and the header has 2"),
        ("1,2,3", "3 fields, and the header has 2"),
        ('"a" b,2', "text follows the closing quote of a field"),
    ],
)
def test_a_row_that_is_none_is_refused_by_itself(row: str, said: str) -> None:
    reading = read_csv(f"a,b\n1,2\n{row}\n3,4\n")
    assert rows(reading) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    (refused,) = reading.refused
    assert (refused.line, refused.byte_offset, refused.value) == (3, 8, row)
    assert (refused.problem, refused.detail) == ("not-a-row", said)


def test_a_quote_within_an_unquoted_field_is_text() -> None:
    assert rows(read_csv('a,b\n5" pipe,2\n')) == [{"a": '5" pipe', "b": "2"}]


def test_a_quote_that_never_closes_refuses_the_file() -> None:
    end = read_csv('a,b\n1,2\n3,"x\n5,6\n').files["a.csv"]
    assert (end.lands, end.reason, end.detail) == (False, "corrupt-file", "the quote that opens on line 3 never closes")


@pytest.mark.parametrize("content", ["", "a,b", "a,b\n", "\n\na,b\n\n", "\ufeffa,b\n"])
def test_a_file_without_rows_is_empty(content: str) -> None:
    assert read_csv(content).files["a.csv"].outcome == "empty"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b,a\n1,2,3\n", "two columns are called 'a'"),
        (b"a,caf\xe9\n1,2\n", "the name of column 2 is not UTF-8: b'caf\\xe9'"),
        ("a," + "b" * 2000 + "\n", "the name of column 2 has 2000 bytes"),
        ("a" + "," * 10_000 + "\n", "it has 10,001 columns, and 10,000 is the limit"),
        (
            "a,b\r1,2\r3,4\n",
            "the name of column 2 contains a carriage return: lines may end with carriage returns alone",
        ),
        ('"a" b,c\n1,2\n', "the header is not a row: text follows the closing quote of a field"),
    ],
)
def test_a_header_that_says_nothing_clear_refuses_the_file(content: str | bytes, said: str) -> None:
    end = read_csv(content).files["a.csv"]
    assert (end.outcome, end.reason, end.detail) == ("unreadable", "bad-header", said)


def test_a_column_without_a_name_is_called_by_its_number() -> None:
    assert rows(read_csv(",b,\n1,2,3\n")) == [{"column_1": "1", "b": "2", "column_3": "3"}]


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"<!DOCTYPE html>\n503", "HTML or XML"),
        (b'{"a":1}\n{"a":2}\n', "JSON"),
        (b"PAR1....", "a Parquet file"),
        ("a,b\n".encode("utf-16-le"), "binary data, or as UTF-16 without a byte order mark"),
    ],
)
def test_what_is_no_csv_is_refused_in_words(content: bytes, looks: str) -> None:
    end = read_csv(content).files["a.csv"]
    assert (end.reason, end.detail) == ("wrong-format", f"csv is declared, but it begins like {looks}")


def test_files_of_one_batch_have_their_own_headers() -> None:
    reading = read({"1.csv": b"a,b\n1,2\n", "2.csv": b"b,c\n3,4\n"}, form=CSV)
    assert rows(reading) == [{"a": "1", "b": "2"}, {"b": "3", "c": "4"}]


def test_without_a_declaration_the_suffix_says_csv_or_tsv_and_json_is_json_however_it_is_named() -> None:
    objects = {
        "1.csv": b"a,b\n1,2\n",
        "2.TSV.gz": gzip.compress(b"a\tb\n1\t2\n"),
        "3.csv": b'{"a": "1", "b": "2"}\n',
        "4.csv": b'[{"a": "1", "b": "2"}]',
    }
    assert rows(read(objects)) == [{"a": "1", "b": "2"}] * 4
    assert read({"5.txt": b"a,b\n1,2\n"}).files["5.txt"].reason == "not-json"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_without_a_declaration_the_header_shows_the_delimiter(delimiter: str) -> None:
    content = f'"a, b"{delimiter}c{delimiter}d\n1{delimiter}2{delimiter}3;4\n'.replace(
        ";4", "" if delimiter == ";" else ";4"
    )
    (row,) = rows(read({"a.csv": content.encode()}))
    assert list(row) == ["a, b", "c", "d"]
    assert list(rows(read_csv("a;b\n1;2\n"))[0]) == ["a;b"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("form", [Form(), Form(format="csv"), Form(format="csv", delimiter=";")])
def test_a_first_line_of_excel_that_names_the_delimiter_is_no_header(form: Form, encoding: str) -> None:
    text = "sep=;\r\na;b\r\n1;2,5\r\n"
    reading = read({"a.csv": text.encode(encoding)}, form=form)
    assert rows(reading) == [{"a": "1", "b": "2,5"}]
    [row] = reading.documents
    assert (row.line, row.byte_offset) == (3, len(text[: text.index("1")].encode(encoding)))
    assert list(rows(read_csv("sep=\n1\n"))[0]) == ["sep="]


def test_dialects_are_declared() -> None:
    form = Form(format="csv", delimiter=";", quote="'", header=("a", "b"))
    assert rows(read_csv("1;'x;''y'\n2;\"z\"\n", form)) == [{"a": "1", "b": "x;'y"}, {"a": "2", "b": '"z"'}]
    assert rows(read_csv("1;'x\ny'\n2;z", form)) == [{"a": "1", "b": "x\ny"}, {"a": "2", "b": "z"}]
    assert rows(read_csv("1;'x''y'\n", form)) == [{"a": "1", "b": "x'y"}]
    assert rows(read_csv('1;"x"\n', form)) == [{"a": "1", "b": '"x"'}]
    assert rows(read_csv('"1\tx"\t2\n', Form(format="tsv", header=("a", "b")))) == [{"a": "1\tx", "b": "2"}]
    assert rows(read_csv('a\tb\n"1\t2"\n', Form(format="tsv", quote=""))) == [{"a": '"1', "b": '2"'}]


def test_plain_lines_are_records_with_a_text() -> None:
    reading = read_csv(b'GET "/a"\t1\r\n\n<b>, \\ \xe9\n{"c"}', Form(format="lines"), key="a.log")
    assert rows(reading) == [{"text": 'GET "/a"\t1'}, {"text": '{"c"}'}]
    assert [(row.line, row.problem) for row in reading.refused] == [(3, "not-utf8")]
    assert [row.line for row in reading.documents] == [1, 4]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_encodings_with_a_mark_are_read_and_offsets_are_those_of_the_file(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "WINDOW_BYTES", 16)
    lines = ["a,b", "1,é", "2,😀", "3,x", "4"]
    content = "\n".join(lines).encode(encoding)
    reading = read_csv(content)
    assert [row["b"] for row in rows(reading)] == ["é", "😀", "x"]
    starts = [len("".join(f"{line}\n" for line in lines[:n]).encode(encoding)) for n in range(1, 5)]
    assert [row.byte_offset for row in (*reading.documents, *reading.refused)] == starts


def test_a_file_with_returns_alone_has_lines() -> None:
    assert rows(read_csv("a,b\r1,2\r3,4\r")) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_a_large_csv_file_is_read_whole_and_large_plain_lines_in_ranges() -> None:
    many = Limits(piece_bytes=64)
    text = "a,b\n" + "".join(f'{n},"x\ny"\n' for n in range(100))
    cut = read_csv(text, limits=many)
    assert rows(cut) == [{"a": str(n), "b": "x\ny"} for n in range(100)]
    assert cut.documents == read_csv(text).documents
    lines = Form(format="lines")
    assert read_csv(text, lines, many).documents == read_csv(text, lines).documents


def test_a_file_of_too_many_rows_or_refused_ones_is_refused() -> None:
    text = "a,b\n" + "1,2\n" * 10
    assert read_csv(text, limits=Limits(max_records=9)).files["a.csv"].reason == "too-many-records"
    assert read_csv(text.replace(",2", ""), limits=Limits(max_refused=9)).files["a.csv"].reason == "too-many-refused"


def test_a_long_row_is_refused_and_the_others_land() -> None:
    reading = read_csv("a,b\n1," + "x" * 200 + "\n2,y\n", limits=Limits(max_record_bytes=100))
    assert rows(reading) == [{"a": "2", "b": "y"}]
    assert [(row.problem, row.line) for row in reading.refused] == [("record-too-large", 2)]


def test_names_that_are_long_do_not_make_a_small_file_take_much_memory() -> None:
    """Each row repeats all names."""
    header = ",".join(f"{n:01000}" for n in range(100))
    reading = read_csv(header + "\n" + ("," * 99 + "\n") * 1000)
    assert len(reading.documents) == 1000


HEADED = Form(format="csv", header=("a", "b", "c"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["007", "1.10", "1e5", "NA", "null", "", '"', ",", "\n", "\r\n", " x ", "\\", "\0", "\ufeff"]
)


@given(
    st.lists(st.lists(TEXTS, min_size=3, max_size=3), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.integers(1, 60),
    st.booleans(),
)
def test_what_a_writer_wrote_comes_back(
    table: list[list[str]], newline: str, quoting: Any, window: int, ends: bool
) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator=newline, quoting=quoting).writerows([["x", "y", "z"], *table])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fields, "WINDOW_BYTES", window)
        reading = read_csv(written.getvalue() if ends else written.getvalue().removesuffix(newline), HEADED)
    nothing = "" if quoting == csv.QUOTE_ALL else None
    expected = [{k: v or nothing for k, v in zip("abc", row, strict=True)} for row in (["x", "y", "z"], *table)]
    assert rows(reading) == expected
    assert reading.refused == []


PIECES = st.lists(st.sampled_from([b'"', b",", b"\n", b"\r\n", b"a", b"\r", b'"a"', b'""']), max_size=25)


@given(PIECES.map(b"".join), st.integers(1, 30))
def test_fields_that_are_found_at_once_are_those_that_are_read_one_by_one(text: bytes, window: int) -> None:
    assert found(text, window) == found(text, window, one_by_one=True)


def found(text: bytes, window: int, *, one_by_one: bool = False) -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fields, "WINDOW_BYTES", window)
        if one_by_one:
            patched.setattr(fields, "_whole_rows", lambda *_: None)
        places, broken = [], []
        try:
            for some in rows_of(text, Dialect()):
                for first, stop in zip(some.first[:-1].tolist(), some.first[1:].tolist(), strict=True):
                    spans = zip(some.starts[first:stop].tolist(), some.ends[first:stop].tolist(), strict=True)
                    places.append(list(spans))
                broken += some.broken
        except Torn as torn:
            return torn.at
    return places, broken


@pytest.mark.parametrize("text", ["a,b\n1,2", 'a,b\n1,2\n3,"\n"\n4,5', 'a,b\n1,"\n"\n2,3', "\na,b\n\n1,2\n"])
def test_lines_are_those_of_the_file_wherever_it_ends(text: str) -> None:
    reading = read_csv(text)
    assert [row.line for row in reading.documents] == [text[: r.byte_offset].count("\n") + 1 for r in reading.documents]
    assert reading.documents
