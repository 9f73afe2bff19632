"""Enters: a Glue "Job State Change" event. Leaves: `JobEnded`, to CloudWatch, and a message to the alarm topic when a person
must look. Restarting is left to `start_ingest`. Glue may send an event twice; so a message may come twice."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent, event_source

from forebay.cloudwatch import CloudWatch
from lambdas import environment
from lambdas.job_ended.run import ENDED_WELL, measured, reason_of, run_of

log = Logger(service="job_ended")


@dataclass(frozen=True)
class Settings:
    service: str
    namespace: str
    alarm_topic: str
    runbook: str


@event_source(data_class=EventBridgeEvent)
def handle(event: EventBridgeEvent, context: object) -> None:
    settings = environment.read(Settings, os.environ)
    metrics = CloudWatch(boto3.client("cloudwatch"), namespace=settings.namespace)
    clients = {name: boto3.client(name) for name in ("sns", "glue")}
    try:
        tell(event.detail, event.region, settings, **clients, emit=metrics)
    finally:
        metrics.flush()


def tell(detail: dict[str, Any], region: str, settings: Settings, *, sns: Any, glue: Any, emit: Any) -> None:
    job, run_id, state = detail["jobName"], detail["jobRunId"], detail["state"]
    run = run_of(detail, glue)
    ended = measured(detail, run, settings.service)
    emit(ended)
    log.info("job ended", run=run_id, **ended.as_dict())
    if state in ENDED_WELL:
        return
    reason = reason_of(detail, run)
    console = f"https://{region}.console.aws.amazon.com/gluestudio/home?region={region}#/job/{job}/run/{run_id}"
    text = f"{job}: {state}\nreason   {reason}\nrun      {run_id}\nconsole  {console}\n"
    text += f"runbook  {settings.runbook}#job-failed"
    sns.publish(TopicArn=settings.alarm_topic, Subject=f"forebay: {job} {state}"[:100], Message=text)
