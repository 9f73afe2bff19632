"""Every table that is made by default can be read by delta-rs as by Spark: the same rows, the same values."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.feed.telemetry import Telemetry, mistyped
from forebay.operate.lake_view import LakeView
from forebay.twin.twin import Twin
from tests.journey.story import Story, lines, story

pytestmark = pytest.mark.xdist_group("journey")

GAMES = ("alpha", "beta", "gamma")


@pytest.fixture
def told(twin: Twin, spark: SparkSession) -> Iterator[Story]:
    with story(twin) as told:
        yield told


def plain(value: Any) -> Any:
    """A row as JSON has it, so that nothing about a library's classes counts."""
    return json.dumps(value, sort_keys=True, default=str)


def test_delta_rs_reads_what_spark_reads(told: Story, spark: SparkSession) -> None:
    chance = random.Random(11)
    telemetry = Telemetry(chance)
    for number in range(2):
        records, _ = telemetry.lines(GAMES, [1795262400000 + 977 * n for n in range(300)])
        records = [mistyped(line, chance) if chance.random() < 0.05 else line for line in records]
        told.put(f"{number}.json", lines([*records, "{broken", '{"event": "no game"}']))
        told.run()
    sums = told.accounts()
    assert sums.differences() == []
    assert set(GAMES) <= sums.rows.keys()
    own = tuple(f"_forebay/{name}" for name in ("ledger", "quarantine", "parked"))
    for table in (*GAMES, *own):
        rows = spark.read.format("delta").load(f"{told.lake}/{table}")
        by_spark = sorted(plain(row) for row in rows.toArrow().to_pylist())
        found = LakeView(told.lake).table(table)
        assert found is not None
        assert found.protocol().min_reader_version == 1
        by_delta_rs = sorted(plain(row) for row in found.to_pyarrow_table(columns=rows.columns).to_pylist())
        assert by_delta_rs == by_spark
        assert table in own or len(by_spark) == sums.rows[table]
