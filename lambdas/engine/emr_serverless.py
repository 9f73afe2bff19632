"""EMR Serverless in Glue's words: the calls that functions make of Glue's client, with Glue's answers.

EMR does not refuse a second run of a job, so this class looks for one first. Two that start in the same moment both run. Of
two drivers of one checkpoint the lease lets one work.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from forebay.aws.emr import AT_WORK, BEFORE, state_of
from lambdas.engine.submission import submission

DAY, MONTH = timedelta(days=1), timedelta(days=30)
"""A service that drains has hundreds of runs a day; one whose last run was stopped weeks ago has none."""
OLDER = "older"
VCPUS_OF_A_DPU = 4


class EmrServerless:
    class exceptions:  # noqa: N801  (as boto3's clients have it)
        class ConcurrentRunsExceededException(Exception):
            pass

        class EntityNotFoundException(Exception):
            pass

    def __init__(self, emr: Any, ssm: Any, application: str) -> None:
        self._emr, self._ssm, self._application = emr, ssm, application

    def get_job(self, JobName: str) -> dict[str, Any]:  # noqa: N803
        """Its parameter changes when a deploy changes the job."""
        try:
            found = self._ssm.get_parameter(Name=f"/{JobName}")["Parameter"]
        except self._ssm.exceptions.ParameterNotFound as gone:
            raise self.exceptions.EntityNotFoundException(JobName) from gone
        return {"Job": {**json.loads(found["Value"]), "LastModifiedOn": found["LastModifiedDate"]}}

    def get_job_runs(self, JobName: str, MaxResults: int, NextToken: str = "") -> dict[str, Any]:  # noqa: N803
        """Newest first; those of the last day, or else of the last month; and those at work, however old. After a page of the
        last day the next one has the rest of the month."""
        day, month = (datetime.now(UTC) - back for back in (DAY, MONTH))
        older = {"createdAtAfter": month, "createdAtBefore": day}
        if NextToken:
            return {"JobRuns": _listed(self._runs(JobName, **older), JobName, MaxResults)}
        recent = self._runs(JobName, createdAtAfter=day)
        runs = self._runs(JobName, states=list(AT_WORK)) | (recent or self._runs(JobName, **older))
        return {"JobRuns": _listed(runs, JobName, MaxResults), **({"NextToken": OLDER} if recent else {})}

    def get_job_run(self, JobName: str, RunId: str) -> dict[str, Any]:  # noqa: N803
        """Without a name, of whichever job it is."""
        try:
            run = self._emr.get_job_run(applicationId=self._application, jobRunId=RunId)["jobRun"]
        except self._emr.exceptions.ResourceNotFoundException as gone:
            raise self.exceptions.EntityNotFoundException(RunId) from gone
        billed = run.get("billedResourceUtilization") or run.get("totalResourceUtilization") or {}
        return {
            "JobRun": {
                **_in_glues_words({**run, "id": RunId}, JobName or str(run.get("name") or RunId).removesuffix(BEFORE)),
                "ExecutionTime": run.get("totalExecutionDurationSeconds", 0),
                "DPUSeconds": round(3600 * billed.get("vCPUHour", 0) / VCPUS_OF_A_DPU, 1),
            }
        }

    def start_job_run(self, JobName: str, Arguments: dict[str, str] | None = None, **workers: Any) -> dict[str, str]:  # noqa: N803
        """`workers` are a run's own `WorkerType` and `NumberOfWorkers`, and its `Timeout`, as Glue takes them."""
        if self._runs(JobName, states=list(AT_WORK)):
            raise self.exceptions.ConcurrentRunsExceededException(JobName)
        asked = submission({**self.get_job(JobName=JobName)["Job"], **workers}, Arguments or {})
        where = {"applicationId": self._application, "clientToken": uuid.uuid4().hex}
        return {"JobRunId": self._emr.start_job_run(**where, **asked)["jobRunId"]}

    def _runs(self, job: str, **asked: Any) -> dict[str, dict[str, Any]]:
        pages = self._emr.get_paginator("list_job_runs").paginate(applicationId=self._application, **asked)
        names = (job, job + BEFORE)
        return {run["id"]: run for page in pages for run in page["jobRuns"] if run.get("name") in names}


def _listed(runs: dict[str, dict[str, Any]], job: str, most: int) -> list[dict[str, Any]]:
    newest = sorted(runs.values(), key=lambda run: run["createdAt"], reverse=True)
    return [_in_glues_words(run, job) for run in newest[:most]]


def _in_glues_words(run: dict[str, Any], job: str) -> dict[str, Any]:
    details = str(run.get("stateDetails") or "")
    state = state_of(run["state"], details)
    arguments = {"--drain": "true"} if run.get("mode") == "BATCH" else {}
    if str(run.get("name", "")).endswith(BEFORE):
        arguments["--scriptLocation"] = ""
    described = {
        "Id": run["id"],
        "JobName": job,
        "JobRunState": state,
        "StartedOn": run["createdAt"],
        "Arguments": arguments,
    }
    if run["state"] not in AT_WORK:
        described["CompletedOn"] = run["updatedAt"]
        if state not in ("SUCCEEDED", "STOPPED"):
            described["ErrorMessage"] = details
    return described
