"""Records become rows: what fits is in its column, what does not is rescued, and the quick way does what the slow one does."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forebay.nesting import DEEPEST
from forebay.record import arrow_parser, swift, walk
from forebay.record.conform import Records, writable
from forebay.record.growth import Rules, grown
from forebay.record.kind import Struct, arrow_type
from forebay.record.shape import Shape
from tests.record.test_growth import RECORDS

Rows = list[tuple[dict[str, Any], Any]]


def texts(records: list[Any]) -> pa.StringArray:
    return pa.array([r if isinstance(r, str) else json.dumps(r) for r in records], pa.string())


def made_of(records: list[Any], known: Struct | None = None, **more: Any) -> tuple[Rows, Struct]:
    """Each record's columns, and what is rescued of it, in their order."""
    rules = Rules(**more)
    some = Records(texts(records), rules)
    columns = grown(known or Struct(), some.shape(), rules)
    done = some.conformed(writable(columns))
    rows = dict(
        zip(done.rows.to_pylist(), zip(done.columns.to_pylist(), done.rescued.to_pylist(), strict=True), strict=True)
    )
    assert sorted(rows) == list(range(len(records)))
    return [(rows[n][0], None if rows[n][1] is None else json.loads(rows[n][1])) for n in range(len(records))], columns


def row(*records: Any, **more: Any) -> tuple[dict[str, Any], Any]:
    """The last record's columns that are not null, and what is rescued of it."""
    rows, _ = made_of(list(records), **more)
    return {name: value for name, value in rows[-1][0].items() if value is not None}, rows[-1][1]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        signs = math.copysign(1, one) == math.copysign(1, other)
        return (one == other and signs) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(
    RECORDS,
    RECORDS,
    st.sampled_from([None, "_"]),
    st.integers(0, 3),
    st.sampled_from([{}, {"a": {}}, {"b": {"a": {}}}]),
)
def test_the_quick_way_does_what_the_slow_one_does(
    earlier: list[dict[str, Any]],
    records: list[dict[str, Any]],
    flatten: str | None,
    depth: int,
    declared: dict[str, Any],
) -> None:
    rules = Rules(depth=depth, flatten=flatten, declared=declared, new_columns=5, reserved=frozenset({"a"}))
    known = grown(Struct(), _walked_shape(earlier, rules), rules)
    _both_ways_agree([json.dumps(record) for record in records], known, rules)


def _both_ways_agree(written: list[str], known: Struct, rules: Rules) -> None:
    quick, slow = Records(texts(written), rules), [walk.parsed(text, rules) for text in written]
    columns = grown(known, quick.shape(), rules)
    walked = Shape()
    for record in slow:
        walked.observe(record, rules.depth + 1)
    assert columns == grown(known, walked, rules)
    if not written:
        return
    done = quick.conformed(columns)
    for at, made, rescued in zip(
        done.rows.to_pylist(), done.columns.to_pylist(), done.rescued.to_pylist(), strict=True
    ):
        wanted, left = walk.conformed(slow[at], columns, rules)
        assert same(made, pa.array([wanted], arrow_type(columns)).to_pylist()[0])
        assert rescued == walk.rescued_text(left)


def _walked_shape(records: list[dict[str, Any]], rules: Rules) -> Shape:
    shape = Shape()
    for record in records:
        shape.observe(walk.parsed(json.dumps(record), rules), rules.depth + 1)
    return shape


@given(RECORDS, RECORDS)
def test_every_value_is_in_a_column_or_rescued(earlier: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    """A record of which nothing is rescued says the same as its row."""
    known = grown(Struct(), _walked_shape(earlier, Rules()), Rules())
    for record in records:
        made, left = walk.conformed(dict(record), known, Rules())
        lost = [key for key, value in record.items() if not _empty(value) and _name(key) not in made]
        assert not lost or all(key in left for key in lost)


def _empty(value: Any) -> bool:
    return value is None or (value in ([], {}) and not isinstance(value, bool))


def _name(key: str) -> str:
    from forebay.declaration.column_name import safe_name

    return safe_name(key)


MANY = {f"k{n:04}": n for n in range(5000)}

BAD = [
    ("a type flips to text", [{"a": 1}] * 200 + [{"a": "x"}], {}, {"a": "x"}),
    ("a number among texts", [{"a": "x"}, '{"a": 1.50}'], {"a": "1.50"}, {"a": 1.5}),
    ("a number that is no long", [{"a": 1}] * 200 + [{"a": 2**70 + 1}], {}, {"a": 2**70 + 1}),
    ("a whole number too exact for a double", [{"a": 0.5}] * 2 + [{"a": 2**53 + 1}], {"a": 2.0**53}, {"a": 2**53 + 1}),
    (
        "a number that no double holds",
        [{"a": 0.5}, '{"a": 12345678901234567.89}'],
        {"a": 12345678901234568.0},
        {"a": 12345678901234567.89},
    ),
    ("a number beyond all doubles, with an exponent", [{"a": 0.5}] * 200 + ['{"a": 1E400}'], {}, {"a": math.inf}),
    ("an object, and then a list", [{"a": {"x": 1}}] * 200 + [{"a": [1]}], {}, {"a": [1]}),
    (
        "a list with an element that does not fit",
        [{"a": [1]}] * 200 + [{"a": [2, "x"]}],
        {"a": [2, None]},
        {"a": [2, "x"]},
    ),
    ("both as often", [{"a": {"x": 1}}, {"a": [1]}], {"a": "[1]"}, {"a": [1]}),
    ("mixed case twins in two records", [{"Level": 1}, {"level": 2}], {"level": 2}, None),
    ("mixed case twins in one record", [{"Level": 1, "level": 2}], {"level": 2}, {"Level": 1}),
    ("twins of which none is spelled like the column", [{"Level": 1, "LEVEL": 2}], {"level": 2}, {"Level": 1}),
    ("reserved words", [{"select": 1, "from": "x"}], {"select": 1, "from": "x"}, None),
    ("an empty key", [{"": 1}], {"empty": 1}, None),
    (
        "keys in any order, as text",
        [{"a": "x"}, {"a": {"c": 1, "b": 2}}],
        {"a": '{"b":2,"c":1}'},
        {"a": {"c": 1, "b": 2}},
    ),
    ("an empty list among texts", [{"a": "x"}, {"a": []}], {}, None),
    ("null only", [{"a": None}], {}, None),
    ("an empty list before anything is known", [{"a": [], "b": 1}], {"b": 1}, None),
    ("an empty object", [{"a": {}, "b": 1}], {"b": 1}, None),
    ("a key twice", ['{"a": 1, "a": 2}'], {}, {"": '{"a": 1, "a": 2}'}),
    ("half of a surrogate pair", ['{"a": "x"}', '{"a": "\\ud800"}'], {}, {"a": "\ud800"}),
    ("half of a surrogate pair in a key", ['{"b": 1, "\\ud800x": 2}'], {"b": 1}, {"\ud800x": 2}),
    ("one in a key within", ['{"b": {"c": 1, "\\udc00": {"d": 2}}}'], {"b": {"c": 1}}, {"b": {"\udc00": {"d": 2}}}),
    (
        "one in a key of a list's element",
        ['{"b": [{"c": 1, "\\udc00": 2}]}'],
        {"b": [{"c": 1}]},
        {"b": [{"c": 1, "\udc00": 2}]},
    ),
    ("NUL in a text", ['{"a": "x\\u0000y"}'], {"a": "x\0y"}, None),
    ("a number beyond all doubles", [{"a": 1.5}] * 200 + ['{"a": 1' + "0" * 400 + "}"], {}, {"a": 10**400}),
    ("a zero with a minus, in a whole column", [{"a": 1}, '{"a": -0, "b": [[-0]]}'], {"a": 0, "b": [[0]]}, None),
    ("a zero with a minus, in a text column", [{"a": "x"}, '{"a": -0}'], {"a": "-0"}, {"a": 0}),
    ("an own column's name", [{"_line": 7, "_id": 8}], {"x_line": 7, "x_id": 8}, None),
    ("a time in text stays as it is written", [{"a": "2026-11-21 10:00:00"}], {"a": "2026-11-21 10:00:00"}, None),
    ("times that are numbers", [{"a": 1764000000, "b": 1764000000123}], {"a": 1764000000, "b": 1764000000123}, None),
]


@pytest.mark.parametrize(("records", "columns", "rescued"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_ends_where_it_should(records: list[Any], columns: dict[str, Any], rescued: Any) -> None:
    assert row(*records) == (columns, rescued)


NUMBERS = st.one_of(
    st.sampled_from(["-0", "-0.0", "0", "1.5", "-0 "]),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), NUMBERS, max_size=3), max_size=6), st.booleans())
def test_columns_and_what_is_rescued_give_each_number_back(records: list[dict[str, str]], text: bool) -> None:
    written = [json.dumps({"t": "x"})] if text else []
    written += ["{" + ",".join(f'"{key}":{number}' for key, number in record.items()) + "}" for record in records]
    rules = Rules()
    if not written:
        return
    some = Records(pa.array(written, pa.string()), rules)
    done = some.conformed(writable(grown(Struct(), some.shape(), rules)))
    for at, made, left in zip(done.rows.to_pylist(), done.columns.to_pylist(), done.rescued.to_pylist(), strict=True):
        kept = {key: value for key, value in made.items() if value is not None}
        kept |= json.loads(left or "{}", parse_float=Decimal, parse_int=Decimal)
        wanted = json.loads(written[at], parse_float=Decimal, parse_int=Decimal)
        assert kept.keys() == wanted.keys()
        for key in wanted.keys() - {"t"}:
            held = kept[key]
            assert wanted[key] in (
                (Decimal(repr(held)), Decimal(held)) if isinstance(held, float) else (Decimal(held),)
            )


@example([{"a": "-0"}], 1.5)
@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), NUMBERS, min_size=1), max_size=5), st.sampled_from([1, 1.5, "x"])
)
def test_both_ways_make_the_same_of_each_number_as_it_is_written(records: list[dict[str, str]], first: Any) -> None:
    written = ["{" + ",".join(f'"{key}":{number}' for key, number in record.items()) + "}" for record in records]
    _both_ways_agree(written, grown(Struct(), _walked_shape([{"a": first}], Rules()), Rules()), Rules())


def test_numbers_are_rescued_as_they_were_written() -> None:
    texts = ['{"a": "x"}', '{"a": {"n": 1.50, "m": [1E400, -0.0, -0, NaN, 1e5]}}', '{"b": 12345678901234567.890}']
    rules = Rules()
    some = Records(pa.array(texts), rules)
    done = some.conformed(writable(grown(Struct(), some.shape(), rules)))
    rescued = dict(zip(done.rows.to_pylist(), done.rescued.to_pylist(), strict=True))
    assert rescued[1] == '{"a":{"n":1.50,"m":[1E400,-0.0,-0,"NaN",1e5]}}'
    assert rescued[2] == '{"b":12345678901234567.890}'
    made = dict(zip(done.rows.to_pylist(), done.columns.to_pylist(), strict=True))
    assert made[1]["a"] == '{"m":[1E400,-0.0,-0,NaN,1e5],"n":1.50}'


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (['{"Level": 1, "x": 2}'], [({"x": 2}, None)]),
        (['{"Level": 1, "x": 2}', '{"level": 1, "x": 2}'], [({"x": 2}, None), ({"x": 2}, None)]),
        (['{"Level": 1, "level": 3, "x": 2}'], [({"x": 2}, {"Level": 1})]),
        (['{"in": {"Player-ID": 1, "PLAYER_ID": 2}, "x": 2}'], [({"x": 2}, {"in": {"Player-ID": 1}})]),
        (['{"level": null, "LEVEL": 3, "x": 2}'], [({"x": 2}, {"LEVEL": 3})]),
    ],
)
def test_a_declared_field_takes_its_own_key_and_else_a_twin(texts: list[str], left: list[Any]) -> None:
    declared = {"level": {}, "in": {"player_id": {}}}
    rows, columns = made_of(list(texts), declared=declared, reserved=frozenset({"level", "player_id"}))
    assert rows == left
    assert set(columns.fields) == {"x"}


def test_of_a_map_with_thousands_of_keys_as_many_become_columns_as_allowed() -> None:
    (made, rescued), *_ = made_of([{"map": MANY, "z": 1}], new_columns=100, keys=5000)[0]
    assert made["z"] == 1
    assert len(made["map"]) == 99
    assert {**made["map"], **rescued["map"]} == MANY


def test_two_fields_that_would_be_one_when_flattened_are_rescued_with_their_record() -> None:
    for record in ('{"player_id": 1, "player": {"id": 2}}', '{"a": {"b": {"c": 1}}, "a_b": {"c": 2}}'):
        assert row({"n": 1}, record, flatten="_") == ({}, {"": record})


def test_identifiers_as_keys_cost_memory_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow has a column for each key, with a place for each record."""
    taken, read = [], arrow_parser.read_json
    before = pa.total_allocated_bytes()

    def reading(*given: Any, **more: Any) -> pa.Table:
        table = read(*given, **more)
        taken.append(pa.total_allocated_bytes() - before)
        return table

    monkeypatch.setattr(arrow_parser, "read_json", reading)
    rows, columns = made_of([{"event": "x", "scores": {f"p-{n}": n, f"q-{n}": "2026-11-21"}} for n in range(6000)])
    assert columns.fields["scores"].kind == "json"
    assert rows[17] == ({"event": "x", "scores": '{"p-17":17,"q-17":"2026-11-21"}'}, None)
    assert max(taken) < 100 << 20


def test_an_object_with_many_keys_is_text_and_what_is_no_object_is_rescued_beside() -> None:
    many = [{"a": {f"k{n}": 1.5}} for n in range(300)]
    assert row(*many, {"a": {"k": 1}}) == ({"a": '{"k":1}'}, None)
    assert row(*many, {"a": 7}) == ({"a": "7"}, {"a": 7})


def test_a_number_of_more_digits_than_python_reads_costs_its_record_nothing_else() -> None:
    huge = "1" * 5000
    rules = Rules(declared={"declared": {}})
    some = Records(texts([{"a": 1}, f'{{"a": 2, "b": {huge}, "declared": {huge}}}']), rules)
    done = some.conformed(writable(grown(Struct(), some.shape(), rules)))
    rows = dict(zip(done.rows.to_pylist(), done.columns.to_pylist(), strict=True))
    assert rows == {0: {"a": 1, "b": None}, 1: {"a": 2, "b": huge}}
    assert done.rescued.drop_null().to_pylist() == [f'{{"b":{huge}}}']


def test_deep_records_do_not_overflow() -> None:
    deep = '{"a":' * DEEPEST + "1" + "}" * DEEPEST
    made, rescued = row(deep, depth=2)
    assert (len(made["a"]["a"]["a"]), rescued) == (len(deep) - 3 * 6, None)


def test_fields_that_are_declared_are_not_seen() -> None:
    record = {"player": {"id": "p", "level": 5, "name": "n"}, "event": "x", "other": {"only": 1}}
    declared = {"player": {"id": {}, "level": {}}, "event": {}, "other": {"only": {}}}
    assert row(record, declared=declared) == ({"player": {"name": "n"}}, None)


def test_objects_can_become_columns_beside_each_other() -> None:
    record = {"player": {"id": "p", "pos": {"x": 1}}, "items": [{"n": 1}]}
    assert row(record, flatten="_") == ({"player_id": "p", "player_pos_x": 1, "items": [{"n": 1}]}, None)
    assert row(record, flatten="_", depth=1)[0] == {"player_id": "p", "player_pos": {"x": 1}, "items": [{"n": 1}]}


def test_undeclared_fields_can_be_rescued_or_ignored() -> None:
    assert row({"a": 1, "b": {"c": 2}}, undeclared="rescue") == ({}, {"a": 1, "b": {"c": 2}})
    assert row({"a": 1, "b": {"c": 2}}, undeclared="ignore") == ({}, None)


def test_ordinary_records_are_not_walked() -> None:
    """What makes it quick; a record that is odd costs only itself."""
    rules = Rules()
    some = Records(texts([{"a": n, "at": "2026-11-21T10:00:00Z"} for n in range(1000)] + [{"a": "x"}]), rules)
    assert len(some._slow) == 1
    columns = grown(Struct(), some.shape(), rules)
    assert len(some.conformed(columns).rescued.drop_null()) == 1


def test_inexact_numbers_are_found_whatever_records_came_before() -> None:
    hints, rules = arrow_parser.ParseHints(), Rules()
    texts_only, numbers = ['{"a":"x"}', '{"a":"y","b":true}'], ['{"n":0.5}', '{"n":12345678901234567.89}', '{"n":-0}']
    for batch in (texts_only, numbers, numbers, texts_only, [*texts_only, *numbers], [*texts_only, '{"m":[{"n":-0}]}']):
        usual, held = (Records(texts(batch), rules, hint) for hint in (None, hints))
        assert [[part.start, part.stop] for part in held._swift] == [[part.start, part.stop] for part in usual._swift]
        inexact = [at for at, text in enumerate(batch) if "67.89" in text or "-0" in text]
        assert (usual._slow, held._slow) == (inexact, inexact)


def test_records_without_numbers_are_not_searched_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swift, "inexact_in", None)
    records = texts([{"a": "1.5", "b": True, "c": {"d": ["12345678901234567.89", None]}, "n": 1}])
    rules = Rules(declared={"n": {}})
    assert Records(records, rules).shape() is not None
    with pytest.raises(TypeError):
        Records(records, Rules())


def test_objects_of_an_array_with_a_key_each_are_not_parsed_together() -> None:
    """Arrow would make a cell of each key in each object: 16 GB of half a megabyte."""
    wide, plain = {"x": [{f"k{n}": 1} for n in range(9000)]}, {"x": [{"k": n} for n in range(50_000)]}
    several = [plain, *[{"a": 1}] * 50, wide, {"a": "x"}]
    for hints in (arrow_parser.ParseHints(), arrow_parser.ParseHints(rows=10_000)):
        assert Records(texts(several), Rules(), hints).walked_positions == [51]
    short = [{"x": [{f"k{row}_{n}": n} for n in range(20)]} for row in range(2000)]
    records = Records(texts(short), Rules())
    assert max([part.cells for part in records.parsed_parts], default=0) <= 2 * arrow_parser.CELLS
    assert len(records.walked_positions) in (0, 2000)
