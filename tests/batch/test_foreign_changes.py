"""A person changes a table by hand while the driver runs: its columns, its properties, its versions, between batches and in the
middle of one. A batch loads its rows, or its rows are held with a reason while other tables go on. No row is lost or comes
twice, and the ledger agrees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.events import TableFailed
from forebay.batch.writing import Writing
from tests.batch.world import World

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }, { name = "level", type = "int" }]
"""
LOADED, HELD = "loaded", "held"
Change = Callable[[SparkSession, str], None]


def setting(*properties: str) -> str:
    pairs = ("'delta.{}' = '{}'".format(*one.split(" = ")) for one in properties)
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ({', '.join(pairs)})"


def made_anew(*columns: tuple[str, str, dict[str, object]], partitions: str = "") -> Change:
    """The table with other columns. They begin without rows."""

    def change(spark: SparkSession, path: str) -> None:
        from delta.tables import DeltaTable

        builder = DeltaTable.replace(spark).location(path)
        for name, kind, more in columns:
            builder = builder.addColumn(name, kind, **more)  # type: ignore[arg-type]
        (builder.partitionedBy(partitions) if partitions else builder).execute()

    return change


ID, LEVEL = ("event_id", "string", dict[str, object]()), ("level", "int", dict[str, object]())
MAPPED = setting("columnMapping.mode = name", "minReaderVersion = 2", "minWriterVersion = 5")
CHANGES: dict[str, tuple[list[str | Change], str]] = {
    "a column": (["ALTER TABLE {t} ADD COLUMNS (region string)"], LOADED),
    "a column at the front": (["ALTER TABLE {t} ADD COLUMNS (region string FIRST)"], LOADED),
    "the order of columns": (["ALTER TABLE {t} ALTER COLUMN level FIRST"], LOADED),
    "a comment": (["ALTER TABLE {t} ALTER COLUMN level COMMENT 'how far'", "COMMENT ON TABLE {t} IS 'ours'"], LOADED),
    "a wider type": ([setting("enableTypeWidening = true"), "ALTER TABLE {t} ALTER COLUMN level TYPE bigint"], HELD),
    "a constraint": (["ALTER TABLE {t} ADD CONSTRAINT some CHECK (level > 0)"], HELD),
    "column mapping": ([MAPPED], HELD),
    "a renamed column": ([MAPPED, "ALTER TABLE {t} RENAME COLUMN level TO height"], HELD),
    "a dropped column": ([MAPPED, "ALTER TABLE {t} DROP COLUMN level"], HELD),
    "append only": ([setting("appendOnly = true")], LOADED),
    "deletion vectors": ([setting("enableDeletionVectors = true"), "DELETE FROM {t} WHERE level = 1"], LOADED),
    "row tracking": ([setting("enableRowTracking = true")], LOADED),
    "in-commit timestamps": ([setting("enableInCommitTimestamps = true")], LOADED),
    "a change feed": ([setting("enableChangeDataFeed = true"), "UPDATE {t} SET level = 9"], LOADED),
    "clustering": (["ALTER TABLE {t} CLUSTER BY (level)"], LOADED),
    "random prefixes": ([setting("randomizeFilePrefixes = true")], LOADED),
    "checkpoints of version 2": ([setting("checkpointPolicy = v2", "checkpointInterval = 1"), "OPTIMIZE {t}"], LOADED),
    "an order": (["OPTIMIZE {t} ZORDER BY (level)"], LOADED),
    "a vacuum of all": (["OPTIMIZE {t}", "VACUUM {t} RETAIN 0 HOURS"], LOADED),
    "no rows": (["DELETE FROM {t}"], LOADED),
    "an earlier version": (["DELETE FROM {t}", "RESTORE TABLE {t} TO VERSION AS OF 0"], LOADED),
    "a feature of writers": ([setting("feature.checkConstraints = supported")], LOADED),
    "a nested column": (["ALTER TABLE {t} ADD COLUMNS (more struct<a: int, b: array<string>>)"], LOADED),
    "a column of ours with another type": (["ALTER TABLE {t} ADD COLUMNS (extra int)"], LOADED),
    "a default": (
        [setting("feature.allowColumnDefaults = supported"), "ALTER TABLE {t} ALTER COLUMN level SET DEFAULT 7"],
        LOADED,
    ),
    "a generated column": ([made_anew(ID, LEVEL, ("tens", "int", {"generatedAlwaysAs": "level"}))], HELD),
    "a column that is never null": ([made_anew(ID, LEVEL, ("region", "string", {"nullable": False}))], HELD),
    "a column that our rows always have": ([made_anew(("event_id", "string", {"nullable": False}), LEVEL)], HELD),
    "another type": ([made_anew(("event_id", "bigint", {}), LEVEL)], HELD),
    "other partitions": ([made_anew(ID, LEVEL, partitions="level")], LOADED),
}

BEHIND_THE_PLAN = [
    "a wider type",
    "a constraint",
    "a renamed column",
    "deletion vectors",
    "in-commit timestamps",
    "a change feed",
    "checkpoints of version 2",
    "an earlier version",
    "a column of ours with another type",
    "a generated column",
    "a column that is never null",
    "another type",
    "other partitions",
]
"""Those that a commit may meet: another protocol, another log, other columns, other files."""


def lines(*records: dict[str, object]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in records).encode()


def event(game: str, n: int) -> dict[str, object]:
    more = {"extra": "text"} if n > 2 else {}
    return {"game": game, "event_id": f"{game}-{n}", "level": n, "score": n, **more}


@pytest.fixture
def by_hand(spark: SparkSession) -> Iterator[None]:
    """A person also has the old way of naming a path, which replaces a table that no catalog knows."""
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.legacy.allowAmbiguousPathsInCreateTable": "true",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.deep
@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("ends", [LOADED, HELD])
def test_the_next_batch_loads_the_rows_of_changed_tables_or_holds_them(
    ends: str, spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {what: statements for what, (statements, its_end) in CHANGES.items() if its_end == ends}
    held, why = three_batches(World(spark, lake, monkeypatch, service=SERVICE), changes)
    assert {what: HELD if held[what] else LOADED for what in changes} == dict.fromkeys(changes, ends), why


@pytest.mark.deep
@pytest.mark.usefixtures("by_hand")
def test_a_batch_that_has_its_plan_loads_the_rows_of_changed_tables_or_holds_them(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the tables are written then, for the columns that they had. A vacuum that retains nothing deletes them, and
    a driver that starts says so: see `must_have_files`."""
    changes = {what: CHANGES[what][0] for what in BEHIND_THE_PLAN}
    three_batches(World(spark, lake, monkeypatch, service=SERVICE), changes, behind_the_plan=True)


def three_batches(
    world: World, changes: dict[str, list[str | Change]], *, behind_the_plan: bool = False
) -> tuple[dict[str, list[str]], list[str]]:
    """Each change is of a table of its own. A person is at work before the second batch, or right before its commits. What is
    held, by change, and why."""
    spark, lake, commit = world.spark, world.lake, Writing.commit
    tables = {what: f"alpha_{number}" for number, what in enumerate(changes)}
    left = [(tables[what], change) for what, some in changes.items() for change in some]

    def somebody() -> None:
        while left:
            table, change = left.pop(0)
            if isinstance(change, str):
                spark.sql(change.format(t=f"delta.`{lake}/{table}`"))
            else:
                change(spark, f"{lake}/{table}")

    def meanwhile(writing: Writing, *given: Any) -> Any:
        if writing.txn.version == 1:
            somebody()
        return commit(writing, *given)

    def of_all(*numbers: int) -> list[dict[str, object]]:
        return [event(table, number) for table in tables.values() for number in numbers]

    world.answers = {
        "a.json": lines(*of_all(1, 2)),
        "b.json": lines(*of_all(3), event("beta", 3)),
        "c.json": lines(*of_all(4), event("beta", 4)),
    }
    batch = world.batch()
    try:
        process(world, batch, 0, "a.json")
        if not behind_the_plan:
            somebody()
        world.monkeypatch.setattr(Writing, "commit", meanwhile)
        process(world, batch, 1, "b.json")
        process(world, batch, 2, "c.json")
    finally:
        batch.close()
    assert not left
    quarantine = [json.loads(row.record)["event_id"] for row in quarantined(spark, lake)]
    held = {what: [one for one in quarantine if one.startswith(f"{table}-")] for what, table in tables.items()}
    for what, table in tables.items():
        rows = spark.read.format("delta").load(f"{lake}/{table}").select("event_id").collect()
        found = Counter(str(row.event_id) for row in rows)
        for n in (3, 4):
            assert found[f"{table}-{n}"] + held[what].count(f"{table}-{n}") == 1, what
    assert world.rows_of("beta") == {"b.json": 1, "c.json": 1}
    return held, [one.error for one in world.events if isinstance(one, TableFailed)]


def process(world: World, batch: object, number: int, key: str) -> None:
    batch.load([world.file(key)], number)  # type: ignore[attr-defined]


def quarantined(spark: SparkSession, lake: str) -> list[Any]:
    from delta.tables import DeltaTable

    place = f"{lake}/_forebay/quarantine"
    return spark.read.format("delta").load(place).collect() if DeltaTable.isDeltaTable(spark, place) else []
