"""What tests of merges share."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from forebay.table.kernel import TableLogs
from tests.merge.story import Story


@pytest.fixture
def story(spark: SparkSession, tmp_path: Path) -> Story:
    return Story(spark.newSession(), tmp_path / "lake", random.Random(19), TableLogs(spark))
