"""Lines that are no plain records: what costs little gives what a look at all their brackets gives."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay.content.splitting.lines as lines
from forebay.content.limits import Limits
from forebay.content.splitting.lines import Records, split_lines

PARTS = (
    *(b'{"a":1}', b"{}", b'{"a":[{"b":2}]}', b'{"k":"]"}', b'{"n":NaN}', b'{"a":"\x01"}'),
    *(b"[", b"]", b",", b" ", b"\t", b"\n", b"\n", b"\r\n", b"[]", b'[{"a":1}]', b"[[{}]]"),
    *(b"{", b"}", b'"', b"x", b"1", b"null", BOM_UTF8, "é".encode()),
)


def told(records: Records) -> tuple[Any, ...]:
    places = (records.starts.tolist(), records.ends.tolist(), records.lines.tolist())
    return *places, records.leftovers, records.line_count, bool(records.tight)


@given(parts=st.lists(st.sampled_from(PARTS), max_size=14))
def test_any_odd_lines_give_the_same_whichever_way_they_are_read(parts: list[bytes]) -> None:
    text = b"".join(parts)
    found = told(split_lines(text, Limits()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_walked", lambda line: None)
        patch.setattr(lines, "_have_text", lambda buffer, first, last: np.ones(len(first), np.bool_))
        assert told(split_lines(text, Limits())) == found


ODD = (b"[", b"[]", b"[ [", b"],", b'[{"a":1},{"b":2}]', b'{"a":1},{"b":2},', BOM_UTF8 + b'{"a":1}')


@pytest.mark.parametrize("line", ODD)
def test_a_million_odd_lines_do_not_take_an_hour(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all brackets takes as long for a line as for a thousand records."""
    looks: list[bytes] = []
    monkeypatch.setattr(lines, "structure_of", lambda text, limits: looks.append(text))
    records = split_lines(b'{"a":1}\n' + 100 * (line + b"\n"), Limits())
    assert looks == []
    assert len(records.starts) == 1 + 100 * line.count(b"{")
