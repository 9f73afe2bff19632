"""Records inside documents: each element is a record with its own place, and what surrounds it goes along."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content import elements
from forebay.content.limits import Limits
from forebay.content.piece import cut
from forebay.content.reading import read_pieces
from forebay.declaration.form import Explosion, Form, Forms
from forebay.declaration.personal import PersonalField
from forebay.landed_file import LandedFile
from tests.content.memory import Memory, Reading, read
from tests.content.test_layouts import OBJECTS

RECORDS = Forms(forms=(Form(inside=(("Records",), ("detail", "items"))),))


def read_inside(text: str | bytes, limits: Limits | None = None) -> Reading:
    return read({"a.json": text.encode() if isinstance(text, str) else text}, limits, forms=RECORDS)


def records_of(reading: Reading) -> list[Any]:
    return [json.loads(row.value) for row in reading.documents]


@pytest.fixture(params=["short", "long"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short documents are walked with a decoder, long ones by their brackets: both must come to the same."""
    if request.param == "long":
        monkeypatch.setattr(elements, "SHORT_BYTES", 0)


@pytest.mark.usefixtures("either_way")
def test_each_element_is_a_record_with_its_place_and_its_surroundings() -> None:
    text = '{"v": 1.50, "Records": [{"a": 1},\n {"b": [{"c": 2}]}, {}], "more": {"x": [1]}}\n{"plain": true}\n'
    reading = read_inside(text)
    parent = {"v": 1.5, "more": {"x": [1]}}
    assert records_of(reading) == [
        {"@parent": parent, "a": 1},
        {"@parent": parent, "b": [{"c": 2}]},
        {"@parent": parent},
        {"plain": True},
    ]
    assert '"v": 1.50' in reading.documents[0].value
    assert [(row.line, row.byte_offset) for row in reading.documents] == [
        (1, text.index('{"a"')),
        (2, text.index('{"b"')),
        (2, text.index("{}")),
        (3, text.index('{"plain"')),
    ]
    assert (reading.files["a.json"].documents, reading.files["a.json"].refused) == (4, 0)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("document", "records", "refused"),
    [
        ('{"Records": [{"a": 1}]}', [{"a": 1}], []),
        ('{"Records": []}', [], []),
        ('{"Records": {"a": 1}}', [{"Records": {"a": 1}}], []),
        ('{"records": [{"a": 1}]}', [{"records": [{"a": 1}]}], []),
        ('{"x": {"Records": [{"a": 1}]}}', [{"x": {"Records": [{"a": 1}]}}], []),
        ('{"x": "\\"Records\\": [{}]"}', [{"x": '"Records": [{}]'}], []),
        ('{"Records": [{"a": 1}, 7, "s", null, [{}]]}', [{"a": 1}], ["7", '"s"', "null", "[{}]"]),
        (
            '{"detail": {"items": [{"a": 1}], "z": 1}, "Records": [{"b": 2}]}',
            [{"@parent": {"detail": {"z": 1}}, "a": 1}, {"@parent": {"detail": {"z": 1}}, "b": 2}],
            [],
        ),
        ('{"v": 1, "Records": [{"@parent": "mine"}]}', [{"@parent": {"v": 1}, "@@parent": "mine"}], []),
        ('{"Records": [{"@parent": "mine"}]}', [{"@parent": "mine"}], []),
        ('{"Records": [], "x": 1}', [{"Records": [], "x": 1}], []),
        ('{"Records": [7], "x": 1}', [{"Records": [7], "x": 1}], []),
        ('{"detail": {"items": [], "z": 1}}', [{"detail": {"items": [], "z": 1}}], []),
        ('{"Records": [7]}', [], ["7"]),
    ],
)
def test_only_the_named_arrays_are_taken_apart(document: str, records: list[Any], refused: list[str]) -> None:
    reading = read_inside(document)
    assert records_of(reading) == records
    assert [(row.value, row.problem) for row in reading.refused] == [(text, "not-an-object") for text in refused]


@pytest.mark.usefixtures("either_way")
def test_a_document_whose_members_cannot_be_told_is_left_to_the_parser_as_a_whole() -> None:
    text = '{"Records": [{"a": 1}], nonsense}'
    assert [row.value for row in read_inside(text).documents] == [text]


def test_one_bad_element_takes_no_other_with_it() -> None:
    limits = Limits(max_record_bytes=40, max_depth=3)
    elements = ['{"a": 1}', f'{{"long": "{"x" * 40}"}}', '{"deep": [[[[1]]]]}', '{"z": 1}']
    text = ('{"Records": [' + ", ".join(elements) + "]}").encode().replace(b'"z"', b'"\xff"')
    reading = read_inside(text, limits)
    assert [row.value.rstrip() for row in reading.documents] == ['{"a": 1}']
    assert [row.problem for row in reading.refused] == ["record-too-large", "too-deep", "not-utf8"]


def test_surroundings_that_no_record_can_carry_refuse_the_document() -> None:
    reading = read_inside(b'{"v": "\xff", "Records": [{"a": 1}]}')
    assert ([row.problem for row in reading.refused], reading.documents) == (["not-utf8"], [])


def test_concatenated_archives_of_documents_are_taken_apart() -> None:
    archive = b"".join(gzip.compress(json.dumps({"of": n, "Records": [{"a": n}] * 2}).encode()) for n in range(2))
    assert records_of(read_inside(archive)) == [{"@parent": {"of": n}, "a": n} for n in (0, 0, 1, 1)]


def test_a_document_may_be_longer_than_a_record_may() -> None:
    limits = Limits(max_record_bytes=1000)
    text = json.dumps({"v": 1, "Records": [{"n": n} for n in range(20_000)]})
    reading = read_inside(text, limits)
    assert (len(reading.documents), reading.refused) == (20_000, [])
    assert json.loads(reading.documents[-1].value) == {"@parent": {"v": 1}, "n": 19_999}


@given(st.lists(st.tuples(OBJECTS, st.lists(OBJECTS, max_size=3)), min_size=1, max_size=3), st.booleans())
def test_whatever_documents_hold_comes_back_whole(documents: list[tuple[Any, list[Any]]], pretty: bool) -> None:
    written = [json.dumps({**rest, "Records": inner}, indent=1 if pretty else None) for rest, inner in documents]
    rests = [({key: value for key, value in rest.items() if key != "Records"}, inner) for rest, inner in documents]
    wanted = [one for rest, inner in rests for one in told(rest, inner)]
    assert records_of(read_inside("\n".join(written))) == wanted


def told(rest: Any, inner: list[Any]) -> list[Any]:
    """The records of a document."""
    if rest and not inner:
        return [{**rest, "Records": []}]
    return [({"@parent": rest} if rest else {}) | one for one in inner]


def test_memory_beside_the_text_of_a_long_document_is_a_fraction_of_it() -> None:
    """Some numbers for each element: no copy of the document, and no array as long as one of its lines."""
    peaks, sizes = [], (4 << 20, 16 << 20)
    for size in sizes:
        element = json.dumps({"id": 1, "text": "x" * 500})
        document = f'{{"Records": [{", ".join([element] * (size // len(element)))}]}}'.encode()
        pieces = cut([LandedFile("landing", "a.json", len(document), "etag")], Limits())
        tracemalloc.start()
        batches = read_pieces(pieces, Memory({"a.json": document}), Limits(), forms=RECORDS)
        rows = sum(batch.num_rows for batch in batches)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert rows == size // len(element) + 1
    assert (peaks[1] - peaks[0]) / (sizes[1] - sizes[0]) < 0.25


@pytest.mark.parametrize(
    "text",
    [
        '{"Records": [{"a": 1}, 7, {"b": "}"}], "x": {"y": [2]}}',
        ' {"Records": [{"a": 1}],\n "detail": {"items": [{"b": "\\\\\\""}]}}\n\n',
        '{"Records": [{"a": 1}]} {"Records": [{"b": 2}]}',
        '{"Records": [{"a": 1}]}\n{"b": 2}\n',
        '{"Records": [{"a": 1}]}}',
        '{"Records": [{"a": 1}], "torn": "x\n}',
        '{"Records": [{"a": 1}], no key}',
    ],
)
def test_a_text_that_is_one_long_document_gives_what_it_gives_otherwise(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = read_inside(text)
    monkeypatch.setattr(elements, "SHORT_BYTES", 0)
    assert read_inside(text) == usual


@pytest.mark.parametrize("text", ['{"Records": [{"a": 1}', '{"Records": [{"a": 1}], "torn": "x\n}'])
def test_a_document_that_is_torn_is_refused_and_stops_nobody(text: str) -> None:
    reading = read_inside(text)
    assert {row.problem for row in reading.refused} == {"not-json"}
    assert "\n".join(row.value for row in reading.refused) == text
    assert not reading.documents


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("spelling", ['"Größe"', r'"Gr\u00f6\u00dfe"', r'"Gr\u00F6\u00DFe"'])
def test_an_array_is_found_however_its_name_is_spelt(spelling: str) -> None:
    """Python and PHP write what is not ASCII, and slashes, with backslashes."""
    text = f'{{{spelling}: [{{"a": 1}}], "x": 2}}'.encode()
    inside = read({"a.json": text}, forms=Forms(forms=(Form(inside=(("Größe",),)),)))
    assert records_of(inside) == [{"@parent": {"x": 2}, "a": 1}]
    exploded = read({"a.json": text}, forms=Forms(forms=(Form(exploded=(Explosion(("Größe",), ("x",)),)),)))
    assert records_of(exploded)[1:] == [{"@parent": {"x": 2}, "@ordinal": 0, "@exploded": "Größe", "a": 1}]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("spelling", [r'"Record\u0073"', r'"\u0052ecords"', r'"R\u0065\u0063ords"'])
def test_an_array_is_found_where_letters_of_its_name_are_escaped(spelling: str) -> None:
    assert records_of(read_inside(f'{{"x": 1, {spelling}: [{{"a": 1}}, {{"a": 2}}]}}')) == [
        {"@parent": {"x": 1}, "a": 1},
        {"@parent": {"x": 1}, "a": 2},
    ]


def test_a_field_of_its_own_that_is_called_like_a_parent_is_renamed_where_it_is_escaped() -> None:
    (record,) = read_inside(r'{"x": 1, "Records": [{"\u0040parent": 2, "a": 3}]}').documents
    assert json.loads(record.value) == {"@parent": {"x": 1}, "@@parent": 2, "a": 3}


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("element", ['{"a": "@parent"}', '{"a": {"@parent": 1}}', '{"a": ["@parent"]}'])
def test_an_element_that_speaks_of_a_parent_keeps_its_own(element: str) -> None:
    assert records_of(read_inside(f'{{"x": 2, "Records": [{element}]}}')) == [
        {"@parent": {"x": 2}, **json.loads(element)}
    ]


def test_a_field_of_its_own_that_is_called_like_an_added_one_stays_beside_it() -> None:
    form = Form(inside=(("Records",),), exploded=(Explosion(("items",), ("@parent", "id")),))
    text = (
        '{"x": 2, "Records": [{"id": 1, "@parent" : [ 1.50 ], "@member": {"@parent": 3}, "items": [{"@ordinal": "nine",'
        '"@exploded":"others", "@parent": "mine", "a": "@parent"}]}]}'
    )
    around, array = {"x": 2}, [{"@ordinal": "nine", "@exploded": "others", "@parent": "mine", "a": "@parent"}]
    reading = read({"a.json": text.encode()}, forms=Forms(forms=(form,)))
    assert records_of(reading) == [
        {"@parent": around, "id": 1, "@@parent": [1.5], "@member": {"@parent": 3}, "items": array},
        {
            "@ordinal": 0, "@exploded": "items", "@parent": {"id": 1, "@parent": around}, "@@ordinal": "nine",
            "@@exploded": "others", "@@parent": "mine", "a": "@parent",
        },
    ]  # fmt: skip
    assert '"@@parent":[ 1.50 ], "@member"' in reading.documents[0].value


def test_what_is_personal_of_a_parent_stays_so_in_an_element_of_its_own() -> None:
    form = Form(inside=(("Records",),), personal=(PersonalField(("mail",), "dropped"),))
    text = b'{"mail": "a@b.c", "x": 1, "Records": [{"@parent": {"mail": "d@e.f", "y": 2}}]}'
    assert records_of(read({"a.json": text}, forms=Forms(forms=(form,)))) == [
        {"@parent": {"x": 1}, "@@parent": {"y": 2}}
    ]


def test_what_surrounds_many_elements_makes_no_gigabytes_of_a_small_file() -> None:
    text = f'{{"x": "{"y" * 5000}", "Records": [{", ".join(["{}"] * 2000)}]}}'
    limits = Limits(max_expanded_bytes=1 << 20, max_expansion=100)
    end = read_inside(text, limits).files["a.json"]
    assert (end.outcome, end.reason, end.documents) == ("unreadable", "expansion-bomb", 0)
    assert read_inside(text).files["a.json"].documents == 2000
