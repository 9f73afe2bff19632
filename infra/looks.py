"""Permissions of an operator to look: those that `forebay doctor` and `forebay status` use, and the dashboard, which alarms
lead to, on this service's parts alone.

`*` is left to actions that know no resource, and to lists that AWS gives whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from forebay.operate.doctor.account import BOOTSTRAP
from forebay.operate.doctor.rights import rights_to_look
from infra import grants
from infra.deliveries import rule_arns_of, topic_arns_of
from infra.foundation import Foundation
from infra.jobs.job import Job
from infra.roles import FUNCTIONS
from infra.runbook import dashboard_name

MORE = (
    *("cloudformation:DescribeStackEvents", "cloudwatch:DescribeAlarmHistory", "cloudwatch:GetDashboard"),
    *("logs:GetLogEvents", "logs:StartQuery"),
)
"""Asked by `forebay status` and `forebay history`, and by the dashboard."""
WITHOUT_RESOURCE = (
    *("cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics", "lambda:GetAccountSettings"),
    *("logs:DescribeLogGroups", "logs:GetQueryResults", "logs:StopQuery", "scheduler:ListSchedules"),
    *("servicequotas:ListServiceQuotas", "sns:GetSubscriptionAttributes", "sts:GetCallerIdentity"),
)
"""https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html"""


def look_at_parts(role: iam.Role, on: Foundation, jobs: Sequence[Job]) -> None:
    allowed = [right for right in (*rights_to_look(), *MORE) if right not in WITHOUT_RESOURCE]
    for with_the_role in ("glue:GetJob", "glue:GetJobRuns", "s3:GetObject", "sqs:GetQueueAttributes"):
        allowed.remove(with_the_role)
    grants.read_assets(role, jobs[0].script.bucket, jobs[0].script.s3_object_key.rpartition("/")[0])
    for service, (places, because) in _places(role, on, jobs).items():
        of_service = [right for right in allowed if right.startswith(f"{service}:")]
        grants.allow(role, f"LookAt{service.title()}", of_service, places, because=because)
    if on.vault is not None:
        of_vault = ["s3:GetBucketVersioning", "s3:GetLifecycleConfiguration"]
        grants.allow(role, "LookAtVault", of_vault, [on.vault.bucket.bucket_arn])
    grants.allow(role, "Look", WITHOUT_RESOURCE, ["*"], because="these actions know no resource")


def _places(scope: IConstruct, on: Foundation, jobs: Sequence[Job]) -> Mapping[str, tuple[list[str], str]]:
    """By the service's name in IAM: its parts that are ours, and why one of them ends with a star."""
    name, database = on.settings.name, on.lake.catalog
    buckets = [*on.landing.bucket_arns, on.lake.bucket.bucket_arn, grants.arn_of_assets(jobs[0].script.bucket)]
    keys = [on.keys.data.key_arn, *([on.vault.key.key_arn] if on.vault else [])]
    tables = [grants.arn("glue", place) for place in ("catalog", f"database/{database}", f"table/{database}/*")]
    dashboard = f"arn:{Aws.PARTITION}:cloudwatch::{Aws.ACCOUNT_ID}:dashboard/{dashboard_name(on.settings)}"
    landed = rule_arns_of(on.settings) if on.settings.landing_eventbridge else []
    rules = [grants.arn("events", f"rule/{name}-job-ended"), *landed]
    functions = [grants.arn("lambda", f"function:{name}-{one}") for one in FUNCTIONS]
    return {
        "cloudformation": (
            [grants.arn("cloudformation", f"stack/{Stack.of(scope).stack_name}/*")],
            "a stack's id is AWS's",
        ),
        "cloudwatch": ([grants.arn("cloudwatch", "alarm:*"), dashboard], "CloudWatch lists all alarms or none"),
        "events": (rules, ""),
        "glue": (tables, grants.TABLES_ARRIVE),
        "iam": ([job.role.role_arn for job in jobs], ""),
        "kms": (keys, ""),
        "lambda": (functions, ""),
        "logs": ([grants.arn("logs", f"log-group:/{name}/*")], "the groups of this service alone begin so"),
        "s3": (buckets, ""),
        "scheduler": ([grants.arn("scheduler", f"schedule/{name}/*")], "the group is this service's own"),
        "sns": ([on.alarms_to.topic_arn, *topic_arns_of(on.settings)], ""),
        "ssm": ([grants.arn("ssm", f"parameter{BOOTSTRAP}")], ""),
    }
