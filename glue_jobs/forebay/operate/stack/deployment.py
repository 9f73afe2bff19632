"""The parts of a deployment: the stack's outputs and its resources, from CloudFormation.

In: the name of a stack, and clients. Out: a `Deployment`, which every check gets. A stack that does not exist, or whose first
deployment failed, is a `Deployment` without outputs: the checks before a deployment need nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from forebay.address import bucket_and_key
from forebay.operate.stack.answer import answer_or_none

ANY_OUTPUT = "AlarmTopicArn"
OUTPUTS = {"LandingBucket", "LandingPrefix", "QueueUrl", "DeadUrls", "LakeUri", "IngestJob", "AlarmTopicArn"}


@dataclass(frozen=True)
class Resource:
    kind: str
    """Without `AWS::`, such as `S3::Bucket`."""
    logical_id: str
    name: str
    """The service's own word for it: a bucket's name, a queue's URL, a topic's ARN."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Deployment:
    """`status` is the stack's; empty where there is none."""

    client: Callable[[str], Any]
    stack: str
    account: str
    region: str
    status: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    now: Callable[[], datetime] = _now

    @property
    def is_deployed(self) -> bool:
        """A first deployment that failed leaves a stack without outputs."""
        return self.outputs.keys() >= OUTPUTS

    def of(self, kind: str) -> list[str]:
        return [one.name for one in self.resources if one.kind == kind]

    def owns(self, name: str) -> bool:
        return any(one.name == name for one in self.resources)

    @property
    def name(self) -> str:
        """The beginning of all names of the service."""
        return self.outputs["IngestJob"].removesuffix("-ingest")

    @property
    def emr_application(self) -> str:
        """The application that runs the jobs; empty where Glue does."""
        return next(iter(self.of("EMRServerless::Application")), "")

    @property
    def landing_buckets(self) -> list[str]:
        """Several where existing ones were adopted."""
        return self.outputs["LandingBucket"].split(",")

    @property
    def landing_prefix(self) -> str:
        """Empty where all keys are files."""
        return self.outputs["LandingPrefix"].removeprefix("/")

    @property
    def lake_bucket(self) -> str:
        return bucket_and_key(self.outputs["LakeUri"])[0]

    @property
    def vault_buckets(self) -> list[str]:
        """None where no declaration names a vault, or it is on one machine."""
        named = [one.name for one in self.resources if one.kind == "S3::Bucket" and "Vault" in one.logical_id]
        return [name for name in named if name not in (self.lake_bucket, *self.landing_buckets)]

    def key_in_lake(self, path: str) -> str:
        """The lake may be a folder of its bucket."""
        return f"{bucket_and_key(self.outputs['LakeUri'])[1]}/{path}".lstrip("/")

    @property
    def queue_url(self) -> str:
        return self.outputs["QueueUrl"]

    @property
    def dead_url(self) -> str:
        """The queue of messages that were never finished."""
        return self.outputs["DeadUrls"].partition(",")[0]

    @property
    def undelivered_url(self) -> str:
        """The queue of notifications that could not be delivered to our queue; empty if the queue belongs to somebody else."""
        return self.outputs["DeadUrls"].partition(",")[2]

    @property
    def adopts_queue(self) -> bool:
        return not self.undelivered_url

    @property
    def alarm_topic(self) -> str:
        return self.outputs["AlarmTopicArn"]

    @property
    def arrivals_topics(self) -> list[str]:
        """The topics that our queue subscribes to; they may belong to somebody else."""
        topics = (name.rpartition(":")[0] for name in self.of("SNS::Subscription"))
        return [topic for topic in topics if topic not in ("", self.alarm_topic)]

    @property
    def landed_rules(self) -> list[str]:
        """The ARNs of the rules that fill our queue from EventBridge; none where topics do."""
        here = f"arn:{self.partition}:events:{self.region}:{self.account}:rule"
        return [f"{here}/{name}" for name in self.of("Events::Rule") if name.startswith(f"{self.name}-landed")]

    @property
    def fillers(self) -> list[tuple[str, str]]:
        """The senders of notifications to our queue: the service, and the ARN of what it acts for."""
        if self.landed_rules:
            return [("events.amazonaws.com", rule) for rule in self.landed_rules]
        return [("sns.amazonaws.com", topic) for topic in self.arrivals_topics]

    def queue_arn(self, url: str) -> str:
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{url.rpartition('/')[2]}"

    @property
    def partition(self) -> str:
        return self.alarm_topic.split(":")[1]

    def bucket_arn(self, bucket: str) -> str:
        return f"arn:{self.partition}:s3:::{bucket}"

    def key_arn(self, key: str) -> str:
        return key if key.startswith("arn:") else f"arn:{self.partition}:kms:{self.region}:{self.account}:key/{key}"


def look_up(stack: str, client: Callable[[str], Any], *, within: str = "") -> Deployment:
    """`within` is the id of the construct, in a stack of one's own. Raises what boto3 raises where nobody may ask."""
    account = client("sts").get_caller_identity()["Account"]
    cloudformation = client("cloudformation")
    region = cloudformation.meta.region_name
    described = answer_or_none(lambda: cloudformation.describe_stacks(StackName=stack), {"ValidationError"})
    if described is None:
        return Deployment(client, stack, account, region)
    (found,) = described["Stacks"]
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    # An id may begin with another one: outputs of the longer one are not ours.
    others = [key.removesuffix(ANY_OUTPUT) for key in outputs if key.endswith(ANY_OUTPUT)]
    others = [other for other in others if other.startswith(within) and other != within]
    listed = [
        one
        for page in pages
        for one in page["StackResourceSummaries"]
        if one["ResourceStatus"] != "DELETE_COMPLETE"  # of a creation that was rolled back
        and one["LogicalResourceId"].startswith(within)
        and not any(one["LogicalResourceId"].startswith(other) for other in others)
    ]
    return Deployment(
        client=client,
        stack=stack,
        account=account,
        region=region,
        status=found["StackStatus"],
        outputs={key.removeprefix(within): value for key, value in outputs.items() if key.startswith(within)},
        resources=tuple(
            Resource(
                one["ResourceType"].removeprefix("AWS::"), one["LogicalResourceId"], one.get("PhysicalResourceId", "")
            )
            for one in listed
        ),
    )
