"""The elements of an exploded array stand in their table exactly once, as the records that they lie in do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.retrying.moving import Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from tests.batch.world import Died, World

SERVICE = """
name = "shop"
overwritten = "replace"
[[tables]]
name = "orders"
where = { id = { exists = true } }
columns = [{ name = "id" }, { name = "object_key", path = "@key" }]
[[tables]]
name = "lines"
explode = "items"
where = { "@parent.kind" = "sale" }
columns = [
  { name = "order_id", path = "@parent.id" }, { name = "position", type = "int", path = "@ordinal" },
  { name = "price", type = "decimal(9,2)" },
]
dedupe = { by = ["order_id", "position"], days = 3 }
"""


def order(number: str, *prices: Any, kind: str = "sale") -> str:
    items = [price if price is None else {"price": price, "sku": f"of {number}"} for price in prices]
    return json.dumps({"id": number, "kind": kind, "items": items}) + "\n"


def lines_of(world: World) -> list[tuple[Any, ...]]:
    return sorted((row["order_id"], row["position"], str(row["price"])) for row in world._table("lines"))


@pytest.mark.deep
def test_elements_survive_a_crash_a_pause_a_retry_a_duplicate_and_a_new_version_of_their_file(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, lake, monkeypatch, service=SERVICE)
    world.answers = {"a.json": (order("1", 1.5, None, 2) + order("2", 3, kind="gift")).encode()}
    world.paused = ("lines",)
    with pytest.raises(Died):
        world.try_batch(0, [world.file("a.json")], dies_after=1)
    world.try_batch(0, [world.file("a.json")])
    (entry,) = world.entries()
    counts = {name: entry[name] for name in ("records", "written", "quarantined", "parked", "dropped")}
    # Two orders; of their four elements two wait, one is no object, and one is of an order that the table does not want.
    assert counts == {"records": 6, "written": 2, "quarantined": 3, "parked": 0, "dropped": 1}
    world.tables_agree_with_the_ledger("orders", "lines")

    retry = Retry(spark, parse_service({"service.toml": SERVICE}), lake=world.lake, emit=world.events.append)
    assert retry.run(Choice("quarantine", reason="paused")) == Retried(2, {"lines": 2})
    retry.logs.close()
    assert lines_of(world) == [("1", 0, "1.50"), ("1", 2, "2.00")]
    world.tables_agree_with_the_ledger("orders", "lines")

    world.paused = ()
    world.answers["b.json"] = order("1", 1.5, 7, 8, 9).encode()
    world.try_batch(1, [world.file("b.json")])
    assert lines_of(world) == [("1", 0, "1.50"), ("1", 1, "7.00"), ("1", 2, "2.00"), ("1", 3, "9.00")]

    world.answers["a.json"], world.etags["a.json"] = order("5", 5).encode(), "a.json-2"
    world.try_batch(2, [world.file("a.json", 2)])
    assert lines_of(world) == [("1", 1, "7.00"), ("1", 3, "9.00"), ("5", 0, "5.00")]
    columns = set(world._table("lines")[0])
    assert columns == {
        "order_id",
        "position",
        "price",
        "sku",
        "_file_id",
        "_line",
        "_batch",
        "_ingested_at",
        "_rescued",
    }
    world.tables_agree_with_the_ledger("orders", "lines")
