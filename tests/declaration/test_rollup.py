"""The declaration of a rollup: what is refused without Spark."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from forebay.declaration.rollup import Rollup

GOOD: dict[str, object] = {
    "name": "revenue",
    "tables": ("purchases",),
    "group_by": {"day": "date(at)"},
    "columns": {"n": "count(*)"},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "quarantine"}, "name 'quarantine' is reserved for forebay"),
        ({"columns": {"n": "count(("}}, "columns.n: does not close a parenthesis: count(("),
        ({"columns": {"n": "count(*))"}}, "columns.n: closes a parenthesis that was not opened"),
        ({"columns": {"n": "amount"}}, r"columns.n: is not an aggregate, such as sum(amount)"),
        ({"group_by": {"day": "date(at"}}, "group_by.day: does not close a parenthesis"),
        ({"where": "(amount > 0"}, "where: does not close a parenthesis"),
    ],
)
def test_what_the_text_alone_shows_to_be_wrong_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Rollup.model_validate(GOOD | change)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    ["count_if(kind = ')')", "max(r'(\\')", 'max(concat("(", `odd (name`))', "sum(a) -- (", "max('it\\'s (')"],
)
def test_parentheses_of_texts_names_and_comments_do_not_count(sql: str) -> None:
    assert Rollup.model_validate(GOOD | {"columns": {"n": sql}}).sql == {"group_by.day": "date(at)", "columns.n": sql}
