"""Where a table is not what is declared of it, from its log: every way in which it can differ, and what comes of each."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.declaration.loading import parse_service
from forebay.declaration.service import declaration_of
from forebay.errors import InvalidConfiguration
from forebay.lake.log.definition import Definition
from forebay.operate.declaring.drift import drift
from forebay.operate.declaring.settle import must_have_no_feed
from tests.operate.command import failed, ran
from tests.operate.ledger import write_ledger

SETTLE = "`forebay schema settle purchases`"
KEPT = "rows for it wait in the quarantine"


def field(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


OURS = [
    field("_file_id", "string"),
    field("_line", "long"),
    field("_batch", "long"),
    field("_ingested_at", "timestamp"),
    field("_rescued", "string"),
]
EVERYTHING = """columns = [
  { name = "s" }, { name = "j", type = "json" }, { name = "m", type = "map" }, { name = "i", type = "int" },
  { name = "l", type = "long" }, { name = "f", type = "float" }, { name = "d", type = "double" },
  { name = "t", type = "timestamp" }, { name = "day", type = "date" }, { name = "y", type = "binary" },
  { name = "b", type = "boolean" }, { name = "p", type = "decimal(18,2)" },
  { name = "spots", type = "array<struct<x: int, tags: map>>" },
]"""
MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}


def told(declared: str, *fields: dict[str, Any], **table: Any) -> list[tuple[str, bool]]:
    service = parse_service({"service.toml": f'name = "studio"\n[[tables]]\nname = "purchases"\n{declared}\n'})
    schema = {"type": "struct", "fields": [*fields, *OURS]}
    found = Definition(3, datetime(2026, 11, 21, tzinfo=UTC), schema, **table)
    said = drift("purchases", declaration_of(service, "purchases"), found)
    return [(str(one.problem).removeprefix("table purchases: "), one.by_itself) for one in said]


def array(of: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": of, "containsNull": True}


def test_a_table_that_is_as_declared_differs_in_nothing() -> None:
    kinds = {"s": "string", "j": "string", "m": MAP, "i": "integer", "l": "long", "f": "float", "d": "double"}
    kinds |= {"b": "boolean", "t": "timestamp", "day": "date", "y": "binary", "p": "decimal(18,2)"}
    kinds |= {"spots": array({"type": "struct", "fields": [field("x", "integer"), field("tags", MAP)]})}
    fields = [field(name, kind) for name, kind in kinds.items()]
    assert told(EVERYTHING, *fields, field("of_the_data", {"type": "struct", "fields": []})) == []


def test_a_declared_column_that_is_not_there_comes_by_itself() -> None:
    says = f"the next rows add it; {SETTLE} fills it for old ones"
    assert told('columns = [{ name = "price", type = "double" }]') == [
        (f"column price: is declared double but is not in the table ({says})", True)
    ]


@pytest.mark.parametrize(
    ("found", "declared", "then"),
    [
        ("long", "double", f"run {SETTLE}"),
        ("string", "timestamp", f"run {SETTLE}"),
        ("long", "timestamp", f"run {SETTLE}"),
        ("decimal(10,2)", "decimal(18,2)", f"run {SETTLE}"),
        ({"type": "struct", "fields": [field("x", "long")]}, "map", f"run {SETTLE}"),
        ({"type": "array", "elementType": "long", "containsNull": True}, "json", f"run {SETTLE}"),
        (MAP, "string", f"run {SETTLE}"),
        ("string", "array<string>", f"run {SETTLE}"),
        (array("long"), "array<string>", f"run {SETTLE}"),
        ({"type": "struct", "fields": [field("X", "long")]}, "struct<x:long>", f"run {SETTLE}"),
        (MAP, "struct<x:long>", f"run {SETTLE}"),
        ("long", "array<long>", f"{SETTLE} would rescue all its values"),
        (array("long"), "struct<x:long>", f"{SETTLE} would rescue all its values"),
        ("boolean", "struct<x:long>", f"{SETTLE} would rescue all its values"),
        ("boolean", "date", f"{SETTLE} would rescue all its values, for none is a date"),
        ("timestamp", "long", f"{SETTLE} would rescue all its values, for none is a long"),
        (MAP, "long", f"{SETTLE} would rescue all its values, for none is a long"),
        ({"type": "array", "elementType": "long", "containsNull": True}, "map", "would rescue all its values"),
    ],
)
def test_of_another_type_it_is_said_whether_its_values_can_get_there(found: Any, declared: str, then: str) -> None:
    [(said, by_itself)] = told(f'columns = [{{ name = "x", type = "{declared}" }}]', field("x", found))
    assert said.startswith("column x: is ")
    assert f"declared {declared}" in said
    assert KEPT in said
    assert then in said
    assert not by_itself


def test_a_declared_field_of_a_struct_comes_by_itself_and_an_undeclared_one_stays() -> None:
    found = array({"type": "struct", "fields": [field("x", "double"), field("z", "long")]})
    says = f"is declared but is not in the table (the next rows add it; {SETTLE} fills it for old ones)"
    assert told('columns = [{ name = "at", type = "array<struct<x: double, y: double>>" }]', field("at", found)) == [
        (f"field at[].y: {says}", True)
    ]


@pytest.mark.parametrize(("partitions", "by_itself"), [((), True), (("x",), False)])
def test_a_wider_type_comes_by_itself_where_it_may_and_not_in_a_partition(
    partitions: tuple[str, ...], by_itself: bool
) -> None:
    declared = 'type_widening = true\ncolumns = [{ name = "x", type = "long" }, { name = "y" }]\n'
    declared += f"partitions = {list(partitions)}"
    found = told(declared, field("x", "integer"), field("y", "string"), partition_columns=partitions)
    assert [one for _, one in found] == [by_itself]


def test_a_declared_property_comes_by_itself() -> None:
    declared = 'properties = { "delta.enableChangeDataFeed" = "true", owner = "growth" }'
    assert told(declared, configuration={"owner": "growth", "other": "x"}) == [
        (
            "delta.enableChangeDataFeed: is not set in the table but declared true (the next rows add it)",
            True,
        )
    ]


def test_a_table_with_a_change_feed_is_not_settled() -> None:
    must_have_no_feed("s3://lake/a", {"delta.enableChangeDataFeed": "false"})
    with pytest.raises(InvalidConfiguration, match=r"s3://lake/a.* has a change feed[^\n]*pause the table"):
        must_have_no_feed("s3://lake/a", {"delta.enableChangeDataFeed": "true"})


def test_every_other_reason_for_which_a_table_takes_no_rows_is_told_at_once() -> None:
    fields = [field("level", "long"), field("must", "string", nullable=False)]
    fields += [field("made", "long", **{"delta.generationExpression": "level + 1"}), field("region", "string")]
    configuration = {"delta.columnMapping.mode": "name", "delta.constraints.positive": "level > 0"}
    found = told(
        'columns = [{ name = "Level", type = "long" }, { name = "must" }]',
        *fields,
        configuration=configuration,
        partition_columns=("region",),
    )
    assert [said.partition(" (")[0] for said, _ in found] == [
        "delta.columnMapping.mode: is on, but forebay appends only by the columns' own names",
        "constraint positive: binds writers, but forebay does not check it",
        "partitions: region: is a partition column of the table but is not declared",
        "partitions: are region in the table but declared none",
        "column Level: is called level in the table, and many readers are case-sensitive",
        "column must: may not be null in the table",
        "column made: is a generated column, which forebay does not write",
    ]
    assert not any(by_itself for _, by_itself in found)


def test_a_column_of_ours_that_somebody_else_made_is_named() -> None:
    service = parse_service({"service.toml": 'name = "studio"\n[[tables]]\nname = "purchases"\n'})
    schema = {"type": "struct", "fields": [field("_line", "integer"), *OURS[2:]]}
    found = Definition(0, datetime(2026, 11, 21, tzinfo=UTC), schema)
    [one] = drift("purchases", service.tables[0], found)
    assert str(one.problem).startswith(
        "table purchases: column _line: is int, but forebay's column of this name is long"
    )


def test_another_layout_stays_until_somebody_changes_it() -> None:
    columns = 'columns = [{ name = "day", type = "date" }, { name = "player" }]\n'
    fields = [field("day", "date"), field("player", "string")]
    moved = f"{SETTLE} moves its rows"
    assert told(columns + 'partitions = ["day"]', *fields) == [
        (f"partitions: are none in the table but declared day ({moved})", False)
    ]
    assert told(columns + 'partitions = ["day"]', *fields, cluster_columns=("player",)) == [
        (f"partitions: are none in the table but declared day (ALTER TABLE ... CLUSTER BY NONE, then {moved})", False)
    ]
    assert told(columns + 'cluster_by = ["player"]', *fields) == [
        ("cluster_by: is nothing in the table but declared player (ALTER TABLE ... CLUSTER BY (player))", False)
    ]
    assert told(columns, *fields, cluster_columns=("player",)) == [
        ("cluster_by: is player in the table but declared nothing (ALTER TABLE ... CLUSTER BY NONE)", False)
    ]


def test_the_tables_of_a_lake_are_looked_at_together(tmp_path: Path) -> None:
    def made(name: str, **columns: list[Any]) -> None:
        write_deltalake(tmp_path / "lake" / name, pa.table(columns))

    made("alpha", level=[1])
    made("beta", level=["one"])
    made("purchases", price=[1.5])
    made("strange", x=[1])
    made("delta", level=[1])
    (tmp_path / "lake" / "delta" / "_delta_log" / f"{0:020}.json").rename(
        tmp_path / "lake" / "delta" / "_delta_log" / f"{7:020}.json"
    )
    (tmp_path / "lake" / "epsilon").mkdir()
    write_ledger(tmp_path / "lake")
    lake, declared = str(tmp_path / "lake"), tmp_path / "service.toml"
    declared.write_text(
        """
        name = "studio"
        [[tables]]
        name = "purchases"
        where = { event = "purchase" }
        columns = [{ name = "price", type = "double" }]
        [[tables]]
        name = "{game}a"
        columns = [{ name = "level", type = "long" }, { name = "day", type = "date" }]
        """
    )
    said = failed(2, "tables", "check", str(tmp_path), "--lake", lake).splitlines()
    assert said[0].endswith("2 declarations, nothing wrong in the files")
    comes = "column day: is declared date but is not in the table (the next rows add it; `forebay schema settle"
    assert [
        line.startswith(f"  table {name}: {comes}") for name, line in zip(("alpha", "beta"), said[1:], strict=False)
    ]
    assert said[3] == "  table strange: no declaration defines it, so nothing is written to it"
    assert [line.partition(" (")[0] for line in said[4:]] == [
        "forebay: table beta: column level: is string in the table but declared long",
        "forebay: table delta: cannot be read",
    ]
    assert "the commit of version 0 is missing" in said[5]
    for name in ("beta", "delta"):
        shutil.rmtree(tmp_path / "lake" / name)
    assert ran("tables", "check", str(tmp_path), "--lake", lake).splitlines()[-1] == (
        f"{lake}: 2 tables, all as declared, or will be with their next rows"
    )


def test_states_and_rollups_are_declared_tables_too(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(
        """
        name = "studio"
        [[tables]]
        name = "changes"
        mode = "merge"
        columns = [{ name = "id" }, { name = "at", type = "timestamp" }]
        merge = { into = "players", keys = ["id"], sequence_by = ["at"] }
        [[rollups]]
        name = "counts"
        tables = ["changes"]
        group_by = { id = "id" }
        columns = { n = "count(*)" }
        """
    )
    lake = str(tmp_path / "lake")
    for name in ("players", "counts", "strange"):
        write_deltalake(Path(lake, name), pa.table({"n": [1]}))
    said = ran("tables", "check", str(tmp_path), "--no-sql", "--lake", lake)
    assert [line for line in said.splitlines() if "no declaration" in line] == [
        "  table strange: no declaration defines it, so nothing is written to it"
    ]
