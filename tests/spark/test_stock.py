"""A job that lacks something says all of it in one sentence each, before it takes anything from the queue."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from forebay.errors import InvalidConfiguration
from forebay.events import Event
from forebay.spark import stock
from forebay.spark.stock import CLASSES, MODULES, StockTaken, stock_of_modules, take_stock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_a_job_needs_is_found_and_named_with_its_version(spark: SparkSession) -> None:
    told: list[Event] = []
    take_stock(spark, told.append)
    (found,) = told
    assert isinstance(found, StockTaken)
    assert found.spark == spark.version
    assert set(found.modules) == set(MODULES)
    assert found.classes is not None
    assert set(found.classes) == set(CLASSES.values())
    assert found.classes["io.delta.kernel.Table"].startswith("delta-kernel-api-")
    assert found.classes["io.forebay.logstore.S3ConditionalLogStore"] == "forebay-logstore.jar"


def test_everything_that_is_missing_is_named_at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        if name == "pydantic":
            raise ImportError(name)
        return import_module(name)

    told: list[Event] = []
    monkeypatch.setitem(CLASSES, "a class of tomorrow", "io.delta.kernel.Tomorrow")
    with pytest.raises(InvalidConfiguration) as refused:
        take_stock(spark, told.append, module=load)
    said = [str(problem) for problem in refused.value.problems]
    assert [line.partition(":")[0] for line in said] == [
        "Python module pydantic",
        "Java class io.delta.kernel.Tomorrow",
    ]
    assert "deploy again" in said[0]
    assert told == []


def test_a_job_without_spark_takes_stock_of_its_modules_alone() -> None:
    found = stock_of_modules()
    assert set(found.as_dict()["modules"]) == {"boto3", "numpy", "pyarrow", "pydantic"}
    assert not {"spark", "classes"} & found.as_dict().keys()


def test_the_reconcile_job_names_what_is_missing_before_it_lists_anything(tmp_path: Path) -> None:
    """In a process of its own, where neither numpy nor pyarrow can be imported."""
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['pyarrow'] = None\n"
        "sys.path.insert(0, sys.argv[1]); import reconcile\n"
        "reconcile.main(['--lake', sys.argv[2], '--landing', 's3://drops/in/', '--queue_url', 'https://sqs/q'])"
    )
    scripts = Path(stock.__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code, str(scripts), str(tmp_path)], capture_output=True, text=True)
    last = ran.stderr.strip().splitlines()[-2:]
    assert ["Python module numpy: cannot be imported" in last[0], last[1][:21]] == [True, "Python module pyarrow"]


def test_jobs_start_without_what_the_command_line_alone_installs() -> None:
    jobs = ("jobs.ingest", "upkeep.compaction.job", "upkeep.maintenance.job", "upkeep.reconcile.job")
    absent = "import sys; sys.modules |= dict.fromkeys(['cryptography', 'deltalake', 'rich', 'typer'])"
    code = "; ".join([absent, *(f"import forebay.{job}" for job in jobs)])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
