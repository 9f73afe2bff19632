"""The driver, or its planner, is killed with SIGKILL wherever it hurts; after a restart every file has arrived exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from forebay.source.source import FileNames
from tests.source.conftest import Queues
from tests.source.driver import DyingNames, run
from tests.source.notices import body

ROOT = Path(__file__).parents[2]

POINTS = [
    "while the planner receives",
    "after receive",
    "after manifest",
    "after the offset log",
    "in foreachBatch",
    "after the tables",
    "before the delete",
    "in the middle of the delete",
]


FOR_REAL = [
    ("while the planner receives", "names"),
    ("in foreachBatch", "names"),
]
"""Driver and JVM die, the first time without the planner. At the other points the planner alone is killed, and the session
stays warm."""


def arrived(out: Path) -> list[str]:
    return sorted(name for batch in out.glob("*.json") for name in json.loads(batch.read_text()))


def run_until_killed(told: dict[str, Any], env: dict[str, str], log: Path) -> int:
    path = os.pathsep.join([str(ROOT / "glue_jobs"), str(ROOT)])
    with log.open("w") as output:
        child = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/source/driver.py")],
            env={**os.environ, **env, "PYTHONPATH": path, "FOREBAY_TEST": json.dumps(told)},
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    try:
        return child.wait(300)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)


def run_until_the_planner_is_killed(spark: Any, told: dict[str, Any]) -> None:
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment["FOREBAY_TEST"] = json.dumps(told)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment["PYTHONPATH"]])
    try:
        with pytest.raises(StreamingQueryException):
            run(spark, told, DyingNames)
    finally:
        environment.clear()
        environment.update(before)


WAYS = [*((point, "names") for point in POINTS), ("after manifest", "manifests in s3")]
WAYS += [(point, "contents") for point in ("after manifest", "after the tables")]


@pytest.mark.deep
@pytest.mark.parametrize(("point", "way"), WAYS)
def test_after_kill_9_every_file_arrives_exactly_once_and_the_queue_is_empty(
    point: str, way: str, queues: Queues, spark: Any, tmp_path: Path
) -> None:
    queue, out = queues.make(), tmp_path / "out"
    out.mkdir()
    bucket, s3 = f"b{queue[-12:]}", queues.twin.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    keys = [f"in/{i:03d}.json" for i in range(25)]
    options = {
        "queueUrl": queue,
        "manifestPath": f"s3://{bucket}/stream/manifests" if way == "manifests in s3" else str(tmp_path / "manifests"),
        "maxFilesPerBatch": "10",
        "fetchParallelism": "2",
        "visibilityTimeoutS": "6",
        "waitS": "1",
    }
    about = {key: {"etag": "e"} for key in keys}
    if way == "contents":
        options["fileFormat"] = "json"
        put = {key: s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({"key": key})) for key in keys}
        about = {key: {"etag": put[key]["ETag"].strip('"')} for key in keys}
    queues.send(queue, [body(key, bucket=bucket, **about[key]) for key in keys])
    told = {"options": options, "checkpoint": str(tmp_path / "checkpoint"), "out": str(out), "die": point}

    log = tmp_path / "killed.log"
    if (point, way) in FOR_REAL:
        assert run_until_killed(told, queues.twin.env, log) == -signal.SIGKILL, log.read_text()[-3000:]
        assert len(arrived(out)) < len(keys), "it was killed before it was through"
    else:
        run_until_the_planner_is_killed(spark, told | {"planner_only": True})

    assert run(spark, told | {"die": None}, FileNames) == "empty"
    assert arrived(out) == keys
    assert queues.left(queue) == (0, 0)
