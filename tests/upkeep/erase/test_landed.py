"""What is left of a landed object without the records of erased persons, by every spelling of who they are."""

from __future__ import annotations

import pytest

from forebay.declaration.form import Form
from forebay.privacy.subject import subject_paths
from forebay.privacy.token import token_of
from forebay.upkeep.erase.landed import Left, left_of
from forebay.upkeep.erase.rows import Erased

PATHS = subject_paths(("user",))
OTHER = b'{"user":"4712"}\n'


@pytest.mark.parametrize("asked", ["4711", "4711.0", "4.711e3"])
@pytest.mark.parametrize("written", [b"4711", b"4711.0", b"47.11E2", b'"4711"', b'"04711"', b'["x",4711.00]'])
def test_a_record_leaves_by_any_spelling_of_its_subject(asked: str, written: bytes) -> None:
    erased = Erased(frozenset({token_of(asked, b""), token_of("x", b"")}), b"")
    theirs = b'{"n":1,"user":' + written + b"}\n"
    assert left_of(theirs + OTHER, "a.json", Form(), PATHS, erased) == Left(1, OTHER)
