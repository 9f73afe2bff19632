"""A function that was not given its settings says all that is missing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from forebay.errors import InvalidConfiguration
from lambdas import environment


@dataclass(frozen=True)
class Settings:
    job: str
    minutes: int
    note: str = "none"


def test_fields_are_read_from_variables_of_their_names() -> None:
    assert environment.read(Settings, {"JOB": "ingest", "MINUTES": "5"}) == Settings("ingest", 5, "none")


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        environment.read(Settings, {"MINUTES": "five"})
    assert [(p.where, p.what) for p in refused.value.problems] == [
        ("JOB", "is missing"),
        ("MINUTES", "is not a whole number; got 'five'"),
    ]
