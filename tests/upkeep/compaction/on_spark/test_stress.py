"""Two drivers and three hands at one table: one appends, one merges, one compacts; at the end every row is right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from forebay.upkeep.compaction.events import CompactionEnded
from tests.upkeep.compaction.on_spark.ingesting import MERGES, OLD_ROWS, ROWS
from tests.upkeep.compaction.on_spark.lake import SmallLake

ROOT = Path(__file__).resolve().parents[4]
BATCHES = 30
WAYS = ('compaction = { way = "rewrite", files = 1 }', "")


@pytest.mark.deep
def test_appends_merges_and_compactions_lose_nothing(small: SmallLake) -> None:
    old = small.spark.range(0, OLD_ROWS, 1, 4).selectExpr("id", "id % 7 v", "id % 2 part")
    small.append(old, by="part")
    command = [sys.executable, "-m", "tests.upkeep.compaction.on_spark.ingesting", small.path(), str(BATCHES)]
    environment = {**os.environ, "FOREBAY_LOG": "error"}
    other = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    rounds, reasons = 0, Counter[str]()
    try:
        while other.poll() is None:
            ran = small.compact(service=small.declare(f'[[tables]]\nname = "alpha"\n{WAYS[rounds % 2]}'))
            reasons.update(table.reason for table in ran.left)
            rounds += bool(ran.tasks)
    finally:
        other.kill()
        said, _ = other.communicate()
    assert other.returncode == 0
    assert rounds > 2, "compaction was hardly at work"
    assert set(reasons) <= {"conflict"}, "whoever was outrun said so, and nothing else went wrong"
    assert small.compact(service=small.declare('[[tables]]\nname = "alpha"')).status == 0

    found = small.spark.read.format("delta").load(small.path())
    rows = [(row.id, row.v, row.part) for row in found.collect()]
    last = OLD_ROWS + BATCHES * ROWS
    model = {(n, n % 7 + (n < OLD_ROWS), n % 2) for n in range(last)}
    assert (len(rows), sum(v for _, v, _ in rows)) == (last, sum(v for _, v, _ in model))
    assert set(rows) == model
    met = sum(event.conflicts for event in small.events if isinstance(event, CompactionEnded))
    print(f"{rounds} compactions, {met} conflicts of theirs, {said.strip()} of {MERGES} merges")
