"""The failure of a stream, without the layers that Spark wraps it in.

In: an exception of a stream. Out: the exception to show.
"""

from __future__ import annotations

import re

from forebay.errors import ForebayError, Halt
from forebay.spark.jvm import jvm_ended

OF_WORKERS = {
    "Python worker failed to connect back": "A Python worker did not connect to Spark: is the machine out of memory or "
    "processes, or does it refuse connections to 127.0.0.1?",
    "Python worker exited unexpectedly": "A Python worker ended: was it killed, or out of memory?",
}
"""Failures of a batch's workers, by Spark's messages."""
REPEATED = "Nothing was marked as done; start again to repeat the batch"


def plainly(failure: Exception) -> Exception:
    """Our own error without the layers that Spark wraps it in, or the failure of a process; other errors stay unchanged."""
    if isinstance(failure, ForebayError):
        return failure
    if (status := jvm_ended(failure)) is not None:
        return Halt(f"Spark's JVM ended (exit status {status}): was it killed, or out of memory? {REPEATED}")
    text = str(failure)
    if ours := re.findall(r"forebay\.errors\.(?:Halt|InvalidConfiguration|TryAgain|Quarantined): (.+)", text):
        return Halt(ours[-1].strip())
    return next((Halt(f"{means} {REPEATED}") for message, means in OF_WORKERS.items() if message in text), failure)
