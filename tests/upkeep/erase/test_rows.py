"""Rows of persons leave a data file, and all others stay as they were, whoever wrote it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from forebay.lake.folder_objects import FolderObjects
from forebay.privacy.token import token_of
from forebay.record import walk
from forebay.record.growth import Rules
from forebay.record.kind import Struct
from forebay.upkeep.erase.places import Place
from forebay.upkeep.erase.purge import Purged, delete_old_files
from forebay.upkeep.erase.rows import Erased, found_in, null_in, plain, rewritten

MOMENT = pa.timestamp("us", "UTC")
YEARS = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None]
ERASED = Erased(frozenset({token_of("anna", b"")}), b"")


@pytest.mark.parametrize("of_spark", [True, False], ids=["INT96", "microseconds"])
def test_moments_of_all_years_stay_the_same(of_spark: bool) -> None:
    """INT96 is how Spark wrote moments, and Arrow reads it in nanoseconds, which end in 2262."""
    nested: list[Any] = [{"at": when, "in": {"all": [when], "by": [("k", when)]}} for when in YEARS]
    kind = pa.struct(
        [("at", MOMENT), ("in", pa.struct([("all", pa.list_(MOMENT)), ("by", pa.map_(pa.string(), MOMENT))]))]
    )
    rows = pa.table({
        "user": ["anna", "ben", "cleo"] * 3,
        "at": pa.array(YEARS * 3, MOMENT),
        "nested": pa.array(nested * 3, kind),
    })  # fmt: skip
    pq.write_table(rows, into := io.BytesIO(), use_deprecated_int96_timestamps=of_spark)
    found = found_in(io.BytesIO(into.getvalue()), [Place("user")], ERASED)
    made = rewritten(io.BytesIO(into.getvalue()), found)
    left = pq.read_table(pa.BufferReader(made.content))
    assert left.to_pylist() == [row for row in rows.to_pylist() if row["user"] != "anna"]
    assert made.rows == 6
    assert left.schema.field("at").type == MOMENT
    assert left.schema.field("nested").type == kind


@pytest.mark.parametrize("written", ["70004", "70004.0", "7.0004e4", "070004"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([70004.0, 1.5], pa.float64()),
        pa.array([70004, 1], pa.int64()),
        pa.array([Decimal("70004.00"), Decimal("0.10")], pa.decimal128(12, 2)),
        pa.array(["7.0004e4", "1"]),
        pa.array(["70004.0", "1"]),
        pa.array([["1", "70004.0"], ["2"]], pa.list_(pa.string())),
        pa.array([b"70004.0", b"1"]),
        pa.array([[{"id": 70004.0}], [{"id": 3.0}]], pa.list_(pa.struct([("id", pa.float64())]))),
    ],
    ids=lambda column: str(column.type),
)
def test_a_person_is_found_in_columns_of_every_type_by_any_spelling(written: str, column: pa.Array) -> None:
    pq.write_table(pa.table({"user": column, "n": [1, 2]}), into := io.BytesIO())
    place = Place("user", ("id",) if "struct" in str(column.type) else ())
    erased = Erased(frozenset({token_of(written, b"")}), b"")
    assert [group.to_pylist() for group in found_in(into, [place], erased).groups if group] == [[True, False]]


@pytest.mark.parametrize(("person", "theirs"), [("123456700", True), ("123456704", False), ("1.234567e8", True)])
@pytest.mark.parametrize("in_list", [False, True])
def test_a_column_of_floats_names_who_its_shortest_digits_name(person: str, theirs: bool, in_list: bool) -> None:
    """The reader keeps no other digits of such a number, for a float gives them back. As a double it is 123456704."""
    column = pa.array([123456700.0, 1.0], pa.float32())
    column = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column) if in_list else column
    pq.write_table(pa.table({"user": column}), into := io.BytesIO())
    found = found_in(into, [Place("user")], Erased(frozenset({token_of(person, b"")}), b""))
    assert found.rows == int(theirs)


@pytest.mark.parametrize(("person", "theirs"), [("123456700", 0), ("123456701", 1)])
def test_digits_beside_a_float_tell_whose_it_is(person: str, theirs: int) -> None:
    user = pa.array([123456701.0, 1.0], pa.float32())
    rescued = [json.dumps({"user": 123456701}), None]
    pq.write_table(pa.table({"user": user, "_rescued": rescued}), into := io.BytesIO())
    places = [Place("user"), Place("_rescued", ("user",))]
    assert found_in(into, places, Erased(frozenset({token_of(person, b"")}), b"")).rows == theirs


ANNA = Erased(frozenset({token_of("anna", b"")}), b"")


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ('["anna","ben"]', True),
        ('[ "ben", [null, "anna"] ]', True),
        (r'["\u0061nna"]', True),
        ('["ben"]', False),
        ('[{"id":"anna"}]', False),
        ('{"id":"anna"}', False),
        ('["anna"', False),
        ("[" * 2000 + '"anna"' + "]" * 2000, True),
        (None, False),
    ],
)
def test_a_person_is_found_in_an_array_that_a_column_of_text_holds(text: str | None, theirs: bool) -> None:
    """A declared column of text takes any value, as JSON."""
    pq.write_table(pa.table({"user": ["ben", text]}), into := io.BytesIO())
    found = found_in(into, [Place("user")], ANNA)
    assert found.groups == ([pa.array([False, True])] if theirs else [None])
    assert found_in(into, [], ANNA, (("user", text),)).rows == 0


@pytest.mark.parametrize(
    ("path", "kind", "theirs", "other"),
    [
        ("id", pa.list_(pa.string()), [None, '{"ID": "anna"}'], ['"anna"']),
        ("by.id", pa.list_(pa.struct([("by", pa.string())])), [{"by": '[{"id": "anna"}]'}], [{"by": "{torn"}]),
        ("by.id", pa.map_(pa.string(), pa.string()), [("by", '{"id": ["anna"]}')], [("id", "anna")]),
        ("by.id", pa.list_(pa.binary()), [b'{"by":{"id":"anna"}}'], [None]),
        ("id", pa.binary(), b'{"id":"anna"}', b"\xff"),
        ("by", pa.map_(pa.string(), pa.binary()), [("by", b"anna")], [("by", b"ben")]),
    ],
)
def test_a_person_is_found_in_the_json_of_texts_in_arrays_and_maps(
    path: str, kind: pa.DataType, theirs: Any, other: Any
) -> None:
    """Parts of the types `json`, `map` and `binary`."""
    pq.write_table(pa.table({"user": pa.array([theirs, other], kind)}), into := io.BytesIO())
    found = found_in(into, [Place("user", tuple(path.split(".")))], ANNA)
    assert [group.to_pylist() for group in found.groups if group] == [[True, False]]


WHOLE = [
    '{"user":{"id":"anna"},"n":1,"n":2}',
    '{"n":1,"User" : {"ID":["anna"]},"n":2}',
    r'{"n":1,"\u0075ser":{"id":"\u0061nna"},"n":2}',
    '{"n":' + "[" * 900 + "]" * 900 + ',"user":{"id":"anna"}}',
]


@pytest.mark.parametrize("record", WHOLE)
def test_a_person_is_found_in_a_record_that_was_rescued_whole(record: str) -> None:
    """One key that stands twice hides nobody. Nor does nesting, in a row of a version that rescued what it could not read."""
    rescued = walk.rescued_text(walk.conformed(walk.Unreadable({walk.WHOLE: record}), Struct({}), Rules())[1])
    pq.write_table(pa.table({"_rescued": [None, rescued, '{"":"anna"}', '{"":1,"n":2}']}), into := io.BytesIO())
    assert found_in(into, [Place("_rescued", ("user", "id"))], ANNA).groups == [pa.array([False, True, False, False])]
    assert isinstance(walk.parsed(record, Rules()), walk.Unreadable) or "[[" in record


def parquet(**columns: Any) -> io.BytesIO:
    pq.write_table(pa.table(columns), into := io.BytesIO())
    into.seek(0)
    return into


def test_in_a_vault_that_services_share_only_rows_of_this_one_are_theirs() -> None:
    rows = {"service": ["games", "shop", None], "subjects": [[token_of("anna", b"")]] * 3}
    for shared, theirs in ((True, [True, False, False]), (False, [True] * 3)):
        erased = replace(ERASED, service="games", shared=shared)
        found = found_in(parquet(**rows), [Place("subjects")], erased)
        assert (found.rows, [one.to_pylist() for one in found.groups if one]) == (sum(theirs), [theirs])


def test_of_kept_records_a_row_without_a_line_is_no_record_of_its_file() -> None:
    record = ['{"who": "anna"}'] * 3
    rows = {"service": ["games", "games", "shop"], "file_id": ["f"] * 3, "line": [1, None, 1], "record": record}
    found = found_in(parquet(**rows), [Place("record", ("who",))], replace(ERASED, service="games"))
    assert (found.rows, found.files, found.unjudged) == (2, {"f": 1}, 0)


@pytest.mark.parametrize(
    ("column", "text", "unjudged"),
    [
        ("record", "no JSON", 1),
        ("record", "[1]", 1),
        ("record", '{"who": "anna"', 1),
        ("record", '{"n": 1}', 0),
        ("record", None, 0),
        ("_rescued", '{"who": "anna"', 1),
        ("_rescued", '{"n": ', 0),
        ("_rescued", '{"who": "ben"}', 0),
        ("other", '{"who": "anna"', 0),
    ],
)
def test_a_text_that_nobody_can_read_is_counted(column: str, text: str | None, unjudged: int) -> None:
    places = [Place(column, ("who",))] if column != "other" else []
    found = found_in(parquet(**{column: [text, None], "user": ["ben", "ben"]}), [*places, Place("user")], ERASED)
    assert (found.rows, found.unjudged) == (0, unjudged)


def test_a_row_that_is_theirs_by_another_column_is_judged() -> None:
    places = [Place("user"), Place("_rescued", ("who",))]
    found = found_in(parquet(user=["anna", "ben"], _rescued=['{"who": '] * 2), places, ERASED)
    assert (found.rows, found.unjudged) == (1, 1)


@pytest.mark.parametrize(
    ("said", "rows", "unjudged"),
    [
        (None, 1, 0),
        ('{"who": 9007199254740993}', 0, 1),
        ('{"who": "9007199254740992"}', 1, 0),
        ('{"who": [9007199254740992, 9007199254740993]}', 1, 0),
        ('{"who": 7, "n": 1e400}', 1, 0),
    ],
)
def test_a_double_is_somebody_elses_whose_digits_stand_beside_it(said: str | None, rows: int, unjudged: int) -> None:
    """Nobody knows that for certain, so such a row stays and is counted."""
    erased = replace(ERASED, tokens=frozenset({token_of("9007199254740992", b"")}))
    file = parquet(user=pa.array([2.0**53, 7.0]), _rescued=pa.array([said, None], pa.string()))
    found = found_in(file, [Place("user"), Place("_rescued", ("who",))], erased)
    assert (found.rows, found.unjudged) == (rows, unjudged)


def test_a_file_may_say_whose_its_rows_are_by_its_partition_alone() -> None:
    found = found_in(parquet(n=[1, 2]), [Place("who")], ERASED, (("who", "anna"),))
    assert (found.rows, found.by_token) == (2, {token_of("anna", b""): 2})
    assert not found_in(parquet(n=[1, 2]), [Place("who")], ERASED, (("who", "ben"),)).rows


def test_a_partition_says_nothing_of_a_field_inside_its_column() -> None:
    assert not found_in(parquet(n=[1, 2]), [Place("who", ("id",))], ERASED, (("who", "anna"),)).rows


def test_rows_that_came_from_no_file_are_counted_for_none() -> None:
    found = found_in(parquet(user=["anna", "anna"], _file_id=["f", None]), [Place("user")], ERASED)
    assert (found.rows, found.files) == (2, {"f": 1})


@pytest.mark.parametrize(
    ("kind", "plainly"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
    ],
    ids=str,
)
def test_columns_of_every_writer_are_looked_at_in_the_plain_types(kind: pa.DataType, plainly: pa.DataType) -> None:
    assert plain(pa.table({"user": pa.array([None], kind)})).schema.field("user").type == plainly


def test_of_the_columns_that_lose_values_those_that_a_file_lacks_are_passed_over() -> None:
    rows = pa.table({"email": ["a", "b"], "n": [1, 2]})
    left = null_in(["email", "phone"], rows, pa.array([True, False]))
    assert left.to_pydict() == {"email": [None, "b"], "n": [1, 2]}


def whole(text: str) -> str:
    return json.dumps({"": text}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "rows", "unjudged"),
    [
        ('{"n": 1, "n": 2, "who": "anna"}', 1, 0),
        ('{"n": ' + "[" * 5000 + "]" * 5000 + ', "who": "anna"}', 1, 0),
        ('{"n": 1, "n": 2, "who": "ben"}', 0, 0),
        ('{"n": 1, "n": 2}', 0, 0),
        ('{"n": 1, "who": "anna"', 0, 1),
        ("anna", 0, 0),
    ],
    ids=["twice", "deep", "of another", "of nobody", "torn", "a text"],
)
def test_a_record_that_was_rescued_whole_is_judged_by_what_it_says(text: str, rows: int, unjudged: int) -> None:
    """Beside it may be what did not fit a declared column."""
    for rescued in (whole(text), f'{whole(text)[:-1]},"level":"odd"}}', f'{whole(text)[:-1]},"day":null}}'):
        found = found_in(parquet(_rescued=[rescued]), [Place("_rescued", ("who",))], ERASED)
        assert (found.rows, found.unjudged) == (rows, unjudged)


def test_an_empty_key_hides_nobody() -> None:
    rescued = ['{"":"{}","who":"anna"}', '{"":"{\\"who\\":1}","who":"anna"}', '{"who":"anna","":"{}"}']
    assert found_in(parquet(_rescued=rescued), [Place("_rescued", ("who",))], ERASED).rows == 3


def test_an_old_file_with_a_record_that_was_rescued_whole_is_purged(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"_rescued": ["{}"]}))
    texts = {"anna": '{"n": 1, "n": 2, "who": "anna"}', "ben": '{"n": 1, "n": 2, "who": "ben"}', "torn": '{"n": '}
    for name, text in texts.items():
        (tmp_path / f"t/part-{name}.parquet").write_bytes(parquet(_rescued=[whole(text)]).read())
    places = [Place("_rescued", ("who",))]
    assert delete_old_files(FolderObjects(tmp_path / "t"), places, ERASED) == Purged(1, 1)
    assert not (tmp_path / "t/part-anna.parquet").exists()


@pytest.mark.parametrize("own", [{"service": ["shop", None]}, {"line": [1, None]}], ids=["service", "line"])
def test_columns_of_a_table_that_happen_to_be_called_service_or_line_hide_nobody(own: dict[str, list[Any]]) -> None:
    erased = Erased(ERASED.tokens, b"", "games")
    assert found_in(parquet(user=["anna", "anna"], **own), [Place("user")], erased).rows == 2


@pytest.mark.parametrize(("service", "unjudged"), [("games", 1), ("shop", 0)])
def test_a_kept_text_that_nobody_can_read_is_counted_for_its_own_service(service: str, unjudged: int) -> None:
    kept = parquet(service=[service], line=[1], record=['{"n": 1, "who": "anna"'])
    assert found_in(kept, [Place("record", ("who",))], replace(ERASED, service="games")).unjudged == unjudged


def test_a_column_of_a_table_that_happens_to_be_called_record_is_no_kept_text() -> None:
    struct = found_in(parquet(record=[{"who": "ben"}, {"who": "anna"}]), [Place("record", ("who",))], ERASED)
    assert (struct.rows, struct.unjudged) == (1, 0)
    subject = found_in(parquet(record=["ben", "anna"]), [Place("record")], ERASED)
    assert (subject.rows, subject.unjudged) == (1, 0)
