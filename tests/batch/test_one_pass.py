"""A batch in one pass makes what the long way makes: the same rows, columns, counts and ends, of any files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from forebay.batch.accounting import Fate
from forebay.batch.events import BatchReadTwice
from forebay.batch.one_pass.staging import OnePass
from forebay.batch.plan import Plans
from forebay.operate.lake_view import LakeView
from tests.batch.world import World, records

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
MOMENTS = [
    "2026-11-20T10:00:00Z",
    "2026-11-21 01:02:03.5Z",
    "2026-11-20T10:00:00+02:00",
    "1999-01-01T00:00:00Z",
    "soon",
    7,
]
VALUES = [1, -1, 2.5, 1e3, "x", "1.50", True, None, [], {}, [1, "a"], {"deep": {"er": [1]}}, 12345678901234567890]
BROKEN = ["{broken", '"text"', "[1]", '{"game":"\\ud800"}', '{"game":"alpha",}', '{"game":tru}', '{"game":"alpha"}}']
BROKEN += ['{"game":"alpha"},{"game":"alpha"}', '{"game":"alpha"} {"game":"beta"}', '{"game":"al\tpha"}', '{"game":01}']
OURS = {"at", "_ingested_at", "claimed_at", "committed_at", "path", "day"}


def record(random: Random) -> str:
    made: dict[str, Any] = {"game": random.choice(["alpha", "beta", "alpha", "Not a name", 7, None])}
    made |= {"event": random.choice(["purchase", "login", "purchase"]), "event_id": random.choice(["e1", "e2", 3, 1.0])}
    made |= {"at": random.choice(MOMENTS), "price": random.choice([9.99, "3.10", 7, 1.005, None])}
    made |= {
        random.choice(["player", "Player"]): {"level": random.choice([1, 2, "3", 4.0]), "x": random.choice(VALUES)}
    }
    made |= {random.choice("abcde"): random.choice(VALUES) for _ in range(random.randint(0, 3))}
    made |= {"country": random.choice(["de", "at", "a/b", "", None])}
    kept = {key: value for key, value in made.items() if random.random() > 0.05}
    text = json.dumps(kept)
    return text[:-1] + ',"a":1,"a":2}' if random.random() < 0.02 else text


def files(random: Random, *, ordinary: bool) -> dict[str, bytes]:
    made = {}
    for n in range(random.randint(1, 4)):
        lines = [record(random) for _ in range(random.randint(0, 30))]
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
        kept = [{k: v for k, v in row.items() if k not in (OURS if own else {"_ingested_at"})} for row in rows]
        found[name] = (sorted(map(str, kinds)), sorted(map(repr, kept)))
    return found


def _without_nothing(row: dict[str, Any]) -> dict[str, Any]:
    """An empty list or object in place of a value is rescued where its column is known by then."""
    rescued = {k: v for k, v in json.loads(row.get("_rescued") or "{}").items() if v not in ([], {})}
    return {**row, "_rescued": json.dumps(rescued) if rescued else None} if "_rescued" in row else row


def both(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batches: list[Mapping[str, bytes]],
    service: str,
) -> tuple[dict[str, Any], dict[str, Any], list[BatchReadTwice]]:
    lakes, given_up = [], []
    fates: dict[str, list[set[Fate]]] = {"one-pass": [], "long": []}
    pin = Plans.pin
    for way in ("one-pass", "long"):
        with monkeypatch.context() as patched:
            world = World(spark, f"file://{tmp_path}/{way}", patched, service=service)
            if way == "long":
                patched.setattr(OnePass, "takes", lambda *_: False)
            patched.setattr(
                Plans, "pin", lambda plans, plan, way=way: (fates[way].append({*plan.fates}), pin(plans, plan))
            )
            for number, some in enumerate(batches):
                world.answers |= some
                world.try_batch(number, [world.file(key) for key in some])
            given_up += [event for event in world.events if isinstance(event, BatchReadTwice)]
        lakes.append(lake_of(world))
    assert fates["one-pass"] == fates["long"]
    return lakes[0], lakes[1], given_up


@pytest.mark.parametrize("seed", range(6))
def test_random_files_become_the_same_lake_both_ways(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    batches = [
        {f"{n}/{key}": content for key, content in files(random, ordinary=seed % 2 == 0).items()} for n in range(2)
    ]
    one, other, given_up = both(spark, tmp_path, monkeypatch, batches, SERVICE)
    assert all("columns of other types" in event.why for event in given_up)
    assert one.keys() == other.keys()
    for name in one:
        assert one[name][0] == other[name][0], name
        rows, others = set(one[name][1]), set(other[name][1])
        if rows != others:
            pytest.fail(
                "\n".join([name, "in one pass:", *sorted(rows - others), "the long way:", *sorted(others - rows)])
            )


def test_ordinary_files_are_read_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"a.json": records(alpha=3, beta=2, broken=1, homeless=1), "b.json": records(alpha=2)}
    one, other, given_up = both(spark, tmp_path, monkeypatch, [content], 'name = "s"\n[[tables]]\nname = "{game}"\n')
    assert one == other
    assert not given_up
