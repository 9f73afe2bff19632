"""Enters: a Glue "Job State Change" event. Leaves: a message to the alarm topic when a person must look; nothing when a run
ended as it should. Restarting is left to `start_ingest`. Glue may send an event twice; so a message may come twice."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent, event_source

from lambdas import environment

log = Logger(service="job_ended")

ENDED_WELL = ("SUCCEEDED", "STOPPED", "EXPIRED")
"""EXPIRED is the continuous job at its maintenance window; STOPPED is a person's wish."""


@dataclass(frozen=True)
class Settings:
    alarm_topic: str
    runbook: str


@event_source(data_class=EventBridgeEvent)
def handle(event: EventBridgeEvent, context: object) -> None:
    settings = environment.read(Settings, os.environ)
    tell(event.detail, event.region, settings, sns=boto3.client("sns"), glue=boto3.client("glue"))


def tell(detail: dict[str, Any], region: str, settings: Settings, *, sns: Any, glue: Any) -> None:
    job, run, state = detail["jobName"], detail["jobRunId"], detail["state"]
    log.info("job ended", job=job, run=run, state=state)
    if state in ENDED_WELL:
        return
    reason = reason_of(detail, glue)
    console = f"https://{region}.console.aws.amazon.com/gluestudio/home?region={region}#/job/{job}/run/{run}"
    text = (
        f"{job}: {state}\nreason   {reason}\nrun      {run}\nconsole  {console}\nrunbook  {settings.runbook}#job-failed"
    )
    sns.publish(TopicArn=settings.alarm_topic, Subject=f"forebay: {job} {state}"[:100], Message=text)


def reason_of(detail: dict[str, Any], glue: Any) -> str:
    """The run's own error message is longer than the event's; where Glue does not give it, the event's must do."""
    try:
        run = glue.get_job_run(JobName=detail["jobName"], RunId=detail["jobRunId"])["JobRun"]
    except glue.exceptions.EntityNotFoundException:
        run = {}
    return str(run.get("ErrorMessage") or detail.get("message") or "Glue gives none: look into the job's log")
