"""Time that passes between two looks of the function that starts the ingest job."""

from __future__ import annotations

import time
from typing import Any

from forebay.capacity.waiting import NAME, Waiting
from forebay.lake.layout import CHECKPOINT


def note_that_files_wait(client: Any, lake_bucket: str, *, minutes: float) -> None:
    """As a look this many minutes ago did."""
    note = Waiting(since=time.time() - 60 * minutes).text()
    client("s3").put_object(Bucket=lake_bucket, Key=f"{CHECKPOINT}/{NAME}", Body=note)
