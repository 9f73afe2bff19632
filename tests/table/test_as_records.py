"""Rows that are made into records again: what was rescued of declared columns stays rescued."""

from __future__ import annotations

import json

import pytest

from forebay.record.growth import keeps_spelling
from forebay.record.kind import Field, Kind, Many, Struct
from forebay.table.as_records import misfits_of

DECLARED = {"at": {}, "player": {"level": {}}}


@pytest.mark.parametrize(
    ("rescued", "misfits"),
    [
        (None, None),
        ('{"x":1}', None),
        ('{"at":7,"x":1}', [{"at": 7}]),
        ('{"At":7}', [{"At": 7}]),
        ('{"player":{"level":"high","x":[1]}}', [{"player": {"level": "high"}}]),
        ('{"player":7}', None),
        ('{"day":null,"at":1.50}', [{"day": None}, {"at": 1.5}]),
        ('{"":"{\\"at\\": 1"}', None),
    ],
)
def test_what_did_not_fit_a_declared_column_is_told_apart(rescued: str | None, misfits: object) -> None:
    found = misfits_of(rescued, DECLARED)
    assert (found if found is None else json.loads(found)) == misfits


def test_digits_stay_as_they_were_written() -> None:
    assert misfits_of('{"at":1.50}', DECLARED) == '[{"at":1.50}]'


def columns(**kinds: Kind) -> Struct:
    return Struct({name: Field(name, kind) for name, kind in kinds.items()})


@pytest.mark.parametrize(
    ("written", "table", "keeps"),
    [
        (columns(a="long", b="string"), columns(a="string"), True),
        (columns(a="double"), columns(a="double", b="string"), True),
        (columns(a="double"), columns(a="string"), False),
        (columns(a="double"), columns(), False),
        (columns(a=Struct({})), columns(a="json"), False),
        (columns(a=columns(b="double")), columns(a=columns(b="string")), False),
        (columns(a=Many("double")), columns(a=Many("string")), False),
        (columns(a=Many("long")), columns(a=Many("double")), True),
        (Struct({"a": Field("a", "long", frozenset({"A"}))}), columns(a="string"), False),
    ],
)
def test_files_are_written_again_only_where_they_tell_how_values_were_spelled(
    written: Struct, table: Struct, keeps: bool
) -> None:
    assert keeps_spelling(written, table) is keeps
