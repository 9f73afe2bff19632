"""A large plain file read in ranges: each line by exactly one piece, and few requests."""

from __future__ import annotations

import tracemalloc

import pytest

from forebay.content.end import PieceEnd, file_ends
from forebay.content.limits import Limits
from forebay.content.outcome import Unread
from forebay.content.piece import cut
from forebay.content.splitting.ranges import take
from forebay.content.splitting.split import HEAD_BYTES
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from tests.content.archives import PACKERS
from tests.content.memory import Memory, read

LINES = b"".join(b'{"n":%d,"pad":"%s"}\n' % (n, b"x" * 80) for n in range(10_000))
"""About a megabyte."""


def keys_and_lines(content: bytes, piece_bytes: int) -> list[tuple[int, int]]:
    reading = read({"f": content}, Limits(piece_bytes=piece_bytes))
    return [(d.line, d.byte_offset) for d in reading.documents]


def test_every_line_of_a_cut_file_is_read_once() -> None:
    assert keys_and_lines(LINES, 100_000) == keys_and_lines(LINES, len(LINES))


def test_a_text_sequence_is_cut_as_other_lines_are() -> None:
    content = LINES.replace(b"{", b"\x1e{")
    memory = Memory({"f": content})
    assert len(read({}, Limits(piece_bytes=100_000), memory).documents) == 10_000
    assert ("f", 0, None) not in memory.asked
    assert keys_and_lines(content, 100_000) == keys_and_lines(content, len(content))


def test_a_cut_at_and_beside_a_newline_gives_each_line_to_one_piece() -> None:
    content = b'{"a":1}\n' * 100
    for piece_bytes in (8, 16, 7, 9, 15, 17):
        assert keys_and_lines(content, piece_bytes) == keys_and_lines(content, len(content))


def test_a_piece_asks_for_the_head_and_for_its_range_and_no_more() -> None:
    memory = Memory({"f": LINES})
    size = len(LINES)
    reading = read({}, Limits(piece_bytes=size // 2 + 1), memory)
    half = size // 2
    assert sorted(memory.asked) == sorted(
        [("f", 0, half + (64 << 10)), ("f", 0, HEAD_BYTES), ("f", half - 1, size + (64 << 10))]
    )
    assert (reading.files["f"].requests, reading.files["f"].documents) == (3, 10_000)


def test_a_line_that_runs_far_beyond_its_piece_is_read_on_to_its_end() -> None:
    long = b'{"a":"' + b"x" * 3_000_000 + b'"}'
    content = b'{"a":1}\n' + long + b"\n" + b'{"a":2}\n' * 20
    reading = read({"f": content}, Limits(piece_bytes=100_000))
    assert [len(v) for v in reading.of("f")] == [7, len(long), *[7] * 20]
    assert [d.line for d in reading.documents] == list(range(1, 23))


def test_a_line_that_runs_to_the_end_of_the_file_is_read_to_its_end() -> None:
    for length in (3_000_000, (64 << 10) * 2, (64 << 10) * 3 - 8):
        content = b'{"a":1}\n{"a":"' + b"x" * length + b'"}'
        reading = read({"f": content}, Limits(piece_bytes=64 << 10))
        assert [len(v) for v in reading.of("f")] == [7, length + 8]


def test_a_line_without_end_is_given_up_when_it_is_known_to_be_too_long() -> None:
    content = b'{"a":1}\n{"a":"' + b"x" * 3_000_000 + b'"}\n{"a":2}\n'
    memory = Memory({"f": content})
    reading = read({}, Limits(piece_bytes=64 << 10, max_record_bytes=200_000), memory)
    assert reading.of("f") == ['{"a":1}', '{"a":2}']
    assert [(r.problem, r.line, r.byte_offset) for r in reading.refused] == [("record-too-large", 2, 8)]
    assert max(stop - start for _, start, stop in memory.asked if stop is not None) < 1_000_000


NOT_TO_BE_CUT = {
    "an array": b"[" + b",\n".join([b'{"a":1}'] * 1000) + b"]",
    "documents over many lines": b'{\n"a":1\n}\n' * 1000,
    "utf-16": ("\ufeff" + '{"a":1}\n' * 1000).encode("utf-16-le"),
    "an archive that is not named as one": PACKERS["gzip"](b"".join(b'{"a":1,"n":%d}\n' % n for n in range(1000))),
    "documents over many lines behind a record on one": b'{"a":1}\n' + b'{\n"a":1\n}\n' * 999,
    "a first line longer than the head": b'{"a":1,"b":"' + b"x" * HEAD_BYTES + b'"}\n' + b'{"a":1}\n' * 999,
}


@pytest.mark.parametrize("content", NOT_TO_BE_CUT.values(), ids=NOT_TO_BE_CUT.keys())
def test_what_cannot_be_cut_at_newlines_is_read_whole_by_its_first_piece(content: bytes) -> None:
    memory = Memory({"f": content})
    limits = Limits(piece_bytes=len(content) // 3)
    reading = read({}, limits, memory)
    assert (len(reading.documents), reading.refused) == (1000, [])
    assert [(d.line, d.byte_offset) for d in reading.documents] == keys_and_lines(content, len(content))
    assert ("f", 0, None) in memory.asked


def test_a_broken_first_line_does_not_keep_a_large_file_of_lines_from_being_cut() -> None:
    memory = Memory({"f": b'{"torn": [\n' + LINES})
    reading = read({}, Limits(piece_bytes=400_000), memory)
    assert (len(reading.documents), len(reading.refused)) == (10_000, 1)
    assert ("f", 0, None) not in memory.asked


def test_a_file_of_which_one_piece_is_gone_lands_not_at_all() -> None:
    class GoneMeanwhile(Memory):
        def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
            if start:
                return Unread("changed", "etag-differs", "412")
            return super().__call__(file, start, stop)

    reading = read({}, Limits(piece_bytes=400_000), GoneMeanwhile({"f": LINES}))
    end = reading.files["f"]
    assert (end.outcome, end.lands, end.documents) == ("changed", False, 0)


def test_a_piece_whose_end_is_lost_or_doubled_halts() -> None:
    pieces = cut([LandedFile("b", "a", 1), LandedFile("b", "b", 1)], Limits())
    ends = [PieceEnd(piece=0, outcome="empty"), PieceEnd(piece=1, outcome="empty")]
    assert [e.file.key for e in file_ends(pieces, ends)] == ["a", "b"]
    with pytest.raises(Halt, match=r"look at pieces \[1\]"):
        file_ends(pieces, ends[:1])
    with pytest.raises(Halt, match="twice"):
        file_ends(pieces, [*ends, ends[0]])


@pytest.mark.parametrize("piece_bytes", [100_000, 2_000_000])
def test_equal_bytes_have_equal_hashes_in_however_many_pieces_they_are_read(piece_bytes: int) -> None:
    other = LINES[:-100] + LINES[-100:].replace(b"x", b"y")
    found = read({"f": LINES, "same": LINES, "other": other}, Limits(piece_bytes=piece_bytes)).files
    assert found["f"].content_hash == found["same"].content_hash != found["other"].content_hash
    assert found["f"].content_hash


def test_what_was_read_to_learn_that_a_file_cannot_be_cut_is_gone_when_it_is_read_whole() -> None:
    content = b'{"Records": [' + b"1," * (4 << 20) + b"1]}"
    held: list[int] = []

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes:
        if stop is None:
            held.append(tracemalloc.get_traced_memory()[0])
        return content[start:stop]

    first, *_ = cut([LandedFile("landing", "a.json", len(content), "etag")], Limits(piece_bytes=6 << 20))
    tracemalloc.start()
    assert take(first, get, Limits()).content is content
    tracemalloc.stop()
    assert max(held) < 1 << 20
