"""Small files of JSON lines are split as one text, and give the rows that each of them gives alone."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content import reading
from forebay.content.limits import Limits
from forebay.content.piece import Piece
from forebay.content.reading import read_pieces
from forebay.landed_file import LandedFile

PLAIN = {
    "lines": b'{"a":1}\n{"a":2}\n',
    "no newline at the end": b'{"a":1}\n{"a":2}',
    "one record": b'{"a":{"b":"c"}}',
    "CRLF": b'{"a":1}\r\n{"a":2}\r\n',
    "blank lines and white space": b'{"a":1} \n\n  \n\t{"a":2}\n\n \n  ',
    "documents in one line": b'{"a":1}{"a":2} {"a":3}\n',
    "not ASCII": '{"a":"é\u2028ü"}\n{"b":"\U0001f600"}\n'.encode(),
}
ODD = {
    "nothing": b"",
    "a broken line": b'{"a":1}\n{"a":\n{"a":3}\n',
    "a broken first line": b'{"a":\n{"a":2}\n',
    "an array": b'[{"a":1},{"a":2}]',
    "a document over many lines": b'{\n "a": 1\n}\n',
    "documents over many lines behind a record": b'{"a":1}\n{\n "a": 2\n}\n',
    "a byte order mark": b'\xef\xbb\xbf{"a":1}\n',
    "UTF-16": '{"a":1}\n'.encode("utf-16-le"),
    "a JSON text sequence": b'{"a":1}\n\x1e{"a":2}\n',
    "an archive": gzip.compress(b'{"a":1}\n'),
    "not UTF-8": b'{"a":"\xff"}\n{"a":2}\n',
    "too deep": b'{"a":' + b"[" * 300 + b"]" * 300 + b"}\n",
    "a tar archive": b'{"a":1}\n' + b" " * 249 + b"ustar",
    "commas between lines": b'{"a":1},\n{"a":2},\n',
    "text": b"hello\n",
}


def rows(contents: Sequence[bytes]) -> list[dict[str, Any]]:
    pieces = [Piece(7 + n, LandedFile("b", f"k{n}", len(content))) for n, content in enumerate(contents)]

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes:
        return contents[int(file.key[1:])]

    return [row for batch in read_pieces(pieces, get, Limits()) for row in batch.to_pylist()]


def of_each(found: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(json.dumps, found))


def alone(content: bytes, number: int) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "SMALL_BYTES", -1)
        return [{**row, "piece": number} for row in rows([content])]


@given(st.lists(st.sampled_from([*PLAIN.values()]), min_size=1, max_size=8))
def test_files_of_lines_give_the_rows_that_each_gives_alone(contents: list[bytes]) -> None:
    expected = [row for n, content in enumerate(contents) for row in alone(content, 7 + n)]
    assert of_each(rows(contents)) == of_each(expected)


@given(st.lists(st.sampled_from([*PLAIN.values(), *ODD.values()]), min_size=1, max_size=6))
def test_odd_files_among_them_change_nothing(contents: list[bytes]) -> None:
    expected = [row for n, content in enumerate(contents) for row in alone(content, 7 + n)]
    assert of_each(rows(contents)) == of_each(expected)


@given(st.lists(st.text('{}[]",:a1 \n\r\x1e\\', max_size=12).map(str.encode), min_size=1, max_size=4))
def test_so_does_any_text(contents: list[bytes]) -> None:
    contents = [b'{"a":1}' + content for content in contents]
    expected = [row for n, content in enumerate(contents) for row in alone(content, 7 + n)]
    assert of_each(rows(contents)) == of_each(expected)


def test_files_of_lines_are_split_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def parts_of(*_: Any) -> Any:
        raise AssertionError("a file was split alone")

    monkeypatch.setattr(reading, "parts_of", parts_of)
    monkeypatch.setattr(reading, "JOINED_BYTES", 30)
    assert len(rows([*PLAIN.values()] * 3)) == 3 * (2 + 2 + 1 + 2 + 2 + 3 + 2 + len(PLAIN))


@pytest.mark.parametrize("batches", [0, 1])
def test_files_that_find_no_memory_together_are_read_alone(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of them was handed on before would come twice."""
    contents = [b'{"a":1}\n' * 40_000, PLAIN["lines"]]
    wanted, real = of_each(rows(contents)), reading.document_batches

    def document_batches(numbers: Any, *given: Any) -> Any:
        made = real(numbers, *given)
        if isinstance(numbers, int):
            yield from made
        else:
            yield from islice(made, batches)
            raise MemoryError("no room")

    monkeypatch.setattr(reading, "document_batches", document_batches)
    monkeypatch.setattr(reading, "SMALL_BYTES", 1 << 20)
    assert of_each(rows(contents)) == wanted
