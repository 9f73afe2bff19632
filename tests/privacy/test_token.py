"""Tokens stand for values, and only who has the secret can tell for which."""

from __future__ import annotations

import json
import stat
import tracemalloc
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import InvalidConfiguration
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import PREFIX, one_spelling, remembered_token, token_of
from forebay.record.declared import is_whole_of, value_of

ONE, OTHER = b"1" * 32, b"2" * 32
NUMBERS = ("byte", "short", "int", "long", "double", "decimal(38,3)")


@given(st.text(), st.text())
def test_equal_values_have_equal_tokens_and_others_others(value: str, other: str) -> None:
    token = token_of(value, ONE)
    assert token.startswith(PREFIX)
    assert (token == token_of(other, ONE)) == (one_spelling(value) == one_spelling(other))
    assert token != token_of(value, OTHER)


@given(st.text())
def test_a_token_is_its_own_token_and_what_only_looks_like_one_is_not(value: str) -> None:
    token = token_of(value, ONE)
    assert token_of(token, ONE) == token
    assert token_of(token, OTHER) != token
    forged = token[:-1] + ("A" if token[-1] != "A" else "B")
    assert token_of(forged, ONE) != forged


@pytest.mark.parametrize(
    ("spellings", "one"),
    [
        (
            ["4711", "4711.0", "4711.", "47.11e2", "4.711E+03", "47110e-1", "+4711", "004711", " 4711\r\n", "\x7f4711"],
            "4711",
        ),
        (["70004", "7.0004e4", "70004.000"], "70004"),
        (["0", "-0", "0.0", "0e99999999999", "-.0", "00"], "0"),
        (["-1", "-1.0", "-10e-1"], "-1"),
        (["0.5", ".5", "5e-1", "00.50"], "5e-1"),
        (["1e300", "1" + "0" * 300, "10e299"], "1e300"),
        (["12300", "123e2"], "12300"),
        (["9007199254740993", "9007199254740993.0"], "9007199254740993"),
    ],
)
def test_all_spellings_of_a_number_have_one_token(spellings: list[str], one: str) -> None:
    """A column of numbers cannot tell them apart, so a person has one token, whoever writes it."""
    assert {one_spelling(value) for value in spellings} == {one}
    assert {token_of(value, ONE) for value in spellings} == {token_of(one, ONE)}


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "a",
        "a ",
        "Anna",
        "1 2",
        "1e",
        "e5",
        "1.2.3",
        "0x10",
        "1_000",
        "\u0661",
        "1\xa0",
        "NaN",
        "1e" + "9" * 30,
    ],
)
def test_a_text_that_is_no_number_is_itself(value: str) -> None:
    assert one_spelling(value) == value


@given(st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,10})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_numbers_have_one_token_where_they_are_equal(number: str) -> None:
    """Python's `Decimal` is the model."""
    assert Decimal(one_spelling(number)) == Decimal(number)
    assert {one_spelling(f"{Decimal(number):{form}}") for form in "ef"} == {one_spelling(number)}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_a_column_of_doubles_holds_has_the_token_of_what_was_written(number: float) -> None:
    assert {one_spelling(text) for text in (str(number), f"{Decimal(str(number)):f}", json.dumps(number))} == {
        one_spelling(repr(number))
    }


around = st.text(st.sampled_from(" \t\n\r\0\x1f\x7f\x80\x85\xa0\u2003\ufeff+-0.eEdfL_"), max_size=3)


@given(around, st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,3})?", fullmatch=True), around, st.sampled_from(NUMBERS))
def test_a_text_that_a_column_reads_as_a_number_is_that_person(before: str, digits: str, after: str, kind: str) -> None:
    text = before + digits + after
    held = value_of(text, kind)
    if held is not None and is_whole_of(text, kind):
        assert one_spelling(str(held)) == one_spelling(text)


def test_half_of_a_pair_of_surrogates_has_a_token() -> None:
    assert token_of("\ud800", ONE) != token_of("\ud801", ONE)


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    address = f"{tmp_path}/apart/secret"
    assert make_secret(address)
    secret = secret_at(address)
    assert len(secret) == 32
    assert not make_secret(address)
    secret_at.cache_clear()
    assert secret_at(address) == secret
    assert stat.S_IMODE(Path(address).stat().st_mode) == 0o600


def test_what_is_no_secret_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="holds no secret for tokens"):
        secret_at(f"{tmp_path}/none")
    (tmp_path / "some").write_text("hello")
    with pytest.raises(InvalidConfiguration, match="does not hold"):
        secret_at(f"{tmp_path}/some")


def test_long_values_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            assert remembered_token(f"{number}" + "v" * 100_000, b"s").startswith(PREFIX)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
