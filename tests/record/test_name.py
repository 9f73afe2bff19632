"""Names of columns: any key of a JSON object gets one that every reader takes."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.column_name import LONGEST, is_twin, safe_name
from forebay.record.name import free_name


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("player_id", "player_id"),
        ("playerId", "playerid"),
        ("Level", "level"),
        ("player.id", "player_id"),
        ("user agent", "user_agent"),
        ("a`b", "a_b"),
        ("x-request-id", "x_request_id"),
        ("", "empty"),
        ("_id", "x_id"),
        ("2nd", "x_2nd"),
        ("select", "select"),
    ],
)
def test_a_key_gets_a_plain_name(key: str, name: str) -> None:
    assert safe_name(key) == name


def test_long_keys_and_keys_of_other_scripts_keep_names_of_their_own() -> None:
    names = {safe_name("k" * 300 + end) for end in "ab"} | {safe_name(key) for key in ("уровень", "игрок_1", "игрок_2")}
    assert len(names) == 5
    assert max(map(len, names)) <= LONGEST


@given(st.text())
def test_every_name_is_safe_and_is_its_own_name(key: str) -> None:
    name = safe_name(key)
    assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
    assert len(name) <= LONGEST
    assert safe_name(name) == name


def test_a_name_that_is_declared_is_left_to_the_declared_column() -> None:
    assert free_name("level", frozenset({"level", "level_field"})) == "level_field_field"


def test_long_keys_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            key = f"{number}" + "k" * 100_000
            assert (safe_name(key)[:2], is_twin(key, key.upper())) == ("x_", True)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
