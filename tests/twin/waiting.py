"""Time that passes between two looks of the function that starts the ingest job."""

from __future__ import annotations

import json
import time
from typing import Any

from forebay.lake.layout import CHECKPOINT
from lambdas.start_ingest.looking import WAITING

__all__ = ["note_that_files_wait"]


def note_that_files_wait(client: Any, lake_bucket: str, *, minutes: float) -> None:
    """As a look this many minutes ago did."""
    note = json.dumps({"since": time.time() - 60 * minutes}).encode()
    client("s3").put_object(Bucket=lake_bucket, Key=f"{CHECKPOINT}/{WAITING}", Body=note)
