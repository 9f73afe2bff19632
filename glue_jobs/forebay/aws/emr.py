"""The states of EMR Serverless runs, in Glue's words, so that all of forebay knows one set of words. Pure."""

from __future__ import annotations

BEFORE = " (code of before)"
"""Ends the name of a run whose code is that of an earlier deployment."""

AT_WORK = ("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING")
STATES = {
    **dict.fromkeys(("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED"), "STARTING"),
    "RUNNING": "RUNNING",
    "CANCELLING": "STOPPING",
    "SUCCESS": "SUCCEEDED",
    "FAILED": "FAILED",
    "CANCELLED": "STOPPED",
}


def state_of(state: str, details: str = "") -> str:
    """The state in Glue's words. EMR cancels a run that takes too long; a person who cancels gives no such reason."""
    if state == "CANCELLED" and "time" in details.lower() and "out" in details.lower():
        return "TIMEOUT"
    return STATES.get(state, state)
