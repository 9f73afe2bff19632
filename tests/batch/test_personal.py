"""Nothing personal is in any object of a lake: not in tables, nor beside them, nor in plans and the ledger."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from forebay.batch.retry import Retried, Retry
from forebay.batch.retry_plan import Choice
from forebay.declaration.service import parse_service
from tests.batch.world import World

PLAIN = """
name = "studio"
[[tables]]
name = "{game}"
keep_record = true
columns = [{ name = "n", type = "long" }, { name = "ip", type = "long" }]
expectations = { few = { check = "n < 10", on_violation = "quarantine" } }
"""
PRIVATE = """
[privacy]
personal = ["email", { path = "ip", become = "truncated" }, { path = "friends.*.mail", become = "masked" }]
"""
NAMES = ("anna@example.org", "203.0.113.77", "ben@example.org")


def line(**fields: object) -> str:
    email, ip, mail = NAMES
    return json.dumps({"email": email, "ip": ip, "friends": {"f1": {"mail": mail, "n": 1}}, **fields}) + "\n"


def told(lake: str) -> list[str]:
    """Every object of the lake that tells one of the names."""
    found = []
    for path in Path(lake.removeprefix("file://")).rglob("*"):
        if path.is_dir():
            continue
        raw = path.read_bytes()
        if path.suffix == ".parquet":
            raw += repr(pq.read_table(path).to_pylist()).encode()  # its pages are compressed
        elif path.suffix == ".gz":
            raw += gzip.decompress(raw)
        if any(name.encode() in raw for name in NAMES):
            found.append(str(path))
    return found


def test_what_is_personal_is_in_no_object_of_the_lake_and_every_record_is_counted(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, lake, monkeypatch, service=PLAIN + PRIVATE)
    torn = line(game="a")[:-3] + "\n"
    world.answers = {
        "a.json": (line(game="a", n=1) + line(game="a", n=99) + line(event="homeless") + torn).encode(),
        "b.json": f"From: {NAMES[0]}".encode(),
    }
    world.try_batch(0, [world.file("a.json"), world.file("b.json")])
    assert told(world.lake) == []
    counts = {name: world.ledger()["a.json"][name] for name in ("records", "written", "quarantined", "parked")}
    assert counts == {"records": 4, "written": 1, "quarantined": 2, "parked": 1}
    world.tables_agree_with_the_ledger("a")
    (row,) = world._table("a")
    kept = {"ip": "203.0.113.0", "friends": {"f1": {"mail": "***", "n": 1}}, "game": "a", "n": 1}
    assert json.loads(row["_record"]) == kept
    assert json.loads(row["_rescued"]) == {"ip": "203.0.113.0"}


def test_a_record_that_was_kept_before_the_declaration_is_treated_when_it_is_retried(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, lake, monkeypatch, service=PLAIN)
    world.paused = ("b",)
    world.answers = {"b.json": (line(game="b", n=1) + line(game="b", n=2)).encode()}
    world.try_batch(0, [world.file("b.json")])
    assert told(world.lake)
    service = parse_service({"service.toml": PLAIN + PRIVATE})
    retry = Retry(spark, service, lake=world.lake, emit=world.events.append)
    assert retry.run(Choice("quarantine", reason="paused")) == Retried(2, {"b": 2})
    retry.logs.close()
    assert not any(name in json.dumps(world._table("b"), default=str) for name in NAMES)
    world.tables_agree_with_the_ledger("b")
