"""Bodies as S3 sends them, short to write."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus


def record(key: str, *, bucket: str = "landing", size: int = 100, etag: str = "e", version: str | None = None,
           sequencer: str | None = None, name: str = "ObjectCreated:Put") -> dict[str, Any]:  # fmt: skip
    about: dict[str, Any] = {"key": quote_plus(key), "size": size, "eTag": etag}
    if version:
        about["versionId"] = version
    if sequencer:
        about["sequencer"] = sequencer
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-west-1",
        "eventTime": "2026-01-02T03:04:05.678Z",
        "eventName": name,
        "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"}, "object": about},
    }


def body(*keys: str, **about: Any) -> str:
    """A message that announces `keys`."""
    return json.dumps({"Records": [record(key, **about) for key in keys]})


def both(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": list(records)})
