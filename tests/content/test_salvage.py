"""What is whole around broken lines is found, and looking for it has limits."""

from __future__ import annotations

import numpy as np
import pytest

from forebay.content import salvage
from forebay.content.limits import Limits
from forebay.content.lines import Records
from forebay.content.outcome import TooMany
from forebay.content.salvage import salvaged

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
