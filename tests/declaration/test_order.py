"""The order in which tables are tried, wherever they are declared, and the tables that no record can reach."""

from __future__ import annotations

import json

import pytest

from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration
from forebay.record.route import Origin, route_of

CATCH_ALL = '[[tables]]\nname = "records"\n'


def names(service: str, **tables: str) -> list[str]:
    texts = {"service.toml": f'name = "s"\n{service}', **{f"tables/{name}.toml": text for name, text in tables.items()}}
    return [table.name for table in parse_service(texts).tables]


def reached(service: str) -> list[str]:
    texts = {"service.toml": f'name = "s"\n{service}'}
    return [table.name for table in parse_service(texts, strict=True).tables]


def refused(text: str) -> str:
    with pytest.raises(InvalidConfiguration) as problems:
        parse_service({"service.toml": f'name = "s"\n{text}'}, strict=True)
    return str(problems.value)


def test_a_table_with_conditions_is_tried_before_one_without_wherever_it_is_declared() -> None:
    asked = {"purchases": 'name = "purchases"\nwhere = { event = "purchase" }', "others": 'name = "others"'}
    assert names("", **asked) == ["purchases", "others"]
    assert names(CATCH_ALL, purchases=asked["purchases"]) == ["purchases", "records"]
    family = '[[tables]]\nname = "{game}"\n'
    assert names(CATCH_ALL + family, purchases=asked["purchases"]) == ["purchases", "{game}", "records"]
    sql = '[[tables]]\nname = "large"\nwhere_sql = "n > 1"\ncolumns = [{ name = "n", type = "long" }]\n'
    assert names(CATCH_ALL + sql) == ["large", "records"]


def test_tables_with_conditions_keep_the_order_of_their_files() -> None:
    text = '[[tables]]\nname = "{0}"\nwhere = {{ event = "{0}" }}\n'
    assert names("".join(text.format(name) for name in "cab")) == ["c", "a", "b"]


def test_a_table_that_is_added_the_documented_way_gets_its_records() -> None:
    texts = {"service.toml": f'name = "s"\n{CATCH_ALL}', "tables/z.toml": 'name = "z"\nwhere = { event = "z" }'}
    assert route_of(parse_service(texts), {"event": "z"}, Origin()).table == "z"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ('name = "a"', 'name = "b"'),
        ('name = "a"\nwhere = { x = "1" }', 'name = "b"\nwhere = { x = "1", y = "2" }'),
        ('name = "a"\nwhere = { x = ["1", "2"] }', 'name = "b"\nwhere = { x = "2" }'),
        ('name = "a"\nwhere = { x = { prefix = "or" } }', 'name = "b"\nwhere = { x = ["order", "origin"] }'),
        ('name = "a"\nwhere = { x = { exists = true } }', 'name = "b"\nwhere = { x = { at_least = 3 } }'),
        ('name = "{game}"', 'name = "{game}_{event}"'),
        ('name = "{game}"\nwhere = { x = 1 }', 'name = "b"\nwhere = { x = 1, game = "alpha" }'),
    ],
)
def test_a_table_that_can_never_get_a_record_is_an_error(earlier: str, later: str) -> None:
    said = refused(both := f"[[tables]]\n{earlier}\n[[tables]]\n{later}\n")
    assert "never gets a record: service.toml:2: table " in said
    assert said.startswith(f"service.toml:{4 + earlier.count(chr(10))}: table ")
    assert len(names(both)) == 2, "a job that runs by such declarations is not stopped"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ('name = "a"\nwhere = { x = "1", y = "2" }', 'name = "b"\nwhere = { x = "1" }'),
        ('name = "a"\nwhere = { x = ["1", "2"] }', 'name = "b"\nwhere = { x = ["2", "3"] }'),
        ('name = "a"\nwhere = { x = { not = "1" } }', 'name = "b"\nwhere = { x = { exists = true } }'),
        ('name = "{game}"\nwhere = { x = 1 }', 'name = "b"\nwhere = { x = 1, y = 1 }'),
        ('name = "a"\nwhere_sql = "n > 1"', 'name = "b"\nwhere_sql = "n > 2"'),
        (
            'name = "a"\nexplode = "items"\ncolumns = [{ name = "id", path = "@parent.id" }]',
            'name = "b"',
        ),
    ],
)
def test_a_table_that_some_record_can_reach_is_none(earlier: str, later: str) -> None:
    assert len(reached(f"[[tables]]\n{earlier}\n[[tables]]\n{later}\n")) == 2


def test_a_service_that_was_pinned_keeps_its_order() -> None:
    """A batch that is repeated routes its records as at its first try, whatever the code would make of the files now."""
    from forebay.declaration.kept.pinned import pinned, unpinned

    plain = json.loads(json.dumps(pinned(parse_service({"service.toml": f'name = "s"\n{CATCH_ALL}'}))))
    plain["tables"].append({**plain["tables"][0], "name": "late", "where": {"event": "x"}})
    assert [table.name for table in unpinned(plain, "a batch").tables] == ["records", "late"]
