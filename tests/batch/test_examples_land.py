"""Recipes of `examples/` in one batch of the job: rows, columns and counts are what `forebay try` says, for every reader.

Here each recipe is a feed of one service, with a folder of the bucket and tables of its own: so one batch loads all of them.
Others are loaded in `tests/journey`, with what becomes of their rows.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.declaration.loading import parse_service
from forebay.lake.rows import python_rows
from forebay.landed_file import LandedFile
from forebay.operate.lake_view import rows_of
from forebay.operate.trying.samples import read_samples
from forebay.operate.trying.trial import TrialTable, try_out
from forebay.record.kind import columns_of_json, leaves
from forebay.transforms import use_folder
from tests.batch.world import World
from tests.duckdb_apart import ask_duckdb
from tests.test_examples import EXAMPLES, PARKED
from tests.test_examples import ROWS as ALL_ROWS

IN_JOURNEYS = {"current-state", "daily-snapshot", "debezium", "debezium-mysql", "dimension", "gold-rollup"}
ROWS = {recipe: rows for recipe, rows in ALL_ROWS.items() if recipe not in IN_JOURNEYS}

Row = dict[str, Any]
HELD_AS = {"json": "string", "int": "integer", "map": {"type": "map"}}
OWN = {"_file_id", "_line", "_batch", "_ingested_at", "_rescued"}


@pytest.mark.deep
def test_every_recipe_lands_as_it_was_tried_and_every_reader_sees_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for recipe in ROWS:
        shutil.copytree(EXAMPLES / recipe / "samples", tmp_path / "samples" / recipe)
    use_folder(str(EXAMPLES / "python-step"))
    service = parse_service({"service.toml": all_recipes()})
    samples = read_samples([str(tmp_path / "samples")], service)
    trial = try_out(service, samples)
    contents = {end.file.key: Path(end.file.etag).read_bytes() for end in samples.ends}
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=all_recipes(), answers=dict(contents))
    world.try_batch(0, [LandedFile("landing", key, len(content), key) for key, content in contents.items()])

    assert {tried.name: tried.rows for tried in trial.tables} == dict(promised())
    for tried in trial.tables:
        lands_as_tried(tried, DeltaTable(f"{tmp_path}/lake/{tried.name}"))
    fates = {key: (row["records"], row["quarantined"], row["parked"]) for key, row in world.ledger().items()}
    parked = dict.fromkeys(ROWS, 0) | PARKED
    assert {file["file"]: file["records"] for file in trial.files if file["outcome"] == "loaded"} == {
        key: records for key, (records, _, _) in fates.items()
    }
    told = {recipe: sum(n for key, (_, _, n) in fates.items() if key.startswith(f"{recipe}/")) for recipe in ROWS}
    assert (told, {quarantined for _, quarantined, _ in fates.values()}) == (parked, {0})
    world.tables_agree_with_the_ledger(*(tried.name for tried in trial.tables))
    values_are_typed(f"{tmp_path}/lake")


def lands_as_tried(tried: TrialTable, table: DeltaTable) -> None:
    rows = table.to_pyarrow_table()
    filled = {
        name: len(column) - column.null_count for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    assert (rows.num_rows, filled["_rescued"]) == (tried.rows, tried.rescued), tried.name
    declared = {column.name: column for column in tried.columns if column.source is not None}
    assert {name: filled[name] for name, column in declared.items() if column.filled is not None} == {
        name: column.filled for name, column in declared.items() if column.filled is not None
    }, tried.name
    schema = json.loads(table.schema().to_json())
    held = {field["name"]: kind_of(field["type"]) for field in schema["fields"]}
    assert {name: held[name] for name in declared} == {
        name: HELD_AS.get(column.type, column.type) for name, column in declared.items()
    }, tried.name
    found = {
        ".".join(path).replace(".[]", "[]"): str(kind)
        for path, kind in leaves(columns_of_json(schema))
        if path[0] not in declared
    }
    assert {name: kind for name, kind in found.items() if name not in OWN} == {
        column.name: column.type for column in tried.columns if column.source is None
    }, tried.name
    expected = in_order(python_rows(rows))
    assert {reader: in_order(read(table)) for reader, read in READERS.items()} == dict.fromkeys(READERS, expected)


def kind_of(type_: Any) -> Any:
    return type_ if isinstance(type_, str) else {"type": type_["type"]}


def by_duckdb(table: DeltaTable) -> list[Row]:
    """The live files of the log: DuckDB's own reader of Delta is an extension, which it downloads."""
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    names = ", ".join(f'"{field.name}"' for field in table.schema().fields)
    asked = f"select {names} from read_parquet($files, hive_partitioning = true, union_by_name = true)"
    found = ask_duckdb(asked, parameters={"files": files})
    return python_rows(found.cast(table.to_pyarrow_table().schema))


READERS: dict[str, Callable[[DeltaTable], list[Row]]] = {
    "DuckDB": by_duckdb,
    "SQL by delta-rs": lambda table: rows_of(table, "select * from t"),
}


def in_order(rows: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in rows)


def values_are_typed(lake: str) -> None:
    """What recipes promise of values that neither JSON nor CSV can hold."""
    wanted: dict[str, Row] = {
        "csv_export__orders": {
            "order_id": "0007", "ordered_at": datetime(2026, 11, 21, 8, 15, tzinfo=UTC), "amount": Decimal("19.90"),
            "quantity": 1, "express": True,
        },
        "warehouse_unload__players": {
            "player": 9007199254740992, "balance": Decimal("12345678901.2345"), "born": date(1990, 1, 1),
            "last_seen": datetime(2026, 11, 20, 10, 30, 0, 123456, tzinfo=UTC),
        },
        "stripe_webhooks__invoices": {
            "created": datetime(2026, 11, 22, 10, tzinfo=UTC), "day": date(2026, 11, 22), "amount_due": 1999,
            "first_line": "il_0", "metadata": [("order_0", "x")],
        },
        "shop_orders__order_lines": {"order_id": "o-1", "position": 0, "sku": "tea", "price": Decimal("4.50")},
    }  # fmt: skip
    for table, values in wanted.items():
        rows = rows_of(DeltaTable(f"{lake}/{table}"), "select * from t")
        assert values in [{name: row[name] for name in values} for row in rows], table


def table_of(recipe: str, name: str) -> str:
    return f"{recipe.replace('-', '_')}__{name}"


def promised() -> Iterator[tuple[str, int]]:
    for recipe, tables in ROWS.items():
        yield from ((table_of(recipe, name), rows) for name, rows in tables.items())


def all_recipes() -> str:
    """One service. Of a recipe without feeds, the envelope becomes a feed."""
    feeds: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []
    for recipe in ROWS:
        said = tomllib.loads((EXAMPLES / recipe / "service.toml").read_text())
        for feed in said.get("feeds") or [{"name": recipe, "prefix": "", **said.get("envelope", {})}]:
            places = {name: f"{recipe}/{feed[name]}" for name in ("prefix", "key") if name in feed}
            feeds.append(feed | places)
        for table in said["tables"]:
            mine = {"name": table_of(recipe, table["name"]), "where": {"@feed": recipe} | table.get("where", {})}
            tables.append(table | mine)
    return f'name = "recipes"\nfeeds = {toml(feeds)}\ntables = {toml(tables)}\n'


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)
