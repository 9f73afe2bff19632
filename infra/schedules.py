"""Schedules of EventBridge Scheduler, and the EventBridge rule for jobs that ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from forebay.declaration.schedule import Schedule
from infra import grants
from infra.engines import Engine
from infra.jobs.job import Job
from infra.principals import TRUST, conditions
from infra.review import acknowledge_shared_name
from infra.settings import Settings

WAITING_EVERY_MINUTES = 30
"""The interval at which waiting runs are started, if they can be."""


class Schedules(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self._group = scheduler.ScheduleGroup(
            self, "Group", schedule_group_name=settings.name, removal_policy=RemovalPolicy.DESTROY
        )
        groups = f"arn:{Aws.PARTITION}:scheduler:{Aws.REGION}:{Aws.ACCOUNT_ID}:schedule-group/{settings.name}"
        ours = conditions(
            "scheduler",
            TRUST,
            StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID},
            ArnEquals={"aws:SourceArn": groups},
        )
        self._role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com", conditions=ours))

    def every(self, minutes: int, name: str, function: lam.IFunction, event: Mapping[str, Any] | None = None) -> None:
        """`told` is the event. No retries: the next tick is one, and what was missed is not worth doing late."""
        camel = name.title().replace("_", "")
        grants.allow(self._role, f"Run{camel}", ["lambda:InvokeFunction"], [function.function_arn])
        schedule = scheduler.CfnSchedule(
            self,
            camel,
            name=name.replace("_", "-"),
            group_name=self._group.schedule_group_name,
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps(event) if event else None,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(maximum_retry_attempts=0),
            ),
        )
        # Scheduler tries the role when the schedule is made.
        schedule.node.add_dependency(self._role)
        acknowledge_shared_name(schedule, "a schedule's name is unique within its group, and each service has its own")

    def runs(self, name: str, declared: Schedule, job: Job, by: lam.IFunction) -> None:
        """A scheduled run of a job. A function requests it, and keeps the request if a run is at work."""
        camel = "".join(word.capitalize() for word in name.split("-"))
        grants.allow(self._role, f"Start{camel}", ["lambda:InvokeFunction"], [by.function_arn])
        schedule = scheduler.CfnSchedule(
            self,
            camel,
            name=name,
            group_name=self._group.schedule_group_name,
            schedule_expression=cron(declared),
            schedule_expression_timezone=declared.zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(
                mode="FLEXIBLE", maximum_window_in_minutes=30
            ),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=by.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps({"JobName": job.name, "Arguments": declared.arguments, "Wait": True}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(maximum_retry_attempts=3),
            ),
        )
        schedule.node.add_dependency(self._role)
        acknowledge_shared_name(schedule, "a schedule's name is unique within its group, and each service has its own")
        schedule.node.add_dependency(job.resource)


def cron(declared: Schedule) -> str:
    """EventBridge has either days of the month or days of the week: the other is a question mark."""
    hour, minute = declared.hour_and_minute
    days = "* * ?" if declared.days == "*" else f"? * {declared.days}"
    return f"cron({minute} {hour} {days} *)"


def when_a_job_ends(
    scope: Construct,
    *,
    settings: Settings,
    engine: Engine,
    jobs: Sequence[Job],
    function: lam.IFunction,
    untold: sqs.IQueue,
) -> None:
    """Events that do not reach the function are kept."""
    events.Rule(
        scope,
        "JobEnded",
        rule_name=f"{settings.name}-job-ended",
        description="A job of this service ended, well or not",
        event_pattern=engine.ends(jobs),
        targets=[targets.LambdaFunction(function, dead_letter_queue=untold)],
    )
