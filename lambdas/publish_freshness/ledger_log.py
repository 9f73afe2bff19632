"""When the last batch was, from the names in the ledger's log since its last checkpoint: no data file is opened.

Compaction of the ledger commits, too, so for one look `newest_commit` may seem younger than the last batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from forebay.lake.layout import LEDGER
from lambdas.places import place_of

LOG = f"{LEDGER}/_delta_log/"
COMMIT = re.compile(r"\d{20}\.json")
BATCHES = re.compile(r"forebay/[^/]+/[0-9a-f]{12}")
"""The application in a batch's transaction: service and generation. Retries and commands have words in its place."""


def newest_commit(s3: Any, lake: str) -> datetime | None:
    return max((commit["LastModified"] for commit in _commits(s3, lake)), default=None)


def batch_since(s3: Any, lake: str, moment: datetime) -> bool:
    """Whether a batch was committed since then. Other commits have no transaction, or that of an operator's command."""
    bucket = place_of(lake, LOG)["Bucket"]
    younger = [commit["Key"] for commit in _commits(s3, lake) if commit["LastModified"] >= moment]
    return any(_is_of_a_batch(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in reversed(younger))


def _is_of_a_batch(commit: bytes) -> bool:
    actions = (json.loads(line) for line in commit.splitlines() if line.startswith(b'{"txn"'))
    return any(BATCHES.fullmatch(action["txn"]["appId"]) for action in actions)


def _commits(s3: Any, lake: str) -> Iterator[dict[str, Any]]:
    """In the order of the listing, oldest first."""
    where = place_of(lake, LOG)
    bucket, log = where["Bucket"], where["Key"]
    after = f"{log}{last_checkpoint(s3, lake):020}"
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=log, StartAfter=after)
    found = (o for page in pages for o in page.get("Contents", []))
    return (o for o in found if COMMIT.fullmatch(o["Key"].removeprefix(log)))


def last_checkpoint(s3: Any, lake: str) -> int:
    try:
        return int(json.load(s3.get_object(**place_of(lake, f"{LOG}_last_checkpoint"))["Body"])["version"])
    except s3.exceptions.NoSuchKey:
        return 0
