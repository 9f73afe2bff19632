"""What every journey begins with: a service of its own on the shared twin, and a warm session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from forebay_local.twin.twin import Twin
from tests.journey.story import Story, story


@pytest.fixture
def told(twin: Twin, spark: SparkSession) -> Iterator[Story]:
    with story(twin) as told:
        yield told
