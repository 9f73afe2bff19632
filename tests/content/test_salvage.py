"""What is whole around broken lines is found, and looking for it has limits."""

from __future__ import annotations

import numpy as np
import pytest

from forebay.content.limits import Limits
from forebay.content.outcome import TooMany
from forebay.content.splitting import salvage
from forebay.content.splitting.lines import Records
from forebay.content.splitting.salvage import salvaged
from forebay.record.number import problem_of

NOTHING = np.zeros(0, np.int64)


def found_in(text: bytes, *starts: int, limits: Limits | None = None) -> tuple[list[bytes], list[bytes]]:
    """The documents and the leftovers, where these places were left over."""
    places = [(start, len(text), text.count(b"\n", 0, start) + 1) for start in starts]
    by_line = Records(NOTHING, NOTHING, NOTHING, places, text.count(b"\n") + 1, False)
    records = salvaged(text, by_line, limits or Limits())
    documents = zip(records.starts.tolist(), records.ends.tolist(), strict=True)
    return [text[a:b] for a, b in documents], [text[a:b] for a, b, _ in records.leftovers]


def test_as_many_documents_are_found_as_records_may_be_and_one_more_is_too_many() -> None:
    assert found_in(b'{"a":1}' * 3, 0, limits=Limits(max_records=3)) == ([b'{"a":1}'] * 3, [])
    with pytest.raises(TooMany, match="more than 3 records"):
        found_in(b'{"a":1}' * 4, 0, limits=Limits(max_records=3))


def test_a_document_is_looked_at_no_further_than_a_record_may_be_long() -> None:
    look = salvage.FIRST_LOOK_BYTES
    document = b'{\n"a":"' + b"x" * look + b'"}'
    assert found_in(document, 0, limits=Limits(max_record_bytes=look)) == ([document], [])
    found, leftovers = found_in(document, 0, limits=Limits(max_record_bytes=look - 1))
    assert (found, b"".join(leftovers)[:1]) == ([], b"{")


def test_a_document_that_ends_where_the_first_look_ends_is_found() -> None:
    for size in range(salvage.FIRST_LOOK_BYTES - 20, salvage.FIRST_LOOK_BYTES + 4):
        document = b'{\n"a":' + b" " * (size - 12) + b"true}"
        assert found_in(document, 0) == ([document], [])


def test_when_too_much_was_decoded_in_vain_the_rest_stays_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, whole = b'{"a":1 oops\n', b'{\n"b":2}'
    text = broken + whole
    in_vain = broken.index(b"oops")
    for spare, expected in ((1, [whole]), (0, [])):
        monkeypatch.setattr(salvage, "WASTED_BYTES", in_vain + spare - 2 * len(text))
        assert found_in(text, 0, len(broken))[0] == expected


def test_nesting_that_python_does_not_follow_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"a":' * 800 + b"\n"
    text = deep + b'{\n"b":2}'
    look = min(salvage.FIRST_LOOK_BYTES, len(text))
    for spare, expected in ((1, 1), (0, 0)):
        monkeypatch.setattr(salvage, "WASTED_BYTES", look + spare - 2 * len(text))
        monkeypatch.setattr(salvage, "_STRICT", _Recursing())
        assert len(found_in(text, 0, len(deep))[0]) == expected


class _Recursing:
    """A decoder that gives up what begins with a nested object."""

    def raw_decode(self, text: str) -> tuple[object, int]:
        if text.startswith('{"a":{'):
            raise RecursionError
        return {}, len(text)


def taken(text: bytes) -> tuple[list[tuple[bytes, int]], list[tuple[bytes, int]], bool]:
    """Documents and leftovers with their lines, where the lines that are whole are known; and whether it is tight still."""
    starts, ends, lines, places, at = [], [], [], [], 0
    for number, line in enumerate(text.split(b"\n"), 1):
        if problem_of(line.decode()) is None:
            starts, ends, lines = [*starts, at], [*ends, at + len(line)], [*lines, number]
        elif line.strip():
            places.append((at + len(line) - len(line.lstrip()), at + len(line), number))
        at += len(line) + 1
    columns = (np.array(column, np.int64) for column in (starts, ends, lines))
    records = salvaged(text, Records(*columns, places, len(lines), True), Limits())
    found = zip(records.starts.tolist(), records.ends.tolist(), records.lines.tolist(), strict=True)
    return [(text[a:b], n) for a, b, n in found], [(text[a:b], n) for a, b, n in records.leftovers], records.tight


WHOLE = b'{"z":1}'
BROKEN = {
    "its inner objects stay with it": (b'{\n  "a": {\n    "b": 1\n  } oops\n}', 1),
    "the inner objects of one within a list as well": (b'  {\n    "a": [\n      {"b": 1} oops\n    ]\n  }', 1),
    "an opening bracket before blanks": (b'{ \t\n  "a": 1 oops\n}', 1),
    "its values end with a comma": (b'{"a": 1 oops,\n "b": 2}', 1),
    "a line that is empty within it": (b'{\n\n  "a": oops\n}', 1),
    "a line that closes nothing of it": (b'{\n  "a": [1 oops\n  ]\n}', 1),
}


@pytest.mark.parametrize(("text", "line"), BROKEN.values(), ids=BROKEN.keys())
def test_the_lines_of_a_broken_document_stay_together(text: bytes, line: int) -> None:
    """And what is whole before and behind it is found, each at its own line."""
    around = WHOLE + b"\n" + text + b"\n" + WHOLE + b"\n"
    lines = text.count(b"\n") + 1
    assert taken(around) == ([(WHOLE, 1), (WHOLE, lines + 2)], [(text.strip(), line + 1)], False)


def test_a_broken_line_that_opens_nothing_ends_with_itself() -> None:
    assert taken(b'{"a": oops\n{"b": 1,\n"c": 2}\n') == ([(b'{"b": 1,\n"c": 2}', 2)], [(b'{"a": oops', 1)], False)


def test_documents_on_the_lines_of_others_are_found_with_their_lines() -> None:
    text = b'{"a": oops} {"b": 1}\n{\n"c": 2} , {"d":\n3}\n' + WHOLE
    found, left, _ = taken(text)
    assert found == [(b'{"b": 1}', 1), (b'{\n"c": 2}', 2), (b'{"d":\n3}', 3), (WHOLE, 5)]
    assert left == [(b'{"a": oops}', 1)]


def test_lines_that_begin_no_document_are_left_as_they_are() -> None:
    assert taken(b"oops\n" + WHOLE + b"\noops") == ([(WHOLE, 2)], [(b"oops", 1), (b"oops", 3)], True)


def test_a_document_that_is_torn_at_the_end_of_the_file_is_one_leftover() -> None:
    text = b'{\n  "a": {\n    "b": 1\n  }'
    assert taken(WHOLE + b"\n" + text) == ([(WHOLE, 1)], [(text, 2)], False)
