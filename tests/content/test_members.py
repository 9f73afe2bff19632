"""Zip archives: every member is read, keeps its name, and one that is broken refuses them all."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from forebay.content.limits import Limits
from forebay.declaration.form import Form
from tests.content.memory import Reading, read, read_one
from tests.content.test_bad_input import PNG
from tests.content.test_parquet import file_of


def zip_of(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


def read_zip(content: bytes, limits: Limits | None = None, form: Form | None = None) -> Reading:
    return read({"a.zip": content}, limits, form=form or Form())


def rows(reading: Reading) -> list[Any]:
    return [json.loads(row.value) for row in reading.documents]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_of_all_formats_are_read_and_records_keep_the_name_of_theirs(method: int) -> None:
    members = {
        "in/a.json": b'{"a": 1}\n{}\n{"@member": "mine"}',
        "in/": b"",
        "b.csv": b"a\n2\n",
        "c.parquet": file_of({"a": [3, 4]}),
        'd"é.json.gz': gzip.compress(b'[{"a": 5}, 6]'),
        "__MACOSX/._a.json": b"\0\5\x16",
        "x/.DS_Store": b"\0\0\0\1Bud1",
        "empty.json": b"",
    }
    reading = read_zip(zip_of(members, method))
    assert rows(reading) == [
        {"@member": "in/a.json", "a": 1},
        {"@member": "in/a.json"},
        {"@member": "in/a.json", "@@member": "mine"},
        {"@member": "b.csv", "a": "2"},
        {"@member": "c.parquet", "a": 3},
        {"@member": "c.parquet", "a": 4},
        {"@member": 'd"é.json.gz', "a": 5},
    ]
    (refused,) = reading.refused
    assert (refused.problem, refused.value, refused.line) == ("not-an-object", "6", 1)
    assert refused.detail.endswith('; in d"é.json.gz')
    assert [row.line for row in reading.documents] == [1, 2, 3, 2, 1, 2, 1]
    places = [row.byte_offset for row in (*reading.documents, *reading.refused)]
    assert places == sorted(set(places))
    assert reading.files["a.zip"].outcome == "loaded"


def test_places_are_apart_though_rows_take_less_than_a_byte() -> None:
    many = file_of({"a": [1] * 5000})
    assert len(many) < 5000
    reading = read_zip(zip_of({"a.parquet": many, "b.parquet": many}))
    assert len({row.byte_offset for row in reading.documents}) == 10_000


def broken(member: str) -> bytes:
    content = zip_of({"a.json": b'{"a": 1}\n' * 100, "b.json": b'{"b": 1}\n' * 100}, zipfile.ZIP_STORED)
    at = content.index(b'{"b"') + 3
    return content[:at] + b"\0" + content[at + 1 :]


def encrypted() -> bytes:
    content = bytearray(zip_of({"a.json": b'{"a": 1}'}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


REFUSED: dict[str, tuple[bytes, str, str]] = {
    "a torn one": (zip_of({"a.json": b'{"a": 1}'})[:-9], "corrupt-archive", "cannot be read"),
    "one of which a member is broken": (broken("b.json"), "corrupt-archive", "Bad CRC-32 for file 'b.json'"),
    "an encrypted one": (encrypted(), "encrypted", "a.json of the zip archive is encrypted"),
    "one with an image": (zip_of({"a.json": b"{}", "b.png": PNG}), "not-json", "in b.png: it begins like a PNG image"),
    "a zip in a zip": (zip_of({"b.zip": zip_of({"a": b"{}"})}), "not-json", "a zip archive within an archive"),
    "a workbook": (zip_of({"[Content_Types].xml": b"<a/>"}), "wrong-format", "an Office document"),
    "one with a long name": (zip_of({"n" * 2000: b"{}"}), "corrupt-archive", "longer than 1024 bytes"),
    "a bomb": (zip_of({"a.json": bytes(64 << 20)}), "expansion-bomb", "expand to more than"),
    "a bomb of many": (
        zip_of({f"{n}.json": b" " * (8 << 20) for n in range(4)}),
        "expansion-bomb",
        "expand to more than",
    ),
    "a bomb in a bomb": (zip_of({"a.gz": gzip.compress(bytes(64 << 20))}), "expansion-bomb", "expand to more than"),
}


@pytest.mark.parametrize(("content", "reason", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_an_archive_is_refused_whole(content: bytes, reason: str, said: str) -> None:
    end = read_zip(content).files["a.zip"]
    assert (end.lands, end.reason, end.documents) == (False, reason, 0)
    assert said in str(end.detail)


def test_the_limits_of_records_are_those_of_the_whole_archive() -> None:
    content = zip_of({f"{n}.json": b'{"a": 1}\n' * 6 for n in range(2)})
    assert read_zip(content, Limits(max_records=11)).files["a.zip"].reason == "too-many-records"


def test_an_archive_of_nothing_is_empty() -> None:
    assert read_zip(zip_of({})).files["a.zip"].outcome == "empty"


def test_a_declared_format_is_that_of_the_members() -> None:
    reading = read_zip(zip_of({"a.txt": b"x;y\n1;2\n"}), form=Form(format="csv", delimiter=";"))
    assert rows(reading) == [{"@member": "a.txt", "x": "1", "y": "2"}]


def test_what_was_compressed_twice_is_read_and_no_larger_than_what_was_compressed_once_may_be() -> None:
    layers = b'{"a": 1}'
    for _ in range(4):
        layers = gzip.compress(layers)
    assert rows(read({"a.gz.gz": layers})) == [{"a": 1}]
    assert rows(read({"a.zip.gz": gzip.compress(zip_of({"a": b"{}"}))})) == [{"@member": "a"}]
    end = read({"a.gz": gzip.compress(layers)}).files["a.gz"]
    assert (end.reason, end.detail) == ("expansion-bomb", "archives are nested more than 4 deep")
    bomb = gzip.compress(gzip.compress(bytes(100 << 20)))
    assert read({"a.gz": bomb}).files["a.gz"].reason == "expansion-bomb"


def test_members_that_the_last_directory_does_not_list_refuse_the_archive() -> None:
    two = zip_of({"a.json": b'{"a": 1}'}) + zip_of({"b.json": b'{"b": 1}'})
    end = read_zip(two).files["a.zip"]
    assert (end.lands, end.reason) == (False, "corrupt-archive")
    assert "bytes before its first member" in str(end.detail)


def test_an_archive_of_more_members_than_may_be_is_refused_before_any_is_read() -> None:
    archive = zip_of({f"{n}.json": b'{"a":1}' for n in range(11)})
    reading = read({"a.zip": archive, "good.json": b'{"a":1}'}, Limits(max_members=10))
    end = reading.files["a.zip"]
    assert (end.outcome, end.reason) == ("unreadable", "too-many-members")
    assert end.detail == "a zip archive of 11 members, and 10 is the limit"
    assert reading.of("good.json") == ['{"a":1}']
    assert len(read_zip(archive, Limits(max_members=11)).documents) == 11


def test_many_small_members_keep_their_names_and_places() -> None:
    members = {f"{n}.json": b'{"n":%d}\n7\n {}' % n for n in range(300)}
    reading = read_zip(zip_of(members))
    assert rows(reading) == [
        row for n in range(300) for row in ({"@member": f"{n}.json", "n": n}, {"@member": f"{n}.json"})
    ]
    assert [row.detail.partition("; in ")[2] for row in reading.refused] == [*members]
    places = [row.byte_offset for row in (*reading.documents, *reading.refused)]
    assert len(set(places)) == 900


def test_a_folder_that_holds_bytes_is_a_member() -> None:
    assert rows(read_zip(zip_of({"a/": b'{"a": 1}', "b/": b""}))) == [{"@member": "a/", "a": 1}]


def test_a_record_that_speaks_of_a_member_has_the_name_of_its_own_beside_it() -> None:
    lines = b'{"a": "@member"}\n{"b": {"@member": 1}}\n{"@member": 2}\n'
    assert rows(read_zip(zip_of({"m.json": lines}))) == [
        {"@member": "m.json", "a": "@member"},
        {"@member": "m.json", "b": {"@member": 1}},
        {"@member": "m.json", "@@member": 2},
    ]


def test_an_archive_with_a_member_for_each_record_is_copied_a_few_times_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each was fed a quarter of a megabyte, of which it has some hundred bytes."""
    fed: list[int] = []
    real = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self.real = real(wbits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            fed.append(len(data))
            return self.real.decompress(data, most)

    archive = b"".join(gzip.compress(json.dumps({"n": n, "text": f"{n**600}"}).encode()) for n in range(300))
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    assert len(read_one(archive).documents) == 300
    assert sum(fed) < 5 * len(archive)
