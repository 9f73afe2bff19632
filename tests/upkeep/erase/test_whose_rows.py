"""Whose a row is not: an erasure leaves values that only look like the subject, and tables that do not say who it is."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.privacy.token import token_of
from forebay.upkeep.erase.places import Place, subject_places
from forebay.upkeep.erase.rows import Erased, Found, found_in

ERASED = Erased(frozenset(token_of(one, b"") for one in ("anna", "7", "None", "null", "")), b"")
TOLD: dict[str, Any] = {"privacy": {"subject": "user.id", "secret": "/secret"}}


def found(column: pa.Array, *path: str, **more: Any) -> Found:
    pq.write_table(pa.table({"user": column, **more}), into := io.BytesIO())
    return found_in(into, [Place("user", path)], ERASED)


def of(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


TEXT, DOUBLE = pa.string(), pa.float64()


@pytest.mark.parametrize(
    ("path", "kind", "value", "theirs"),
    [
        ("id", pa.list_(of(id=DOUBLE, n=DOUBLE)), [{"id": 1.0, "n": 7.0}], False),
        ("id", pa.list_(of(id=DOUBLE)), [{"id": None}], False),
        ("id.x", pa.list_(of(id=DOUBLE)), [{"id": 7.0}], False),
        ("", pa.list_(of(id=TEXT)), [{"id": "anna"}], False),
        ("", pa.list_(pa.list_(TEXT)), [["ben", "anna"]], True),
        ("", of(id=TEXT), {"id": "anna"}, False),
        ("", TEXT, '"anna"', False),
        ("id", DOUBLE, 7.0, False),
        ("id", pa.map_(TEXT, DOUBLE), [("n", 7.0)], False),
        ("id", pa.map_(TEXT, DOUBLE), [("n", 1.0), ("ID", 7.0)], True),
        ("id", pa.map_(pa.int64(), DOUBLE), [(7, 7.0)], False),
        ("", pa.map_(TEXT, DOUBLE), [("id", 7.0)], False),
        ("id", of(id=TEXT, ID=TEXT), {"id": "ben", "ID": "anna"}, True),
        ("id", of(n=TEXT), {"n": "anna"}, False),
        ("who.id", of(who=of(id=TEXT, Id=TEXT), Who=of(id=TEXT)), {"Who": {"id": "anna"}}, True),
        ("who.id", of(who=of(n=TEXT, id=TEXT)), {"who": {"n": "anna"}}, False),
        ("who.id", of(who=TEXT), {"who": "anna"}, False),
        ("who.id", of(Who=TEXT, who=TEXT), {"who": "anna"}, False),
    ],
)
def test_a_row_is_theirs_by_the_field_of_the_subject_alone(
    path: str, kind: pa.DataType, value: Any, theirs: bool
) -> None:
    column = pa.array([value, None], kind)
    assert found(column, *filter(None, path.split("."))).rows == int(theirs)


def test_files_of_which_nobody_has_a_row_are_not_counted() -> None:
    nobody = found(pa.array(["ben"]), _file_id=["f1"])
    assert (nobody.rows, dict(nobody.files), nobody.groups) == (0, {}, [None])


# --- places ---


def places(table: str, *columns: str, tables: list[dict[str, Any]], **more: Any) -> tuple[Place, ...]:
    rollups: tuple[Rollup, ...] = more.pop("rollups", ())
    service = Service(name="games", tables=tables, rollups=rollups, **TOLD)  # type: ignore[arg-type]
    return subject_places(table, service, columns, **more)


@pytest.mark.parametrize("path", ["user.id.more", "user.name", "@key"])
def test_a_column_of_another_field_says_nothing(path: str) -> None:
    assert places("alpha", "x", tables=[{"name": "alpha", "columns": [{"name": "x", "path": path}]}]) == ()


def test_a_column_that_got_its_name_from_the_key_is_known_by_the_key() -> None:
    assert places("alpha", "c1", tables=[{"name": "alpha"}]) == ()
    assert places("alpha", "c1", tables=[{"name": "alpha"}], keys={"c1": ("n", "USER")}) == (Place("c1", ("id",)),)


@pytest.mark.parametrize(
    ("become", "columns", "looked_at"),
    [
        ("ignored", ["_rescued"], set()),
        ("columns", ["_rescued"], {"_rescued"}),
        ("ignored", ["user", "_rescued"], {"user", "_rescued"}),
    ],
)
def test_texts_alone_do_not_say_who_it_is_where_undeclared_fields_are_left_out(
    become: str, columns: list[str], looked_at: set[str]
) -> None:
    found = places("alpha", *columns, tables=[{"name": "alpha", "undeclared": {"become": become}}])
    assert {one.column for one in found} == looked_at


def test_a_state_has_the_columns_of_its_log() -> None:
    who = {"name": "who", "path": "user.id"}
    merge = {"into": "alpha_now", "keys": ["who"], "sequence_by": ["at"]}
    alpha = {"name": "alpha", "columns": [who, {"name": "at", "type": "timestamp"}], "mode": "merge", "merge": merge}
    assert places("alpha_now", "who", tables=[alpha], log="alpha") == (Place("who"),)
    assert places("alpha_now", "who", tables=[alpha]) == ()


def test_each_rollup_has_its_own_groups() -> None:
    alpha = {"name": "alpha", "columns": [{"name": "who", "path": "user.id"}]}
    rollups = tuple(
        Rollup(name=name, tables=("alpha",), group_by={group: group}, columns={"n": "count(*)"})
        for name, group in (("by_day", "day"), ("by_person", "who"))
    )
    found = {one: places(one, "day", "who", tables=[alpha], rollups=rollups) for one in ("by_day", "by_person")}
    assert found == {"by_day": (), "by_person": (Place("who"),)}
