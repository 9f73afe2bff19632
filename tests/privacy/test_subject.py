"""Whose record it is: by every spelling of the subject that would share its column, wherever it lies."""

from __future__ import annotations

import pyarrow as pa
import pytest

from forebay.privacy.subject import is_record, subject_paths, subject_tokens
from forebay.privacy.together import records_of
from forebay.privacy.token import token_of

SECRET = b"s" * 32


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"user": {"id": "42"}}', {"42"}),
        ('{"user": {"id": 42}}', {"42"}),
        ('{"User": {"ID": 42.50}}', {"42.50"}),
        ('{"user": {"id": 4.2e1}}', {"42"}),
        ('{"user": {"id": "42.0"}}', {"42"}),
        ('{"user": {"id": "042"}, "x": "\\\\"}', {"42"}),
        ('{"user": {"id": 1}, "user": {"id": 2}}', {"1", "2"}),
        ('{"user": [{"id": 1}, {"id": [2, null]}]}', {"1", "2"}),
        ('{"@parent": {"user": {"id": 7}}, "id": 8}', {"7"}),
        ('{"user": "[{\\"id\\": 1}, {\\"id\\": \\"[2]\\"}]"}', {"1", "2", "[2]"}),
        ('{"user": {"id": "[1, 2]"}}', {"1", "2", "[1, 2]"}),
        ('{"user": "{\\"id\\": 1"}', set()),
        ('{"user": {"id": null}}', set()),
        ('{"user": {"id": {"id": 1}}}', set()),
        ('{"user": "id"}', set()),
        ('{"user": {"id": 1}', set()),
        ('"user"', set()),
    ],
)
def test_the_subjects_of_a_record(text: str, found: set[str]) -> None:
    tokens = {token_of(one, SECRET) for one in found}
    assert subject_tokens(text, subject_paths(("user", "id")), SECRET) == tokens
    texts = pa.array(["{}", text, '{"user": {"id": "else"}}', text])
    for token in tokens or {token_of("42", SECRET)}:
        of = records_of(frozenset([token]), texts, subject_paths(("user", "id")), SECRET)
        assert of.tolist() == [False, token in tokens, False, token in tokens]


@pytest.mark.parametrize("depth", [10, 400, 990, 5000])
def test_a_subject_is_found_however_deep_it_or_anything_beside_it_is_nested(depth: int) -> None:
    """Whoever nests deeply is no less a person."""
    paths, opened, closed = subject_paths(("user", "id")), "[" * depth, "]" * depth
    for text in (
        '{"user":{"id":' + opened + '"4\\u0032"' + closed + "}}",
        '{"x":{"y":'
        + opened
        + '{"user":{"id":1}}'
        + closed
        + '},"user":'
        + opened
        + '{"n":[1,{}],"id":42}'
        + closed
        + "}",
        '{"x":' + opened + closed + ',"us\\u0065r" : {"n" : null , "id" : 42}}',
        '{"x":' + opened + closed + ',"user":"{\\"id\\":42}"}',
    ):
        assert is_record(text)
        assert subject_tokens(text, paths, SECRET) == {token_of("42", SECRET)}
        assert records_of(frozenset([token_of("42", SECRET)]), pa.array([text]), paths, SECRET).tolist() == [True]
    whole = '{"user":' + opened + closed + ',"user":{"id":42}}'
    for torn in (
        whole[:-1],
        whole[:-2],
        whole + "}",
        whole.replace(',"', ",1:"),
        opened + closed,
        opened + closed + "]",
    ):
        assert not is_record(torn)
        assert subject_tokens(torn, paths, SECRET) == set()


def test_an_element_of_an_exploded_array_may_have_the_subject_itself() -> None:
    paths = subject_paths(("players", "id"), [("players",)])
    assert subject_tokens('{"@exploded": "players", "id": 5}', paths, SECRET) == {token_of("5", SECRET)}


def test_a_token_of_a_subject_is_the_same_subject() -> None:
    token = token_of("42", SECRET)
    assert subject_tokens(f'{{"id": "{token}"}}', subject_paths(("id",)), SECRET) == {token}


@pytest.mark.parametrize(
    "document", ['{"records":[%s]}', '{"Records ":[[%s]]}', '{"Records":%s}', '{"@parent":{"records":[%s]}}']
)
def test_a_document_that_was_not_taken_apart_is_of_everybody_in_its_records(document: str) -> None:
    """The feed names the array Records."""
    paths, text = subject_paths(("user", "id"), inside=[("Records",)]), document % '{"user":{"id":5}}'
    assert subject_tokens(text, paths, SECRET) == {token_of("5", SECRET)}
    assert records_of(frozenset([token_of("5", SECRET)]), pa.array([text]), paths, SECRET).tolist() == [True]
    assert subject_tokens(text, subject_paths(("user", "id")), SECRET) == set()
