"""The health of all tables: small objects in the lake."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from forebay.lake.layout import HEALTH
from lambdas.places import place_of

AT_ONCE = 16


def health_objects(s3: Any, lake: str) -> list[dict[str, Any]]:
    """Skips objects that cannot be read (deleted meanwhile, or not ours): the next look at their tables replaces them."""
    where = place_of(lake, f"{HEALTH}/")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=where["Bucket"], Prefix=where["Key"])
    keys = [found["Key"] for page in pages for found in page.get("Contents", ()) if found["Key"].endswith(".json")]

    def read(key: str) -> Any:
        try:
            return json.load(s3.get_object(Bucket=where["Bucket"], Key=key)["Body"])
        except (s3.exceptions.NoSuchKey, ValueError):
            return None

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return [found for found in threads.map(read, keys) if isinstance(found, dict) and "waiting" in found]
