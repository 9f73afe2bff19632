"""Every table of a lake can be read by delta-rs as by Spark: the same rows, the same values, whatever is declared of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.operate.lake_view import LakeView
from forebay_local.feed.telemetry import Telemetry, mistyped
from forebay_local.twin.twin import Twin
from tests.journey.story import Story, event, lines, story
from tests.operate.command import ran

GAMES = ("alpha", "beta", "gamma")
OWN = ("ledger", "quarantine", "parked", "quality", "ids")
SERVICE = """
name = "studio"

[[tables]]
name = "purchases"
where = { event = "bought" }
columns = [
  { name = "at", type = "timestamp", path = "event_time" },
  { name = "day", type = "date", expression = "to_date(at)" },
  { name = "shop" },
  { name = "price", type = "decimal(18,2)" },
  { name = "share", type = "float" },
  { name = "count", type = "int" },
  { name = "gift", type = "boolean" },
  { name = "seal", type = "binary" },
  { name = "basket", type = "json" },
  { name = "labels", type = "map" },
  { name = "event_id" },
]
partitions = ["day", "shop"]
partition_values = { shop = ".{1,20}" }
event_time = { column = "at" }
dedupe = { by = ["event_id"], days = 3 }
[tables.expectations]
priced = "price is not null"
possible = { check = "price < 50", on_violation = "quarantine" }

[[tables]]
name = "crashes"
where = { event = "crashed" }
columns = [{ name = "player" }, { name = "level", type = "long" }]
cluster_by = ["player"]
keep_record = true

[[tables]]
name = "{game}"
columns = [{ name = "event_id" }, { name = "event_time", type = "timestamp" }, { name = "country", path = "player.country" }]
"""


def bought(number: int) -> dict[str, Any]:
    """One of twelve is too dear, and one in five has something that does not fit."""
    more: dict[str, Any] = {
        "price": round(0.1 * number, 1) if number % 12 else 99,
        "share": number / 8,
        "gift": number % 2 == 0,
    }
    more |= {"shop": ("a/b c", "ä=%", None)[number % 3], "seal": "\u00ff", "basket": [{"n": number}, None]}
    more |= {"labels": {"k": "v", f"k{number}": None}, "count": number if number % 5 else "many"}
    when = f"2026-11-{20 + number % 2}T1{number % 10}:00:00.123456Z"
    return event("alpha", number, **more) | {"event": "bought", "event_time": when}


def plain(value: Any) -> Any:
    """A row as JSON has it, so that nothing about a library's classes counts."""
    return json.dumps(value, sort_keys=True, default=str)


def files() -> Iterator[bytes]:
    """Two: telemetry, some of it mistyped, and of everything that can be kept beside it."""
    chance = random.Random(11)
    telemetry = Telemetry(chance)
    for number in range(2):
        records: list[Any]
        records, _ = telemetry.lines(GAMES, [1795262400000 + 977 * n for n in range(300)])
        records = [mistyped(line, chance) if chance.random() < 0.05 else line for line in records]
        crashed = [event("beta", n, player=f"p{n}", level=n) | {"event": "crashed"} for n in range(5)]
        sold = [bought(n) for n in range(20 * number, 20 * number + 30)]
        yield lines([*records, *crashed, *sold, "{broken", '{"event": "no game"}'])


@pytest.fixture(scope="module")
def told(twin: Twin, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """After a batch of the first file."""
    folder = tmp_path_factory.mktemp("declared")
    (folder / "service.toml").write_text(SERVICE)
    with story(twin) as told:
        told.service = str(folder)
        told.put("0.json", next(files()))
        told.take_in()
        yield told


@pytest.mark.deep
def test_delta_rs_reads_what_spark_reads(told: Story, spark: SparkSession) -> None:
    told.put("1.json", [*files()][1])
    told.take_in()
    sums = told.accounts()
    assert sums.differences() == []
    assert sums.dropped == 9, "ten purchases came twice, one of which is too dear and kept twice"
    tables = LakeView(told.lake).tables()
    assert set(tables) == {*GAMES, "purchases", "crashes"}
    for table in (*tables, *(f"_forebay/{name}" for name in OWN)):
        rows = spark.read.format("delta").load(f"{told.lake}/{table}")
        by_spark = sorted(plain(row) for row in rows.toArrow().to_pylist())
        found = LakeView(told.lake).table(table)
        assert found is not None
        assert found.protocol().min_reader_version == 1
        by_delta_rs = sorted(plain(row) for row in found.to_pyarrow_table(columns=rows.columns).to_pylist())
        assert by_delta_rs == by_spark
        assert by_spark
        assert table not in sums.rows or len(by_spark) == sums.rows[table]
    seen = told.rows(
        "purchases", "select count(distinct day) days, count(distinct shop) shops, count(_rescued) odd from t"
    )
    assert seen == [{"days": 2, "shops": 2, "odd": 9}]


def test_what_was_made_as_declared_is_told_to_be_so(told: Story) -> None:
    said = ran("tables", "check", told.service, "--lake", told.lake).splitlines()
    assert said[-1] == f"{told.lake}: 5 tables, all as declared"
    assert not [line for line in said if "column" in line]
    for table in ("purchases", "crashes", "alpha"):
        diff = ran("schema", "diff", "--lake", told.lake, table, "--service", told.service).splitlines()
        assert re.fullmatch(r"version \d -> declaration", diff[-2])
        assert diff[-1] == "  nothing differs"
