"""Numbers that Arrow's parser would change are found, wherever they stand and however they are written."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.record import inexact
from forebay.record.inexact import inexact_in
from forebay.record.number import NEGATIVE_ZERO, is_exact

EXACT = [
    "0.1",
    "-0.0",
    "1.50",
    "0.30000000000000004",
    "139.57142857142858",
    "1e5",
    "-1E+22",
    "2.5e-7",
    "1.7976931348623157e308",
]
INEXACT = [
    *("0.1000000000000000055511151231257827", "12345678901234567.89", "1.00000000000000001", "-0", "1E400", "1e-400"),
    *(
        "1.0000000000000000000000000000000000000000001",
        "-3.14159265358979323846",
        "123456789012345678e-1",
        "0.123456789012345678e-5",
    ),
    "2345678901234567890123456789012345678.00000000000000000000000000000000001",
]
OTHERS = [
    "1",
    "-7",
    "123456789012345",
    '"12345678901234567.89"',
    '"v1.2.3-4e5"',
    '"3e5"',
    '"00000000-0000-4000-8000-0e1"',
    '"-0"',
    "null",
]
FRACTIONS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True).filter(
    lambda text: not text.removeprefix("-").isdigit()
)


@pytest.mark.parametrize("block_bytes", [1, 100, inexact.BLOCK_BYTES])
@pytest.mark.parametrize("around", ['{"a":%s}', '{"a" : [1,\t%s\n,"x"]}', '{"a":{"b": %s }}', '{"a":[%s,0.5]}'])
def test_only_numbers_that_would_change_are_found(
    around: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inexact, "BLOCK_BYTES", block_bytes)
    records = [around % number for number in (*EXACT, *INEXACT, *OTHERS)]
    expected = range(len(EXACT), len(EXACT) + len(INEXACT))
    assert inexact_in(pa.array(records)) == list(expected)


@given(st.lists(st.lists(FRACTIONS | st.sampled_from(["-0", "0", "-1", '"x"']), max_size=3), min_size=1, max_size=5))
def test_a_record_is_found_exactly_if_it_has_such_a_number(records: list[list[str]]) -> None:
    texts = pa.array(["left out", *(f'{{"a":[{",".join(numbers)}]}}' for numbers in records)])[1:]
    expected = {n for n, some in enumerate(records) if any(one == NEGATIVE_ZERO or not is_exact(one) for one in some)}
    found = set(inexact_in(texts))
    assert expected <= found
    assert all(any(len(one) > 32 for one in records[n]) for n in found - expected)


@given(st.lists(st.uuids() | st.from_regex(r"[A-Za-z0-9_-]{32}", fullmatch=True), min_size=1, max_size=50))
def test_a_text_of_digits_and_dashes_is_no_number(ids: list[Any]) -> None:
    """Every record has an id, and each one that is found costs a parse of its own."""
    assert inexact_in(pa.array([json.dumps({"id": f"{id_}3-0a4-0e1"}) for id_ in ids])) == []


def test_no_record_has_none() -> None:
    assert inexact_in(pa.array([], pa.string())) == []
    assert inexact_in(pa.array(["{}"])) == []


def test_long_texts_of_digits_take_no_time() -> None:
    """Each dot and each exponent is looked at as far as a number reaches, and no further."""
    began = time.process_time()
    for odd in ("1" * 10**6, "1." * 10**6, "1e" * 10**6, "-0" * 10**6):
        assert inexact_in(pa.array([json.dumps({"a": odd})])) in ([], [0])
    assert time.process_time() - began < 5
