"""When the last batch was, from the names in the ledger's log since its last checkpoint: no data file is opened.

Compaction of the ledger commits, too, so for one look a batch may seem younger than it is.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from forebay.lake.layout import LEDGER

__all__ = ["LOG", "newest_commit"]

LOG = f"{LEDGER}/_delta_log/"
COMMIT = re.compile(re.escape(LOG) + r"\d{20}\.json")


def newest_commit(s3: Any, bucket: str) -> datetime | None:
    after = f"{LOG}{last_checkpoint(s3, bucket):020}"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=LOG, StartAfter=after)
    found = [o["LastModified"] for page in pages for o in page.get("Contents", []) if COMMIT.fullmatch(o["Key"])]
    return max(found, default=None)


def last_checkpoint(s3: Any, bucket: str) -> int:
    try:
        return int(json.load(s3.get_object(Bucket=bucket, Key=LOG + "_last_checkpoint")["Body"])["version"])
    except s3.exceptions.NoSuchKey:
        return 0
