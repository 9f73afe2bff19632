"""Whatever lands, the good files and records of the same batch land too, and the bad ones are kept with a reason."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import subprocess
import sys
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from forebay.content.limits import Limits
from forebay.content.outcome import FILE_REASONS, RECORD_REASONS, Unread
from forebay.content.unpack import expand
from forebay.nesting import DEEPEST
from tests.content.archives import PACKERS, snappy_framed
from tests.content.memory import Memory, batches_of, read, read_one

ROOT = Path(__file__).parents[2]
GOOD = b'{"a":1}\n{"a":2}\n'
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256))
HTML = b'<!DOCTYPE html>\n<html><script>\n{"a":1}\n</script>503 Service Unavailable</html>\n'
GZIPPED = gzip.compress(b'{"a":1}\n' * 50_000, mtime=0)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


BAD_FILES: dict[str, tuple[bytes | Unread, str, str]] = {
    "truncated.json.gz": (GZIPPED[:-5], "unreadable", "corrupt-archive"),
    "truncated-in-its-header.gz": (GZIPPED[:7], "unreadable", "corrupt-archive"),
    "truncated-in-its-second-member.gz": (GZIPPED + GZIPPED[:40], "unreadable", "corrupt-archive"),
    "wrong-checksum.gz": (flipped(GZIPPED, len(GZIPPED) - 8), "unreadable", "corrupt-archive"),
    "followed-by-something.gz": (GZIPPED + b"something", "unreadable", "corrupt-archive"),
    "truncated.bz2": (bz2.compress(GOOD)[:-3], "unreadable", "corrupt-archive"),
    "truncated.zst": (PACKERS["zstd"](GOOD)[:-3], "unreadable", "corrupt-archive"),
    "truncated.sz": (snappy_framed(GOOD)[:-3], "unreadable", "corrupt-archive"),
    "wrong-checksum.sz": (flipped(snappy_framed(GOOD, plain=True), -2), "unreadable", "corrupt-archive"),
    "not-gzip-at-all.json.gz": (PNG, "unreadable", "corrupt-archive"),
    "image.json": (PNG, "unreadable", "not-json"),
    "image.json-in.gz": (gzip.compress(PNG, mtime=0), "unreadable", "not-json"),
    "error-page.json": (HTML, "unreadable", "not-json"),
    "table.json": (b"a,b\n1,2\n", "unreadable", "not-json"),
    "log.json": (b"[2026-01-01 10:00:00] INFO started\n[2026-01-01 10:00:01] INFO ready\n", "unreadable", "not-json"),
    "scalars-and-words.json": (b"1\n2\nthree\n", "unreadable", "not-json"),
    "words-in-an-array.json": (b"[1, two, 3]", "unreadable", "not-json"),
    "numbers-with-commas.json": (b"1,2\n3,4\n", "unreadable", "not-json"),
    "nothing-but-nul.json": (bytes(5000), "unreadable", "not-json"),
    "deleted.json": (Unread("missing", "no-such-key", "404"), "missing", "no-such-key"),
    "forbidden.json": (Unread("denied", "access-denied", "403"), "denied", "access-denied"),
    "replaced.json": (Unread("changed", "etag-differs", "412"), "changed", "etag-differs"),
    "huge.json": (Unread("unreadable", "too-large", "2 TB"), "unreadable", "too-large"),
}


def test_all_bad_files_of_a_batch_say_why_and_the_good_ones_land() -> None:
    batch = {f"good-{n}.json": GOOD for n in range(3)}
    reading = read({**batch, **{key: content for key, (content, _, _) in BAD_FILES.items()}})

    assert {k: (e.outcome, e.reason) for k, e in reading.files.items() if k in BAD_FILES} == {
        key: (outcome, reason) for key, (_, outcome, reason) in BAD_FILES.items()
    }
    assert [(d.key, d.value.strip()) for d in reading.documents] == [
        (key, value) for key in sorted(batch) for value in ('{"a":1}', '{"a":2}')
    ]
    assert reading.refused == []
    assert {reading.files[key].reason for key in BAD_FILES} <= set(FILE_REASONS)
    assert not any(reading.files[key].lands for key in BAD_FILES)


def test_a_file_that_is_no_json_keeps_how_it_begins() -> None:
    end = read_one(PNG).files["file.json"]
    assert (end.head[:9], end.detail) == ("\\x89PNG\r\n", "it begins like a PNG image")


def test_a_file_of_no_known_format_is_not_called_a_text() -> None:
    end = read({"a.json.gz": b"m\xf2\x18\xb1Z\x96\xd9\xec"}).files["a.json.gz"]
    assert (end.reason, end.detail) == ("corrupt-archive", "it begins like neither JSON nor another known format")


DEEP = b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}"

BAD_RECORDS: dict[str, tuple[bytes, str]] = {
    "words": (b"what is this", "not-json"),
    "a cut-off record": (b'{"a":1,"b":"x', "not-json"),
    "a level too many": (b'{"a":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}", "too-deep"),
    "ten thousand levels": (DEEP, "too-deep"),
    "ten thousand levels of objects": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "too-deep"),
    "nul bytes": (bytes(100), "not-json"),
    "a byte that is not utf-8": (b'{"a":"caf\xe9"}', "not-utf8"),
    "a lone surrogate as bytes": (b'{"a":"\xed\xa0\x80"}', "not-utf8"),
    "a number": (b"12", "not-an-object"),
    "a word in quotes": (b'"x"', "not-an-object"),
    "null": (b"null", "not-an-object"),
    "a closing bracket too many": (b"}", "not-json"),
}


@pytest.mark.parametrize(("bad", "reason"), BAD_RECORDS.values(), ids=BAD_RECORDS.keys())
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_bad_line_is_refused_with_its_place_and_text_and_the_others_land(
    bad: bytes, reason: str, newline: bytes
) -> None:
    reading = read_one(newline.join([b'{"a":1}', b"", bad, b'{"a":2}', b'{"a":3}']))

    assert reading.of("file.json") == ['{"a":1}', '{"a":2}', '{"a":3}']
    (refused,) = reading.refused
    assert (refused.line, refused.byte_offset, refused.problem) == (3, 7 + 2 * len(newline), reason)
    assert refused.value == bad.decode("utf-8", "backslashreplace")
    assert refused.problem in RECORD_REASONS
    assert reading.files["file.json"].outcome == "loaded"
    assert (reading.files["file.json"].documents, reading.files["file.json"].refused) == (3, 1)


NO_OBJECTS: dict[str, tuple[bytes, list[str]]] = {
    "numbers and texts in lines": (b'1\n2.5e1\n\n"three"\n', ["1", "2.5e1", '"three"']),
    "one word": (b" null ", ["null"]),
    "a text that looks like an object": (b'"{}"', ['"{}"']),
    "an array of values": (b'[1, "a",\n [true], null]', ["1", '"a"', "[true]", "null"]),
    "lines of arrays": (b'["x", 1]\n["y", 2]\n', ['"x"', "1", '"y"', "2"]),
}


@pytest.mark.parametrize(("content", "refused"), NO_OBJECTS.values(), ids=NO_OBJECTS.keys())
def test_a_file_of_json_that_is_no_object_has_no_record_and_each_value_says_why(
    content: bytes, refused: list[str]
) -> None:
    reading = read_one(content)
    assert [(row.value, row.problem) for row in reading.refused] == [(value, "not-an-object") for value in refused]
    assert (reading.files["file.json"].outcome, reading.documents) == ("loaded", [])


TORN_ARRAYS: dict[str, tuple[bytes, int, int, list[str]]] = {
    "behind a comma": (b'[{"a":1},', 0, 1, ["torn-array"]),
    "behind a record": (b'\n [{"a":1},\n{"a":2}\n', 2, 2, ["torn-array"]),
    "in a record": (b'[{"a":1},\n{"a":', 0, 1, ["torn-array", "not-json"]),
    "in a text": (b'[{"a":1},\n{"a":"x', 0, 1, ["torn-array", "not-json"]),
    "in a value": (b'[{"a":1},5', 0, 1, ["torn-array", "not-an-object"]),
    "at once": (b"[", 0, 0, ["torn-array"]),
    "in a hundred thousand arrays": (b"[" * 100_001, 0, 0, ["torn-array"]),
    "in the second array": (b'[{"a":1}]\n[{"a":2}', 10, 2, ["torn-array"]),
}


@pytest.mark.parametrize(("content", "at", "records", "problems"), TORN_ARRAYS.values(), ids=TORN_ARRAYS.keys())
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_ends_within_an_array_says_where_it_began(
    content: bytes, at: int, records: int, problems: list[str], packed: bool
) -> None:
    reading = read_one(gzip.compress(content, mtime=0) if packed else content)
    assert [row.problem for row in reading.refused] == problems
    (torn,) = [row for row in reading.refused if row.problem == "torn-array"]
    assert (torn.value, torn.byte_offset) == ("[", at)
    assert torn.line == content[:at].count(b"\n") + 1
    end = reading.files["file.json"]
    assert (end.outcome, end.documents, end.refused) == ("loaded", records, len(problems))


def test_a_quote_that_is_missing_makes_no_array_a_torn_one() -> None:
    reading = read_one(b'[\n{"a":"x},\n{"a":2}\n]\n')
    assert (reading.of("file.json"), [row.problem for row in reading.refused]) == (['{"a":2}'], ["not-json"])


def test_a_broken_first_line_does_not_take_the_others_with_it() -> None:
    reading = read_one(b'{"a":{"b":1\n{"a":2}\n{"a":3}\n')
    assert reading.of("file.json") == ['{"a":2}', '{"a":3}']
    assert [(r.line, r.problem) for r in reading.refused] == [(1, "not-json")]


PASSED_THROUGH = {
    "duplicate keys": '{"a":1,"a":2}',
    "NaN": '{"a":NaN,"b":-Infinity}',
    "a huge integer": '{"a":' + "9" * 5000 + "}",
    "an escaped lone surrogate": '{"a":"\\ud800"}',
    "an escaped nul": '{"a":"\\u0000"}',
    "a raw control character": '{"a":"x\ty"}',
    "as many levels as may be": '{"a":' + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + "}",
    "a missing quote": '{"a:1}',
    "brackets in strings": '{"a":"}{[\\"}{"}',
}


@pytest.mark.parametrize("odd", PASSED_THROUGH.values(), ids=PASSED_THROUGH.keys())
def test_what_only_the_parser_can_judge_reaches_the_parser_unchanged(odd: str) -> None:
    reading = read_one(b"\n".join([b'{"a":1}', odd.encode(), b'{"a":2}']))
    assert reading.of("file.json") == ['{"a":1}', odd, '{"a":2}']
    assert reading.refused == []


def test_a_line_of_fifty_megabytes_is_refused_and_its_text_is_cut() -> None:
    line = b'{"a":"' + b"x" * 50_000_000 + b'"}'
    reading = read_one(b'{"a":1}\n' + line + b'\n{"a":2}\n')
    assert reading.of("file.json") == ['{"a":1}', '{"a":2}']
    (refused,) = reading.refused
    assert (refused.problem, refused.line, refused.byte_offset) == ("record-too-large", 2, 8)
    assert refused.value == line[: Limits().raw_bytes].decode()


def test_a_long_line_that_holds_many_documents_is_not_too_long() -> None:
    limits = Limits(max_record_bytes=1000)
    reading = read_one(b'{"a":1}' * 1000 + b"\n" + b'{"a":2}' * 1000, limits=limits)
    assert (len(reading.documents), reading.refused) == (2000, [])


def bomb(megabytes: int) -> bytes:
    """Zeros, a thousand to one."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(megabytes)) + packer.flush()


def test_ten_megabytes_that_expand_to_ten_gigabytes_are_refused_at_once_and_in_little_memory() -> None:
    one = bomb(100)
    archive = one * 100  # ten gigabytes in a hundred members: as bad, and made a hundred times faster
    assert 9_000_000 < len(archive) < 12_000_000
    tracemalloc.start()
    began = time.process_time()  # of our own, however busy the machine is; to expand it all takes several times as long
    reading = read({"bomb.json.gz": archive, "good.json": GOOD})
    seconds, (_, peak_bytes) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (reading.files["bomb.json.gz"].outcome, reading.files["bomb.json.gz"].reason) == (
        "unreadable",
        "expansion-bomb",
    )
    assert reading.of("good.json") == ['{"a":1}', '{"a":2}']
    assert seconds < 5
    assert peak_bytes < 200 << 20


SMALL_BOMBS = {
    "newlines": (b"\n", None),
    "blank lines": (b"  \r\n", None),
    "objects on one line": (b"{}", "too-many-records"),
    "objects on many lines": (b"{}\n", "too-many-records"),
    "objects on few lines": (b"{}" * 2_000_000 + b"\n", "too-many-records"),
    "empty arrays": (b"[],", "too-many-records"),
}


@pytest.mark.parametrize(("unit", "reason"), SMALL_BOMBS.values(), ids=SMALL_BOMBS.keys())
def test_fifteen_kilobytes_that_expand_to_fifteen_megabytes_of_next_to_nothing_cost_little(
    unit: bytes, reason: str | None
) -> None:
    archive = gzip.compress(unit * (15 * (1 << 20) // len(unit)), mtime=0)
    assert len(archive) < 60_000
    tracemalloc.start()
    reading = read({"bomb.json.gz": archive, "good.json": GOOD})
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reading.files["bomb.json.gz"].reason == reason
    assert reading.of("good.json") == ['{"a":1}', '{"a":2}']
    assert peak_bytes < 400 << 20


def test_the_memory_that_a_file_takes_is_a_few_times_its_expanded_size_at_most() -> None:
    content = b'{"a":%d}\n' * 500_000 % tuple(range(500_000))
    archive = gzip.compress(content, mtime=0)
    memory = Memory({"f.json.gz": archive})
    tracemalloc.start()
    rows = sum(batch.num_rows for batch in batches_of(memory))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 500_001
    assert peak_bytes < 10 * len(content), f"{peak_bytes / len(content):.1f} times"


def test_a_file_with_more_records_or_more_broken_ones_than_are_allowed_is_refused_as_a_whole() -> None:
    limits = Limits(max_records=10, max_refused=3)
    good, torn = b'{"a":1}', b'{"a":'
    for content, reason in {
        b"\n".join([good] * 10): None,
        b"\n".join([good] * 11): "too-many-records",
        b"[" + b",".join([good] * 11) + b"]": "too-many-records",
        b"\n".join([good, torn, torn, torn]): None,
        b"\n".join([good, torn, torn, torn, torn]): "too-many-refused",
        b"\n".join([good, *[b'{"a":"\xff"}'] * 4]): "too-many-refused",
        b"\n".join([good, *[torn] * 100]): "too-many-refused",
    }.items():
        end = read_one(content, limits=limits).files["file.json"]
        assert (end.reason, end.lands) == (reason, reason is None), content
        assert bool(end.head) == (reason is not None)


@pytest.mark.parametrize("packer", ["zstd", "bz2"])
def test_a_bomb_of_another_kind_is_refused_too(packer: str) -> None:
    archive = PACKERS[packer](bytes(100 << 20))
    assert read_one(archive).files["file.json"].reason == "expansion-bomb"


@pytest.mark.parametrize("packer", ["gzip", "bz2", "zstd"])
def test_an_archive_that_begins_with_many_equal_records_is_no_bomb(packer: str) -> None:
    """As a whole it expands no more than others do."""
    equal, others = (
        b'{"a":1,"b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}\n' * 500_000,
        random.Random(1).randbytes(200_000),
    )
    content = equal + others.hex().encode()
    assert expand(PACKERS[packer](content), Limits()) == content


def test_an_archive_that_expands_beyond_the_limit_is_refused_however_it_is_packed() -> None:
    content = json.dumps({"a": "x"}).encode() * 100
    limits = Limits(max_expanded_bytes=len(content) - 1)
    for name, pack in PACKERS.items():
        if name != "plain":
            assert read_one(pack(content), limits=limits).files["file.json"].reason == "expansion-bomb", name
    assert (
        read_one(gzip.compress(content, mtime=0), limits=Limits(max_expanded_bytes=len(content)))
        .files["file.json"]
        .lands
    )


def test_an_archive_that_only_shrank_well_is_taken() -> None:
    content = b'{"game":"chess","event":"login"}\n' * 100_000
    assert len(content) / len(gzip.compress(content, mtime=0)) > Limits().max_expansion
    assert len(read_one(gzip.compress(content, mtime=0)).documents) == 100_000


def test_a_text_that_is_named_as_an_archive_is_read_as_text() -> None:
    assert read_one(GOOD, key="plain.json.gz").of("plain.json.gz") == ['{"a":1}', '{"a":2}']


def test_an_archive_is_told_by_its_content_whatever_its_name() -> None:
    assert read_one(gzip.compress(GOOD, mtime=0), key="packed.json").of("packed.json") == ['{"a":1}', '{"a":2}']


@pytest.mark.parametrize(
    "content", [b"", b"\n", b" \r\n\t", b"[]", b"[\n]\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)]
)
def test_a_file_without_records_is_empty_and_nothing_is_wrong_with_it(content: bytes) -> None:
    reading = read_one(content)
    assert (reading.files["file.json"].outcome, reading.files["file.json"].reason) == ("empty", None)
    assert (reading.documents, reading.refused) == ([], [])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux holds a process to it")
def test_a_file_that_needs_more_memory_than_a_task_has_is_refused_and_the_others_land() -> None:
    """In a process of its own, as a task is."""
    program = """
import gzip, json
from forebay.content.ceiling import ceiling
from forebay.content.limits import Limits
from tests.content.memory import read

line = b'{"a":"' + b"x" * 60 + b'"}\\n'
objects = {f"good-{n}.json": b'{"a":1}' * 9 for n in range(20)}
objects["large.json.gz"] = gzip.compress(line * 3_000_000, 1)
with ceiling(380 << 20):
    reading = read(objects, Limits(files_in_flight=4, max_expansion=1000))
print(json.dumps([{k: [e.outcome, e.reason] for k, e in reading.files.items() if not e.lands}, len(reading.documents)]))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(said.stdout) == [{"large.json.gz": ["unreadable", "too-large"]}, 180]
