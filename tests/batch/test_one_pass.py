"""A batch in one pass makes what Spark's expressions make: the same rows, columns, counts and ends, of any files."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import forebay.batch.one_pass.jobs as one_pass_jobs
from forebay.batch.accounting import Fate
from forebay.batch.attempt.beginning import Beginning
from forebay.batch.events import BatchReadTwice, ExpectationViolated
from forebay.batch.one_pass import duplicates
from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.plan import Plans
from forebay.declaration.loading import parse_service
from forebay.landed_file import LandedFile
from forebay.operate.lake_view import LakeView
from forebay.operate.people.person import vault_values
from forebay.privacy.keys import add_local_key
from forebay.privacy.secret import make_secret
from forebay.table.data_files.storage import Storage, UploadFailed
from forebay_local.twin.twin import Twin
from tests.batch.by_spark.batch import BySpark
from tests.batch.world import AT, World, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVICE = """
name = "studio"
[[tables]]
name = "{game}_purchases"
where = { event = "purchase" }
columns = [
  { name = "event_id" }, { name = "at", type = "timestamp" }, { name = "price", type = "decimal(9,2)" },
  { name = "day", type = "date", expression = "to_date(at)" }, { name = "file", path = "@file" },
  { name = "level", type = "long", path = "player.level" },
]
partitions = ["day"]
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }, { name = "at", type = "timestamp" }, { name = "country" }]
partitions = ["country"]
event_time = { column = "at", otherwise = "landed", oldest_days = 30 }
keep_record = true
"""
ASKED = """
name = "studio"
[[tables]]
name = "{game}_purchases"
where = { event = "purchase" }
columns = [
  { name = "event_id" }, { name = "at", type = "timestamp" }, { name = "price", type = "decimal(9,2)" },
  { name = "day", type = "date", expression = "to_date(at)" }, { name = "file", path = "@file" },
  { name = "level", type = "long", path = "player.level" },
  { name = "month", expression = "date_format(at, 'yyyy-MM')" },
  { name = "share", type = "double", expression = "100 / (level - 2)" },
  { name = "gone", type = "int", expression = "cast(event_id as int)" },
  { name = "dear", type = "boolean", expression = "price > 9" },
]
partitions = ["month"]
event_time = { column = "at", oldest_days = 30, outside = "bucket" }
[tables.expectations]
priced = "price > 5"
paid = { check = "PRICE is not null or `event_id` = 'e1'", on_violation = "drop" }
recent = { check = "day >= date'2026-11-21'", on_violation = "quarantine" }
known = { check = "share < 1000 and exists(array(event_id), x -> x <> 'e2')", on_violation = "quarantine" }
[[tables]]
name = "{game}"
columns = [
  { name = "event_id" }, { name = "country" }, { name = "lower", expression = "lower(country)" },
  { name = "next", type = "long", expression = "cast(event_id as bigint) + 1" }, { name = "at", type = "timestamp" },
]
keep_record = true
[tables.expectations]
placed = { check = "lower <> 'at' or event_id = 'e1'", on_violation = "warn", fail_above_percent = 99 }
[[tables]]
name = "rest"
columns = [{ name = "event" }]
"""
FORMATTED = """
name = "studio"
[[feeds]]
name = "days"
key = "{batch}/{day}.json"
[[tables]]
name = "{game}_purchases"
where = { event = "purchase" }
columns = [
  { name = "at", type = "timestamp", formats = ["yyyy-MM-dd'T'HH:mm:ssX", "yyyy-MM-dd HH:mm:ss.SX"] },
  { name = "event_id" }, { name = "month", expression = "date_format(at, 'yyyy-MM')" },
  { name = "day", type = "date", expression = "to_date(at)" },
  { name = "hour", type = "timestamp", expression = "date_trunc('hour', at)" },
  { name = "price", type = "decimal(9,2)" }, { name = "file_day", type = "date", path = "@key.day", formats = ["d"] },
]
partitions = ["hour", "price"]
event_time = { column = "at", oldest_days = 30, ahead_hours = 1, outside = "bucket", otherwise = "landed" }
[tables.expectations]
recent = { check = "at >= date'2026-11-21' and day is not null", on_violation = "drop" }
[[tables]]
name = "{game}"
columns = [
  { name = "first", type = "date", path = "tags[0]", formats = ["yyyy", "dd/MM/yyyy"] }, { name = "other", type = "date" },
  { name = "at", type = "timestamp", formats = ["yyyy-MM-dd'T'HH:mm:ssX", "'soon'"] },
  { name = "next", type = "date", expression = "date_add(other, 1)" },
]
event_time = { column = "at", oldest_days = 30, outside = "quarantine" }
[[tables]]
name = "rest"
columns = [{ name = "at", type = "timestamp", formats = ["d"] }]
undeclared = { become = "rescued" }
"""
WHERE_SQL = """
name = "studio"
[[tables]]
name = "{game}_late"
where_sql = "late and price > 3"
columns = [
  { name = "at", type = "timestamp", formats = ["yyyy-MM-dd'T'HH:mm:ssX", "yyyy-MM-dd HH:mm:ss.SX"] },
  { name = "price", type = "double" }, { name = "late", type = "boolean", expression = "at >= date'2026-11-21'" },
]
event_time = { column = "at", oldest_days = 30, ahead_hours = 1, outside = "bucket", otherwise = "landed" }
[[tables]]
name = "{game}_deep"
where = { event = "purchase" }
where_sql = "100 / (player_level - 2) > 1 and file like '%json'"
columns = [{ name = "player_level", path = "player.level" }, { name = "file", path = "@file" }]
undeclared = { become = "rescued" }
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }]
[tables.expectations]
second = { check = "event_id <> 'e2'", on_violation = "quarantine" }
"""
ONLY_WHERE_SQL = """
name = "studio"
[[tables]]
name = "first"
where_sql = "event_id = 'e1' and price > 3"
columns = [{ name = "event_id" }, { name = "price", type = "double" }]
[[tables]]
name = "rest"
"""
PRIVATE = """
name = "studio"
[privacy]
subject = "event_id"
secret = "PLACE/secret"
vault = "PLACE/vault WAY"
vault_key = "PLACE/key"
personal = [{ path = "country", become = "masked", vault = true }]
[[tables]]
name = "prices"
explode = "items"
columns = [
  { name = "build", type = "long", path = "@metadata.build" }, { name = "price", type = "json" },
  { name = "event_id", path = "@parent.event_id" },
]
[[tables]]
name = "{game}"
where = { event = "purchase" }
columns = [
  { name = "at", type = "timestamp", formats = ["yyyy-MM-dd'T'HH:mm:ssX"] },
  { name = "month", expression = "date_format(at, 'yyyy-MM')" }, { name = "player", type = "map" },
]
event_time = { column = "at", oldest_days = 30, outside = "bucket", otherwise = "landed" }
[tables.expectations]
leveled = { check = "player['level'] <> '1'", on_violation = "quarantine" }
"""
MOMENTS = [
    "2026-11-20T10:00:00Z",
    "2026-11-21 01:02:03.5Z",
    "2026-11-20T10:00:00+02:00",
    "1999-01-01T00:00:00Z",
    "soon",
    "+300000-01-01T00:00:00Z",
    7,
]
VALUES = [1, -1, 2.5, 1e3, "x", "1.50", True, None, [], {}, [1, "a"], {"deep": {"er": [1]}}, 12345678901234567890]
VALUES += ['[1.50, {"x": 1}]', '{"deep": {"er": [1.0]}, "more": null}']
BROKEN = ["{broken", '"text"', "[1]", '{"game":"\\ud800"}', '{"game":"alpha",}', '{"game":tru}', '{"game":"alpha"}}']
BROKEN += ['{"game":"alpha"},{"game":"alpha"}', '{"game":"alpha"} {"game":"beta"}', '{"game":"al\tpha"}', '{"game":01}']
DEDUPED = """
name = "studio"
[[tables]]
name = "{game}_purchases"
where = { event = "purchase" }
columns = [
  { name = "event_id" }, { name = "price", type = "decimal(9,2)" }, { name = "level", type = "long", path = "player.level" },
  { name = "at", type = "timestamp" }, { name = "priced", type = "boolean", expression = "price > 5" },
]
dedupe = { by = ["event_id", "price", "level", "priced"], days = 1 }
expectations = { cheap = "price < 9" }
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }, { name = "country" }, { name = "at", type = "timestamp" }]
partitions = ["country"]
dedupe = { by = ["event_id"] }
[[tables]]
name = "rest"
columns = [{ name = "event" }]
"""
NESTED = """
name = "studio"
[[tables]]
name = "items_{@parent.game}"
explode = "items"
where = { "@parent.event" = "purchase" }
columns = [
  { name = "event_id", path = "@parent.event_id" }, { name = "position", type = "int", path = "@ordinal" },
  { name = "price", type = "decimal(9,2)" }, { name = "a", type = "map" },
]
[[tables]]
name = "{game}_first"
where = { "tags[0]" = "first", "@metadata.game" = "beta" }
columns = [
  { name = "number", type = "long", path = "tags[1].n" }, { name = "tags", type = "json" },
  { name = "build", type = "int", path = "@metadata.build" },
]
undeclared = { become = "rescued" }
[[tables]]
name = "{game}_lean"
where = { "tags[1]" = { exists = true } }
columns = [{ name = "number", type = "long", path = "tags[1].n" }, { name = "third", type = "int", path = "tags[2]" }]
undeclared = { become = "ignored" }
[[tables]]
name = "{game}"
columns = [
  { name = "event_id", type = "binary" }, { name = "tag", path = "tags[0]" }, { name = "player", type = "map" },
  { name = "a", type = "json" }, { name = "b", type = "map" }, { name = "c", type = "binary" },
  { name = "keys", type = "int", expression = "size(map_keys(player))" }, { name = "d", type = "array<string>" },
  { name = "items", type = "array<struct<price: double, a: array<long>>>" }, { name = "e", type = "struct<deep: json>" },
  { name = "prices", type = "array<double>", expression = "transform(items, e -> e.price)" },
]
partitions = ["tag"]
expectations = { priced = "exists(items, i -> i.price > 1)" }
"""
UNLIKE = ("player", "Player", "tags", "items")
OURS = {"service_version", "at", "_ingested_at", "claimed_at", "committed_at", "path", "day"}


def record(random: Random) -> str:
    made: dict[str, Any] = {"game": random.choice(["alpha", "beta", "alpha", "Not a name", 7, None])}
    made |= {"event": random.choice(["purchase", "login", "purchase"]), "event_id": random.choice(["e1", "e2", 3, 1.0])}
    made |= {"at": random.choice(MOMENTS), "price": random.choice([9.99, "3.10", 7, 1.005, None])}
    made |= {
        random.choice(["player", "Player"]): {"level": random.choice([1, 2, "3", 4.0]), "x": random.choice(VALUES)}
    }
    made |= {random.choice("abcde"): random.choice(VALUES) for _ in range(random.randint(0, 3))}
    made |= {"country": random.choice(["de", "at", "a/b", "", None])}
    tags: list[Any] = random.choices(
        ["first", "2026", "31/12/2026", {"n": 1}, {"N": "x"}, 3, 1.10, None], k=random.randint(0, 3)
    )
    items = [{"price": random.choice([1, "2.5", "x"]), "a": random.choice(VALUES)}, {"event_id": 1}, None, 7]
    made |= {"tags": random.choice([tags, "first", None]), "items": random.choices(items, k=random.randint(0, 3))}
    kept = {key: value for key, value in made.items() if random.random() > 0.05}
    text = json.dumps(kept)
    return text[:-1] + ',"a":1,"a":2}' if random.random() < 0.02 else text


def alike(text: str, *, level: int) -> str:
    """The record with undeclared fields of one type each."""
    made = {key: value for key, value in json.loads(text).items() if key not in {*"abcde", *UNLIKE}}
    return json.dumps({**made, "price": "9.99" if level else "3.10", "player": {"level": level}})


def files(random: Random, *, ordinary: bool, are_alike: bool = False) -> dict[str, bytes]:
    made = {}
    for n in range(random.randint(1, 4)):
        lines = [record(random) for _ in range(random.randint(0, 30))]
        if are_alike:
            lines = [alike(line, level=random.randint(0, 2)) for line in lines]
        if not ordinary:
            lines += random.choices(BROKEN, k=random.randint(0, 4))
        random.shuffle(lines)
        content = "".join(f"{line}\n" for line in lines).encode()
        odd = random.random()
        made[f"in/{n}.json"] = content if odd < 0.7 else gzip.compress(content)[: -9 if odd > 0.9 else None]
    return made


def lake_of(world: World) -> dict[str, Any]:
    """Everything that a person can see of the lake, but for what differs by the moment."""
    found: dict[str, Any] = {}
    for place in sorted(Path(world.lake.removeprefix("file://")).rglob("_delta_log")):
        name = str(place.parent.relative_to(world.lake.removeprefix("file://")))
        kinds = [(f.name, str(f.type)) for f in DeltaTable(str(place.parent)).schema().fields]
        rows = [_without_nothing(row) for row in LakeView(world.lake).query(name, "select * from t")]
        own = name.startswith("_forebay")
        kept = [{k: v for k, v in sorted(row.items()) if k not in (OURS if own else {"_ingested_at"})} for row in rows]
        found[name] = (sorted(map(str, kinds)), sorted(map(repr, kept)))
    return found


def _without_nothing(row: dict[str, Any]) -> dict[str, Any]:
    """An empty list or object in place of a value is rescued where its column is known by then. Where files are written again,
    the keys of what is rescued are in another order."""
    row = _pruned(row) or {}
    rescued = json.loads(row.get("_rescued") or "{}")
    rescued = _with_values(rescued)
    return {**row, "_rescued": json.dumps(rescued, sort_keys=True) if rescued else None} if "_rescued" in row else row


def _with_values(fields: dict[str, Any]) -> dict[str, Any]:
    """Without empty lists and objects, however deep."""
    kept = {key: one for key, one in fields.items() if one is None or _pruned(one) is not None}
    return {key: _with_values(one) if isinstance(one, dict) else one for key, one in kept.items()}


def _pruned(value: Any) -> Any:
    """None for a list or an object in which nothing is."""
    if isinstance(value, dict):
        value = {key: _pruned(one) for key, one in value.items()}
        return value if any(one is not None for one in value.values()) else None
    return None if isinstance(value, list) and all(one is None for one in value) else value


def both(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batches: list[Mapping[str, bytes]],
    service: str,
    paused: tuple[str, ...] = (),
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    lakes, twice = [], []
    fates: dict[str, list[set[Fate]]] = {"one-pass": [], "by-spark": []}
    pin = Plans.pin
    for way in ("one-pass", "by-spark"):
        with monkeypatch.context() as patched:
            world = World(spark, f"file://{tmp_path}/{way}", patched, service=service, paused=paused)
            world.way = Beginning if way == "one-pass" else BySpark
            patched.setattr(
                Plans, "pin", lambda plans, plan, way=way: (fates[way].append({*plan.fates}), pin(plans, plan))
            )
            for number, some in enumerate(batches):
                world.answers |= some
                world.metadata |= {
                    key: {"build": key[0], "game": "beta"} for key in some if key.endswith(("1.json", "2.json"))
                }
                world.try_batch(number, [world.file(key) for key in some])
            twice += [event.why for event in world.events if isinstance(event, BatchReadTwice)]
        lakes.append(lake_of(world))
    assert [(one - other, other - one) for one, other in zip(fates["one-pass"], fates["by-spark"], strict=True)] == [
        (set(), set()) for _ in batches
    ]
    return lakes[0], lakes[1], twice


def must_be_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name][0] == other[name][0], name
        rows, others = Counter(one[name][1]), Counter(other[name][1])
        if rows != others:
            pytest.fail("\n".join([name, "one:", *sorted(rows - others), "the other:", *sorted(others - rows)]))


@pytest.mark.parametrize(
    ("service", "first"),
    [(SERVICE, 0), (ASKED, 1), (FORMATTED, 1), (WHERE_SQL, 0), (DEDUPED, 0), (NESTED, 1)],
    ids=["plain", "asked", "formatted", "where-sql", "deduped", "nested"],
)
@pytest.mark.deep
@pytest.mark.parametrize("more", range(int(os.environ.get("FOREBAY_SEEDS", "1"))))
def test_random_files_become_the_same_lake_both_ways(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, more: int, service: str
) -> None:
    """Files of an odd seed have broken lines. Where duplicates are left out, a pass decides about columns by all records, and
    Spark by those that stay."""
    seed = first + more
    random, are_alike = Random(seed), service is DEDUPED
    made = [files(random, ordinary=seed % 2 == 0, are_alike=are_alike) for _ in range(2)]
    batches = [{f"{n}/{key}": content for key, content in some.items()} for n, some in enumerate(made)]
    one, other, twice = both(spark, tmp_path, monkeypatch, batches, service)
    must_be_equal(one, other)
    assert [why for why in twice if not re.search("columns of other types|tables? (is|are) not written", why)] == []


@pytest.mark.parametrize(
    "service",
    [
        ASKED,
        pytest.param(PRIVATE, marks=pytest.mark.deep),
        PRIVATE.replace('where = { event = "purchase" }', "where_sql = \"month > '2020'\""),
        pytest.param(ONLY_WHERE_SQL, marks=pytest.mark.deep),
    ],
    ids=["asked", "private", "private-where-sql", "only-where-sql"],
)
@pytest.mark.parametrize(
    "tasks", ["alone", *(pytest.param(how, marks=pytest.mark.deep) for how in ("gathered", "in little memory"))]
)
def test_spark_answers_in_the_job_that_reads_and_writes(
    spark: SparkSession, twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: str, service: str
) -> None:
    jobs = {name: getattr(Jobs, name) for name in ("of_pieces", "ends", "of_hands")}
    random, lakes, vaults = Random(7), [], []
    make_secret(f"{tmp_path}/secret")
    add_local_key(f"{tmp_path}/key")
    lines = [alike(record(random), level=n % 4) for n in range(200)]
    lines += ["{broken", '{"event_id": "e1", "items": [{"price": {"a": 1.0}}, {"country": "fr"}], "country": "de"}']
    contents = {f"asked-{tasks}/{n}.json": "\n".join(lines[n::6]).encode() for n in range(6)}
    landed, metadata = [], {"build": "7"}
    for key, content in contents.items():
        put = {"Bucket": twin.landing_bucket, "Key": key, "Body": content, "Metadata": metadata}
        etag = twin.client("s3").put_object(**put)["ETag"].strip('"')
        landed.append(LandedFile(twin.landing_bucket, key, len(content), etag, event_time=AT))
    for way in ("in this process", "in a job"):
        with monkeypatch.context() as patched:
            here = service.replace("PLACE", str(tmp_path)).replace("WAY", way)
            world = World(spark, f"file://{tmp_path}/{way.replace(' ', '-')}", patched, service=here)
            world.answers |= contents
            world.metadata |= dict.fromkeys(contents, metadata)
            if way == "in a job":
                for name, job in jobs.items():
                    patched.setattr(Jobs, name, job)
                patched.setattr(one_pass_jobs, "READER_BYTES", 1)
                patched.setattr(one_pass_jobs, "ALONE_AT_MOST", 0 if tasks == "gathered" else 4)
                if tasks == "in little memory":
                    short = [Answer(odd="memory is running short", is_crowded=True)]
                    patched.setattr(Jobs, "of_pieces", lambda self, told, short=short: short)
            world.try_batch(0, landed)
            twice = way == "in a job" and tasks == "in little memory"
            told_of = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
            assert told_of == (["memory is running short"] if twice else [])
        lakes.append(lake_of(world))
        if "vault" in service:
            told = parse_service({"service.toml": here})
            found = [vault_values(LakeView(world.lake), told, one) for one in ("e1", "e2", "3", "1.0")]
            vaults.append(sorted((one.file, one.path, str(one.value)) for some in found for one in some))
    must_be_equal(*lakes)
    assert not vaults or (vaults[0] == vaults[1] and len(vaults[0]) > 50)


KEPT_OUT = ASKED.replace('name = "studio"', 'name = "studio"\nnew_tables_per_day = 3').replace("= 99", "= 5")


@pytest.mark.deep
def test_rows_of_tables_that_are_not_written_are_kept_by_the_pass(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(3)
    lines = [alike(record(random), level=n % 4) for n in range(120)]
    batches: list[Mapping[str, bytes]] = [
        {f"{n}/{part}.json": "\n".join(lines[n * 2 + part :: 4]).encode() for part in range(2)} for n in range(2)
    ]
    one, other, twice = both(spark, tmp_path, monkeypatch, batches, KEPT_OUT, paused=("alpha_purchases",))
    must_be_equal(one, other)
    assert [why for why in twice if not re.search("tables? (is|are) not written", why)] == []
    assert twice
    reasons = re.findall(r"'reason': '([a-z-]+)'", "".join(one["_forebay/quarantine"][1]))
    assert {"paused", "too-many-new-tables", "expectation-failed", "expectation"} <= {*reasons}


@pytest.mark.parametrize("by", ["the driver", "a job"])
@pytest.mark.deep
def test_only_data_files_with_duplicates_are_written_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(duplicates, "FEW_BYTES", 1 << 20 if by == "the driver" else 0)
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=DEDUPED)

    def land(number: int, *events: tuple[str, str]) -> None:
        lines = [json.dumps({"game": "alpha", "event_id": one, "country": country}) for one, country in events]
        world.answers[f"{number}.json"] = "\n".join(lines).encode()
        world.try_batch(number, [world.file(f"{number}.json")])

    land(0, ("e0", "de"), ("e1", "de"), ("e2", "at"))
    land(1, ("e0", "de"), ("e3", "de"), ("e3", "de"), ("e4", "at"), ("e1", "fr"))
    land(2, ("e0", "de"), ("e4", "at"))
    found = sorted((row["_batch"], row["event_id"], row["country"]) for row in world._table("alpha"))
    assert found == [(0, "e0", "de"), (0, "e1", "de"), (0, "e2", "at"), (1, "e3", "de"), (1, "e4", "at")]
    assert [world.ledger()[f"{n}.json"]["dropped"] for n in range(3)] == [0, 3, 2]
    assert [event.why for event in world.events if isinstance(event, BatchReadTwice)] == []
    folder = Path(f"{tmp_path}/lake/alpha")
    there = {file.name for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts}
    assert there == {Path(uri).name for uri in DeltaTable(str(folder)).file_uris()}


def test_ordinary_files_are_read_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"a.json": records(alpha=3, beta=2, broken=1, homeless=1), "b.json": records(alpha=2)}
    one, other, twice = both(spark, tmp_path, monkeypatch, [content], 'name = "s"\n[[tables]]\nname = "{game}"\n')
    assert one == other
    assert not twice


def test_a_pass_that_is_repeated_for_a_tables_columns_says_once_what_its_rows_violate(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new driver does not know that the table has texts, and takes 1.50 for a number."""
    named = "columns = [{ name = 'game' }]\n[tables.expectations]\nnamed = \"game <> 'a'\"\n"
    service = f'name = "s"\n[[tables]]\nname = "{{game}}"\n{named}'
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=service)
    for number, value in enumerate(['"x"', "1.50"]):
        world.answers["a.json"] = f'{{"game": "a", "n": {value}}}'.encode()
        world.try_batch(number, [world.file("a.json", number)])
    whys = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
    assert whys == ["a has columns of other types"]
    told = [(event.batch, event.rows) for event in world.events if isinstance(event, ExpectationViolated)]
    assert told == [(0, 1), (1, 1)]
    assert sorted(row["n"] for row in world._table("a")) == ["1.50", "x"]


SHARED = """
name = "s"
[[tables]]
name = "{game}_log"
where = { event = "log" }
columns = [{ name = "n", type = "long" }]
[[tables]]
name = "{game}"
columns = [{ name = "n" }]
"""


def test_a_table_has_the_columns_of_the_declaration_that_owns_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a batch that has none of the records which that declaration asks for."""
    batches: list[Mapping[str, bytes]] = [
        {"a.json": b'{"game": "a_log", "n": 1}\n{"game": "a", "n": 2}\n{"game": "a_log", "n": "x"}'},
        {"b.json": b'{"game": "a", "event": "log", "n": 3}\n{"game": "a_log", "n": 4}'},
    ]
    one, other, twice = both(spark, tmp_path, monkeypatch, batches, SHARED)
    must_be_equal(one, other)
    assert twice == []
    assert any("'n'" in kind and "long" in kind for kind in one["a_log"][0])
    assert len(one["a_log"][1]) == 4


PLACED = """
name = "s"
[[tables]]
name = "{game}"
columns = [{ name = "share", type = "double" }]
"""


@pytest.mark.parametrize(("column", "why"), [("share", "a double: its text"), ("place", "not among the rows' columns")])
def test_a_table_whose_partitions_no_task_can_write_fails_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, why: str
) -> None:
    """It was made by others. The driver knows it, or finds it when the data files are written."""
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=PLACED)
    write_deltalake(f"{tmp_path}/lake/alpha", pa.table({column: [0.5], "n": ["x"]}), partition_by=[column])
    world.answers["a.json"] = b'{"game": "alpha", "share": 0.5}\n{"game": "beta", "share": 0.25}'
    batch = world.batch()
    batch.load([world.file("a.json")], 0)
    world.answers["b.json"] = world.answers["a.json"]
    batch.load([world.file("b.json")], 1)
    batch.close()
    assert world.rows_of("beta") == {"a.json": 1, "b.json": 1}
    held = world._table("_forebay/quarantine")
    assert [(row["table"], row["reason"]) for row in held] == [("alpha", "table-failed")] * 2
    assert all(why in row["detail"] for row in held)


def test_a_table_whose_data_files_cannot_be_put_fails_alone_and_one_that_was_denied_once_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service='name = "s"\n[[tables]]\nname = "{game}"\n')
    put, times = Storage.put, Counter[str]()

    def put_unless_denied(self: Storage, table_path: str, *content: Any) -> None:
        times[name := Path(table_path).name] += 1
        if name == "alpha" or (name == "beta" and times[name] == 1):
            raise UploadFailed(f"{name} is denied")
        put(self, table_path, *content)

    monkeypatch.setattr(Storage, "put", put_unless_denied)
    world.answers["a.json"] = records(alpha=2, beta=2)
    world.try_batch(0, [world.file("a.json")])
    assert world.rows_of("beta") == {"a.json": 2}
    held = world._table("_forebay/quarantine")
    assert {(row["table"], row["reason"], row["detail"]) for row in held} == {
        ("alpha", "table-failed", "UploadFailed: alpha is denied")
    }
    assert world.ledger()["a.json"]["quarantined"] == len(held) == 2
    assert times["alpha"] == 2


PLACED_BY = """
name = "s"
[[tables]]
name = "{game}"
columns = [{ name = "place" }]
partitions = ["place"]
"""


@pytest.mark.parametrize(
    ("service", "why"),
    [
        (PLACED_BY.replace('partitions = ["place"]\n', ""), "other partition columns"),
        (f'{PLACED_BY}undeclared = {{ become = "rescued" }}', "columns that its tasks did not know"),
        (PLACED_BY, "columns of other types"),
    ],
    ids=["partitions", "columns", "types"],
)
def test_a_driver_that_does_not_know_a_table_reads_again_once_it_does(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    why: str,
) -> None:
    """Each try has a new driver, and the declarations changed in between."""
    world = World(spark, f"file://{tmp_path}/lake", monkeypatch, service=PLACED_BY)
    world.answers["a.json"] = b'{"game": "alpha", "place": "at", "n": "x", "b": 1}'
    world.try_batch(0, [world.file("a.json")])
    world.service = service
    world.answers["b.json"] = b'{"game": "alpha", "place": "de", "n": 1.50, "b": 2}'
    world.try_batch(1, [world.file("b.json")])
    twice = [event.why for event in world.events if isinstance(event, BatchReadTwice)]
    assert twice == [f"alpha has {why}"]
    rows = {row["_batch"]: row for row in world._table("alpha")}
    assert (rows[1]["place"], rows[1]["n"], rows[1]["b"]) == ("de", "1.50", 2)
    assert DeltaTable(f"{tmp_path}/lake/alpha").metadata().partition_columns == ["place"]
