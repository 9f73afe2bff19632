"""The path of a field: what is understood, and where a mistake is shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.loading import parse_service
from forebay.declaration.path import Path, parse_path
from forebay.errors import InvalidConfiguration

CASES: list[tuple[str, Path]] = [
    ("event", Path("record", ("event",))),
    ("player.id", Path("record", ("player", "id"))),
    ("content-type.x_1", Path("record", ("content-type", "x_1"))),
    ("@timestamp", Path("record", ("@timestamp",))),
    ("$insert_id", Path("record", ("$insert_id",))),
    ("Player Name.the id", Path("record", ("Player Name", "the id"))),
    ("items[0].sku", Path("record", ("items", 0, "sku"))),
    ("grid[1][20]", Path("record", ("grid", 1, 20))),
    ('"a.b".c d', Path("record", ("a.b", "c d"))),
    ('"a.b"[3].c', Path("record", ("a.b", 3, "c"))),
    (r'"say \"hi\" \\"', Path("record", ('say "hi" \\',))),
    ('""', Path("record", ("",))),
    ('"@key".game', Path("record", ("@key", "game"))),
    ("x.@key.game", Path("record", ("x", "@key", "game"))),
    ("@keys", Path("record", ("@keys",))),
    ("@key.game", Path("key", ("game",))),
    ("@key", Path("object", ("key",))),
    ("@file", Path("object", ("file",))),
    ("@bucket", Path("object", ("bucket",))),
    ("@feed", Path("object", ("feed",))),
    ('"@file"', Path("record", ("@file",))),
    ('"@feed".x', Path("record", ("@feed", "x"))),
    ("@metadata.upload-id", Path("metadata", ("upload-id",))),
]


@pytest.mark.parametrize(("text", "path"), CASES)
def test_a_path_is_understood_and_written_again(text: str, path: Path) -> None:
    assert parse_path(text) == path
    assert str(path) == text


@pytest.mark.parametrize(
    ("text", "why", "at"),
    [
        ("", "a key is missing here", 0),
        ("a..b", "a key is missing here", 2),
        ("a.", "a key is missing here", 2),
        (".a", "a key is missing here", 0),
        ("[0].a", "a key is missing here", 0),
        ("a[x]", "a position in an array is a number", 2),
        ("a[-1]", "a position in an array is a number", 2),
        ("a[].b", "brackets need a position, such as items[0]; f", 1),
        ("a[*].b", "brackets need a position, such as items[0]; f", 1),
        ("a[0", "a position in an array is a number", 2),
        ("a[0]b", "a dot, or a position such as [0], must come", 4),
        ('"a"b', "a dot, or a position such as [0], must come", 3),
        ('a."b', "this quote does not close", 2),
        (r'"a\n"', "are escapes in quotes", 2),
        ("a. b", "a key with a space at its end needs double quotes", 2),
        ("a .b", "a key with a space at its end needs double quotes", 1),
        ("a.{b}", "such a key needs double quotes", 2),
        ("a]", "a dot, or a position such as [0], must come", 1),
        ("@key.a.b", "@key. needs one plain name", 5),
        ("@metadata.A", "@metadata. needs one plain name", 10),
        ("@key.", "a key is missing here", 5),
        ("@metadata", 'the record\'s own key is written "@metadata"', 0),
        ("@file.name", 'the record\'s own key is written "@file"', 0),
        ("@key[0]", 'the record\'s own key is written "@key"', 0),
    ],
)
def test_a_mistake_is_shown_with_a_caret(text: str, why: str, at: int) -> None:
    with pytest.raises(ValueError, match=re.escape(why)) as refused:
        parse_path(text)
    assert str(refused.value).splitlines()[1:] == [f"    {text}", f"    {' ' * at}^"]


def test_a_path_has_one_spelling() -> None:
    assert {str(parse_path(text)) for text in ('"a.b"."c d"', '"a.b".c d', '"a.b"."c d"')} == {'"a.b".c d'}


@given(st.text(min_size=1), st.lists(st.text() | st.integers(0, 999_999_999), max_size=4))
def test_every_key_and_position_can_be_written(first: str, others: list[str | int]) -> None:
    path = Path("record", (first, *others))
    assert parse_path(str(path)) == path


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ('"items[0]"', r"items\[0\]: the array must be named by keys alone"),
        ('"@key.x"', "by keys alone"),
        ('["a", "a..b"]', r"\^"),
    ],
)
def test_arrays_of_records_are_named_by_keys(records: str, says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says):
        parse_service({"service.toml": f'name = "s"\nenvelope = {{ records = {records} }}\n[[tables]]\nname = "a"'})
    several = parse_service(
        {"service.toml": 'name = "s"\nenvelope = { records = ["a", "b.\\"c.d\\""] }\n[[tables]]\nname = "a"'}
    )
    assert several.envelope.form.inside == (("a",), ("b", "c.d"))
