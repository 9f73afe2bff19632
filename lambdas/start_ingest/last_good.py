"""The definition of the job that ran well, to go back to when what was deployed does not run. Data in, an answer out; kept in
a small object.

A run takes its arguments and its workers from what starts it. Glue prefers `--scriptLocation` to the job's own script. So a
rollback concerns single runs: the job's definition stays as CloudFormation made it, and the next deploy is tried like any
other. No run can choose its Glue version or role, or be rid of an argument of the job's; `stays` says what differs there.
https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-etl-glue-arguments.html
https://docs.aws.amazon.com/glue/latest/webapi/API_StartJobRun.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lambdas.places import place_of

WENT_BACK = "--scriptLocation"
"""A run with this argument is one with code of before."""
IGNORE = "--ignore_arguments"
"""Names of arguments that `forebay.settings` then ignores."""
OF_A_RUN = ("WorkerType", "NumberOfWorkers")
OF_THE_JOB = ("GlueVersion", "Role")
OF_WHOM = "Name"
FAILURES = 2
FAILED = ("FAILED", "ERROR", "TIMEOUT")
NAME = "last-good.json"

Run = dict[str, Any]
Definition = dict[str, Any]


@dataclass(frozen=True)
class Code:
    """The request of the next run: empty for the job's own code. `stays` are parts that cannot go back, and `is_first` says
    whether the run before had the job's own code."""

    request: dict[str, Any] = field(default_factory=dict)
    stays: tuple[str, ...] = ()
    is_first: bool = False


def code_for(
    runs: Sequence[Run], job: dict[str, Any], *, s3: Any, checkpoint: str, batch_since: Callable[[datetime], bool]
) -> Code:
    """The code of the next run: the job's own or, if that breaks, the code that ran well before. Code that proved itself is
    remembered."""
    mine, good = definition_of(job), last_good(s3, checkpoint, job["Name"])
    if good == mine:
        return Code()
    if proven(runs, job, batch_since):
        remember(s3, checkpoint, mine)
        return Code()
    if not good or not breaks(runs, job):
        return Code()
    return Code(request(good, mine), tuple(stays(good, mine)), WENT_BACK not in runs[0].get("Arguments", {}))


def definition_of(job: dict[str, Any]) -> Definition:
    arguments = {**job.get("DefaultArguments", {}), WENT_BACK: job["Command"]["ScriptLocation"]}
    return {"Arguments": arguments, **{name: job[name] for name in (OF_WHOM, *OF_A_RUN, *OF_THE_JOB) if name in job}}


def request(good: Definition, now: Definition) -> dict[str, Any]:
    """The request of a run with the definition `good`. Its code ignores the arguments that came later."""
    later = ",".join(name.lstrip("-") for name in _later(good, now))
    arguments = {**good["Arguments"], **({IGNORE: later} if later else {})}
    return {"Arguments": arguments, **{name: good[name] for name in OF_A_RUN if name in good}}


def stays(good: Definition, now: Definition) -> list[str]:
    """The parts of the new definition that such a run has all the same."""
    of_job = [f"{name} {now[name]}" for name in OF_THE_JOB if name in good and now.get(name) != good[name]]
    return [*of_job, *(f"the argument {name}" for name in _later(good, now))]


def proven(runs: Sequence[Run], job: dict[str, Any], batch_since: Callable[[datetime], bool]) -> bool:
    """Whether a run of the current definition has ended well, or is at work and has committed a batch. `batch_since` says
    whether there is one since a time."""
    return any(
        run["JobRunState"] == "SUCCEEDED" or (run["JobRunState"] == "RUNNING" and batch_since(run["StartedOn"]))
        for run in _of_now(runs, job)
    )


def breaks(runs: Sequence[Run], job: dict[str, Any]) -> bool:
    """Whether all runs of the current definition have failed, several times. Runs of the earlier code push these failures out
    of the list. So a list that begins after the deployment counts, too, if it has such runs."""
    since, own = list(_since(runs, job)), list(_of_now(runs, job))
    several = len(own) >= FAILURES or len(own) < len(since) == len(runs)
    return several and all(run["JobRunState"] in FAILED for run in own)


def last_good(s3: Any, checkpoint: str, job: str) -> Definition:
    """Empty where none is known, or that of another job: a lake that another stack adopted has that of the first one, with its
    queue."""
    try:
        found = json.load(s3.get_object(**place_of(checkpoint, NAME))["Body"])
    except (s3.exceptions.NoSuchKey, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get(OF_WHOM) == job else {}


def remember(s3: Any, checkpoint: str, definition: Definition) -> None:
    s3.put_object(**place_of(checkpoint, NAME), Body=json.dumps(definition).encode())


def _later(good: Definition, now: Definition) -> Iterator[str]:
    return (name for name in now["Arguments"] if name not in good["Arguments"])


def _of_now(runs: Iterable[Run], job: dict[str, Any]) -> Iterator[Run]:
    return (run for run in _since(runs, job) if WENT_BACK not in run.get("Arguments", {}))


def _since(runs: Iterable[Run], job: dict[str, Any]) -> Iterator[Run]:
    """The runs that began after the deployment of the current definition."""
    return (run for run in runs if run["StartedOn"] >= job["LastModifiedOn"])
