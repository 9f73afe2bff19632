"""The ids that no window reaches any more are forgotten, and that never stops a batch for somebody who tidies beside it."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from delta.exceptions import ConcurrentDeleteReadException
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from forebay.batch.dedupe import Dedupe
from forebay.declaration.loading import parse_service

SERVICE = """
name = "studio"
[[tables]]
name = "alpha"
columns = [{ name = "id" }]
dedupe = { by = ["id"], days = 3 }
"""


def forgetting(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, answer: Exception | None, day: date = date(2026, 11, 21)
) -> list[list[tuple[str, date]]]:
    """What is deleted from the table of ids, which answers so: of ids of two services and ten days, service and day."""
    days = [date(2026, 11, 12 + n) for n in range(10)]
    rows = spark.createDataFrame(
        [(name, day) for name in ("studio", "other") for day in days], "service string, day date"
    )
    asked: list[list[tuple[str, date]]] = []

    def delete(condition: Any) -> None:
        asked.append(sorted(tuple(row) for row in rows.where(condition).collect()))
        if answer is not None:
            raise answer

    monkeypatch.setattr(DeltaTable, "forPath", lambda spark, path: SimpleNamespace(delete=delete))
    logs: Any = SimpleNamespace(look=lambda path: "there")
    service = parse_service({"service.toml": SERVICE})
    writing: Any = SimpleNamespace(spark=spark, service=service, place_of=lambda name: name, logs=logs)
    Dedupe(writing=writing, day=day).forget(date(2026, 11, 22))
    return asked


def test_days_before_the_longest_window_are_forgotten_and_no_others(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another service may have longer windows."""
    (gone,) = forgetting(spark, monkeypatch, None)
    assert gone == [("studio", date(2026, 11, 12 + n)) for n in range(5)]


def test_a_file_that_claims_to_be_of_the_future_makes_no_id_forgotten(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gone,) = forgetting(spark, monkeypatch, None, day=date(2099, 1, 1))
    assert gone[-1] == ("studio", date(2026, 11, 17))


def test_days_that_are_being_compacted_are_forgotten_another_time_and_other_errors_are_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(forgetting(spark, monkeypatch, ConcurrentDeleteReadException("DELTA_CONCURRENT_DELETE_READ"))) == 1
    with pytest.raises(ValueError, match="no such bucket"):
        forgetting(spark, monkeypatch, ValueError("no such bucket"))
