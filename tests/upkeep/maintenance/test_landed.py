"""What is left of a landed object without some persons: others keep every byte, and a doubt changes nothing."""

from __future__ import annotations

import gzip
import json

import pytest

from forebay.privacy.token import token_of
from forebay.upkeep.erase.landed import Left, left_of
from forebay.upkeep.erase.rows import Erased

SECRET = b"s" * 32
ERASED = Erased(frozenset({token_of("anna", SECRET), token_of("4711", SECRET)}), SECRET)
PATHS = (("user", "id"), ("items", "user", "id"))


def left(content: bytes) -> Left:
    return left_of(content, PATHS, ERASED)


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


@pytest.mark.parametrize("content", [b"", b"\n", BEN, gzip.compress(BEN), b"[" + BEN + b"]", b"\xef\xbb\xbf" + BEN])
def test_an_object_that_holds_none_of_theirs_stays(content: bytes) -> None:
    assert left(content) == Left()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (ANNA + b"\n{torn\n", "no file of one JSON object a line"),
        (ANNA + ANNA, "no file of one JSON object a line"),
        (b"user,n\nanna,1\n", "no file of one JSON object a line"),
        (b"[" + ANNA + b"," + BEN + b"]", "one document, with records of others"),
        (b'{"items": [{"user": {"id": "anna"}}, {"user": {"id": "ben"}}]}\n', "line 1 is of others, too"),
        (b"BZh91AY&SY" + b"x" * 50, "is packed, and not by gzip"),
        (gzip.compress(ANNA)[:-9], "cannot be unpacked"),
        (b"PAR1\xff\xfe" + ANNA, "no file of one JSON object a line"),
        (b'{"user": "\xff"}\n' + ANNA, "no file of one JSON object a line"),
    ],
)
def test_where_nobody_can_tell_nothing_leaves(content: bytes, why: str) -> None:
    found = left(content)
    assert (found.content, found.records, why in found.unclear) == (None, 0, True), found
