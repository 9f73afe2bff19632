"""Keys, moments and partitions of every type that a declaration allows, against the model in plain Python."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.declaration.merge import Merge
from forebay.merge.step import step
from forebay.table.kernel import TableLogs
from tests.merge.order import Change, current_state, history
from tests.merge.story import Held

COLUMNS = (
    "price decimal(10,2), flag boolean, day date, hour timestamp, at timestamp, n decimal(38,4), t string, op string, "
    "x double, bin binary, seen map<string,timestamp>, items array<struct<a:double,m:map<string,string>>>, "
    "_file_id string, _line long, _batch long, _ingested_at timestamp"
)
NOW = datetime(2026, 11, 22, tzinfo=UTC)
KEYS = ("price", "flag", "day", "hour")
LATEST = Merge(
    into="state",
    keys=KEYS,
    sequence_by=("at", "n", "t"),
    delete_when="op = 'd'",
    partitions=("flag", "day", "hour"),
)
HISTORY = Merge(
    into="state", keys=KEYS, sequence_by=("n", "at"), delete_when="x > 3", history="scd2", partitions=("flag", "day")
)


def row(chance: random.Random, file: str, line: int) -> tuple[Any, ...]:
    return (
        chance.choice([Decimal("0.00"), Decimal("-0.10"), Decimal("99999999.99")]),
        chance.choice([True, False]),
        chance.choice([date(1, 1, 1), date(9999, 12, 31), date(2026, 10, 25)]),
        chance.choice([datetime(1, 1, 2, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, 0, 1, tzinfo=UTC)]),
        NOW + timedelta(microseconds=chance.randrange(3)),
        Decimal(chance.choice(["-1", "0.0001", "0.00", "1e33"])),
        chance.choice(["", "a", "A", "é", "\U0001f600", "\uffff"]),
        chance.choice(["u", "u", "d", None]),
        chance.choice([None, 0.0, -0.0, 1.5, 4.0, float("inf")]),
        chance.choice([None, b"", b"\xff\x00"]),
        chance.choice([None, {}, {"k": NOW}]),
        chance.choice([None, [], [(1.5, {"a": "b"}), (None, None)]]),
        file,
        line,
        1,
        NOW,
    )


@pytest.mark.deep
@pytest.mark.parametrize("declared", [LATEST, HISTORY], ids=["latest", "scd2"])
def test_a_state_equals_the_model_whatever_types_its_columns_have(
    spark: SparkSession, tmp_path: Path, declared: Merge
) -> None:
    spark = spark.newSession()
    chance, lake, logs = random.Random(1), tmp_path / "lake", TableLogs(spark)
    log = f"{lake}/changes"
    for turn, file in enumerate(("f", "g", "f")):
        rows = spark.createDataFrame([row(chance, file, line) for line in range(1, 30)], COLUMNS).coalesce(1)
        rows.write.format("delta").mode("overwrite").option("replaceWhere", f"_file_id = '{file}'").save(log)
        if turn:
            done = step(spark, str(lake), "changes", "state", declared, logs=logs, lease=Held())
            assert done is not None
            assert (done.recomputed is None) == (turn > 1)
    compare(lake, declared)


def compare(lake: Path, declared: Merge) -> None:
    found = DeltaTable(f"{lake}/changes").to_pyarrow_table().to_pylist()
    changes = [
        Change(
            tuple(r[k] for k in declared.keys),
            tuple(sequence(r[k]) for k in declared.sequence_by),
            r["_file_id"],
            r["_line"],
            0,
            dies(r, declared),
            r,
        )
        for r in found
    ]
    state = DeltaTable(f"{lake}/state").to_pyarrow_table().to_pylist()
    expected = [change.row for change in current_state(changes).values()]
    if declared.history is not None:
        versions = [one for its in history(changes).values() for one in its]
        expected = [{**v.change.row, "valid_from": v.change.row["n"], "valid_to": v.until} for v in versions]
    assert sorted(map(plain, state)) == sorted(map(plain, expected))


def sequence(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def dies(r: dict[str, Any], declared: Merge) -> bool:
    return (r["x"] is not None and r["x"] > 3) if declared.history else r["op"] == "d"


def plain(row: dict[str, Any]) -> str:
    return repr({name: row[name] for name in sorted(row) if name != "_ingested_at"})
