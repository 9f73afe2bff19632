"""One mistake hides no other: all files of a service, and all tables, are compared before a person reads about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.declaration.loading import load_service
from forebay.errors import InvalidConfiguration
from tests.declaration.test_mistakes import said, table


def test_a_file_that_is_not_read_hides_no_mistake_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(table("oder_by = []"))
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/a.yaml").write_text("name: a")
    (tmp_path / "tables/b.toml").write_bytes('name = "caf\xe9"'.encode("latin-1"))
    (tmp_path / "tables/c.toml").write_text('name = "C"')
    (tmp_path / "rollups").mkdir()
    (tmp_path / "rollups/r.toml").write_text(
        'name = "r"\ntables = ["a"]\ngroup_by = { x = "x" }\ncolumns = { n = "count(*)" }\n'
    )
    with pytest.raises(InvalidConfiguration) as refused:
        load_service(str(tmp_path))
    assert [problem.where for problem in refused.value.problems] == [
        "tables/a.yaml",
        "tables/b.toml",
        "service.toml:4: table sales: oder_by",
        "tables/c.toml:1: table C",
    ]


def test_a_folder_whose_service_is_yaml_is_told_so_with_the_mistakes_of_its_tables(tmp_path: Path) -> None:
    (tmp_path / "service.yaml").write_text("name: s")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/a.toml").write_text('name = "A"')
    with pytest.raises(InvalidConfiguration) as refused:
        load_service(str(tmp_path))
    assert [problem.where for problem in refused.value.problems] == ["service.yaml", "tables/a.toml:1: table A"]


def test_a_list_whose_only_value_is_wrong_is_not_called_empty_too() -> None:
    for only, wrong in (('["done"]', "only.0: must be 'loaded'"), ("[]", "only: must not be empty")):
        (problem,) = said(table("").replace("[[", f"after_load = {{ delete = true, only = {only} }}\n[[", 1))
        assert wrong in problem


def test_a_folder_whose_only_table_cannot_be_read_is_not_told_that_it_declares_none(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "s"')
    (tmp_path / "tables").mkdir()
    for name in ("a.yaml", "b.toml"):
        (tmp_path / "tables" / name).write_text("name: a")
    with pytest.raises(InvalidConfiguration) as refused:
        load_service(str(tmp_path))
    assert [problem.where for problem in refused.value.problems] == ["tables/a.yaml", "tables/b.toml:1"]


@pytest.mark.parametrize(
    "wrong",
    [
        'name = "a"\nwhere = { x = 1 }\noder_by = []',
        'name = "a"\nwhere = { x = 1 }\npartitions = ["day"]',
        'name = "a"\nwhere = { x = "1" }\ncolumns = [{ name = "n", type = "nmuber" }]',
    ],
)
def test_a_table_that_is_declared_twice_is_named_though_it_has_other_mistakes(wrong: str) -> None:
    found = said('name = "s"\n[[tables]]\nname = "a"\nwhere = { x = 1 }', b=wrong)
    assert len(found) == 2
    assert found[1] == (
        "tables/b.toml:1: table a: is declared twice with the same `where`, also at service.toml:2: table a (remove one)"
    )


def test_a_table_of_elements_that_is_declared_twice_is_named() -> None:
    text = 'name = "a"\nexplode = "items"\n'
    found = said('name = "s"', a=text + 'columns = [{ name = "id", path = "@parent.id" }]', b=text)
    assert found[1].startswith(
        "tables/b.toml:1: table a: is declared twice with the same `where`, also at tables/a.toml:1"
    )


@pytest.mark.parametrize(
    "wrong", ['name = "a"\nwhere = { x = 2 }\noder_by = []', 'name = "a"\nwhere = "x"', "name = 1"]
)
def test_a_table_with_mistakes_that_may_take_other_records_is_not_declared_twice(wrong: str) -> None:
    found = said('name = "s"\n[[tables]]\nname = "a"\nwhere = { x = 1 }', b=wrong)
    assert not [one for one in found if "declared twice" in one]
