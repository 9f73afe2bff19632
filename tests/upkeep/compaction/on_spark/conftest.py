from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.upkeep.compaction.on_spark.lake import SmallLake


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> SmallLake:
    return SmallLake(spark, tmp_path / "lake")
