"""Documents come back as they were written, at the right line and byte, however the file was laid out and packed."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forebay.content.limits import Limits
from tests.content.archives import PACKERS
from tests.content.memory import read_one

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NASTY = st.text(st.sampled_from(list('{}[]",:\\/ \té日😀\u2028a')), max_size=12)
OBJECTS = st.dictionaries(st.text(max_size=6) | NASTY, VALUES | NASTY, max_size=4)


@dataclass(frozen=True)
class Written:
    """A text, and where in it its documents begin: line, position in characters."""

    text: str
    places: list[tuple[int, int]]


def written(documents: list[str], before: str, between: list[str], after: str) -> Written:
    text, places = before, []
    for n, document in enumerate(documents):
        places.append((text.count("\n") + 1, len(text)))
        text += document + (between[n] if n < len(documents) - 1 else after)
    return Written(text, places)


BETWEEN = {
    "json lines": st.sampled_from(["\n", "\n\n", " \n", "\n\t", "\n \n"]),
    "json lines with crlf": st.sampled_from(["\r\n", "\r\n\r\n"]),
    "concatenated": st.sampled_from(["", " ", "\t"]),
    "mixed": st.sampled_from(["\n", "", " ", "\r\n"]),
    "array": st.sampled_from([",", ", ", ",\n", "\n,", ",\r\n  "]),
    "text sequence": st.sampled_from(["\n\x1e", "\r\n\x1e"]),
}
BEFORE = {"array": st.sampled_from(["[", "[\n", " [ "]), "text sequence": st.sampled_from(["\x1e", "\n\x1e", " \x1e"])}
AFTER = {"array": st.sampled_from(["]", "\n]\n", " ] "]), "concatenated": st.sampled_from(["", "\n"])}
CODECS = {
    "utf-8": ("utf-8", b""),
    "utf-8 with mark": ("utf-8", codecs.BOM_UTF8),
    "utf-16-le": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16-be": ("utf-16-be", codecs.BOM_UTF16_BE),
    "utf-16-le without mark": ("utf-16-le", b""),
    "utf-16-be without mark": ("utf-16-be", b""),
    "utf-32-le": ("utf-32-le", codecs.BOM_UTF32_LE),
}


def test_a_record_on_the_first_line_may_be_followed_by_documents_over_many_lines() -> None:
    reading = read_one(b'{}\n{\n "a": 1\n}\n{"b": 2}\n')
    assert (reading.refused, [row.line for row in reading.documents]) == ([], [1, 2, 5])
    nested = read_one(b'{}\n{\n "a": [\n  {}\n ]\n}\n')
    assert (nested.refused, [row.line for row in nested.documents]) == ([], [1, 2])


def test_torn_lines_whose_brackets_come_out_even_by_chance_take_no_other_line_with_them() -> None:
    reading = read_one(b'{"a": 1}\n{"torn": [\n{"b": 2}\n{"c": 3}\n]}\n')
    assert [json.loads(row.value) for row in reading.documents] == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert [row.line for row in reading.refused] == [2, 5]


@given(data=st.data())
def test_any_documents_in_any_layout_encoding_and_archive_come_back_at_their_places(data: st.DataObject) -> None:
    objects = data.draw(st.lists(OBJECTS, min_size=1, max_size=6))
    layout = data.draw(st.sampled_from(sorted(BETWEEN)))
    indent = data.draw(st.sampled_from([None, None, 1])) if not layout.startswith("json lines") else None
    ascii_only = data.draw(st.booleans())
    documents = [json.dumps(o, indent=indent, ensure_ascii=ascii_only) for o in objects]
    text = written(
        documents,
        data.draw(BEFORE.get(layout, st.sampled_from(["", "\n", " "]))),
        [data.draw(BETWEEN[layout]) for _ in documents],
        data.draw(AFTER.get(layout, st.sampled_from(["", "\n", "\r\n"]))),
    )
    codec, mark = CODECS[data.draw(st.sampled_from(sorted(CODECS)))]
    packer = data.draw(st.sampled_from(sorted(PACKERS)))
    assume(mark or codec == "utf-8" or text.text[0] in "{[")

    reading = read_one(PACKERS[packer](mark + text.text.encode(codec)))

    assert reading.refused == []
    assert [json.loads(d.value) for d in reading.documents] == objects
    assert [(d.line, d.byte_offset) for d in reading.documents] == [
        (line, len(mark) + len(text.text[:at].encode(codec))) for line, at in text.places
    ]


@given(
    lines=st.lists(
        OBJECTS.map(lambda o: json.dumps(o, ensure_ascii=False)) | st.sampled_from(["", "oops", '{"a":1}{"b":2}']),
        max_size=12,
    ),
    newline=st.sampled_from(["\n", "\r\n"]),
    piece_bytes=st.integers(1, 200),
    mark=st.sampled_from([b"", codecs.BOM_UTF8]),
)
def test_a_file_cut_at_any_bytes_gives_the_same_rows_as_a_whole_one(
    lines: list[str], newline: str, piece_bytes: int, mark: bytes
) -> None:
    content = mark + newline.join(['{"first":1}', *lines]).encode()
    whole, cut = read_one(content), read_one(content, limits=Limits(piece_bytes=piece_bytes))

    def places(reading: object) -> list[tuple[int, int, str]]:
        return [(d.line, d.byte_offset, d.value.rstrip()) for d in reading.documents]  # type: ignore[attr-defined]

    assert places(cut) == places(whole)
    assert cut.refused == whole.refused
    assert cut.files["file.json"].documents == whole.files["file.json"].documents


@given(st.binary(max_size=300) | st.text(st.sampled_from(list('{}[]",:\\ \n1a')), max_size=80).map(str.encode))
def test_no_bytes_whatever_raise_and_nothing_but_separators_gets_lost(content: bytes) -> None:
    reading = read_one(content)
    end = reading.files["file.json"]
    assert (end.documents, end.refused) == (len(reading.documents), len(reading.refused))
    if end.lands and content.isascii() and b"\0" not in content:
        kept = "".join(d.value for d in reading.documents) + "".join(r.value for r in reading.refused)
        noise = " \t\r\n,[]\x1e"
        assert sorted(c for c in kept if c not in noise) == sorted(c for c in content.decode() if c not in noise)


TORN = ['{"t": [1, 2', '{"t": "x', '{"t": {"u": 1', '{"t": 1,', "oops", '{"t":']
TOGETHER = {
    "one": lambda texts: "\n".join(texts),
    "many on one line": lambda texts: "".join(texts),
    "array on one line": lambda texts: f"[{', '.join(texts)}]",
    "array over lines": lambda texts: "[\n" + ",\n".join(texts) + "\n]",
    "array of printed ones": lambda texts: json.dumps([json.loads(text) for text in texts], indent=2),
    "printed over lines": lambda texts: "\n".join(json.dumps(json.loads(text), indent=1) for text in texts),
}


def test_a_bracket_in_a_key_behind_a_torn_string_is_no_array_that_never_closes() -> None:
    reading = read_one(b'[\n  {"n": 0}\n]\n{"t": "x\n{"n": 1, "][": ""}')

    assert [json.loads(d.value) for d in reading.documents] == [{"n": 0}, {"n": 1, "][": ""}]
    assert [row.value for row in reading.refused] == ['{"t": "x']


@given(data=st.data())
def test_whole_records_of_any_layouts_in_one_file_are_all_found_around_torn_lines(data: st.DataObject) -> None:
    parts, wanted, torn = [], [], 0
    for _ in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()):
            parts.append(data.draw(st.sampled_from(TORN)))
            torn += 1
        some = [{"n": len(wanted) + n, **o} for n, o in enumerate(data.draw(st.lists(OBJECTS, min_size=1, max_size=3)))]
        parts.append(TOGETHER[data.draw(st.sampled_from(sorted(TOGETHER)))]([json.dumps(o) for o in some]))
        wanted += some
    reading = read_one("\n".join(parts).encode())

    assert [json.loads(d.value) for d in reading.documents] == wanted
    assert len(reading.refused) == torn
    places = [row.byte_offset for row in (*reading.documents, *reading.refused)]
    assert len(set(places)) == len(places)


def test_a_torn_string_takes_nothing_of_the_array_behind_it() -> None:
    reading = read_one(b'[\n  {"n": 0}\n]\n{"t": "x\n[\n  {\n    "n": 1,\n    "": "}"\n  }\n]')
    assert [json.loads(d.value) for d in reading.documents] == [{"n": 0}, {"n": 1, "": "}"}]
    assert [r.value for r in reading.refused] == ['{"t": "x']


def test_broken_lines_among_good_ones_are_refused_one_by_one_whichever_comes_first() -> None:
    reading = read_one(b'{"torn": [1, 2\n{"good": 1}\n' * 1000)
    assert (len(reading.documents), len(reading.refused)) == (1000, 1000)


def test_a_torn_document_among_concatenated_ones_does_not_take_those_behind_the_next_seam_with_it() -> None:
    reading = read_one(b'{"a":1}{"b":"to{"c":3}{"d":4}')
    assert reading.of("file.json") == ['{"a":1}', '{"d":4}']
    assert [(r.byte_offset, r.value) for r in reading.refused] == [(7, '{"b":"to{"c":3}')]


def test_a_broken_document_printed_over_lines_is_one_refused_record_and_its_inner_objects_are_none() -> None:
    broken = '{\n  "a": oops,\n  "items": [\n    {"x": 1},\n    {"y": 2}\n  ]\n}'
    reading = read_one(f'{{\n  "n": 1\n}}\n{broken}\n{{\n  "n": 2\n}}\n'.encode())
    assert [json.loads(d.value) for d in reading.documents] == [{"n": 1}, {"n": 2}]
    assert [(r.line, r.value) for r in reading.refused] == [(4, broken)]


def test_an_empty_first_line_and_a_return_at_the_end_double_nothing() -> None:
    reading = read_one(b'\n{"n":1}\n{"n":2}\n-- end --\r')
    assert reading.of("file.json") == ['{"n":1}', '{"n":2}']
    assert [(r.line, r.value) for r in reading.refused] == [(4, "-- end --")]


def test_of_a_refused_record_that_is_cut_the_place_and_size_are_told() -> None:
    reading = read_one(b'{"a":1}\n{"torn": "' + b"x" * 500 + b'\n{"a":2}\n', limits=Limits(raw_bytes=100))
    (refused,) = reading.refused
    assert len(refused.value) == 100
    assert refused.detail.endswith("; of its 510 bytes from byte 8 of the content, the first 100 are kept")


LAYOUTS = {
    "elements that are no objects": (b'[{"a":1}, 5, [1,2], "x", null, {"a":2}]', ["5", "[1,2]", '"x"', "null"]),
    "an array that does not close": (b'[{"a":1},\n{"a":2}', ["["]),
    "an array that ends in a record": (b'[{"a":1},\n{"a":2},{"a":', ["[", '{"a":']),
    "a comma too many": (b'[{"a":1},,{"a":2},]', []),
    "a comma too few": (b'[{"a":1} {"a":2}]', []),
    "two arrays": (b'[{"a":1}]\n[{"a":2}]\n', []),
    "an array in a line of its own": (b'{"a":1}\n[{"a":2}]\n', []),
    "text between documents": (b'{"a":1} and {"a":2}', ["and"]),
    "a comment at the beginning": (b'# exported\n{"a":1}\n{"a":2}\n', ["# exported"]),
    "a byte order mark where files were put end to end": (b'{"a":1}\n\xef\xbb\xbf{"a":2}\n', []),
    "documents separated by commas": (b'{"a":1},\n{"a":2}', [","]),
}


@pytest.mark.parametrize(("content", "refused"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_an_odd_layout_loses_no_record(content: bytes, refused: list[str]) -> None:
    reading = read_one(content)
    assert [json.loads(v) for v in reading.of("file.json")] == [{"a": 1}, {"a": 2}]
    if refused != [","]:
        assert [r.value for r in reading.refused] == refused


def test_in_a_text_sequence_a_torn_record_takes_no_other_with_it() -> None:
    content = b'\x1e{"a":1}\n\x1e{"a":"x\x1e{"a":2}\n\x1e\n\x1e\x1e{"a":3}\n'
    reading = read_one(content)
    assert [row.value.rstrip() for row in reading.documents] == ['{"a":1}', '{"a":2}', '{"a":3}']
    assert [(row.value, row.problem) for row in reading.refused] == [('{"a":"x', "not-json")]
    assert [row.byte_offset for row in reading.documents] == [content.index(b'{"a":%d' % n) for n in (1, 2, 3)]


def test_a_separator_within_a_text_stays_where_the_file_is_no_text_sequence() -> None:
    lines = '{"a":"x\x1ey"}\n{"a":"\x1e"}\n'
    assert [row.value.rstrip("\n") for row in read_one(lines.encode()).documents] == lines.strip().split("\n")


def test_a_document_larger_than_a_chunk_of_the_scan_is_found_whole() -> None:
    inner = json.dumps({"quote": '\\"' * 3_000_000})
    content = f'[{inner},{{"b":1}}]'.encode()
    reading = read_one(content, limits=Limits(max_record_bytes=1 << 26))
    assert reading.of("file.json") == [inner, '{"b":1}']


@pytest.mark.parametrize("over", [-2, -1, 0, 1])
def test_lines_that_end_where_a_part_of_the_search_ends_are_found(over: int) -> None:
    lines = [f'{{"a":"{"x" * ((1 << 20) - 9 + over)}"}}', '{"b":1}', "{}"]
    reading = read_one("\n".join(lines).encode())
    assert [(row.line, row.value.rstrip()) for row in reading.documents] == list(enumerate(lines, 1))


def test_backslashes_at_every_place_of_a_chunk_border_are_followed() -> None:
    for length in range(4 << 20, (4 << 20) + 12):
        inner = '{"a":"' + "x" * (length - 12) + '\\\\\\"}{\\\\"}'
        assert [d.value for d in read_one(f'[{inner},{{"b":1}}]'.encode()).documents] == [inner, '{"b":1}']


def test_a_large_batch_of_rows_is_handed_on_in_parts_and_small_ones_together() -> None:
    from tests.content.memory import Memory, batches_of

    memory = Memory({"large": b'{"a":1}\n' * 50_000, **{f"small-{n}": b'{"a":1}\n' for n in range(100)}})
    batches = [b.num_rows for b in batches_of(memory)]
    assert sum(batches) == 50_000 + 100 + 101
    assert max(batches) <= 20_000
    assert len(batches) <= 5


def test_a_torn_document_before_a_hundred_thousand_on_the_same_line_costs_no_look_at_the_whole_line_for_each() -> None:
    reading = read_one(b'{"b":"to{"c":3}' + b'{"d":"%s"}' % (b"x" * 90) * 100_000)
    assert (len(reading.documents), len(reading.refused)) == (100_000, 1)
