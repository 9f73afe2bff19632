"""From a file's bytes to columns and `_rescued`: whatever JSON came, each of its values can be read back as it was written."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forebay.declaration.column_name import safe_name, taken_key
from forebay.declaration.loading import parse_service
from forebay.declaration.path import Path
from forebay.declared_sql.columns import rules_of
from forebay.nesting import DEEPEST
from forebay.record.conform import Records, writable
from forebay.record.declared import fits, value_of
from forebay.record.field import text_at
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct
from forebay.record.number import Written, read_json
from forebay.table.as_records import record_of
from tests.content.memory import read

DIGITS = r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"
KEYS = st.sampled_from(["a", "A", "b", "B ", "a.b", "é", "", "_x", "@timestamp", "$id", "0", "items[0]"]) | st.text(
    st.characters(codec="utf-8"), max_size=3
)
SCALARS = st.one_of(
    st.just("null"),
    st.sampled_from(
        ["true", "false", "-0", "-0.0", "1.50", "12345678901234567.89", "0.1", "1E400", "9223372036854775808"]
    ),
    st.from_regex(DIGITS, fullmatch=True),
    st.text(st.characters(codec="utf-8"), max_size=4).map(json.dumps),
    st.sampled_from(['"1.5"', '"NaN"', '"{}"', '"2026-11-22"', '"\\u0000"']),
)


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in members.items()) + "}"


def _array(elements: list[str]) -> str:
    return f"[{','.join(elements)}]"


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3).map(_array) | st.dictionaries(KEYS, inner, max_size=3).map(_object),
    max_leaves=10,
)
FILES = st.lists(st.dictionaries(KEYS, VALUES, max_size=4).map(_object), min_size=1, max_size=5)

Leaf = tuple[tuple[str | int, ...], Any]


class Digits(str):
    """A number as it is written."""

    __slots__ = ()


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, safe_name(key) if isinstance(key, str) else key))


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Nulls, and what is empty, say nothing. Keys go by the names that their columns have."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, safe_name(key)))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, (*path, at))
    elif value is not None:
        yield path, value


def says(found: Any, written: Any) -> bool:
    """Whether a value gives the written one back."""
    if not isinstance(written, Digits):
        return type(found) is type(written) and found == written
    if isinstance(found, bool | str):
        return False
    texts = [found.text] if isinstance(found, Written) else [repr(found), Decimal(found)]
    return Decimal(written) in map(Decimal, texts)


def missing(text: Any, made: dict[str, Any], rescued: str | None) -> list[Leaf]:
    """The values of a record that its row does not give back, and those of the row that no value of the record explains."""
    record = json.loads(text, parse_int=Digits, parse_float=Digits) if isinstance(text, str) else text
    came, known = list(leaves(record)), set(places(record))
    held = list(leaves(record_of(list(made), list(made.values()), rescued)))
    lost, others = [], list(held)
    for path, written in came:
        same = next((n for n, (where, found) in enumerate(others) if where == path and says(found, written)), None)
        if same is None:
            lost.append((path, written))
        else:
            del others[same]
    # A column may have a text or the nearest double of what is rescued below another spelling.
    return lost + [(where, found) for where, found in others if where not in known]


@settings(deadline=None)
@example(['{"a":{"a":true,"A":true}}', '{"a":2,"A":1}'], [], False)
@example(['{"a":"","A":[null]}', '{"a":1.5,"A":1.5}'], [], False)
@example(['{"a":1.5}', '{"A":12345678901234567.89}'], [], False)
@example(['{"a":"x"}', '{"a":{"b":1.50}}', '{"A":[1,{"c":2}]}'], [], True)
@example(['{"a":[{"b":1},{"b":"x"}]}', '{"a":[{"B":9223372036854775808,"b":-0}]}'], ['{"a":[{"b":true}]}'], False)
@given(FILES, FILES | st.just([]), st.booleans())
def test_from_bytes_to_columns_and_rescued_nothing_is_lost_or_changed(
    written: list[str], earlier: list[str], pretty: bool
) -> None:
    rules = Rules()
    known = grown(Struct(), Records(pa.array(earlier, pa.string()), rules).shape(), rules) if earlier else Struct()
    reading = read({"a.json": ("[" + ",\n".join(written) + "]" if pretty else "\n".join(written)).encode()})
    texts = [row.value.rstrip() for row in reading.documents]
    assert (texts, reading.refused) == (written, [])
    some = Records(pa.array(texts, pa.string()), rules)
    done = some.conformed(writable(grown(known, some.shape(), rules)))
    rows = zip(done.rows.to_pylist(), done.columns.to_pylist(), done.rescued.to_pylist(), strict=True)
    assert [(texts[n], found) for n, made, left in rows if (found := missing(texts[n], made, left))] == []


ODD_TEXTS = st.sampled_from(
    [
        r'"\ud800"',
        r'"\udc00x"',
        r'"\ude00\ud83d"',
        r'"\u0000"',
        r'"a\u0000b"',
        r'"\/"',
        '"\u2028"',
        '"\ufeff"',
        '"{"',
        '"[1"',
        r'"\""',
    ]
)
ODD_NUMBERS = st.sampled_from(
    [
        "-0e5",
        "0e0",
        "1e-400",
        "-1E+400",
        "5e-324",
        "1.7976931348623159e308",
        "-9223372036854775809",
        "9007199254740993.0",
        "9" * 400,
    ]
)
ODD_KEYS = KEYS.map(json.dumps) | ODD_TEXTS | st.sampled_from([r'"\u0061"', '"@parent"', '"_rescued"', '"a_field"'])


def _pairs(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{key}:{value}" for key, value in members) + "}"


ODD_VALUES = st.recursive(
    SCALARS | ODD_TEXTS | ODD_NUMBERS,
    lambda inner: (
        st.lists(inner, max_size=3).map(_array) | st.lists(st.tuples(ODD_KEYS, inner), max_size=3).map(_pairs)
    ),
    max_leaves=6,
)
DEEP = st.integers(150, DEEPEST - 1).map(lambda levels: "[" * levels + "1" + "]" * levels)
MOSTLY_SHALLOW = st.integers(0, 9).flatmap(lambda n: ODD_VALUES if n else DEEP)
ODD_FILES = st.lists(st.lists(st.tuples(ODD_KEYS, MOSTLY_SHALLOW), max_size=4).map(_pairs), min_size=1, max_size=4)
ENCODINGS = [
    ("utf-8", b""), ("utf-8", codecs.BOM_UTF8), ("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", b""),
    ("utf-32-be", codecs.BOM_UTF32_BE),
]  # fmt: skip


def is_taken_whole(text: str) -> bool:
    """A key stands twice in one object."""
    twice: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: twice.append(len(dict(pairs)) < len(pairs)))
    return any(twice)


@settings(deadline=None)
@example(['{"a":1,"\\u0061":2}', '{"\\ud800":{"":[-0,"\\udc00"]}}'], ("utf-16-be", b""), "")
@given(ODD_FILES, st.sampled_from(ENCODINGS), st.sampled_from(["\n", "", ",\n "]))
def test_of_json_that_no_producer_should_write_nothing_is_lost_or_changed(
    written: list[str], encoding: tuple[str, bytes], between: str
) -> None:
    codec, mark = encoding
    content = between.join(written)
    reading = read({"a.json": mark + (f"[{content}]" if "," in between else content).encode(codec)})
    texts = [row.value.rstrip() for row in reading.documents]
    assert (texts, reading.refused) == (written, [])
    rules = Rules(depth=30)
    some = Records(pa.array(texts, pa.string()), rules)
    done = some.conformed(writable(grown(Struct(), some.shape(), rules)))
    for n, made, left in zip(done.rows.to_pylist(), done.columns.to_pylist(), done.rescued.to_pylist(), strict=True):
        if is_taken_whole(texts[n]):
            assert (json.loads(left), any(value is not None for value in made.values())) == ({"": texts[n]}, False)
        else:
            assert missing(texts[n], made, left) == [], (texts[n], made, left)


KINDS = ("string", "json", "map", "int", "long", "float", "double", "decimal(18,2)", "decimal(38,10)", "boolean")


@settings(deadline=None)
@example('{"a":12345678901234567.89,"A":1.005}', "double")
@example('{"a":1.005,"b":{"a":1}}', "decimal(18,2)")
@example('{"A":16777217}', "float")
@given(st.dictionaries(KEYS, VALUES, max_size=4).map(_object), st.sampled_from(KINDS))
def test_beside_a_declared_column_nothing_is_lost_and_it_gives_its_own_field_back_or_leaves_it_to_be_rescued(
    text: str, kind: str
) -> None:
    column = f'{{ name = "a", type = "{kind}" }}'
    declared = f'name = "s"\n[[tables]]\nname = "t"\ncolumns = [{column}]'
    [table] = parse_service({"service.toml": declared}).tables
    rules, record = rules_of(table), read_json(text)
    written = text_at(record, Path("record", ("a",)))
    if written is not None and fits(written, table.columns[0]):
        assert gives_back(value_of(written, kind), written, kind)
    some = Records(pa.array([text]), rules)
    done = some.conformed(writable(grown(Struct(), some.shape(), rules)))
    [made], [rescued] = done.columns.to_pylist(), done.rescued.to_pylist()
    assert "a" not in made
    others = json.loads(text, parse_int=Digits, parse_float=Digits)
    others.pop(taken_key(others, "a"), None)
    assert missing(others, made, rescued) == []


def gives_back(value: Any, written: str, kind: str) -> bool:
    if kind in ("string", "json"):
        return bool(value == written)
    if kind == "map":
        members = json.loads(written, parse_int=Digits, parse_float=Digits)
        texts = dict(value)
        return texts.keys() == members.keys() and all(_is_text_of(texts[key], one) for key, one in members.items())
    if kind == "boolean":
        return value is (written.strip().lower() in ("t", "true", "y", "yes", "1"))
    shortest = str(np.float32(value)) if kind == "float" else str(value)
    return Decimal(written) in (Decimal(shortest), Decimal(value))


def _is_text_of(text: str | None, value: Any) -> bool:
    if value is None or (isinstance(value, str) and not isinstance(value, Digits)):
        return text == value
    return text is not None and bool(json.loads(text, parse_int=Digits, parse_float=Digits) == value)


def test_the_check_finds_a_value_that_is_lost_or_changed() -> None:
    text = '{"a":1.5,"b":{"c":"x"},"d":[1,2]}'
    whole: dict[str, Any] = {"a": 1.5, "b": {"c": "x"}, "d": [1, 2]}
    assert missing(text, whole, None) == []
    assert missing(text, {**whole, "a": None}, '{"a":1.50}') == []
    for wrong in ({"a": 1.25}, {"a": None}, {"b": None}, {"d": [1]}, {"d": [2, 1]}, {"e": 7}):
        assert missing(text, {**whole, **wrong}, None) != []
