"""A job that lacks something says all of it in one sentence each, before it takes anything from the queue."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from forebay.errors import InvalidConfiguration
from forebay.events import Event
from forebay.spark.stock import CLASSES, MODULES, StockTaken, take_stock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_a_job_needs_is_found_and_named_with_its_version(spark: SparkSession) -> None:
    told: list[Event] = []
    take_stock(spark, told.append)
    (stock,) = told
    assert isinstance(stock, StockTaken)
    assert stock.spark == spark.version
    assert set(stock.modules) == set(MODULES)
    assert set(stock.classes) == set(CLASSES.values())
    assert stock.classes["io.delta.kernel.Table"].startswith("delta-kernel-api-")
    assert stock.classes["io.forebay.logstore.S3ConditionalLogStore"] == "forebay-logstore.jar"


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
