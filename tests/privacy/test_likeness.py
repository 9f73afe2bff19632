"""What looks personal, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.privacy.likeness import is_no_name, kind_of
from forebay.privacy.token import token_of
from forebay.privacy.value import MASK


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("anna@example.org", "e-mail address"),
        ("Anna <anna@example.org>", "e-mail address"),
        ("203.0.113.77", "IP address"),
        ("2001:db8:1:2::3", "IP address"),
        ("4111 1111 1111 1111", "card number"),
        (4111111111111111, "card number"),
        ("+44 20 7946 0958", "phone number"),
        ("(030) 901820-0", "phone number"),
        ("0c1b7a3e-3a4f-4c58-9a0f-2f8f7b1f2d10", "long id"),
        ("9f86d081884c7d659a2feaa0c55ad015", "long id"),
        # What is not, or not any more.
        ("203.0.113.0", None),
        ("2001:db8:1::", None),
        ("1984-01-01", None),
        (MASK, None),
        ("2026-11-22T10:00:00Z", None),
        ("4111 1111 1111 1112", None),
        ("purchase", None),
        ("level_completed_in_time", None),
        ("1.10", None),
        (1763805600, None),
        (True, None),
        (None, None),
        (1.5, None),
        ("", None),
    ],
)
def test_a_value_is_named_by_what_it_looks_like(value: Any, kind: str | None) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("email", False),
        ("user_id", False),
        ("2026-01-01", False),
        ("202601", False),
        ("average_revenue_per_user_30d", False),
        ("anna@example.org", True),
        ("203.0.113.77", True),
        ("+44 20 7946 0958", True),
        ("4111111111111111", True),
        ("9f86d081884c7d659a2feaa0c55ad015", True),
        ("0c1b7a3e-3a4f-4c58-9a0f-2f8f7b1f2d10", True),
    ],
)
def test_a_value_of_a_person_is_no_name_of_a_column(name: str, is_one: bool) -> None:
    assert is_no_name(name) == is_one


def test_a_token_looks_like_nothing_personal() -> None:
    assert kind_of(token_of("anna@example.org", b"s")) is None
