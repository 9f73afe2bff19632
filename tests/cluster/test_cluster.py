"""The jobs under Glue's own Python, on two executors: what they say, and what they leave, is what one process would."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.spark import runtime
from forebay_local.twin.twin import Twin
from tests.cluster.cluster import WITHOUT_PYTHON, Cluster, commands, running, until
from tests.cluster.glue_python import glue_python
from tests.journey.story import Story, event, lines, story

pytestmark = pytest.mark.jvm

FILES, RECORDS = 24, 50


@pytest.fixture(scope="module")
def cluster(twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster"), glue_python(), twin.env) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def told(twin: Twin) -> Iterator[Story]:
    with story(twin) as told:
        yield told


def land(told: Story, begin: int, files: int = FILES, records: int = RECORDS) -> None:
    for number in range(begin, begin + files):
        body = [event(f"game{n % 3}", number * records + n) for n in range(records)]
        told.put(f"{number}.json", lines(body))


def arguments(told: Story, **more: str) -> list[str]:
    given = {"lake": told.lake, "metrics": "none", **more}
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def rows(told: Story) -> int:
    return sum(told.rows(table, "select count(*) as n from t")[0]["n"] for table in LakeView(told.lake).tables())


def test_a_drain_loads_every_record_and_says_what_it_runs_on(cluster: Cluster, told: Story) -> None:
    land(told, 0)
    cluster.run("ingest", *arguments(told, queue_url=told.queue_url, drain="true", wait_s="0"))
    assert rows(told) == FILES * RECORDS
    assert accounts(LakeView(told.lake)).differences() == []
    (stock,) = events(cluster, "ingest", "StockTaken")
    assert stock["spark"] == runtime.SPARK
    pinned = [pin.removesuffix("*").split("==") for pin in runtime.GLUE_HAS if "==" in pin]
    assert all(stock["modules"][name].startswith(begin) for name, begin in pinned), stock["modules"]


def test_a_batch_whose_executor_is_killed_is_loaded_whole_and_once(cluster: Cluster, told: Story) -> None:
    before = rows(told)
    land(told, FILES)
    job = cluster.submit("ingest", *arguments(told, queue_url=told.queue_url, drain="true", wait_s="0"))
    victim = until(lambda: next(iter(busy(cluster)), None), job, "an executor reads files")
    os.kill(victim, signal.SIGKILL)
    cluster.ended("ingest", job)
    lost = re.search(r"Lost task .* ExecutorLostFailure .* caused by one of the running tasks", cluster.said("ingest"))
    assert lost, "no task was lost, so nothing was shown"
    assert rows(told) == before + FILES * RECORDS
    assert accounts(LakeView(told.lake)).differences() == []


def test_a_compaction_makes_few_files_and_changes_no_row(cluster: Cluster, told: Story) -> None:
    before = rows(told)
    cluster.run("compact", *arguments(told, now="true"))
    (ended,) = events(cluster, "compact", "CompactionEnded")
    assert (ended["tables_left"], ended["files_removed"] > ended["files_added"] > 0) == (0, True), ended
    assert rows(told) == before
    assert accounts(LakeView(told.lake)).differences() == []


def test_a_maintenance_drops_old_rows_without_what_no_job_has(cluster: Cluster, told: Story, tmp_path: Path) -> None:
    before, table = rows(told), LakeView(told.lake).table("game0")
    assert table is not None
    old = int(
        table.update({"_ingested_at": "now() - interval '9 days'"}, predicate="event_id = 'game0-0'")[
            "num_updated_rows"
        ]
    )
    declared = tmp_path / "service.toml"
    declared.write_text('name = "games"\n[[tables]]\nname = "{game}"\nkeep_days = 2\n')
    cluster.run("maintain", *arguments(told, service=str(declared)))
    assert (old > 0, rows(told)) == (True, before - old)
    assert accounts(LakeView(told.lake)).differences() == []


def test_a_drain_runs_on_the_python_that_it_brings_where_the_image_has_none_of_its_version(
    cluster: Cluster, told: Story, packed: Path
) -> None:
    """As on EMR Serverless: driver and executors have the archive beside them, and PySpark is the image's."""
    assert shutil.which(f"python{runtime.PYTHON}", path=WITHOUT_PYTHON) is None, "this machine cannot show it"
    before = rows(told)
    land(told, 2 * FILES)
    drain = arguments(told, queue_url=told.queue_url, drain="true", wait_s="0")
    cluster.run("ingest", *drain, environment=packed)
    assert rows(told) == before + FILES * RECORDS
    assert accounts(LakeView(told.lake)).differences() == []


def busy(cluster: Cluster) -> list[int]:
    """Executors that have begun with a task of Python: their worker processes are there."""
    parents = {parent_of(pid) for pid, command in commands() if "pyspark.daemon" in command}
    return [pid for pid in cluster.executors() if pid in parents]


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it ended meanwhile


def events(cluster: Cluster, script: str, name: str) -> list[dict[str, Any]]:
    found = (
        json.loads(line) for line in cluster.said(script).splitlines() if line.startswith("{") and f'"{name}"' in line
    )
    return [one for one in found if one["event"] == name]
