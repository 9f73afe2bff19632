"""Rows of Arrow in Python, without a search for a module for each moment."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from forebay.lake.rows import python_rows

AT = datetime(2026, 5, 1, 12, 30, 1, 5000, tzinfo=UTC)
MOMENTS = pa.table(
    {
        "utc": pa.array([AT, None], pa.timestamp("us", "UTC")),
        "ms": pa.array([AT, None], pa.timestamp("ms", "+00:00")),
        "elsewhere": pa.array([AT, None], pa.timestamp("us", "Asia/Tokyo")),
        "without": pa.array([AT.replace(tzinfo=None), None], pa.timestamp("us")),
        "text": ["a", None],
    }
)


def test_rows_are_those_of_arrow() -> None:
    assert python_rows(MOMENTS) == MOMENTS.to_pylist()
    assert python_rows(MOMENTS)[0]["utc"].utcoffset() == AT.utcoffset()
    assert python_rows(MOMENTS.slice(0, 0)) == []


def test_no_module_is_looked_for_once_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[str] = []

    class Finder:
        @staticmethod
        def find_spec(name: str, *_: Any) -> None:
            looked_for.append(name)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    python_rows(pa.table({"utc": pa.array([AT] * 100, pa.timestamp("us", "UTC"))}))
    assert len(looked_for) < 10
