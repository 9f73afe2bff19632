"""Thousands of records are treated at once, and each comes to what it comes to alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.personal import Become, PersonalField
from forebay.privacy import members
from forebay.privacy.members import Texts
from forebay.privacy.subject import subject_paths, subject_tokens
from forebay.privacy.text import Originals, level_of, treated_text
from forebay.privacy.together import NOT_KEPT, Original, treated_texts
from forebay.privacy.vault import packed
from tests.privacy.test_text import documents, fields, personal_fields

SECRET = b"s" * 32
SUBJECT = subject_paths(("device", "id"))


def alone(text: str, personal: tuple[PersonalField, ...]) -> tuple[str, Original | None]:
    """By the definition."""
    told: Originals = []
    try:
        treated = treated_text(text, personal, SECRET, told)
    except ValueError:
        return NOT_KEPT, None
    subjects = tuple(sorted(subject_tokens(text, SUBJECT, SECRET)))
    return treated, (subjects, packed(told)) if told else None


def together(texts: list[str], personal: tuple[PersonalField, ...]) -> list[tuple[str, Original | None]]:
    originals = dict[int, Original]()
    treated = treated_texts(pa.array(texts, pa.string()), personal, SECRET, subject=SUBJECT, originals=originals)
    assert treated_texts(pa.array(texts, pa.string()), personal, SECRET).to_pylist() == treated.to_pylist()
    return [(text, originals.get(row)) for row, text in enumerate(treated.to_pylist())]


def pairs_of(text: str) -> Any:
    """With each digit, and each key as often as it stands there."""
    if text == NOT_KEPT:
        return text
    return json.loads(text, strict=False, object_pairs_hook=list, parse_int=str, parse_float=str)


def is_told(text: str, personal: tuple[PersonalField, ...]) -> bool:
    return not Texts(pa.array([text])).members(level_of(personal)).unread.any()


separators = st.sampled_from([(",", ":"), (" , ", " : "), (",\n\t", ": ")])
texts_of_documents = st.builds(
    lambda value, between, ascii_only: json.dumps(value, separators=between, ensure_ascii=ascii_only),
    documents,
    separators,
    st.booleans(),
)
damaged = st.builds(
    lambda text, at, sign: text[: at % (len(text) + 1)] + sign + text[at % (len(text) + 1) + 1 :],
    texts_of_documents,
    st.integers(0, 200),
    st.sampled_from(["", "{", "}", '"', ",", ":", "[", "]", " ", "\\", "\0", "1", "{}", "-", "NaN", "é", "x"]),
)
odd = st.sampled_from(
    [
        "", "{", "}", "{}", "{}{}", " {}", "{} ", '{"a":', '{"email":1}}', '{"a":"}', '{"}', "[]", "null", '{"email":{}',
        '{"email":1 "ip":2}', '{"email":01}', '{"email":NaN}', '{"email":"\n"}', '{"a":1,}', '{"email":1,"email":2}',
    ]
)  # fmt: skip


dropped_last = st.builds(
    lambda value, key, last, between, blanks: (
        json.dumps({**value, key: last}, separators=between, ensure_ascii=False) + blanks
    ),
    documents,
    st.sampled_from(["email", "ip", "Email"]),
    st.sampled_from(["x@y.org", 1, None, "a\\b", {}]),
    separators,
    st.sampled_from(["", "\n", "\r\n", "   ", "\n\n\t"]),
)
"""A block of them ends in blanks, behind a field that may be dropped."""


@given(
    st.lists(texts_of_documents | damaged | odd | dropped_last, max_size=12),
    personal_fields | st.just(fields(email="dropped", ip="dropped")),
    st.sampled_from([1, 40, 1 << 20]),
)
def test_each_record_comes_to_what_it_comes_to_alone(
    texts: list[str], personal: tuple[PersonalField, ...], block_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "BLOCK_BYTES", block_bytes)
        found = together(texts, personal)
    for text, (treated, original) in zip(texts, found, strict=True):
        expected, its = alone(text, personal)
        assert (pairs_of(treated), original) == (pairs_of(expected), its), text


@pytest.mark.parametrize(
    "text",
    [
        '{"n":1.10,"email":1,"ip":2}',
        '{ "email" : 1 , "ip" : 2 }',
        '{"email":1,"n":1.10,"E-Mail":"x","device":{"ip":[1],"id":3 } }',
        '{"device":{"id":3,"n":-0}}',
        # Keys that are elsewhere as well, that stand twice, and lists on the way.
        '{"email":1,"o":{"email":2}}',
        '{"email":1,"email":2}',
        '{" email":1,"email ":2," EMail\u2003":3}',
        '{"o":{"email":1},"o":{"email":1},"email":3}',
        '{"device":[{"id":1},{"id":2,"x":{"id":3}}],"x":[[]],"y":{}}',
        '{"email":"Ä"}',
    ],
)
@pytest.mark.parametrize("become", get_args(Become))
def test_ordinary_records_are_not_walked(text: str, become: Become) -> None:
    personal = tuple(replace(one, vault=True) for one in fields(email=become, ip=become, device__id=become))
    assert is_told(text, personal)
    ((treated, original),) = together([text], personal)
    expected, its = alone(text, personal)
    assert (pairs_of(treated), original) == (pairs_of(expected), its)


@pytest.mark.parametrize(
    "text", ['{"email":[1]}', r'{"email":"\""}', '{"email":1', '["email"]', '{"a":' * 220 + '{"email":1}' + "}" * 220]
)
def test_what_cannot_be_told_so_is_left_to_the_walk(text: str) -> None:
    assert not is_told(text, fields(email="dropped"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"ip":1,"n":2}', '{"n":2}'),
        ('{"n":2 , "ip":1}', '{"n":2 }'),
        ('{ "ip" : 1 , "n":2}', '{"n":2}'),
        ('{"n":2,"ip":1 , "email":3 }', '{"n":2}'),
        ('{"ip":1,"n":2,"email":3}', '{"n":2}'),
        ('{"ip":1,"email":3}', "{}"),
        ('{"ip":1,"n":{"ip":4},"email":3}', '{"n":{"ip":4}}'),
    ],
)
def test_of_a_dropped_member_no_comma_stays(text: str, left: str) -> None:
    ((treated, _),) = together([text], fields(email="dropped", ip="dropped"))
    assert treated == left


@pytest.mark.parametrize(
    "texts",
    [
        ['{"game":"a","email":"x"}\n'],
        ['{"game":"a","email":"x"}\n', '{"game":"b"}\n'],
        ['{"game":"a","email":"x"}\r\n   '],
        ['{"game":"a","email":"x"}', r'{"game":"b\\"}'],
        ['{"game":"a","email":"x"}', '{"game":"b"'],
        ['{"email":"x"} ', " "],
    ],
)
def test_a_dropped_field_may_end_the_last_text_of_a_block(texts: list[str]) -> None:
    personal = fields(email="dropped")
    found = [(pairs_of(text), original) for text, original in together(texts, personal)]
    assert found == [(pairs_of(text), original) for text, original in (alone(one, personal) for one in texts)]


def test_one_that_is_no_json_costs_the_others_nothing() -> None:
    texts = [f'{{"email":"{n}"}}' for n in range(100)]
    texts[50] = '{"email":"50"} }'
    seen = Texts(pa.array(texts))
    assert 80 < seen.plain.sum() < 100
    assert [text for text, _ in together(texts, fields(email="masked"))] == [
        NOT_KEPT if n == 50 else '{"email":"***"}' for n in range(100)
    ]
