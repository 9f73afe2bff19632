"""Names that two patterns of declarations have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.mistakes.common_name import USUAL_VALUES, Pattern, common_name
from forebay.declaration.service import Service
from forebay.declaration.table import Table


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (Pattern("{game}_log"), Pattern("{game}"), "a_log"),
        (Pattern("log_{game}"), Pattern("{game}"), "log_a"),
        (Pattern("all_now"), Pattern("{game}_now"), "all_now"),
        (Pattern("{a}_{b}_log"), Pattern("{b}_{a}"), "a_a_log"),
        (Pattern("x_{game}"), Pattern("{game}_y"), "x_y"),
        (Pattern("xab{game}"), Pattern("{game}abx"), "xabx"),
        (Pattern("a{game}"), Pattern("{game}a"), "aa"),
        (Pattern("{game}_log"), Pattern("{game}_now"), None),
        (Pattern("players"), Pattern("players_log"), None),
        (Pattern("_{game}"), Pattern("{game}"), None),
        (Pattern("{game}_log"), Pattern("{game}", "alpha|a_log"), "a_log"),
        (Pattern("{game}_log"), Pattern("{game}", "alpha|beta"), None),
        (Pattern("{game}_log", "[0-9]+"), Pattern("{game}"), "1_log"),
        (Pattern("{game}_log", "[0-9]+"), Pattern("{game}", "[a-z]+"), None),
    ],
)
def test_a_name_that_both_give_is_found(one: Pattern, other: Pattern, common: str | None) -> None:
    assert common_name(one, other) == common
    assert (common_name(other, one) is None) == (common is None)


patterns = st.lists(st.one_of(st.just("{f}"), st.sampled_from(["a", "_", "ab", "_b"])), min_size=1, max_size=4)
values = st.from_regex(f"({USUAL_VALUES})", fullmatch=True).filter(lambda text: len(text) < 6)


@given(patterns, patterns, st.lists(st.sampled_from(["a", "b", "ab", "a_b", "aa_b", "b_"]), min_size=4, max_size=4))
def test_where_a_name_of_one_is_a_name_of_the_other_one_is_found(
    one: list[str], other: list[str], given: list[str]
) -> None:
    a, b = Pattern("".join(one)), Pattern("".join(other))
    name = "".join(part if part != "{f}" else value for part, value in zip(one, given, strict=False))
    found = common_name(a, b)
    assert found is None or (a.gives(found) and b.gives(found))
    if a.gives(name) and b.gives(name):
        assert found is not None, name


def test_the_usual_values_are_those_of_a_table() -> None:
    assert Table(name="{game}").values == USUAL_VALUES


@pytest.mark.parametrize(
    ("tables", "name", "owner"),
    [
        (["{game}", "sales"], "sales", 1),
        (["{game}", "{game}_log"], "a_log", 1),
        (["{game}_log", "{game}"], "a_log", 0),
        (["{game}", "{kind}"], "a", 0),
        (["{game}", "{kind} a|b"], "a", 1),
        (["{game}", "{kind} a|b"], "c", 0),
        (["{game} (?i)[a-z]+", "{kind} [0-9]+"], "A", 0),
        (["{game} (?i)[a-z]+", "{kind} [0-9]+"], "7", 1),
        (["{game}_log", "{game}_now"], "a", None),
    ],
)
def test_a_name_belongs_to_the_declaration_that_says_most_of_it(
    tables: list[str], name: str, owner: int | None
) -> None:
    declared = [text.partition(" ")[::2] for text in tables]
    made = [Table(name=name, values=values or USUAL_VALUES) for name, values in declared]
    assert Service(name="s", tables=tuple(made)).owner_of(name) == owner
