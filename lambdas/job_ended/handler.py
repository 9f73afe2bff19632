"""Enters: an event of Glue or EMR Serverless: a run of a job ended. Leaves: `JobEnded`, to CloudWatch, and a message to the
alarm topic when a person must look. Restarting is left to `start_ingest`. An event may come twice; so a message may, too."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent, event_source

from forebay.aws.cloudwatch import CloudWatch
from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.job_ended.run import ENDED_WELL, console, ended, measured, reason_of, run_of
from lambdas.messages import send_message

log = Logger(service="job_ended")


@dataclass(frozen=True)
class Settings:
    service: str
    namespace: str
    alarm_topic: str
    runbook: str
    engine: str = "glue"


@event_source(data_class=EventBridgeEvent)
def handle(event: EventBridgeEvent, context: object) -> None:
    settings = environment.read(Settings, os.environ)
    metrics = CloudWatch(boto3.client("cloudwatch"), namespace=settings.namespace)
    jobs = jobs_of(settings.engine)
    try:
        tell(ended(event.detail, jobs), event.region, settings, sns=boto3.client("sns"), glue=jobs, emit=metrics)
    finally:
        metrics.flush()


def tell(detail: dict[str, Any], region: str, settings: Settings, *, sns: Any, glue: Any, emit: Any) -> None:
    job, run_id, state = detail["jobName"], detail["jobRunId"], detail["state"]
    run = run_of(detail, glue)
    end = measured(detail, run, settings.service)
    emit(end)
    log.info("job ended", run=run_id, **end.as_dict())
    if state in ENDED_WELL:
        return
    reason = reason_of(detail, run)
    text = f"{job}: {state}\nreason   {reason}\nrun      {run_id}\nconsole  {console(detail, region)}\n"
    text += f"runbook  {settings.runbook}"
    send_message(sns, settings.alarm_topic, f"forebay: {job} {state}", text)
