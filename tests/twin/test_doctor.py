"""`forebay doctor` says nothing of a healthy deployment, and finds each fault that is planted in one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.lake.layout import SERVICES
from forebay.ledger.services import FIRST
from forebay.operate.doctor import probe
from forebay.operate.doctor.examination import AFTER, examine, guarded, name_of
from forebay.operate.doctor.finding import Finding
from forebay.operate.doctor.rights import NEEDED, policy_for_doctor
from forebay.operate.stack.deployment import Deployment, Resource, look_up
from forebay.spark import runtime
from forebay_local.twin import clients
from forebay_local.twin.twin import Twin
from tests.operate.command import failed, ran

CHECKS = {name_of(check): check for check in AFTER}
Undo = Callable[[], object]
Plant = Callable[[Deployment], Undo]


@pytest.fixture(scope="module")
def healthy(shared_twin: Twin) -> Deployment:
    """As deployed, and somebody listens to its alarms."""
    on = look_up(shared_twin.stack, shared_twin.client)
    on.client("sns").subscribe(TopicArn=on.alarm_topic, Protocol="email", Endpoint="night@example.org")
    return on


@pytest.fixture
def on(healthy: Deployment, twin: Twin) -> Deployment:
    """With empty queues, and with what the first run of the job leaves in the lake."""
    content = {FIRST: "games", "games.json": '{"name": "games"}'}
    for name, text in content.items():
        healthy.client("s3").put_object(
            Bucket=healthy.lake_bucket, Key=healthy.key_in_lake(f"{SERVICES}/{name}"), Body=text
        )
    return healthy


def test_a_healthy_deployment_has_no_findings_and_each_right_that_was_used_is_in_the_table(on: Deployment) -> None:
    asked: set[str] = set()

    def watched(service: str) -> Any:
        client = on.client(service)
        client.meta.events.register("before-call", note, unique_id="doctor")
        return client

    def note(model: Any, **_: Any) -> None:
        asked.add(model.name)

    look_up(on.stack, watched)
    assert list(examine(replace(on, client=watched))) == []
    assert asked <= NEEDED.keys()


# --- faults ---


def set_queue(url_of: Callable[[Deployment], str], **attributes: str) -> Plant:
    def plant(on: Deployment) -> Undo:
        sqs, url = on.client("sqs"), url_of(on)
        before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
        kept = {name: before.get(name, "") for name in attributes}
        return partial(sqs.set_queue_attributes, QueueUrl=url, Attributes=kept)

    return plant


def the_queue(on: Deployment) -> str:
    return on.queue_url


def the_dead(on: Deployment) -> str:
    return on.dead_url


def send_dead_letter(on: Deployment) -> Undo:
    sqs, url = on.client("sqs"), on.dead_url
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    return partial(sqs.purge_queue, QueueUrl=url)


def set_notification(configuration: dict[str, Any]) -> Plant:
    def plant(on: Deployment) -> Undo:
        s3, bucket = on.client("s3"), on.landing_buckets[0]
        before = s3.get_bucket_notification_configuration(Bucket=bucket)
        before.pop("ResponseMetadata")
        ours = [{"TopicArn": on.arrivals_topics[0], **configuration}] if configuration else []
        put = partial(s3.put_bucket_notification_configuration, Bucket=bucket)
        put(NotificationConfiguration={"TopicConfigurations": ours})

        def undo() -> None:  # S3 sends a test event each time
            put(NotificationConfiguration=before)
            on.client("sqs").purge_queue(QueueUrl=on.queue_url)

        return undo

    return plant


def set_topic(attribute: str, value: str, topic_of: Callable[[Deployment], str]) -> Plant:
    def plant(on: Deployment) -> Undo:
        sns, topic = on.client("sns"), topic_of(on)
        before = sns.get_topic_attributes(TopicArn=topic)["Attributes"][attribute]
        put = partial(sns.set_topic_attributes, TopicArn=topic, AttributeName=attribute)
        put(AttributeValue=value)
        return partial(put, AttributeValue=before)

    return plant


def filter_subscription(on: Deployment) -> Undo:
    sns = on.client("sns")
    arn = next(name for name in on.of("SNS::Subscription") if name.startswith(on.arrivals_topics[0]))
    put = partial(sns.set_subscription_attributes, SubscriptionArn=arn, AttributeName="FilterPolicy")
    put(AttributeValue='{"game": ["alpha"]}')
    return partial(put, AttributeValue="")


def queue_key(on: Deployment) -> str:
    said = on.client("sqs").get_queue_attributes(QueueUrl=on.queue_url, AttributeNames=["KmsMasterKeyId"])
    return str(said["Attributes"]["KmsMasterKeyId"]).rpartition("/")[2]


def without(principal: str) -> Plant:
    def plant(on: Deployment) -> Undo:
        kms, key = on.client("kms"), queue_key(on)
        before = kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"]
        kept = [one for one in json.loads(before)["Statement"] if f'"{principal}' not in json.dumps(one["Principal"])]
        put = partial(kms.put_key_policy, KeyId=key, PolicyName="default")
        put(Policy=json.dumps({"Version": "2012-10-17", "Statement": kept}))
        return partial(put, Policy=before)

    return plant


def disable_key(on: Deployment) -> Undo:
    on.client("kms").disable_key(KeyId=queue_key(on))
    return partial(on.client("kms").enable_key, KeyId=queue_key(on))


def delete_key(on: Deployment) -> Undo:
    kms, key = on.client("kms"), queue_key(on)
    kms.schedule_key_deletion(KeyId=key)

    def undo() -> None:
        kms.cancel_key_deletion(KeyId=key)
        kms.enable_key(KeyId=key)

    return undo


def remove_policy_of_lake(on: Deployment) -> Undo:
    s3 = on.client("s3")
    before = s3.get_bucket_policy(Bucket=on.lake_bucket)["Policy"]
    s3.delete_bucket_policy(Bucket=on.lake_bucket)
    return partial(s3.put_bucket_policy, Bucket=on.lake_bucket, Policy=before)


def deny_prefix(**changes: Any) -> Plant:
    """As an administrator does in the policy of the landing bucket."""

    def plant(on: Deployment) -> Undo:
        s3, bucket = on.client("s3"), on.landing_buckets[0]
        before = s3.get_bucket_policy(Bucket=bucket)["Policy"]
        secret = f"{on.bucket_arn(bucket)}/{on.landing_prefix}secret/*"
        denies = {"Sid": "Secret", "Effect": "Deny", "Principal": "*", "Action": "s3:GetObject", "Resource": secret}
        policy = json.loads(before)
        policy["Statement"].append({**denies, **changes})
        put = partial(s3.put_bucket_policy, Bucket=bucket)
        put(Policy=json.dumps(policy))
        return partial(put, Policy=before)

    return plant


def add_rule(bucket_of: Callable[[Deployment], str], **rule: Any) -> Plant:
    def plant(on: Deployment) -> Undo:
        s3, bucket = on.client("s3"), bucket_of(on)
        before = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        put = partial(s3.put_bucket_lifecycle_configuration, Bucket=bucket)
        ours = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": ""}, **rule}
        put(LifecycleConfiguration={"Rules": [*before, ours]})
        return partial(put, LifecycleConfiguration={"Rules": before})

    return plant


def the_lake(on: Deployment) -> str:
    return on.lake_bucket


def the_landing_bucket(on: Deployment) -> str:
    return on.landing_buckets[0]


def open_lake(on: Deployment) -> Undo:
    s3 = on.client("s3")
    before = s3.get_public_access_block(Bucket=on.lake_bucket)["PublicAccessBlockConfiguration"]
    s3.delete_public_access_block(Bucket=on.lake_bucket)
    return partial(s3.put_public_access_block, Bucket=on.lake_bucket, PublicAccessBlockConfiguration=before)


def encrypt_lake_with(key: str) -> Plant:
    def plant(on: Deployment) -> Undo:
        s3 = on.client("s3")
        before = s3.get_bucket_encryption(Bucket=on.lake_bucket)["ServerSideEncryptionConfiguration"]
        by = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        other = {"Rules": [{"ApplyServerSideEncryptionByDefault": by}]}
        put = partial(s3.put_bucket_encryption, Bucket=on.lake_bucket)
        put(ServerSideEncryptionConfiguration=other)
        return partial(put, ServerSideEncryptionConfiguration=before)

    return plant


def change_job(change: Callable[[dict[str, Any]], object]) -> Plant:
    def plant(on: Deployment) -> Undo:
        glue, name = on.client("glue"), on.outputs["IngestJob"]
        job = glue.get_job(JobName=name)["Job"]
        names = (
            "Role",
            "Command",
            "DefaultArguments",
            "GlueVersion",
            "WorkerType",
            "NumberOfWorkers",
            "ExecutionProperty",
        )
        before = {one: job[one] for one in names}
        changed = json.loads(json.dumps(before))
        change(changed)
        glue.update_job(JobName=name, JobUpdate=changed)
        return partial(glue.update_job, JobName=name, JobUpdate=before)

    return plant


def distrust_glue(on: Deployment) -> Undo:
    iam = on.client("iam")
    role = on.client("glue").get_job(JobName=on.outputs["IngestJob"])["Job"]["Role"].rpartition("/")[2]
    before = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    put = partial(iam.update_assume_role_policy, RoleName=role)
    put(PolicyDocument=json.dumps(before).replace("glue.amazonaws.com", "ec2.amazonaws.com"))
    return partial(put, PolicyDocument=json.dumps(before))


def remove_code(on: Deployment) -> Undo:
    s3 = on.client("s3")
    job = on.client("glue").get_job(JobName=on.outputs["IngestJob"])["Job"]
    bucket, _, key = job["Command"]["ScriptLocation"].removeprefix("s3://").partition("/")
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    s3.delete_object(Bucket=bucket, Key=key)
    return partial(s3.put_object, Bucket=bucket, Key=key, Body=body)


def take_right(statement: str) -> Plant:
    def plant(on: Deployment) -> Undo:
        iam = on.client("iam")
        role = on.client("glue").get_job(JobName=on.outputs["IngestJob"])["Job"]["Role"].rpartition("/")[2]
        (name,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
        before = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        kept = {**before, "Statement": [one for one in before["Statement"] if one.get("Sid") != statement]}
        assert kept != before
        put = partial(iam.put_role_policy, RoleName=role, PolicyName=name)
        put(PolicyDocument=json.dumps(kept))
        return partial(put, PolicyDocument=json.dumps(before))

    return plant


def ingest_log(on: Deployment) -> str:
    return f"/{on.stack}/ingest/output"


def remove_log_group(on: Deployment) -> Undo:
    logs = on.client("logs")
    logs.delete_log_group(logGroupName=ingest_log(on))

    def undo() -> None:
        logs.create_log_group(logGroupName=ingest_log(on))
        logs.put_retention_policy(logGroupName=ingest_log(on), retentionInDays=30)

    return undo


def keep_log_for_ever(on: Deployment) -> Undo:
    logs = on.client("logs")
    logs.delete_retention_policy(logGroupName=ingest_log(on))
    return partial(logs.put_retention_policy, logGroupName=ingest_log(on), retentionInDays=30)


def report(**versions: Any) -> Plant:
    def plant(on: Deployment) -> Undo:
        logs, stream = on.client("logs"), "jr_reports-driver"
        said = {"at": "now", "level": "info", "event": "StockTaken", "spark": runtime.SPARK, **versions}
        logs.create_log_stream(logGroupName=ingest_log(on), logStreamName=stream)
        event = {"timestamp": int(on.now().timestamp() * 1000), "message": json.dumps(said)}
        logs.put_log_events(logGroupName=ingest_log(on), logStreamName=stream, logEvents=[event])
        return partial(logs.delete_log_stream, logGroupName=ingest_log(on), logStreamName=stream)

    return plant


def a_function(on: Deployment) -> str:
    return next(name for name in on.of("Lambda::Function") if "start-ingest" in name)


def throttle(on: Deployment) -> Undo:
    functions = on.client("lambda")
    functions.put_function_concurrency(FunctionName=a_function(on), ReservedConcurrentExecutions=0)
    return partial(functions.delete_function_concurrency, FunctionName=a_function(on))


def pause_schedule(on: Deployment) -> Undo:
    scheduler, (group,) = on.client("scheduler"), on.of("Scheduler::ScheduleGroup")
    before = scheduler.get_schedule(Name="start-ingest", GroupName=group)
    names = ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target")
    said = {name: before[name] for name in names}
    scheduler.update_schedule(**said, State="DISABLED")
    return partial(scheduler.update_schedule, **said, State="ENABLED")


def remove_schedule(on: Deployment) -> Undo:
    scheduler, (group,) = on.client("scheduler"), on.of("Scheduler::ScheduleGroup")
    before = scheduler.get_schedule(Name="start-ingest", GroupName=group)
    names = ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target", "State")
    scheduler.delete_schedule(Name="start-ingest", GroupName=group)
    return partial(scheduler.create_schedule, **{name: before[name] for name in names})


def disable_rule(on: Deployment) -> Undo:
    (rule,) = on.of("Events::Rule")
    on.client("events").disable_rule(Name=rule)
    return partial(on.client("events").enable_rule, Name=rule)


def mute_alarm(on: Deployment) -> Undo:
    (name,) = [name for name in on.of("CloudWatch::Alarm") if name.endswith("-files-wait")]
    on.client("cloudwatch").disable_alarm_actions(AlarmNames=[name])
    return partial(on.client("cloudwatch").enable_alarm_actions, AlarmNames=[name])


def nobody_listens(on: Deployment) -> Undo:
    sns = on.client("sns")
    (found,) = sns.list_subscriptions_by_topic(TopicArn=on.alarm_topic)["Subscriptions"]
    sns.unsubscribe(SubscriptionArn=found["SubscriptionArn"])
    return partial(sns.subscribe, TopicArn=on.alarm_topic, Protocol="email", Endpoint="night@example.org")


def want_deletions(on: Deployment) -> Undo:
    """The job works by declarations that the deployment does not have, as after `forebay tables push`."""
    s3, bucket, key = on.client("s3"), on.lake_bucket, on.key_in_lake(f"{SERVICES}/other.json")
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({"name": "other", "on_delete": "forget"}))
    return partial(s3.delete_object, Bucket=bucket, Key=key)


NOBODY = json.dumps({"Version": "2012-10-17", "Statement": []})
OTHER_KEY = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"

FAULTS: list[tuple[str, Plant, str, str]] = [
    ("nobody announces deletions", want_deletions, "landing.deletions", "does not announce deletions"),
    ("the bucket announces nothing", set_notification({}), "landing.notification", "does not notify the topic"),
    (
        "the bucket announces deletions only",
        set_notification({"Events": ["s3:ObjectRemoved:*"]}),
        "landing.notification",
        "notifies only of s3:ObjectRemoved",
    ),
    (
        "the bucket announces another folder",
        set_notification(
            {
                "Events": ["s3:ObjectCreated:*"],
                "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "inbox/"}]}},
            }
        ),
        "landing.notification",
        "does not notify of all keys under in/",
    ),
    (
        "S3 may not publish",
        set_topic("Policy", NOBODY, lambda on: on.arrivals_topics[0]),
        "landing.topic",
        "does not let S3 publish",
    ),
    ("the subscription filters", filter_subscription, "landing.subscription", "has a filter policy"),
    (
        "landed files go too early",
        add_rule(the_landing_bucket, Expiration={"Days": 3}),
        "landing.expiry",
        "deletes files after 3 days",
    ),
    ("SNS may not send", set_queue(the_queue, Policy=NOBODY), "queues.deliveries", "does not let SNS send"),
    (
        "one receive makes a dead letter",
        set_queue(
            the_queue,
            RedrivePolicy=json.dumps(
                {
                    "deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:forebay-local-arrivals-dead",
                    "maxReceiveCount": 1,
                }
            ),
        ),
        "queues.redrive",
        "after 1 receives",
    ),
    (
        "dead letters are deleted on arrival",
        set_queue(the_dead, MessageRetentionPeriod="3600"),
        "queues.redrive",
        "keeps messages for 3600 s",
    ),
    ("a dead letter waits", send_dead_letter, "queues.dead_letters", "1 message in"),
    (
        "the queue has a key of AWS",
        set_queue(the_queue, KmsMasterKeyId="alias/aws/sqs"),
        "queues.encryption",
        "alias/aws/sqs",
    ),
    ("the key is disabled", disable_key, "keys.state", "is Disabled"),
    ("the key will be deleted", delete_key, "keys.state", "is scheduled for deletion"),
    ("the key keeps SNS out", without("sns."), "keys.services", "does not let sns.amazonaws.com use it"),
    ("the key keeps S3 out", without("s3."), "keys.services", "does not let s3.amazonaws.com use it"),
    ("the key keeps alarms out", without("cloudwatch."), "keys.services", "does not let cloudwatch.amazonaws.com"),
    ("the key keeps logs out", without("logs."), "keys.services", "does not let CloudWatch Logs use it"),
    ("commits can be overwritten", remove_policy_of_lake, "lake.commits", "does not refuse a commit"),
    (
        "old objects of the lake expire",
        add_rule(the_lake, Expiration={"Days": 365}),
        "lake.lifecycle",
        "deletes objects",
    ),
    (
        "old objects of the lake are archived",
        add_rule(the_lake, Transitions=[{"Days": 90, "StorageClass": "GLACIER"}]),
        "lake.lifecycle",
        "moves objects to GLACIER",
    ),
    ("the lake may be made public", open_lake, "lake.access", "does not block public access"),
    ("the lake has another key", encrypt_lake_with(OTHER_KEY), "lake.encryption", "encrypts with"),
    (
        "the job runs on an older Glue",
        change_job(lambda job: job.update(GlueVersion="5.0")),
        "jobs.definitions",
        "runs on Glue 5.0",
    ),
    (
        "the job takes from another queue",
        change_job(lambda job: job["DefaultArguments"].update({"--queue_url": "https://other"})),
        "jobs.definitions",
        "has --queue_url https://other",
    ),
    ("Glue may not take the job's role", distrust_glue, "jobs.roles", "does not trust glue.amazonaws.com"),
    ("the job's code is gone", remove_code, "jobs.code", "does not exist, and the job"),
    ("the job may not take messages", take_right("TakeMessages"), "rights.of_ingest", "may not sqs:ReceiveMessage"),
    ("the job may not read files", take_right("ReadLandedFiles"), "rights.of_ingest", "may not s3:GetObject"),
    (
        "the job may not see what landed",
        take_right("FindLandedFiles"),
        "rights.of_ingest",
        "may not s3:ListBucketVersions",
    ),
    ("the job may not tell of hours", take_right("TellOfPeriods"), "rights.of_ingest", "may not events:PutEvents"),
    ("the job may not use the key", take_right("UseDataKey"), "rights.of_ingest", "may not kms:Decrypt"),
    ("a log group was removed", remove_log_group, "logs.groups", "does not exist"),
    ("a log is kept for ever", keep_log_for_ever, "logs.groups", "never expires"),
    (
        "a bucket denies the job a part of the prefix",
        deny_prefix(),
        "rights.denied",
        "denies the role of forebay-local-ingest s3:GetObject on arn:aws:s3:::",
    ),
    (
        "a bucket perhaps denies it to the job",
        deny_prefix(Condition={"StringNotEquals": {"aws:SourceVpce": "vpce-0123"}}),
        "rights.denied",
        "the statement Secret of the policy of forebay-local-landing-123456789012-eu-west-1 may deny, under a condition",
    ),
    ("the job runs on another Spark", report(spark="3.5.4"), "logs.reports", "reports Spark 3.5.4"),
    (
        "the job runs on another Delta",
        report(modules={"delta.tables": "3.2.0"}),
        "logs.reports",
        "reports Delta 3.2.0",
    ),
    ("a function is throttled to nothing", throttle, "functions.state", "is throttled completely"),
    ("a schedule is off", pause_schedule, "functions.schedules", "is DISABLED"),
    ("a schedule was removed", remove_schedule, "functions.schedules", "does not exist"),
    ("nobody hears of failed jobs", disable_rule, "functions.rules", "is DISABLED"),
    ("an alarm is muted", mute_alarm, "alarms.actions", "are disabled"),
    ("nobody listens to alarms", nobody_listens, "alarms.listeners", "nobody is subscribed"),
    (
        "alarms may not publish",
        set_topic("Policy", NOBODY, lambda on: on.alarm_topic),
        "alarms.listeners",
        "does not let CloudWatch publish",
    ),
]


@pytest.mark.parametrize(("plant", "check", "said"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_planted_fault_is_found_and_gone_when_it_is_mended(
    on: Deployment, plant: Plant, check: str, said: str
) -> None:
    undo = plant(on)
    try:
        found = list(CHECKS[check](on))
    finally:
        undo()
    assert any(said in one.what for one in found), found
    assert all(one.why and one.fix for one in found)
    assert list(CHECKS[check](on)) == []


def test_a_clock_that_is_off_is_told(on: Deployment) -> None:
    behind = replace(on, now=lambda: on.now() - timedelta(minutes=10))
    (found,) = CHECKS["account.clock"](behind)
    assert (found.severity, "s off AWS's" in found.what) == ("error", True)
    assert list(CHECKS["account.clock"](on)) == []


class Answering:
    """A client that answers one operation otherwise."""

    def __init__(self, real: Any, operation: str, answer: Callable[..., Any]) -> None:
        self._real, self._operation, self._answer = real, operation, answer

    def __getattr__(self, name: str) -> Any:
        if name == "get_paginator":
            return self._paginator
        return self._answer if name == self._operation else getattr(self._real, name)

    def _paginator(self, operation: str) -> Any:
        if operation != self._operation:
            return self._real.get_paginator(operation)
        return type("Pages", (), {"paginate": staticmethod(lambda **_: [self._answer()])})


def answering(on: Deployment, service: str, operation: str, answer: Any) -> Deployment:
    def client(name: str) -> Any:
        return Answering(on.client(name), operation, lambda **_: answer) if name == service else on.client(name)

    return replace(on, client=client)


QUOTA = {"QuotaName": "Max concurrent job runs per account", "QuotaCode": "L-1", "Value": 1.0}
RUN = {"Id": "jr_1", "JobRunState": "FAILED", "ErrorMessage": "AccessDenied on the queue", "LogGroupName": "/x/ingest"}
PENDING = {"SubscriptionArn": "PendingConfirmation", "Protocol": "email", "Endpoint": "a@example.org"}
ANSWERS: list[tuple[str, str, Any, str, str]] = [
    ("sts", "get_caller_identity", {"Arn": "arn:aws:iam::1:root"}, "account.identity", "root user"),
    ("service-quotas", "list_service_quotas", {"Quotas": [QUOTA]}, "account.glue_quotas", "is 1, but this service"),
    (
        "lambda",
        "get_account_settings",
        {"AccountLimit": {"UnreservedConcurrentExecutions": 3}},
        "account.functions_quota",
        "3 Lambda functions may run",
    ),
    ("glue", "get_job_runs", {"JobRuns": [RUN]}, "jobs.runs", "ended as FAILED"),
    ("glue", "get_job_runs", {"JobRuns": [RUN]}, "logs.groups", "are empty"),
    ("sns", "list_subscriptions_by_topic", {"Subscriptions": [PENDING]}, "alarms.listeners", "has not confirmed"),
]


@pytest.mark.parametrize(
    ("service", "operation", "answer", "check", "said"), ANSWERS, ids=[f"{one[1]} {one[3]}" for one in ANSWERS]
)
def test_what_the_twin_cannot_be_made_to_do_is_found_in_answers_of_aws(
    on: Deployment, service: str, operation: str, answer: Any, check: str, said: str
) -> None:
    found = list(CHECKS[check](answering(on, service, operation, answer)))
    assert any(said in one.what for one in found), found


def test_a_right_that_the_caller_lacks_is_named_and_the_other_checks_go_on(on: Deployment, twin: Twin) -> None:
    iam = twin.client("iam")
    document = policy_for_doctor()
    looks, reads = document["Statement"]
    looks["Action"].remove("kms:GetKeyPolicy")
    assert (reads["Action"], "kms:Decrypt" in looks["Action"]) == (["kms:Decrypt"], False), (
        "a vault has a key of its own"
    )
    document["Statement"].remove(reads)
    iam.create_role(RoleName="curious", AssumeRolePolicyDocument="{}")
    iam.put_role_policy(RoleName="curious", PolicyName="doctor", PolicyDocument=json.dumps(document))

    def as_role(service: str) -> Any:
        return clients.client(service, twin.endpoint, twin.region, "curious")

    try:
        found = list(examine(replace(on, client=as_role)))
    finally:
        iam.delete_role_policy(RoleName="curious", PolicyName="doctor")
        iam.delete_role(RoleName="curious")
    told = [(one.severity, one.what, one.check) for one in found]
    assert told == [
        ("warning", "you may not kms:Decrypt", "landing.deletions"),
        ("warning", "you may not kms:GetKeyPolicy", "keys.services"),
    ]


def test_a_queue_that_was_removed_by_hand_is_one_finding_for_each_check_that_needs_it(on: Deployment) -> None:
    gone = replace(on, outputs={**on.outputs, "QueueUrl": f"{on.queue_url}-gone"})
    found = {one.check: one for one in examine(gone)}
    assert "is missing" in found["queues.redrive"].what
    assert "has --queue_url" in found["jobs.definitions"].what


# --- the probe ---


def probed(on: Deployment, outcome: Callable[[str], str | None], wait_s: float = 20) -> list[Finding]:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = probe.Clock(lambda: now[0], sleep)
    return list(probe.journey(on, outcome, wait_s=wait_s, clock=clock))


def landed(on: Deployment) -> list[str]:
    found = on.client("s3").list_object_versions(Bucket=on.landing_buckets[0]).get("Versions", [])
    return [one["Key"] for one in found if "forebay-doctor" in one["Key"]]


def test_a_probe_that_reaches_the_ledger_is_well_and_leaves_nothing_behind(on: Deployment) -> None:
    answers: Iterator[str | None] = iter([None, None, "empty"])
    assert probed(on, lambda key: next(answers)) == []
    assert landed(on) == []


def test_a_probe_that_is_of_no_declared_feed_has_come_all_the_way(on: Deployment) -> None:
    assert probed(on, lambda key: "ignored") == []


def test_a_probe_that_nobody_takes_off_the_queue_says_that_no_run_is_at_work(on: Deployment) -> None:
    (found,) = probed(on, lambda key: None)
    assert "still in the queue" in found.what
    assert "No run of the ingest job is active" in found.why
    assert landed(on) == []


def on_emr(on: Deployment) -> Deployment:
    """The same, as if its jobs ran on EMR Serverless."""
    others = tuple(one for one in on.resources if one.kind != "Glue::Job")
    return replace(on, resources=(*others, Resource("EMRServerless::Application", "Engine", "00fexample")))


def test_a_probe_that_waits_for_a_run_of_emr_names_the_application_whose_runs_to_look_at(on: Deployment) -> None:
    (found,) = probed(on_emr(on), lambda key: None)
    assert "still in the queue" in found.what
    assert "No run" not in found.why, "nobody looked"
    assert "list-job-runs --application-id 00fexample" in found.fix


def test_quotas_of_glue_are_nothing_to_a_service_on_emr(on: Deployment) -> None:
    low = answering(on_emr(on), "service-quotas", "list_service_quotas", {"Quotas": [QUOTA]})
    assert list(CHECKS["account.glue_quotas"](low)) == []


def test_a_probe_that_s3_did_not_announce_says_so(on: Deployment) -> None:
    undo = set_notification({})(on)
    try:
        (found,) = probed(on, lambda key: None)
    finally:
        undo()
    assert found.what == "the probe never reached the queue"


def test_a_probe_that_a_run_may_hold_is_no_error_yet(on: Deployment) -> None:
    running = answering(on, "glue", "get_job_runs", {"JobRuns": [{"JobRunState": "STARTING"}]})
    (found,) = probed(running, lambda key: None)
    assert (found.severity, "is STARTING" in found.why) == ("warning", True)


def test_a_probe_that_the_job_could_not_read_is_an_error(on: Deployment) -> None:
    (found,) = probed(on, lambda key: "denied")
    assert "'denied'" in found.what


def test_an_interrupted_probe_leaves_nothing_behind(on: Deployment) -> None:
    def interrupted(key: str) -> str | None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        probed(on, interrupted)
    assert landed(on) == []


def test_the_lake_is_asked_to_refuse_a_second_conditional_put(on: Deployment) -> None:
    assert list(probe.conditional_put(on)) == []
    (found,) = probe.conditional_put(answering(on, "s3", "put_object", {}))
    assert "let a conditional PUT overwrite" in found.what
    listed = on.client("s3").list_objects_v2(Bucket=on.lake_bucket, Prefix="_forebay/probe/")
    assert listed["KeyCount"] == 0


def test_a_probe_that_may_not_write_is_a_finding(on: Deployment) -> None:
    def refused(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")

    def client(name: str) -> Any:
        return Answering(on.client(name), "put_object", refused) if name == "s3" else on.client(name)

    unable = replace(on, client=client)
    for check in (probe.conditional_put(unable), probe.journey(unable, lambda key: None, wait_s=0)):
        (found,) = guarded("probe", check)
        assert (found.severity, found.what) == ("warning", "you may not s3:PutObject")


# --- the command ---


@pytest.fixture
def environment(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in twin.env.items():
        monkeypatch.setenv(name, value)


def test_the_command_says_well_of_a_healthy_deployment(on: Deployment, environment: None) -> None:
    said = ran("doctor", "--stack", on.stack)
    assert said == f"{on.stack} in account 123456789012, eu-west-1: well; {len(AFTER)} checks\n"
    assert ran("doctor", "--stack", on.stack, "--json") == ""


def test_the_command_shows_what_is_wrong_why_and_what_mends_it(on: Deployment, environment: None) -> None:
    undo = mute_alarm(on)
    try:
        said = failed(1, "doctor", "--stack", on.stack)
        told = json.loads(failed(1, "doctor", "--stack", on.stack, "--json"))
    finally:
        undo()
    assert "error  the actions of the alarm forebay-local-files-wait are disabled" in said
    assert "  why   The alarm notifies nobody.\n  fix   aws cloudwatch enable-alarm-actions" in said
    assert told.keys() == {"severity", "check", "what", "why", "fix"}


def test_a_stack_that_is_not_there_is_no_healthy_one(environment: None) -> None:
    said = failed(2, "doctor", "--stack", "forebay-prd")
    assert "stack forebay-prd: is not in account 123456789012, eu-west-1" in said
    said = failed(1, "doctor", "--stack", "forebay-prd", "--before")
    assert "cdk bootstrap aws://123456789012/eu-west-1" in said


def test_after_a_bootstrap_an_account_is_ready_for_the_first_deployment(twin: Twin, environment: None) -> None:
    ssm, name = twin.client("ssm"), "/cdk-bootstrap/hnb659fds/version"
    ssm.put_parameter(Name=name, Value="30", Type="String")
    try:
        assert "well; " in ran("doctor", "--stack", "forebay-prd", "--before")
    finally:
        ssm.delete_parameter(Name=name)


def test_a_first_deployment_that_failed_is_told(twin: Twin) -> None:
    failed_once = replace(look_up("forebay-prd", twin.client), status="ROLLBACK_COMPLETE")
    assert "is in ROLLBACK_COMPLETE" in "".join(one.what for one in examine(failed_once))


def test_the_policy_that_the_command_needs_is_printed(on: Deployment, environment: None) -> None:
    looks, reads = json.loads(ran("doctor", "--stack", on.stack, "--rights"))["Statement"]
    assert "glue:GetJobRuns" in looks["Action"]
    assert not [action for action in looks["Action"] if action.partition(":")[2].startswith(("Put", "Delete"))]
    assert reads["Condition"] == {"ForAnyValue:StringLike": {"kms:ResourceAliases": "alias/*-data"}}


def test_a_construct_that_the_stack_does_not_have_is_named(on: Deployment, environment: None) -> None:
    said = failed(2, "doctor", "--stack", on.stack, "--within", "Shop")
    assert f"stack {on.stack} Shop: has no outputs from forebay" in said
