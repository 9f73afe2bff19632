"""The types of resources that our template has and moto's CloudFormation lacks, or makes by half.

Each is made by its public API call, against moto itself. So boto3 checks names and types of all properties as AWS would, and
nothing here depends on moto's inside. Each resource knows how to remove itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from forebay_local.twin.cloudformation import buckets
from forebay_local.twin.cloudformation.api import call


class Made:
    """CloudFormation's entry of a resource: the values of `Ref` and `Fn::GetAtt`, and how to remove it."""

    cf_resource_type = logical_resource_id = ""

    def __init__(self, ref: str, remove: Callable[[], object] = lambda: None, **attributes: str) -> None:
        self.physical_resource_id, self._remove, self.attributes = ref, remove, attributes

    def get_cfn_attribute(self, name: str) -> str:
        return self.attributes[name]

    def is_created(self) -> bool:
        return True

    def delete(self, account_id: str, region_name: str) -> None:
        """A resource that went with another one, as schedules do with their group, counts as removed."""
        try:
            self._remove()
        except ClientError as refusal:
            code = refusal.response["Error"]["Code"]
            if "NotFound" not in code and not code.startswith("NoSuch"):
                raise


@dataclass(frozen=True)
class Order:
    """One resource of a template, its references resolved. `before` is what an update finds in its place."""

    name: str
    properties: Mapping[str, Any]
    region: str
    account: str
    client: Callable[[str], Any]
    before: Any = None


@dataclass(frozen=True)
class Kind:
    """One type. `named_by` is the property that names the resource; without it CloudFormation makes a name up."""

    type: str
    make: Callable[[Order], Made]
    named_by: str = ""


# --- announcing and queueing ---


def topic_policy(order: Order) -> Made:
    policy = json.dumps(order.properties["PolicyDocument"])
    for arn in order.properties["Topics"]:
        order.client("sns").set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
    return Made(order.name, Id=order.name)


def subscription(order: Order) -> Made:
    """Subscribing again gives the subscription that is there."""
    sns, p = order.client("sns"), order.properties
    attributes = {name: json.dumps(p[name]) for name in ("FilterPolicy", "RedrivePolicy") if name in p}
    attributes["RawMessageDelivery"] = str(p.get("RawMessageDelivery", False)).lower()
    answer = sns.subscribe(
        TopicArn=p["TopicArn"], Protocol=p["Protocol"], Endpoint=p["Endpoint"], Attributes=attributes
    )
    arn = answer["SubscriptionArn"]
    return Made(arn, partial(sns.unsubscribe, SubscriptionArn=arn), Arn=arn)


def queue_policy(order: Order) -> Made:
    policy = {"Policy": json.dumps(order.properties["PolicyDocument"])}
    for url in order.properties["Queues"]:
        order.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=policy)
    return Made(order.name, Id=order.name)


def bucket_policy(order: Order) -> Made:
    """CloudFormation creates none where one is, such as one that an earlier stack kept."""
    s3, bucket = order.client("s3"), order.properties["Bucket"]
    if not order.before and _has_policy(s3, bucket):
        raise ValueError(f"The bucket policy already exists on bucket {bucket}.")
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(order.properties["PolicyDocument"]))
    return Made(bucket, partial(s3.delete_bucket_policy, Bucket=bucket))


def _has_policy(s3: Any, bucket: str) -> bool:
    try:
        return bool(s3.get_bucket_policy(Bucket=bucket))
    except ClientError as refusal:
        if refusal.response["Error"]["Code"] != "NoSuchBucketPolicy":
            raise
        return False


# --- rights ---


def managed_policy(order: Order) -> Made:
    """IAM keeps five versions of a policy, so the one before makes room. moto cannot update one, nor remove it from roles."""
    iam, p = order.client("iam"), order.properties
    document = json.dumps(p["PolicyDocument"])
    if order.before:
        arn = order.before.physical_resource_id
        old = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=document, SetAsDefault=True)
        iam.delete_policy_version(PolicyArn=arn, VersionId=old)
    else:
        about = {name: p[name] for name in ("Path", "Description") if name in p}
        arn = iam.create_policy(PolicyName=order.name, PolicyDocument=document, **about)["Policy"]["Arn"]
    wanted, there = set(p.get("Roles", ())), _roles_with(iam, arn)
    for role in wanted - there:
        iam.attach_role_policy(RoleName=role, PolicyArn=arn)
    for role in there - wanted:
        iam.detach_role_policy(RoleName=role, PolicyArn=arn)
    return Made(arn, partial(_remove_policy, iam, arn))


def _remove_policy(iam: Any, arn: str) -> None:
    for role in _roles_with(iam, arn):
        iam.detach_role_policy(RoleName=role, PolicyArn=arn)
    iam.delete_policy(PolicyArn=arn)


def _roles_with(iam: Any, arn: str) -> set[str]:
    return {one["RoleName"] for one in iam.list_entities_for_policy(PolicyArn=arn)["PolicyRoles"]}


# --- jobs and what runs by the clock ---


def glue_database(order: Order) -> Made:
    glue, p = order.client("glue"), order.properties
    name = p["DatabaseInput"]["Name"]
    if order.before:
        call(glue, "update_database", {"Name": name, "DatabaseInput": p["DatabaseInput"]})
    else:
        call(glue, "create_database", {"DatabaseInput": p["DatabaseInput"]})
    return Made(name, partial(glue.delete_database, Name=name))


def glue_job(order: Order) -> Made:
    glue, p = order.client("glue"), {**order.properties, "Name": order.name}
    if order.before:
        unchanging = ("Name", "Tags")
        update = {name: value for name, value in p.items() if name not in unchanging}
        call(glue, "update_job", {"JobName": order.name, "JobUpdate": update})
    else:
        call(glue, "create_job", p)
    return Made(order.name, partial(glue.delete_job, JobName=order.name))


def schedule_group(order: Order) -> Made:
    scheduler = order.client("scheduler")
    if order.before:
        return Made(order.name, partial(scheduler.delete_schedule_group, Name=order.name), **order.before.attributes)
    arn = scheduler.create_schedule_group(Name=order.name, Tags=order.properties.get("Tags", []))["ScheduleGroupArn"]
    return Made(order.name, partial(scheduler.delete_schedule_group, Name=order.name), Arn=arn)


def schedule(order: Order) -> Made:
    scheduler, p = order.client("scheduler"), {**order.properties, "Name": order.name}
    arn = call(scheduler, "update_schedule" if order.before else "create_schedule", p)["ScheduleArn"]
    group = p.get("GroupName", "default")
    return Made(order.name, partial(scheduler.delete_schedule, Name=order.name, GroupName=group), Arn=arn)


def event_invoke_config(order: Order) -> Made:
    functions, name = order.client("lambda"), order.properties["FunctionName"]
    config = {one: value for one, value in order.properties.items() if one != "Qualifier"}
    call(functions, "put_function_event_invoke_config", config)
    return Made(order.name, partial(functions.delete_function_event_invoke_config, FunctionName=name))


def alarm(order: Order) -> Made:
    cloudwatch = order.client("cloudwatch")
    call(cloudwatch, "put_metric_alarm", {**order.properties, "AlarmName": order.name})
    arn = f"arn:aws:cloudwatch:{order.region}:{order.account}:alarm:{order.name}"
    return Made(order.name, partial(cloudwatch.delete_alarms, AlarmNames=[order.name]), Arn=arn)


def monthly_budget(order: Order) -> Made:
    budgets, p = order.client("budgets"), order.properties
    limit = p["Budget"]["BudgetLimit"]
    budget = {**p["Budget"], "BudgetLimit": {**limit, "Amount": str(limit["Amount"])}}
    name = budget.setdefault("BudgetName", order.name)
    account = {"AccountId": order.account}
    if order.before:  # moto has no UpdateBudget
        budgets.delete_budget(**account, BudgetName=order.before.physical_resource_id)
    call(budgets, "create_budget", {**account, "Budget": budget})
    for notification in p.get("NotificationsWithSubscribers", []):
        call(budgets, "create_notification", {**account, "BudgetName": name, **notification})
    return Made(name, partial(budgets.delete_budget, **account, BudgetName=name))


KINDS = (
    Kind("AWS::SNS::TopicPolicy", topic_policy),
    Kind("AWS::SNS::Subscription", subscription),
    Kind("AWS::SQS::QueuePolicy", queue_policy),
    Kind("AWS::S3::BucketPolicy", bucket_policy),
    Kind("AWS::IAM::ManagedPolicy", managed_policy),
    Kind("AWS::Glue::Database", glue_database),
    Kind("AWS::Glue::Job", glue_job, "Name"),
    Kind("AWS::Scheduler::ScheduleGroup", schedule_group, "Name"),
    Kind("AWS::Scheduler::Schedule", schedule, "Name"),
    Kind("AWS::Lambda::EventInvokeConfig", event_invoke_config),
    Kind("AWS::CloudWatch::Alarm", alarm, "AlarmName"),
    Kind("AWS::Budgets::Budget", monthly_budget),
)


# --- what moto makes by half ---


def bucket(order: Order, made: Any) -> None:
    buckets.complete(order.client("s3"), made.name, order.properties)


def key(order: Order, made: Any) -> None:
    """moto keeps the policy's object where it wants its text."""
    policy = json.dumps(order.properties["KeyPolicy"])
    order.client("kms").put_key_policy(KeyId=made.id, PolicyName="default", Policy=policy)


def log_group(order: Order, made: Any) -> None:
    if days := order.properties.get("RetentionInDays"):
        order.client("logs").put_retention_policy(logGroupName=made.name, retentionInDays=int(days))


def function(order: Order, made: Any) -> None:
    if group := order.properties.get("LoggingConfig", {}).get("LogGroup"):
        made.logs_group_name = group


COMPLETED: Mapping[str, Callable[[Order, Any], None]] = {
    "AWS::S3::Bucket": bucket,
    "AWS::KMS::Key": key,
    "AWS::Logs::LogGroup": log_group,
    "AWS::Lambda::Function": function,
}
"""The steps after moto has made or updated a resource of these types."""
