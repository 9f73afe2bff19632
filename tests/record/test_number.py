"""Numbers keep the digits that they were written with, up to where each limit lies."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pytest

from forebay.record.number import BLANK, MOST_DIGITS, Written, decimal_of, is_exact, problem_of, read_json, write_json

EXACT = {
    "as many digits as any double holds": ("123456789012345", True, False),
    "more, which one holds": ("9007199254740992", True, True),
    "more, which none holds": ("9007199254740993", False, False),
    "few digits, and an exponent": ("1e22", True, True),
    "few digits, and one that no double has": ("1e400", False, False),
    "one that is rounded to nothing": ("1e-400", False, False),
    "one that no decimal has": ("1e99999999999999999999", False, False),
    "a small one that no decimal has": ("1e-99999999999999999999", False, False),
    "the largest whole number that all below fit": ("16777216", True, True),
    "the next one": ("16777217", True, False),
    "the shortest text of a float": ("0.1", True, True),
    "a number beyond all floats": ("1e39", True, False),
    "all digits of a double": ("0.1000000000000000055511151231257827021181583404541015625", True, False),
    "one digit less": ("0.100000000000000005551115123125782702118158340454101562", False, False),
    "none": ("NaN", True, True),
    "without end": ("-Infinity", True, True),
}


@pytest.mark.parametrize(("text", "as_double", "as_float"), EXACT.values(), ids=EXACT.keys())
def test_a_number_is_exact_if_the_column_gives_it_back(text: str, as_double: bool, as_float: bool) -> None:
    assert (is_exact(text), is_exact(text, single=True)) == (as_double, as_float)


DECIMALS: dict[str, tuple[str, str | None]] = {
    "blanks around": (f"{BLANK}+1.50{BLANK}", "1.50"),
    "another kind of blank": ("\xa01", None),
    "a mark that is no blank": ("!1", None),
    "a dot at the beginning": ("-.5", "-0.5"),
    "a dot at the end": ("5.", "5"),
    "a dot alone": (".", None),
    "an exponent without digits": ("1e", None),
    "as many digits as may be": ("9" * MOST_DIGITS, "9" * MOST_DIGITS),
    "one more": ("9" * (MOST_DIGITS + 1), None),
    "the largest exponent": (f"1e{MOST_DIGITS}", f"1e{MOST_DIGITS}"),
    "a larger one": (f"1e{MOST_DIGITS + 1}", None),
    "the smallest exponent": (f"1e-{MOST_DIGITS}", f"1e-{MOST_DIGITS}"),
    "a smaller one": (f"1e-{MOST_DIGITS + 1}", None),
    "one that no decimal has": ("1e99999999999999999999", None),
    "no number": ("one", None),
}


@pytest.mark.parametrize(("text", "number"), DECIMALS.values(), ids=DECIMALS.keys())
def test_a_decimal_has_all_digits_or_is_none(text: str, number: str | None) -> None:
    assert decimal_of(text) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1}', None),
        ('{"a": 1}\n{"a": 2}', "several-documents"),
        ("1,2", "several-documents"),
        ("1 2 x", "not-json"),
        ("1,,2", "not-json"),
        ("x", "not-json"),
        ("[" * 100_000, "not-json"),
    ],
)
def test_several_documents_are_told_from_none(text: str, problem: str | None) -> None:
    assert problem_of(text) == problem


def test_whole_numbers_of_any_length_are_read_and_written_again() -> None:
    for digits in ("1" * MOST_DIGITS, "1" * (MOST_DIGITS + 1), "-0", "-1", "0"):
        value = read_json(digits)
        assert write_json(value) == digits
        assert type(value) is (Written if digits == "-0" or len(digits) > MOST_DIGITS else int)
    assert type(read_json(f'{{"a":{"1" * MOST_DIGITS}}}')["a"]) is int


def test_only_a_whole_zero_with_a_minus_goes_into_a_whole_column() -> None:
    assert [read_json(text).is_whole for text in ("-0", "-0.0", "-0e1", "0.5")] == [True, False, False, False]


def test_a_written_number_keeps_its_text_on_its_way_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(Written("1.50"))).text == "1.50"


def test_what_is_no_number_in_json_is_a_text_unless_it_is_read_again() -> None:
    value = {"b": [float("nan"), Written("Infinity")], "a": [{}, [], None, True, "\u00e9"]}
    assert write_json(value) == '{"b":["NaN","Infinity"],"a":[{},[],null,true,"\\u00e9"]}'
    assert write_json(value, ascii_only=False, sort=True, bare=True) == (
        '{"a":[{},[],null,true,"\u00e9"],"b":[NaN,Infinity]}'
    )
