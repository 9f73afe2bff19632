"""Lists of erased persons: each has all that the one before has, and none ever changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.errors import Halt
from forebay.privacy.erased import add_erased, erased_at, newest_list


def test_a_list_has_all_that_the_one_before_has(tmp_path: Path) -> None:
    lake = str(tmp_path)
    assert newest_list(lake, "studio") == ""
    first = add_erased(lake, "studio", ["tok_a"])
    second = add_erased(lake, "studio", ["tok_b"])
    assert (erased_at(first), erased_at(second)) == ({"tok_a"}, {"tok_a", "tok_b"})
    assert newest_list(lake, "studio") == second == add_erased(lake, "studio", ["tok_a", "tok_b"])
    assert newest_list(lake, "other") == ""


def test_a_list_that_is_gone_stops_whoever_needs_it(tmp_path: Path) -> None:
    with pytest.raises(Halt, match="is missing"):
        erased_at(f"{tmp_path}/nothing")
