"""The code that ran well, to go back to when what was deployed does not run. Data in, an answer out; kept in a small object.

A run takes its code from arguments. Glue prefers `--scriptLocation` to the job's own script. So a rollback concerns single
runs: the job's definition stays as CloudFormation made it, and the next deploy is tried like any other.
https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-etl-glue-arguments.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from lambdas.places import place_of

__all__ = ["WENT_BACK", "Code", "breaks", "code_of", "last_good", "proven", "remember"]

CODE = ("--extra-py-files", "--extra-jars", "--extra-files", "--service", "--conf", "--additional-python-modules")
WENT_BACK = "--scriptLocation"
"""A run with this argument is one with code of before."""
PROVEN_AFTER = timedelta(minutes=15)
FAILURES = 2
NAME = "last-good.json"

Run = dict[str, Any]
Code = dict[str, str]


def code_of(job: dict[str, Any]) -> Code:
    given = job.get("DefaultArguments", {})
    return {WENT_BACK: job["Command"]["ScriptLocation"], **{name: given[name] for name in CODE if name in given}}


def proven(runs: Sequence[Run], job: dict[str, Any], now: datetime) -> bool:
    """Whether a run of the job as it is now has ended well, or has been at work for a while."""
    return any(_ran_well(run, now) for run in _of_now(runs, job))


def breaks(runs: Sequence[Run], job: dict[str, Any], now: datetime) -> bool:
    """Whether the job as it is now has failed at once, time and again, and never ran well."""
    own = list(_of_now(runs, job))
    return (
        len(own) >= FAILURES
        and all(run["JobRunState"] in ("FAILED", "ERROR") for run in own)
        and not proven(own, job, now)
    )


def last_good(s3: Any, checkpoint: str) -> Code:
    try:
        found = json.load(s3.get_object(**place_of(checkpoint, NAME))["Body"])
    except (s3.exceptions.NoSuchKey, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(s3: Any, checkpoint: str, code: Code) -> None:
    s3.put_object(**place_of(checkpoint, NAME), Body=json.dumps(code).encode())


def _of_now(runs: Iterable[Run], job: dict[str, Any]) -> Iterable[Run]:
    return (
        run for run in runs if run["StartedOn"] >= job["LastModifiedOn"] and WENT_BACK not in run.get("Arguments", {})
    )


def _ran_well(run: Run, now: datetime) -> bool:
    lasted = (run.get("CompletedOn") or now) - run["StartedOn"]
    return bool(run["JobRunState"] == "SUCCEEDED" or lasted >= PROVEN_AFTER)
