"""What is left of a landed object without some persons: others keep every byte, and a doubt changes nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.declaration.form import Form
from forebay.privacy.subject import subject_paths
from forebay.privacy.token import token_of
from forebay.upkeep.erase.landed import Left, left_of
from forebay.upkeep.erase.rows import Erased

SECRET = b"s" * 32
ERASED = Erased(frozenset({token_of("anna", SECRET), token_of("4711", SECRET)}), SECRET)
PATHS = (("user", "id"), ("@parent", "user", "id"), ("items", "user", "id"))
CSV = (("who",),)


def left(content: bytes, key: str = "in/a.json", **form: Any) -> Left:
    return left_of(content, key, Form(**form), PATHS, ERASED)


def of_csv(content: bytes, key: str = "in/a.csv", **form: Any) -> Left:
    return left_of(content, key, Form(**form), CSV, ERASED)


def line(user: object, **more: object) -> bytes:
    return json.dumps({"user": {"id": user}, **more}).encode()


ANNA, BEN = line("anna"), b'{ "n": 1.50, "user" : {"id":"ben"} }'


@pytest.mark.parametrize(
    ("content", "kept", "records"),
    [
        (b"\n".join([ANNA, BEN, line(4711), b"", BEN]), BEN + b"\n\n" + BEN, 2),
        (b"\r\n".join([BEN, ANNA, b""]), BEN + b"\r\n", 1),
        (b"\xef\xbb\xbf" + ANNA + b"\n" + BEN, BEN, 1),
        (ANNA + b"\n" + line("anna") + b"\n\n", b"", 2),
        (json.dumps({"user": {"id": "anna"}}, indent=1).encode(), b"", 1),
        (b"[" + ANNA + b",\n" + ANNA + b"]", b"", 2),
        (b'{"USER": [{"ID": "x"}], "user": [{"id": null}, {"id": "anna"}]}'.replace(b'"x"', b'"anna"'), b"", 1),
    ],
)
def test_their_records_leave_and_others_keep_every_byte(content: bytes, kept: bytes, records: int) -> None:
    assert left(content) == Left(records, kept)


def test_what_was_packed_is_packed_again_the_same_each_time() -> None:
    packed = left(gzip.compress(ANNA + b"\n" + BEN))
    assert gzip.decompress(packed.content or b"") == BEN
    assert packed == left(gzip.compress(ANNA + b"\n" + BEN, 1))


@pytest.mark.parametrize(
    "content", [b"", b"\n", BEN, gzip.compress(BEN, mtime=0), b"[" + BEN + b"]", b"\xef\xbb\xbf" + BEN]
)
def test_an_object_that_holds_none_of_theirs_stays(content: bytes) -> None:
    assert left(content) == Left()


@pytest.mark.parametrize(
    ("content", "kept", "form"),
    [
        (b"who,n\nanna,1\nben,007\nanna,3\n", b"who,n\nben,007\n", {}),
        (b'who,n\r\nben,"a\r\nb"\r\n"anna","x\r\ny"\r\n', b'who,n\r\nben,"a\r\nb"\r\n', {}),
        (b"n;who\n1;anna\n\n2;ben", b"n;who\n2;ben", {"format": "csv", "delimiter": ";"}),
        (b"anna,1\nben,2\n", b"ben,2\n", {"format": "csv", "header": ("who", "n")}),
        (b"\xef\xbb\xbfwho,n\nanna,1\nben,2\n", b"\xef\xbb\xbfwho,n\nben,2\n", {}),
        ("who,n\nanna,1\nbén,2\n".encode("utf-16"), "who,n\nbén,2\n".encode("utf-16"), {}),
        (b"sep=;\nwho;n\nanna;1\nben;2\n", b"sep=;\nwho;n\nben;2\n", {}),
    ],
)
def test_rows_of_csv_leave_and_others_keep_every_byte(content: bytes, kept: bytes, form: dict[str, Any]) -> None:
    found = of_csv(content, **form)
    assert (found.content, found.unclear) == (kept, "")
    assert of_csv(kept, **form) == Left()
    packed = of_csv(gzip.compress(content), "in/a.csv.gz", **form)
    assert gzip.decompress(packed.content or b"") == kept


def test_a_csv_of_theirs_alone_is_left_empty() -> None:
    assert of_csv(b"who,n\nanna,1\n") == Left(1, b"")


def test_rows_of_parquet_leave_and_the_schema_stays() -> None:
    table = pa.table(
        {
            "who": ["anna", "ben", None, "anna", "cleo"],
            "n": pa.array([1, 2, 3, 4, 5], pa.int16()),
            "at": pa.array([1, 2, 3, 4, 5], pa.timestamp("ms", "UTC")),
            "more": [{"x": [1]}, {"x": []}, None, {"x": None}, {"x": [2, 3]}],
        }
    )
    pq.write_table(table, before := io.BytesIO(), row_group_size=2, compression="gzip")
    found = of_csv(before.getvalue(), "in/a.parquet")
    after = pq.ParquetFile(io.BytesIO(found.content or b""))
    assert (found.records, after.read().to_pylist()) == (2, table.take([1, 2, 4]).to_pylist())
    assert after.schema == pq.ParquetFile(before).schema
    assert after.metadata.row_group(0).column(0).compression == "GZIP"
    assert of_csv(found.content or b"", "in/a.parquet") == Left()


def test_parquet_that_arrow_writes_otherwise_stays() -> None:
    table = pa.table({"who": ["anna", "ben"], "at": pa.array([1, 2], pa.timestamp("ns"))})
    pq.write_table(table, before := io.BytesIO(), use_deprecated_int96_timestamps=True)
    found = of_csv(before.getvalue(), "in/a.parquet")
    assert (found.content, found.unclear) == (None, "is Parquet with a schema that cannot be rewritten")


@pytest.mark.parametrize(
    ("content", "key", "records"),
    [
        (ANNA + ANNA, "in/a.json", 2),
        (ANNA + b"\n" + json.dumps({"user": {"id": "anna"}}, indent=1).encode(), "in/a.json", 2),
        (bz2.compress(ANNA + b"\n"), "in/a.json.bz2", 1),
    ],
)
def test_of_all_that_the_job_reads_it_is_known_whether_all_is_theirs(content: bytes, key: str, records: int) -> None:
    assert left(content, key) == Left(records, b"")


def of_zip(**members: bytes) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.json", content)
    return into.getvalue()


def test_an_archive_is_theirs_where_each_member_is() -> None:
    assert left(of_zip(a=BEN, b=b""), "in/a.zip") == Left()
    assert left(of_zip(a=ANNA, b=ANNA + b"\n" + ANNA), "in/a.zip") == Left(3, b"")
    assert left(of_zip(a=ANNA, b=BEN), "in/a.zip").unclear == "is an archive with records of other people"


def test_records_inside_of_a_document_are_looked_at_one_by_one() -> None:
    """A line is a document there, and no record."""
    inside = {"inside": (("Records",),)}
    mixed, theirs, others = (
        json.dumps({"Records": [json.loads(x) for x in some]}).encode() for some in ([ANNA, BEN], [ANNA], [BEN])
    )
    assert "records of other people" in left(mixed, **inside).unclear
    assert left(theirs + b"\n" + theirs, **inside) == Left(2, b"")
    assert left(others, **inside) == Left()
    around = json.dumps({"user": {"id": "anna"}, "Records": [{"n": 1}]}).encode()
    assert left(around, **inside) == Left(1, b"")


def test_an_array_that_the_file_ends_within_is_theirs_if_its_records_are() -> None:
    assert left(b"[" + ANNA + b",\n" + ANNA + b",") == Left(2, b"")
    assert left(b"[" + BEN + b",") == Left()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (ANNA + b"\n{torn\n", "has records that cannot be read"),
        (
            b"[" + ANNA + b"," + BEN + b"]",
            "has records of other people, and its format does not allow removing single records",
        ),
        (b'{"items": [{"user": {"id": "anna"}}, {"user": {"id": "ben"}}]}\n', "line 1 belongs to other people, too"),
        (b"BZh91AY&SY" + b"x" * 50, "cannot be read: corrupt-archive"),
        (bz2.compress(ANNA + b"\n" + BEN), "is compressed, but not by gzip"),
        (gzip.compress(ANNA, mtime=0)[:-9], "cannot be read: corrupt-archive"),
        (b"PAR1\xff\xfe" + ANNA, "cannot be read"),
        (b'{"user": "\xff"}\n' + ANNA, "has records that cannot be read"),
    ],
)
def test_where_nobody_can_tell_nothing_leaves(content: bytes, why: str) -> None:
    found = left(content)
    assert (found.content, found.records, why in found.unclear) == (None, 0, True), found


@pytest.mark.parametrize("asked", ["4711", "4711.0", "4.711e3"])
@pytest.mark.parametrize("written", [b"4711", b"4711.0", b"47.11E2", b'"4711"', b'"04711"', b'["x",4711.00]'])
def test_a_record_leaves_by_any_spelling_of_its_subject(asked: str, written: bytes) -> None:
    erased = Erased(frozenset({token_of(asked, b""), token_of("x", b"")}), b"")
    other = b'{"user":"4712"}\n'
    theirs = b'{"n":1,"user":' + written + b"}\n"
    assert left_of(theirs + other, "a.json", Form(), subject_paths(("user",)), erased) == Left(1, other)
