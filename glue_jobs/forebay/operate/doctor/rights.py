"""Permissions: those that the role of the ingest job needs, and those that the caller needs for the checks.

IAM itself decides (SimulatePrincipalPolicy), because it also knows permission boundaries and the organisation's policies. It
leaves out the policies of buckets, so `denied` reads those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from forebay.lake.layout import CHECKPOINT
from forebay.operate.doctor.denial import Asked, Denial, Requests, denials
from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.queues import key_of_data, key_of_queue
from forebay.operate.stack.answer import answer_or_none
from forebay.operate.stack.deployment import Deployment
from forebay.upkeep.complete.tell import SOURCE

NEEDED = {
    "GetCallerIdentity": "sts:GetCallerIdentity",
    "DescribeStacks": "cloudformation:DescribeStacks",
    "ListStackResources": "cloudformation:ListStackResources",
    "GetParameter": "ssm:GetParameter",
    "ListServiceQuotas": "servicequotas:ListServiceQuotas",
    "GetAccountSettings": "lambda:GetAccountSettings",
    "GetFunction": "lambda:GetFunction",
    "GetFunctionConcurrency": "lambda:GetFunctionConcurrency",
    "GetBucketNotificationConfiguration": "s3:GetBucketNotification",
    "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "GetBucketVersioning": "s3:GetBucketVersioning",
    "GetBucketPolicy": "s3:GetBucketPolicy",
    "GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "HeadObject": "s3:GetObject",
    "GetObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
    "GetTopicAttributes": "sns:GetTopicAttributes",
    "GetSubscriptionAttributes": "sns:GetSubscriptionAttributes",
    "ListSubscriptionsByTopic": "sns:ListSubscriptionsByTopic",
    "GetQueueAttributes": "sqs:GetQueueAttributes",
    "DescribeKey": "kms:DescribeKey",
    "GetKeyPolicy": "kms:GetKeyPolicy",
    "GetJob": "glue:GetJob",
    "GetTables": "glue:GetTables",
    "GetJobRuns": "glue:GetJobRuns",
    "GetRole": "iam:GetRole",
    "SimulatePrincipalPolicy": "iam:SimulatePrincipalPolicy",
    "DescribeLogGroups": "logs:DescribeLogGroups",
    "DescribeLogStreams": "logs:DescribeLogStreams",
    "FilterLogEvents": "logs:FilterLogEvents",
    "GetSchedule": "scheduler:GetSchedule",
    "ListSchedules": "scheduler:ListSchedules",
    "DescribeRule": "events:DescribeRule",
    "ListTargetsByRule": "events:ListTargetsByRule",
    "DescribeAlarms": "cloudwatch:DescribeAlarms",
    "PutObject": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
}
"""The permission that each operation of a check needs. A test compares the table with the checks."""

DECRYPT = "kms:Decrypt"
"""S3 asks for it when the caller reads an object of the lake."""
OF_DATA_KEYS = {"ForAnyValue:StringLike": {"kms:ResourceAliases": "alias/*-data"}}
"""The keys that a stack makes for its data, and not those of vaults."""

OF_PROBE = ("s3:PutObject", "s3:DeleteObject")


def policy_for_doctor() -> dict[str, Any]:
    """The policy for the caller, without `--probe`."""
    looks = {"Sid": "ForebayDoctor", "Effect": "Allow", "Action": rights_to_look(), "Resource": "*"}
    reads = {"Sid": "ForebayDoctorReadsLakes", "Effect": "Allow", "Action": [DECRYPT], "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [looks, reads | {"Condition": OF_DATA_KEYS}]}


def rights_to_look() -> list[str]:
    return sorted({*NEEDED.values()} - {*OF_PROBE})


def of_ingest(on: Deployment) -> Iterator[Finding]:
    job, role = on.outputs["IngestJob"], _role_of_ingest(on)
    if role is None:
        return
    arn = role["Arn"]
    for action, resource, context in _of_ingest(on):
        entries = [
            {"ContextKeyName": key, "ContextKeyValues": [v], "ContextKeyType": "string"} for key, v in context.items()
        ]
        answer = on.client("iam").simulate_principal_policy(
            PolicySourceArn=arn, ActionNames=[action], ResourceArns=[resource], ContextEntries=entries
        )
        if any(one["EvalDecision"] != "allowed" for one in answer["EvaluationResults"]):
            what = f"the role of {job} may not {action} on {resource}"
            why = "The job needs it. The template grants it, so somebody edited a policy, or a boundary denies it."
            yield error(what, why, f"cdk deploy; if that does not help, check the boundary of {arn}")


def denied(on: Deployment) -> Iterator[Finding]:
    """Statements that deny in the policies of the lake's bucket and of the landing buckets. The policy of another account's
    bucket can be read there only."""
    role = _role_of_ingest(on)
    if role is None:
        return
    for bucket, wanted in _wanted_of_buckets(on):
        absent = (
            {"NoSuchBucketPolicy"} if on.owns(bucket) else {"NoSuchBucketPolicy", "MethodNotAllowed", "AccessDenied"}
        )
        answer = answer_or_none(partial(on.client("s3").get_bucket_policy, Bucket=bucket), absent)
        requests = Requests(role["Arn"], role["RoleId"], on.account, tuple(on.of("EC2::VPCEndpoint")))
        for one in denials(answer["Policy"] if answer else "", requests, wanted):
            yield _denied(on, bucket, one, role["Arn"])


def _denied(on: Deployment, bucket: str, one: Denial, role: str) -> Finding:
    may = "may deny, under a condition," if one.undecided else "denies"
    actions, role_of = ", ".join(one.actions), f"the role of {on.outputs['IngestJob']}"
    what = f"the statement {one.statement} of the policy of {bucket} {may} {role_of} {actions} on {one.resource}"
    show = f"aws s3api get-bucket-policy --bucket {bucket}"
    if one.undecided:
        why = f"Only AWS knows whether it applies to the job's requests: {'; '.join(one.undecided)}."
        return warning(what, why, f"let the statement spare {role} by aws:PrincipalArn, or probe; {show}")
    why = "Such files stay in the ledger as denied, and tables under it cannot be read or written."
    return error(what, why, f"let the statement spare {role}, or remove it; {show}")


def _wanted_of_buckets(on: Deployment) -> Iterator[tuple[str, list[Asked]]]:
    of_bucket = ("s3:ListBucket",)
    for bucket in dict.fromkeys(on.landing_buckets):
        landed = on.bucket_arn(bucket)
        read = Asked(("s3:GetObject", "s3:GetObjectVersion"), f"{landed}/{on.landing_prefix}")
        yield bucket, [read, Asked(of_bucket, landed, is_below=False)]
    lake = on.bucket_arn(on.lake_bucket)
    write = Asked(("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), f"{lake}/{on.key_in_lake('')}")
    yield on.lake_bucket, [write, Asked(of_bucket, lake, is_below=False)]


def _role_of_ingest(on: Deployment) -> Mapping[str, Any] | None:
    """None on EMR Serverless, where Glue has no such job."""
    job = on.outputs["IngestJob"]
    if job not in on.of("Glue::Job"):
        return None
    role = on.client("glue").get_job(JobName=job)["Job"]["Role"]
    found: Mapping[str, Any] = on.client("iam").get_role(RoleName=role.rpartition("/")[2])["Role"]
    return found


def _of_ingest(on: Deployment) -> Iterator[tuple[str, str, dict[str, str]]]:
    queue, lake = on.queue_arn(on.queue_url), on.bucket_arn(on.lake_bucket)
    for action in ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes"):
        yield f"sqs:{action}", queue, {}
    for landed in map(on.bucket_arn, on.landing_buckets):
        for action in ("GetObject", "GetObjectVersion"):
            yield f"s3:{action}", f"{landed}/{on.landing_prefix}a.json", {}
        for action in ("ListBucket", "ListBucketVersions"):
            yield f"s3:{action}", landed, {}
    for action in ("GetObject", "PutObject"):
        yield f"s3:{action}", f"{lake}/{on.key_in_lake('a_table/_delta_log/00000000000000000000.json')}", {}
    yield "s3:DeleteObject", f"{lake}/{on.key_in_lake(f'{CHECKPOINT}/offsets/0')}", {}
    yield "s3:ListBucket", lake, {}
    for key in dict.fromkeys(on.key_arn(one) for one in (key_of_data(on), key_of_queue(on)) if one):
        for action in ("Decrypt", "GenerateDataKey"):
            yield f"kms:{action}", key, {}
    group = f"arn:{on.partition}:logs:{on.region}:{on.account}:log-group:/{on.name}/ingest/output:log-stream:a"
    yield "logs:PutLogEvents", group, {}
    yield "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": on.name}
    bus = f"arn:{on.partition}:events:{on.region}:{on.account}:event-bus/default"
    yield "events:PutEvents", bus, {"events:source": SOURCE}
