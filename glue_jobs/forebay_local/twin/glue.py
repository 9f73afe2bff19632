"""Glue jobs that run: StartJobRun starts the job's script on this machine, as its definition says.

Script, `--extra-py-files`, `--extra-jars` and `--extra-files` come from the twin's S3. `--conf` goes to spark-submit, and
every other argument to the script. So the definition that AWS gets is what runs here. A run goes from STARTING to RUNNING to
SUCCEEDED, FAILED, STOPPED or TIMEOUT by what its process does. Each end is an event "Glue Job State Change" on the default
bus, which the template's own rules receive. The output of the process is in the job's log groups and in files of the twin's
folder. Not as on Glue: the workers are threads of one JVM, and `--additional-python-modules` are this Python's.

Fixed in moto 5.2.5: a run succeeds at the first look without having run; UpdateJob and BatchStopJobRun are missing;
the oldest run is listed first.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from moto.core.responses import ActionResult
from moto.core.utils import camelcase_to_underscores, utcnow
from moto.events.models import events_backends
from moto.glue import models
from moto.glue.exceptions import (
    ConcurrentRunsExceededException,
    JobRunNotFoundException,
    ResourceNumberLimitExceededException,
)
from moto.glue.responses import GlueResponse
from moto.moto_api import state_manager

from forebay.spark.runtime import DPU_OF
from forebay_local.twin import clients
from forebay_local.twin.patch import Patch, apply
from forebay_local.twin.run import LOGS, Ended, Run, Submitted

RUNS = "runs"
RUNS_OF_ACCOUNT = 200
"""At one time, of all jobs: the quota "Max concurrent job runs per account"."""
STARTS_AFTER = "FOREBAY_TWIN_GLUE_STARTS_AFTER_S"
AT_WORK = ("STARTING", "RUNNING", "STOPPING")

_start: Callable[..., str] = models.FakeJob.start_job_run
_as_dict = models.FakeJobRun.as_dict


@dataclass(frozen=True)
class Here:
    """The address of this twin, and the folder of the logs of runs."""

    endpoint: str
    folder: Path


_here: Here
_runs: dict[str, Run] = {}
_at_work: set[str] = set()


def starts_after_s() -> float:
    """Workers take their time on Glue; here none, unless somebody wants to see what that does."""
    return float(os.environ.get(STARTS_AFTER, "0"))


def install(endpoint: str, folder: Path | None) -> None:
    """Applies the patches. Runs end when this process ends."""
    global _here
    _here = Here(endpoint, folder or Path(tempfile.mkdtemp(prefix="forebay-runs-")))
    apply(PATCHES, relied_on)
    # moto moves a state on at each look; a run's moves when its process does.
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": sys.maxsize})
    atexit.register(end_all)


def end_all() -> None:
    for run in list(_runs.values()):
        run.stop(wait_s=1)


# --- a run, from its start to its end ---


def start_job_run(self: Any, *args: Any, **kwargs: Any) -> str:
    at_most = int(self.execution_property.get("MaxConcurrentRuns", 1))
    if sum(run.status in AT_WORK for run in self.job_runs) >= at_most:
        raise ConcurrentRunsExceededException(f"Concurrent runs exceeded for {self.name}")
    if len(_at_work) >= RUNS_OF_ACCOUNT:
        raise ResourceNumberLimitExceededException(f"More than {RUNS_OF_ACCOUNT} job runs at one time")
    run_id = _start(self, *args, **kwargs)
    _at_work.add(run_id)
    threading.Thread(target=carry_out, args=(self, self.job_runs[-1]), daemon=True).start()
    return run_id


def carry_out(job: Any, run: Any) -> None:
    region = job.backend.region_name
    role = clients.role_of(job.role)
    client = partial(clients.client, endpoint=_here.endpoint, region=region, who=role)
    try:
        time.sleep(starts_after_s())
        submitted = Submitted(job.name, role, run.job_run_id, job.command["ScriptLocation"], run.arguments or {})
        process = submitted.start(client("s3"), _here.folder / RUNS / run.job_run_id, _here.endpoint, region)
        _runs[run.job_run_id] = process
        if run.status == "STARTING":  # nobody stopped it meanwhile
            run.status = "RUNNING"
        else:
            process.stop()
        ended = process.wait(stopping=lambda: run.status == "STOPPING", minutes_at_most=run.timeout)
    except Exception as failure:  # of ours, not of the job's: it must not look as if it ran for ever
        traceback.print_exc()
        ended = Ended("FAILED", f"the local twin could not run it: {failure}")
    _runs.pop(run.job_run_id, None)
    keep_logs(client("logs"), run, _here.folder / RUNS / run.job_run_id)
    run.completed_on = run.modified_on = utcnow()
    run.error_message = ended.message
    run.status = ended.state
    _at_work.discard(run.job_run_id)
    tell(job, run, ended)


def tell(job: Any, run: Any, ended: Ended) -> None:
    detail = {
        "jobName": job.name,
        "severity": "INFO" if ended.state == "SUCCEEDED" else "ERROR",
        "state": ended.state,
        "jobRunId": run.job_run_id,
        "message": ended.message or "Job run succeeded",
    }
    event = {"Source": "aws.glue", "DetailType": "Glue Job State Change", "Detail": json.dumps(detail)}
    events_backends[job.backend.account_id][job.backend.region_name].put_events([event])


def keep_logs(logs: Any, run: Any, folder: Path) -> None:
    """As Glue 5.0 and later do: a run's output goes to two log groups; a job can choose only their prefix.
    https://docs.aws.amazon.com/glue/latest/dg/monitor-continuous-logging.html"""
    for name in LOGS:
        if (folder / name).exists():
            lines = [line for line in (folder / name).read_text(errors="replace").splitlines() if line.strip()]
            keep_log(logs, f"{log_prefix(run)}/{name}", f"{run.job_run_id}-driver", lines[-5000:])


def keep_log(logs: Any, group: str, stream: str, lines: list[str]) -> None:
    now = int(utcnow().timestamp() * 1000)
    try:
        with suppress(logs.exceptions.ResourceAlreadyExistsException):
            logs.create_log_group(logGroupName=group)
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        if lines:
            events = [{"timestamp": now, "message": line} for line in lines]
            logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    except ClientError as refused:  # its stack went while it ran, or its role may not; the run is none the worse for it
        print(f"the log {group} {stream} is not kept: {refused}", file=sys.stderr)


def log_prefix(run: Any) -> str:
    return str((run.arguments or {}).get("--custom-logGroup-prefix", "/aws-glue/jobs"))


# --- what the API says of them ---


def as_dict(self: Any) -> dict[str, Any]:
    fields: dict[str, Any] = _as_dict(self)
    ended = self.completed_on if self.status not in AT_WORK else utcnow()
    seconds, dpus = (
        int((ended - self.started_on).total_seconds()),
        (self.number_of_workers or 0) * DPU_OF.get(self.worker_type, 1),
    )
    fields |= {"GlueVersion": "6.0", "ExecutionTime": seconds, "MaxCapacity": float(dpus)}
    fields["LogGroupName"] = log_prefix(self)
    if getattr(self, "error_message", "") and self.status != "SUCCEEDED":
        fields["ErrorMessage"] = self.error_message
    if self.status in AT_WORK:
        del fields["CompletedOn"]
    else:
        fields["DPUSeconds"] = float(seconds * dpus)  # as if all of them had been there all the time
    return fields


def get_job_run(self: Any, run_id: str) -> Any:
    found = next((run for run in self.job_runs if run.job_run_id == run_id), None)
    if found is None:
        raise JobRunNotFoundException(run_id)
    return found


def get_job_runs(self: Any) -> list[Any]:
    return list(self.job_runs[::-1])


def batch_stop_job_run(self: Any) -> ActionResult:
    job = self.glue_backend.get_job(self._get_param("JobName"))
    stopped, refused = [], []
    for run_id in self._get_param("JobRunIds"):
        run = next((run for run in job.job_runs if run.job_run_id == run_id), None)
        about = {"JobName": job.name, "JobRunId": run_id}
        if run is None or run.status not in ("STARTING", "RUNNING"):
            why = {"ErrorCode": "InvalidInputException", "ErrorMessage": f"Job run {run_id} is not running"}
            refused.append({**about, "ErrorDetail": why})
            continue
        run.status = "STOPPING"
        if process := _runs.get(run_id):
            threading.Thread(target=process.stop, daemon=True).start()
        stopped.append(about)
    return ActionResult({"SuccessfulSubmissions": stopped, "Errors": refused})


def update_job(self: Any) -> ActionResult:
    job = self.glue_backend.get_job(self._get_param("JobName"))
    for name, value in self._get_param("JobUpdate").items():
        setattr(job, camelcase_to_underscores(name), value)
    job.last_modified_on = utcnow()
    return ActionResult({"JobName": job.name})


START_TAKES = (
    "self",
    "allocated_capacity",
    "max_capacity",
    "timeout",
    "worker_type",
    "security_configuration",
    "number_of_workers",
    "notification_property",
    "previous_run_id",
    "arguments",
)

PATCHES = (
    Patch(models.FakeJob, "start_job_run", START_TAKES, start_job_run),
    Patch(models.FakeJob, "get_job_run", ("self", "run_id"), get_job_run),
    Patch(models.FakeJob, "get_job_runs", ("self",), get_job_runs),
    Patch(models.FakeJobRun, "as_dict", ("self",), as_dict),
    Patch(GlueResponse, "batch_stop_job_run", None, batch_stop_job_run, new=True),
    Patch(GlueResponse, "update_job", None, update_job, new=True),
)


def relied_on() -> list[tuple[Any, str]]:
    run = models.FakeJobRun("job")
    attributes = (
        "status",
        "worker_type",
        "number_of_workers",
        "arguments",
        "timeout",
        "started_on",
        "completed_on",
        "modified_on",
        "job_run_id",
    )
    return [(run, name) for name in attributes]
