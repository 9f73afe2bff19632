"""Arrays inside records: each element is a record of its own beside the one that it lies in, which stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content import elements, exploded
from forebay.content.limits import Limits
from forebay.declaration.form import Explosion, Form, Forms
from tests.content.memory import Reading, read
from tests.content.test_layouts import OBJECTS

ITEMS = Explosion(("items",), ("id",))
TEXT = '{"id": 7.50, "items": [{"sku": "a"}, 3, {"sku": "b", "n": 1.0}], "more": [1]}\n{"id": 8}\n{"id": 9, "items": [{}]}\n'


def read_exploded(text: str, *explosions: Explosion, limits: Limits | None = None, **form: Any) -> Reading:
    forms = Forms(forms=(Form(exploded=explosions or (ITEMS,), **form),))
    return read({"a.json": text.encode()}, limits, forms=forms)


def element(ordinal: int, parent: Any, own: Any, array: str = "items") -> Any:
    return {"@ordinal": ordinal, "@exploded": array, "@parent": parent, **own}


@pytest.fixture(params=["short", "long"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "long":
        monkeypatch.setattr(elements, "SHORT_BYTES", 0)


@pytest.mark.usefixtures("either_way")
def test_each_element_has_its_place_its_position_and_what_is_kept_of_its_record() -> None:
    reading = read_exploded(TEXT)
    assert [json.loads(row.value) for row in reading.documents] == [
        json.loads(TEXT.splitlines()[0]),
        element(0, {"id": 7.5}, {"sku": "a"}),
        element(2, {"id": 7.5}, {"sku": "b", "n": 1.0}),
        {"id": 8},
        {"id": 9, "items": [{}]},
        element(0, {"id": 9}, {}),
    ]
    assert '"id": 7.50' in reading.documents[1].value
    assert [(row.line, row.byte_offset) for row in reading.documents] == [
        (1, 0),
        (1, TEXT.index('{"sku": "a"')),
        (1, TEXT.index('{"sku": "b"')),
        (2, TEXT.index('{"id": 8')),
        (3, TEXT.index('{"id": 9')),
        (3, TEXT.index("{}]")),
    ]
    assert [(row.value, row.problem, row.byte_offset) for row in reading.refused] == [
        ("3", "not-an-object", TEXT.index("3, {"))
    ]
    assert (reading.files["a.json"].documents, reading.files["a.json"].refused) == (6, 1)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("record", "found"),
    [
        ('{"items": {"a": 1}}', []),
        ('{"items": null}', []),
        ('{"items": []}', []),
        ('{"x": {"items": [{"a": 1}]}}', []),
        ('{"x": "\\"items\\": [{}]"}', []),
        ('{"cart": {"items": [{"a": 1}]}, "n": 2}', [element(0, {"n": 2}, {"a": 1}, "cart.items")]),
        ('{"items": [{"@parent": 1}]}', [element(0, {}, {"@@parent": 1})]),
        ('{"a.b": [{"a": 1}]}', [element(0, {}, {"a": 1}, '"a.b"')]),
    ],
)
def test_only_the_named_arrays_are_exploded(record: str, found: list[Any]) -> None:
    arrays = [Explosion(path, ("n",)) for path in (("items",), ("cart", "items"), ("a.b",))]
    reading = read_exploded(record, *arrays)
    assert [json.loads(row.value) for row in reading.documents] == [json.loads(record), *found]


def test_elements_of_records_inside_documents_can_keep_what_surrounds_their_record() -> None:
    text = '{"account": 7, "Records": [{"id": 1, "items": [{"a": 1}]}]}'
    reading = read_exploded(text, Explosion(("items",), ("@parent", "id")), inside=(("Records",),))
    parent = {"id": 1, "@parent": {"account": 7}}
    record = {"@parent": {"account": 7}, "id": 1, "items": [{"a": 1}]}
    assert [json.loads(row.value) for row in reading.documents] == [record, element(0, parent, {"a": 1})]


def test_a_record_that_is_refused_has_no_elements() -> None:
    text = '{"id": 1, "items": [{"a": 1}, {"deep": [[[[1]]]]}]}\n{"id": 2, "items": [{"a": 2}]}\n'
    reading = read_exploded(text, limits=Limits(max_depth=5))
    assert [row.problem for row in reading.refused] == ["too-deep"]
    assert [json.loads(row.value)["id"] for row in reading.documents if "@ordinal" not in row.value] == [2]
    assert len(reading.documents) == 2


def test_more_elements_than_records_may_be_refuse_the_file() -> None:
    text = json.dumps({"items": [{}] * 10})
    assert read_exploded(text, limits=Limits(max_records=11)).files["a.json"].documents == 11
    end = read_exploded(text, limits=Limits(max_records=10)).files["a.json"]
    assert (end.outcome, end.reason) == ("unreadable", "too-many-records")


def test_what_each_element_would_carry_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploded, "MOST_KEPT", 20)
    text = json.dumps({"id": "x" * 30, "items": [{"a": 1}, {"a": 2}]})
    reading = read_exploded(text)
    assert [row.value for row in reading.documents] == [text]
    assert [(row.value, row.problem) for row in reading.refused] == [
        (f'{{"a": {n}}}', "record-too-large") for n in (1, 2)
    ]


@given(
    st.lists(st.tuples(OBJECTS, st.lists(OBJECTS | st.integers(), max_size=3)), min_size=1, max_size=3), st.booleans()
)
def test_whatever_records_hold_comes_back_whole_with_each_element_once(
    drawn: list[tuple[Any, list[Any]]], pretty: bool
) -> None:
    records = [{**rest, "id": n, "items": inner} for n, (rest, inner) in enumerate(drawn)]
    reading = read_exploded("\n".join(json.dumps(record, indent=1 if pretty else None) for record in records))
    wanted = []
    for record in records:
        objects = [(n, one) for n, one in enumerate(record["items"]) if isinstance(one, dict)]
        wanted += [record, *(element(n, {"id": record["id"]}, one) for n, one in objects)]
    assert [json.loads(row.value) for row in reading.documents] == wanted
    others = [one for record in records for one in record["items"] if not isinstance(one, dict)]
    assert [json.loads(row.value) for row in reading.refused] == others
    assert len({row.byte_offset for row in (*reading.documents, *reading.refused)}) == len(wanted) + len(others)
