"""Which columns tell whose a row is, and whether a rollup is of nobody."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.upkeep.erase.places import Place, is_of_nobody, lost_columns, subject_places


@pytest.mark.parametrize(
    ("group_by", "columns", "of_nobody"),
    [
        ({"day": "date(at)"}, {"revenue": "sum(amount)"}, True),
        ({"day": "date(at)"}, {"users": "count(distinct user_id)", "some": "APPROX_COUNT_DISTINCT(user_id)"}, True),
        ({"who": "user_id"}, {"n": "count(*)"}, False),
        ({"who": "lower(`User_ID`)"}, {"n": "count(*)"}, False),
        ({"day": "date(at)"}, {"last": "max_by(user_id, at)"}, False),
        ({"day": "date(at)"}, {"last": "count(1) + max(user_id)"}, False),
    ],
)
def test_a_rollup_is_of_nobody_where_no_column_is_made_of_a_person(
    group_by: dict[str, str], columns: dict[str, str], of_nobody: bool
) -> None:
    rollup = Rollup(name="daily", tables=("alpha",), group_by=group_by, columns=columns)
    told: dict[str, Any] = {"subject": "user_id", "secret": "/secret"}
    service = Service(name="games", privacy=told, tables=[{"name": "alpha"}], rollups=(rollup,))  # type: ignore[arg-type]
    assert is_of_nobody("daily", service) is of_nobody
    assert not is_of_nobody("alpha", service)


@pytest.mark.parametrize(
    ("sql", "path"),
    [
        ("`User`.ID", ()),
        ("user", ("id",)),
        ("WHO", ()),
        ("user.n", None),
        ("user.id.more", None),
        ("lower(who)", None),
    ],
)
@pytest.mark.parametrize("table", ["alpha", "alpha_now"])
def test_a_person_in_a_group_of_a_rollup_is_found_within_a_struct_and_in_a_state(
    table: str, sql: str, path: tuple[str, ...] | None
) -> None:
    told: dict[str, Any] = {"subject": "user.id", "secret": "/secret"}
    columns = [
        {"name": "user", "type": "struct<id: long, n: long>"},
        {"name": "who", "path": "user.id"},
        {"name": "at", "type": "timestamp"},
    ]
    merge = {"into": "alpha_now", "keys": ["who"], "sequence_by": ["at"]}
    alpha: dict[str, Any] = {"name": "alpha", "columns": columns, "mode": "merge", "merge": merge}
    rollup = Rollup(name="daily", tables=(table,), group_by={"g": sql}, columns={"n": "count(*)"})
    service = Service(name="games", privacy=told, tables=[alpha], rollups=(rollup,))  # type: ignore[arg-type]
    assert subject_places("daily", service, ["g", "n"]) == (() if path is None else (Place("g", path),))
    assert not is_of_nobody("daily", service)


@pytest.mark.parametrize(
    ("subject", "flatten", "column", "path"),
    [
        ("user_id", "", "user_id_", ()),
        ("user_id", "", "x_user_id", ()),
        ("user_id", "", "x__user_id__", ()),
        ("_id", "", "x__id_", ()),
        ("1st", "", "x__1st", ()),
        ("user.id", "", "user_", ("id",)),
        ("user.id", "_", "user__id", ()),
        ("user.id", "_", "x_user___id_", ()),
        ("user.id", "__", "user__id", ()),
        ("user_id", "", "xuser_id", None),
        ("user_id", "", "user__id", None),
        ("user_id", "", "user_id_2", None),
        ("user.id", "__", "user_id", None),
        ("user.id", "", "user_id", None),
    ],
)
def test_a_column_that_a_key_with_blanks_around_it_may_have_made_is_looked_at(
    subject: str, flatten: str, column: str, path: tuple[str, ...] | None
) -> None:
    """Also where the schema names no such key, because another one made the column."""
    table: dict[str, Any] = {"name": "alpha", **({"undeclared": {"flatten": flatten}} if flatten else {})}
    service = Service(name="games", privacy={"subject": subject, "secret": "/secret"}, tables=[table])  # type: ignore[arg-type]
    found = subject_places("alpha", service, [column])
    assert found == (() if path is None else (Place(column, path),))


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("who user.id", "who user.id", []),
        ("who user.id", "player user.id", ["who"]),
        ("who user.id", "who user.name", ["who"]),
        ("who user.id", "", ["who"]),
        ("who user", "who user.id", ["who"]),
        ("user user", "", []),
        ("n user.level", "", []),
    ],
)
def test_a_column_with_the_subject_is_lost_where_nothing_says_so_any_more(
    before: str, after: str, lost: list[str]
) -> None:
    def service(column: str, table: str = "alpha") -> Service:
        names = ("name", "path")
        columns = [dict(zip(names, column.split(), strict=True))] if column else []
        told: dict[str, Any] = {"privacy": {"subject": "user.id", "secret": "/secret"}}
        return Service(name="games", tables=[{"name": table, "columns": columns}], **told)

    assert [column.name for _, column in lost_columns(service(before), service(after))] == lost
    assert [column.name for _, column in lost_columns(service(before), service(after, "{game}"))] == lost
    assert [*lost_columns(service(before), service(after, "beta"))] == []


def test_a_table_that_nobody_declares_does_not_say_whose_its_rows_are() -> None:
    told: dict[str, Any] = {"privacy": {"subject": "user.id", "secret": "/secret"}}
    service = Service(name="games", tables=[{"name": "beta"}], **told)
    assert subject_places("alpha", service, ["who", "_rescued"]) == ()
    assert Place("user", ("id",)) in subject_places("alpha", service, ["who", "user", "_rescued"])


def test_a_column_of_records_that_were_not_taken_apart_is_looked_at() -> None:
    told: dict[str, Any] = {"privacy": {"subject": "user.id", "secret": "/secret"}, "envelope": {"records": "Records"}}
    service = Service(name="games", tables=[{"name": "alpha"}], **told)
    assert subject_places("alpha", service, ["records", "other"]) == (Place("records", ("user", "id")),)
