"""In: an event of Glue or EMR Serverless: a run of a job ended. Out: `JobEnded`, to CloudWatch, and a message to the alarm
topic when a person must look. Restarting is left to `start_ingest`. An event may come twice; so a message may, too."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import boto3

from forebay.aws.cloudwatch import CloudWatch
from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.job_ended.run import ENDED_WELL, console, ended, measured, reason_of, run_of
from lambdas.log import log
from lambdas.messages import send_message


@dataclass(frozen=True)
class Settings:
    service: str
    namespace: str
    alarm_topic: str
    runbook: str
    engine: str = "glue"


def handle(event: dict[str, Any], context: object) -> None:
    settings = environment.read(Settings, os.environ)
    metrics = CloudWatch(boto3.client("cloudwatch"), namespace=settings.namespace)
    jobs = jobs_of(settings.engine)
    try:
        tell(ended(event["detail"], jobs), event["region"], settings, sns=boto3.client("sns"), glue=jobs, emit=metrics)
    finally:
        metrics.flush()


def tell(detail: dict[str, Any], region: str, settings: Settings, *, sns: Any, glue: Any, emit: Any) -> None:
    job, run_id, state = detail["jobName"], detail["jobRunId"], detail["state"]
    run = run_of(detail, glue)
    end = measured(detail, run, settings.service)
    emit(end)
    log("job ended", run=run_id, **end.as_dict())
    if state in ENDED_WELL:
        return
    reason = reason_of(detail, run)
    text = f"{job}: {state}\nreason   {reason}\nrun      {run_id}\nconsole  {console(detail, region)}\n"
    text += f"runbook  {settings.runbook}"
    send_message(sns, settings.alarm_topic, f"forebay: {job} {state}", text)
