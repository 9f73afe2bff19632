"""What tables declare does not multiply: Spark's plan of a batch grows with them, and no quicker."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from forebay.landed_file import LandedFile
from tests.batch.world import World

TABLES = range(12)
COMPUTED = 'columns = [{ name = "n", type = "long" }, { name = "id", expression = "concat(\'id \', n)" }]'
READ = 'columns = [{ name = "n", type = "long" }, { name = "id" }]'


def declared(number: int) -> str:
    return f"""
[[tables]]
name = "t{number}"
where = {{ kind = "k{number}" }}
{COMPUTED if number % 4 == 3 else READ}
dedupe = {{ by = ["id"], days = 7 }}
[tables.expectations]
small = {{ check = "n < 3", on_violation = "quarantine" }}
"""


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    records = [{"kind": f"k{table}", "n": n, "id": str(n)} for table in TABLES for n in (1, 1, 2, 3)]
    content = "\n".join(map(json.dumps, records)).encode()
    service = 'name = "many"\n' + "".join(map(declared, TABLES))
    return World(spark, lake, monkeypatch, service=service, answers={"a.json": content, "b.json": content})


def test_a_dozen_tables_that_leave_duplicates_out_and_check_rows_are_loaded(world: World) -> None:
    for number, key in enumerate(("a.json", "b.json")):
        world.try_batch(number, [LandedFile("landing", key, 100, key)])
    for table in TABLES:
        assert sorted(row["n"] for row in world._table(f"t{table}")) == [1, 2]
    first, second = (world.ledger()[key] for key in ("a.json", "b.json"))
    assert (first["written"], first["dropped"], first["quarantined"]) == (24, 12, 12)
    assert (second["written"], second["dropped"], second["quarantined"]) == (0, 36, 12)
