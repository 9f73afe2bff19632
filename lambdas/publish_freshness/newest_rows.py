"""When a table got its last rows, from its health object, which ingest writes as rows arrive."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from forebay.lake.layout import HEALTH
from lambdas.places import place_of

__all__ = ["newest_rows"]


def newest_rows(s3: Any, lake: str, table: str) -> datetime | None:
    try:
        health = json.load(s3.get_object(**place_of(lake, f"{HEALTH}/{table}.json"))["Body"])
    except s3.exceptions.NoSuchKey:
        return None
    at = health.get("newest_at")
    return datetime.fromisoformat(at) if at else None
