"""When a table got its last rows, from its health object, which ingest writes as rows arrive."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from forebay.lake.layout import HEALTH

__all__ = ["newest_rows"]


def newest_rows(s3: Any, bucket: str, table: str) -> datetime | None:
    try:
        health = json.load(s3.get_object(Bucket=bucket, Key=f"{HEALTH}/{table}.json")["Body"])
    except s3.exceptions.NoSuchKey:
        return None
    at = health.get("newest_at")
    return datetime.fromisoformat(at) if at else None
