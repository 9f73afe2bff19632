"""Nothing personal is in any object of a lake: not in tables, nor beside them, nor in plans and the ledger."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from forebay.batch.events import ErasedRecordsDropped
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.plan import Plan, Plans
from forebay.batch.retrying.moving import Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.operate.lake_view import LakeView
from forebay.operate.people.erase import begin, carry_out, erase_now
from forebay.privacy.erased import add_erased
from forebay.privacy.secret import make_secret, secret_at
from forebay.privacy.token import token_of
from tests.batch.world import World

PLAIN = """
name = "studio"
[[tables]]
name = "{game}"
keep_record = true
columns = [
  { name = "n", type = "long" }, { name = "ip", type = "long" }, { name = "pals", type = "array<struct<mail: string>>" },
]
expectations = { few = { check = "n < 10", on_violation = "quarantine" } }
"""
PRIVATE = """
[privacy]
personal = [
  "email", { path = "ip", become = "truncated" }, { path = "friends.*.mail", become = "masked" },
  { path = "pals.mail", become = "masked" },
]
"""
NAMES = ("anna@example.org", "203.0.113.77", "ben@example.org")


def line(**fields: object) -> str:
    email, ip, mail = NAMES
    friends, pals = {"f1": {"mail": mail, "n": 1}}, json.dumps([{"mail": mail}])
    return json.dumps({"email": email, "ip": ip, "friends": friends, "pals": pals, **fields}) + "\n"


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
    no_json = line(game="a").replace('"', "'") + re.sub(r'"(\w+)":', r"\1:", line(game="a"))
    world.answers = {
        "a.json": (line(game="a", n=1) + line(game="a", n=99) + line(event="homeless") + torn + no_json).encode(),
        "b.json": f"From: {NAMES[0]}".encode(),
    }
    world.try_batch(0, [world.file("a.json"), world.file("b.json")])
    assert told(world.lake) == []
    counts = {name: world.ledger()["a.json"][name] for name in ("records", "written", "quarantined", "parked")}
    assert counts == {"records": 6, "written": 1, "quarantined": 4, "parked": 1}
    world.tables_agree_with_the_ledger("a")
    (row,) = world._table("a")
    friends, pals = {"f1": {"mail": "***", "n": 1}}, json.dumps([{"mail": "***"}])
    kept = {"ip": "203.0.113.0", "friends": friends, "pals": pals, "game": "a", "n": 1}
    assert json.loads(row["_record"]) == kept
    assert [pal["mail"] for pal in row["pals"]] == ["***"]
    assert json.loads(row["_rescued"]) == {"ip": "203.0.113.0"}


@pytest.mark.deep
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


WITH_SUBJECT = """
[privacy]
personal = ["email"]
subject = "user_id"
secret = "{secret}"
"""


@pytest.mark.deep
def test_records_of_an_erased_person_stay_out_and_every_record_is_counted(
    spark: SparkSession, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come late, those that are retried, and those of a batch that had begun when the person was erased."""
    make_secret(secret := f"{tmp_path}/secret")
    world = World(spark, lake, monkeypatch, service=PLAIN + WITH_SUBJECT.format(secret=secret))
    world.answers = {
        "a.json": (line(game="a", n=99, user_id=42) + line(game="a", n=99, user_id=43)).encode(),
        "b.json": (line(game="a", n=1, user_id="42") + line(game="a", n=2, user_id=43)).encode(),
    }
    world.try_batch(0, [world.file("a.json")])
    pin, pinned = Plans.pin, []

    def erased_meanwhile(plans: Plans, plan: Plan) -> None:
        pin(plans, plan)
        if not pinned:
            add_erased(world.lake, "studio", [token_of("42", secret_at(secret))])
        pinned.append(plan)

    monkeypatch.setattr(Plans, "pin", erased_meanwhile)
    world.try_batch(1, [world.file("b.json")])
    assert len(pinned) == 2
    assert [row["n"] for row in world._table("a")] == [2]
    assert world.ledger()["b.json"]["dropped"] == 1
    assert [event.records for event in world.events if isinstance(event, ErasedRecordsDropped)] == [1]
    retry = Retry(spark, parse_service({"service.toml": world.service}), lake=world.lake, emit=world.events.append)
    assert retry.run(Choice("quarantine")) == Retried(2, dropped=1)
    retry.logs.close()
    assert [json.loads(row["record"])["user_id"] for row in world._table("_forebay/quarantine")] == [43]
    world.tables_agree_with_the_ledger("a")


SHAPES = """
name = "studio"
[[tables]]
name = "{game}"
partitions = ["day"]
columns = [
  { name = "at", type = "timestamp" },
  { name = "day", expression = "to_date(at)", type = "date" },
  { name = "price", type = "decimal(20,4)" },
  { name = "tags", type = "map" },
]
"""


def test_a_batch_never_has_tokens_of_two_secrets(
    spark: SparkSession, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secret is replaced once the batch has begun, and before a worker reads it."""
    make_secret(secret := f"{tmp_path}/secret")
    world = World(spark, lake, monkeypatch, service=PLAIN + WITH_SUBJECT.format(secret=secret))
    world.answers = {"a.json": line(game="a", user_id=42).encode()}
    read = OnePass._read

    def read_later(*asked: Any) -> Any:
        (tmp_path / "secret").unlink()
        make_secret(secret)
        secret_at.cache_clear()
        return read(*asked)

    monkeypatch.setattr(OnePass, "_read", read_later)
    with pytest.raises(Halt, match="was replaced while the job ran"):
        world.try_batch(0, [world.file("a.json")])
    assert not Path(lake.removeprefix("file://"), "a").exists()


@pytest.mark.deep
def test_tables_that_spark_wrote_are_its_own_after_an_erasure(
    spark: SparkSession, lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every type that Spark writes, whole partitions, and its compaction before and after."""
    make_secret(secret := f"{tmp_path}/secret")
    world = World(spark, lake, monkeypatch, service=SHAPES + WITH_SUBJECT.format(secret=secret))
    more = {"price": "12.5000", "tags": {"a": "b"}, "list": [{"x": [1.5]}], "ok": True}

    def record(user: int, day: int) -> str:
        return line(game="a", user_id=user, at=f"2026-11-0{day}T10:00:00.123456Z", **more)

    world.answers = {
        "a.json": (record(42, 1) + record(43, 1) + record(42, 2)).encode(),
        "b.json": (record(43, 1) + record(43, 3)).encode(),
    }
    world.try_batch(0, [world.file("a.json")])
    world.try_batch(1, [world.file("b.json")])
    path = f"delta.`{lake}/a`"
    spark.sql(f"OPTIMIZE {path}")
    others = "select count(*), bit_xor(xxhash64(to_json(struct(*)))) from"
    before = spark.sql(f"{others} {path} where user_id <> 42").collect()
    view, service = LakeView(world.lake), parse_service({"service.toml": world.service})
    plan = begin(view, service, [token_of("42", secret_at(secret))])
    report = carry_out(view, service, plan, wait_s=0)
    assert [(one["table"], one["rows"]) for one in report["tables"]] == [("a", 2)]
    assert spark.sql(f"{others} {path}").collect() == before
    erase_now(view, service, due_only=False, wait_s=0)
    spark.sql(f"OPTIMIZE {path}")
    world.answers["c.json"] = (record(42, 1) + record(44, 1)).encode()
    world.try_batch(2, [world.file("c.json")])
    assert sorted(row["user_id"] for row in spark.sql(f"select user_id from {path}").collect()) == [43, 43, 43, 44]
    world.tables_agree_with_the_ledger("a")
