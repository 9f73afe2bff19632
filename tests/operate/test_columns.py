"""A table's columns and how they came to be, as `forebay schema show|history|diff` tell it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.log.definition import Definition
from forebay.operate.declaring.columns import Difference, TableColumn, columns_of, difference
from tests.operate.command import failed, ran

MADE = {"event": ["a"], "player": [{"id": 1, "tags": ["x"]}]}


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """One table: made, more rows, a property, two fields more, more rows."""
    place = tmp_path / "lake" / "alpha"
    write_deltalake(place, pa.table(MADE))
    write_deltalake(place, pa.table(MADE), mode="append")
    DeltaTable(place).alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
    more = pa.table({**MADE, "player": [{"id": 1, "tags": ["x"], "level": 2}], "price": [1.5]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    write_deltalake(place, more, mode="append")
    return str(tmp_path / "lake")


def declared(folder: Path, columns: str) -> str:
    (folder / "service.toml").write_text(f'name = "studio"\n[[tables]]\nname = "alpha"\ncolumns = [{columns}]\n')
    return str(folder)


def test_whole_numbers_of_32_bits_have_the_name_that_a_declaration_uses() -> None:
    fields = [
        {"name": "level", "type": "integer"},
        {"name": "levels", "type": {"type": "array", "elementType": "integer"}},
    ]
    found = columns_of(Definition(0, datetime(2026, 11, 21, tzinfo=UTC), {"type": "struct", "fields": fields}))
    assert [column.type for column in found] == ["int", "int"]


def test_columns_come_with_the_keys_that_they_are_read_from() -> None:
    inner = [{"name": "id", "type": "long", "metadata": {"forebay.fields": ["ID", "Id"]}}]
    array = {"type": "array", "elementType": {"type": "struct", "fields": inner}}
    fields = [
        {"name": "items", "type": array},
        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
    ]
    table = Definition(0, datetime(2026, 11, 21, tzinfo=UTC), {"type": "struct", "fields": fields})
    assert columns_of(table) == [TableColumn("items[].id", "long", ("ID", "Id")), TableColumn("m", "map<string, long>")]


def test_what_came_changed_went_and_moved_is_told_apart() -> None:
    def table(kinds: dict[str, str], *partitions: str) -> Definition:
        fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
        return Definition(0, datetime(2026, 11, 21, tzinfo=UTC), {"type": "struct", "fields": fields}, partitions)

    found = difference(table({"a": "long", "b": "long"}), table({"a": "double", "c": "date"}, "c"))
    assert found == Difference(("c date",), ("a long -> double",), ("b",), "none -> c")
    assert list(found.lines()) == ["+ c date", "~ a long -> double", "- b", "~ partitions: none -> c"]
    assert not difference(table({"a": "long"}), table({"a": "long"}))


def test_show_lists_the_columns_as_they_are_now(lake: str) -> None:
    lines = [line.split()[:2] for line in ran("schema", "show", "--lake", lake, "alpha").splitlines()]
    assert ["player.tags[]", "string"] in lines
    assert ["price", "double"] in lines


def test_show_has_keys_only_where_they_are_not_the_names(lake: str, tmp_path: Path) -> None:
    assert ran("schema", "show", "--lake", lake, "alpha").splitlines()[0].split() == ["column", "type"]
    spelled = pa.field("p_field", pa.string(), metadata={"forebay.fields": "P"})
    write_deltalake(tmp_path / "lake" / "beta", pa.table({"p_field": ["x"]}, schema=pa.schema([spelled])))
    lines = ran("schema", "show", "--lake", lake, "beta").splitlines()
    assert [line.split() for line in lines] == [["column", "type", "keys"], ["p_field", "string", "'P'"]]


def test_history_tells_each_version_that_changed_columns_and_no_other(lake: str) -> None:
    lines = ran("schema", "history", "--lake", lake, "alpha").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("version")] == ["0", "3"]
    assert [line.strip() for line in lines[-2:]] == ["+ player.level long", "+ price double"]


def test_history_says_where_the_log_ends(lake: str) -> None:
    DeltaTable(f"{lake}/alpha", version=1).create_checkpoint()
    for version in (0, 1):
        Path(lake, "alpha", "_delta_log", f"{version:020}.json").unlink()
    assert "as far back as its log goes" in ran("schema", "history", "--lake", lake, "alpha").splitlines()[0]


def test_diff_tells_the_last_change_and_what_the_declaration_would_change(lake: str, tmp_path: Path) -> None:
    service = declared(
        tmp_path, '{ name = "event" }, { name = "price", type = "long" }, { name = "day", type = "date" }'
    )
    lines = [line.strip() for line in ran("schema", "diff", "--lake", lake, "alpha", "--service", service).splitlines()]
    assert lines[:4] == ["version 2 -> 4", "+ player.level long", "+ price double", "version 4 -> declaration"]
    assert lines[4].startswith("table alpha: column price: is double in the table but declared long")
    assert lines[5].startswith(
        "table alpha: column day: is declared date but is not in the table (the next rows add it"
    )
    assert len(lines) == 6


def test_diff_tells_what_lies_between_any_two_versions(lake: str, tmp_path: Path) -> None:
    asked = ("schema", "diff", "--lake", lake, "alpha", "--service", declared(tmp_path, ""))
    same = [line.strip() for line in ran(*asked, "--from", "0", "--to", "2").splitlines()]
    assert same == ["version 0 -> 2", "nothing differs", "version 4 -> declaration", "nothing differs"]
    back = [line.strip() for line in ran(*asked, "--from", "3", "--to", "1").splitlines()]
    assert back[1:3] == ["- player.level", "- price"]
    assert "has no version 9 in its log (it has 0 to 4)" in failed(2, *asked, "--to", "9")


def test_diff_of_a_table_whose_columns_never_changed_says_so(lake: str, tmp_path: Path) -> None:
    asked = ("schema", "diff", "--lake", lake, "alpha", "--service", declared(tmp_path, ""))
    assert ran(*asked, "--to", "2").splitlines()[0] == "version 2: the columns have not changed since version 0"


def test_a_table_that_is_not_there_is_named(lake: str) -> None:
    for command in ("show", "history", "diff"):
        assert "table gamma: is not in" in failed(2, "schema", command, "--lake", lake, "gamma")
