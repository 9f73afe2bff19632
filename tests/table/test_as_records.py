"""Rows that are made into records again: what was rescued of declared columns stays rescued."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from forebay.record.conform import Records
from forebay.record.growth import Rules, grown, keeps_spelling
from forebay.record.kind import Field, Kind, Many, Struct
from forebay.record.walk import rescued_text
from forebay.table.as_records import AsRecords, misfits_of
from forebay.table.shaping import DOCUMENT

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


def documents(**values: pa.Array) -> list[str]:
    """The records of rows with these columns; those from records are the ones without an underscore."""
    from_records = tuple(name for name in values if name[0] != "_")
    (made,) = AsRecords(from_records)([pa.record_batch(values)])
    return list(made[DOCUMENT].to_pylist())


def test_a_record_that_was_rescued_whole_is_that_text_and_gets_no_column() -> None:
    twice = '{"who":"anna","n":1,"n":2}'
    rescued = [rescued_text({"": twice}), rescued_text({"": twice, "at": 7}), json.dumps({"": "{torn"}), '{"":7}']
    texts = documents(n=pa.nulls(4, pa.int64()), _rescued=pa.array(rescued))
    assert texts[:2] == [twice, twice]
    records = Records(pa.array(texts[:2]), Rules())
    assert records.conformed(grown(Struct(), records.shape(), Rules())).rescued.to_pylist() == [rescued[0]] * 2
    assert [json.loads(text) for text in texts[2:]] == [{"": "{torn"}, {"": 7}]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (datetime(2026, 11, 21, 10, 0, 0, 5, UTC), pa.timestamp("us", "UTC"), '"2026-11-21T10:00:00.000005Z"'),
        (datetime(2026, 11, 21, 10), pa.timestamp("us"), '"2026-11-21T10:00:00"'),
        (date(2026, 11, 21), pa.date32(), '"2026-11-21"'),
        (Decimal("12345678901234567890.10"), pa.decimal128(38, 2), "12345678901234567890.10"),
        (b"a\xff", pa.binary(), '"a\\\\xff"'),
        ([("a", "1"), ("b", None)], pa.map_(pa.string(), pa.string()), '{"a":"1"}'),
        (0.1, pa.float32(), "0.1"),
        (7, pa.int32(), "7"),
        (
            [{"price": Decimal("12345678901234567890.10")}],
            pa.list_(pa.struct([("price", pa.decimal128(38, 2))])),
            '[{"price":12345678901234567890.10',
        ),
        ([("a", Decimal("1.50"))], pa.map_(pa.string(), pa.decimal128(5, 2)), '{"a":1.50}'),
        ({"at": [date(2026, 11, 21)]}, pa.struct([("at", pa.list_(pa.date32()))]), '{"at":["2026-11-21"]}'),
    ],
)
def test_a_value_of_a_type_that_no_record_has_is_as_a_record_may_have_said_it(
    value: Any, kind: pa.DataType, text: str
) -> None:
    """The column was declared once, or another tool added it."""
    for rescued in (None, '{"x":1}'):
        (made,) = documents(it=pa.array([value], kind), _rescued=pa.array([rescued], pa.string()))
        assert made.replace(" ", "").startswith(f'{{"it":{text}')


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
