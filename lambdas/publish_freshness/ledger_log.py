"""When the last batch was, from the names in the ledger's log since its last checkpoint: no data file is opened.

Compaction of the ledger commits, too, so for one look a batch may seem younger than it is.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from forebay.lake.layout import LEDGER
from lambdas.places import place_of

__all__ = ["LOG", "newest_commit"]

LOG = f"{LEDGER}/_delta_log/"
COMMIT = re.compile(r"\d{20}\.json")


def newest_commit(s3: Any, lake: str) -> datetime | None:
    where = place_of(lake, LOG)
    bucket, log = where["Bucket"], where["Key"]
    after = f"{log}{last_checkpoint(s3, lake):020}"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=log, StartAfter=after)
    found = (o for page in pages for o in page.get("Contents", []))
    return max((o["LastModified"] for o in found if COMMIT.fullmatch(o["Key"].removeprefix(log))), default=None)


def last_checkpoint(s3: Any, lake: str) -> int:
    try:
        return int(json.load(s3.get_object(**place_of(lake, f"{LOG}_last_checkpoint"))["Body"])["version"])
    except s3.exceptions.NoSuchKey:
        return 0
