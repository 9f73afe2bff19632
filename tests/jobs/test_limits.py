"""How large a file may be is said where the job is started."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

from forebay.jobs.ingest import limits_of
from forebay.settings import IngestSettings
from tests.content.memory import read


def test_a_packed_document_beyond_the_declared_size_is_refused_and_the_setting_lets_it_in() -> None:
    draw = random.Random(16)
    document = json.dumps({"records": [{"id": draw.randbytes(500).hex()} for _ in range(1100)]}).encode()
    packed = {"a.json.gz": gzip.compress(document)}
    settings: dict[str, Any] = {"lake": "/lake", "queue_url": "queue"}
    small = read(packed, limits_of(IngestSettings(**settings, max_file_bytes=1 << 20))).files["a.json.gz"]
    assert (small.outcome, small.reason) == ("unreadable", "expansion-bomb")
    assert "expand to more than" in str(small.detail)
    assert read(packed, limits_of(IngestSettings(**settings))).files["a.json.gz"].outcome == "loaded"


def test_the_declared_size_bounds_what_is_asked_of_s3_too() -> None:
    limits = limits_of(IngestSettings(lake="/lake", queue_url="queue", max_file_bytes=2 << 20))
    assert (limits.max_file_bytes, limits.max_expanded_bytes) == (2 << 20, 2 << 20)
