"""Killed at any point, nothing is lost, and the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upkeep.compaction.on_spark.driver import IN_PROCESS, Killed
from tests.upkeep.compaction.on_spark.lake import SmallLake

ROOT = Path(__file__).resolve().parents[4]


def killed(small: SmallLake, point: str, service: str) -> None:
    command = [sys.executable, "-m", "tests.upkeep.compaction.on_spark.driver", point, str(small.folder), service]
    run = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "FOREBAY_LOG": "error"}, stderr=subprocess.PIPE, start_new_session=True
    )
    _, said = run.communicate(timeout=240)
    assert run.returncode == -signal.SIGKILL, f"it was not killed {point}, it ended with {run.returncode}: {said!r}"


def ended(small: SmallLake, point: str, service: str) -> None:
    """In this process, which lives on."""
    with pytest.MonkeyPatch.context() as patches:
        IN_PROCESS[point](patches.setattr)
        with pytest.raises(Killed):
            small.compact(service=service)


WAYS = {"optimize": "", "rewrite": 'compaction = { way = "rewrite", files = 1 }'}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("way", "point"),
    [*(("optimize", point) for point in IN_PROCESS), *((way, "while files are written") for way in WAYS)],
)
def test_killed_it_loses_nothing_and_the_next_run_goes_on(small: SmallLake, way: str, point: str) -> None:
    noise = "concat_ws('', transform(sequence(1, 300), i -> md5(cast(id * 300 + i as string))))"
    for part in ("a", "b"):
        small.append(small.spark.range(0, 600, 1, 6).selectExpr("id", f"{noise} text", f"'{part}' part"), by="part")
    before = small.rows()
    service = small.declare(f'[[tables]]\nname = "alpha"\n{WAYS[way]}')
    (ended if point in IN_PROCESS else killed)(small, point, service)
    assert small.rows() == before
    ran = small.compact(service=service)
    assert ran.status == 0
    if point == "between two commits":
        assert len(ran.tasks) == 1, "what was done before is not done again"
    assert (len(small.files()), small.rows()) == (2, before)


@pytest.mark.deep
def test_killed_while_it_deletes_it_loses_nothing_and_the_next_run_goes_on(small: SmallLake) -> None:
    small.fill(files=300)
    before = small.rows()
    assert small.compact(service="").status == 0
    small.age(days=10)
    killed(small, "while files are deleted", "")
    there = len(list((small.folder / "alpha").glob("*.parquet")))
    assert small.rows() == before
    assert small.maintain().status == 0
    assert len(list((small.folder / "alpha").glob("*.parquet"))) == len(small.files()) == 1
    assert small.rows() == before
    print(f"{there} files were left by the one that was killed")
