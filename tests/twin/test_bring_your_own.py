"""What is brought along is used as it is: files that land in adopted buckets reach the queue, and the doctor finds nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.notification.reading import read_message
from forebay.operate.doctor.examination import examine
from forebay.operate.doctor.probe import conditional_put
from forebay.operate.stack.deployment import Deployment, look_up
from forebay_local.twin import assembly, clients
from forebay_local.twin.twin import Twin
from tests.infra.synthesized import synthesized

HERE = "eu-west-1:123456789012"


def in_queue(twin: Twin, url: str) -> list[tuple[str, str]]:
    """The files that are announced there: bucket and key."""
    got = twin.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
    files = [file for message in got.get("Messages", []) for file in read_message(message["Body"]).files]
    return sorted((file.bucket, file.key) for file in files)


@contextmanager
def deployed(twin: Twin, folder: Path, **context: Any) -> Iterator[Deployment]:
    """Somebody listens to its alarms."""
    synthesized(folder, reviewed=False, **context)
    plan = assembly.read(folder)
    assembly.deploy(plan, client=twin.client)
    on = look_up(plan.stack, twin.client)
    on.client("sns").subscribe(TopicArn=on.alarm_topic, Protocol="email", Endpoint="night@example.org")
    yield on
    twin.client("cloudformation").delete_stack(StackName=plan.stack)


@pytest.fixture(scope="module")
def queue(shared_twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A bucket whose notifications go to a queue, a lake, a key and a database were there before."""
    twin = shared_twin
    s3, sqs = twin.client("s3"), twin.client("sqs")
    arns = [f"arn:aws:sqs:{HERE}:own-{name}" for name in ("arrivals", "dead")]
    sqs.create_queue(QueueName="own-dead", Attributes={"MessageRetentionPeriod": "1209600"})
    redrive = json.dumps({"deadLetterTargetArn": arns[1], "maxReceiveCount": 5})
    sqs.create_queue(QueueName="own-arrivals", Attributes={"RedrivePolicy": redrive})
    for bucket in ("drops-of-ours", "tables-of-ours"):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    by = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}  # S3 encrypts every bucket by itself
    s3.put_bucket_encryption(Bucket="tables-of-ours", ServerSideEncryptionConfiguration={"Rules": [by]})
    announces = {"QueueConfigurations": [{"QueueArn": arns[0], "Events": ["s3:ObjectCreated:*"]}]}
    s3.put_bucket_notification_configuration(Bucket="drops-of-ours", NotificationConfiguration=announces)
    url = sqs.get_queue_url(QueueName="own-arrivals")["QueueUrl"]
    sqs.purge_queue(QueueUrl=url)  # S3 sent a test event
    key = twin.client("kms").create_key()["KeyMetadata"]["Arn"]
    principals = ["cloudwatch.amazonaws.com", "logs.eu-west-1.amazonaws.com"]
    let_in = {"Effect": "Allow", "Principal": {"Service": principals}, "Action": "kms:*", "Resource": "*"}
    twin.client("kms").put_key_policy(
        KeyId=key, PolicyName="default", Policy=json.dumps({"Version": "2012-10-17", "Statement": [let_in]})
    )
    twin.client("glue").create_database(DatabaseInput={"Name": "own_games"})
    brought = {"landing_bucket": "drops-of-ours", "landing_queue": arns[0], "landing_dead_queue": arns[1]}
    brought |= {"lake_bucket": "tables-of-ours", "lake_prefix": "games/", "data_key": key, "database": "own_games"}
    folder = tmp_path_factory.mktemp("queue")
    with deployed(twin, folder, env="own", prefix="own", conditional_commits=False, **brought) as on:
        yield on


@pytest.fixture(scope="module")
def events(shared_twin: Twin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Two buckets that send their events to EventBridge were there before."""
    s3 = shared_twin.client("s3")
    for bucket in ("drops-of-a", "drops-of-b"):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        s3.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
    brought = {"landing_bucket": "drops-of-a,drops-of-b", "landing_eventbridge": True}
    with deployed(shared_twin, tmp_path_factory.mktemp("events"), env="bus", prefix="bus", **brought) as on:
        yield on


@pytest.mark.deep
def test_files_of_an_adopted_bucket_reach_the_adopted_queue_and_the_job_takes_from_it(
    queue: Deployment, twin: Twin
) -> None:
    twin.client("s3").put_object(Bucket="drops-of-ours", Key="in/a.json", Body=b"{}")
    assert in_queue(twin, queue.queue_url) == [("drops-of-ours", "in/a.json")]
    arguments = twin.client("glue").get_job(JobName="own-ingest")["Job"]["DefaultArguments"]
    told = {name: arguments[f"--{name}"] for name in ("landing_buckets", "lake", "catalog")}
    assert told == {"landing_buckets": "drops-of-ours", "lake": "s3://tables-of-ours/games", "catalog": "own_games"}
    assert arguments["--queue_url"].endswith("/own-arrivals")


def test_the_doctor_finds_nothing_wrong_with_what_was_chosen(queue: Deployment, twin: Twin) -> None:
    assert [(one.check, one.what) for one in examine(queue)] == []
    declined = {**queue.outputs, "ConditionalCommits": "true"}
    (found,) = [one for one in examine(replace(queue, outputs=declined)) if one.check == "lake.commits"]
    assert "Bring your own" in found.fix, "the policy of an adopted lake is its owner's"


def test_the_probe_keeps_to_its_folder_of_the_shared_lake(queue: Deployment, twin: Twin) -> None:
    put: list[str] = []
    s3 = twin.client("s3")
    s3.meta.events.register("before-call.s3.PutObject", lambda params, **_: put.append(params["url_path"]))
    assert list(conditional_put(replace(queue, client=lambda name: s3))) == []
    assert put
    assert all("/games/_forebay/probe/" in one for one in put)


def test_a_lifecycle_rule_of_a_neighbour_in_the_lake_bucket_is_none_of_ours(queue: Deployment, twin: Twin) -> None:
    s3 = twin.client("s3")
    for below, checks in (("shop/", []), ("games/old/", ["lake.lifecycle"]), ("", ["lake.lifecycle"])):
        rule = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": below}, "Expiration": {"Days": 30}}
        s3.put_bucket_lifecycle_configuration(Bucket="tables-of-ours", LifecycleConfiguration={"Rules": [rule]})
        try:
            assert [one.check for one in examine(queue)] == checks, below
        finally:
            s3.delete_bucket_lifecycle(Bucket="tables-of-ours")


def test_an_adopted_bucket_that_notifies_nobody_is_told(queue: Deployment, twin: Twin) -> None:
    s3 = twin.client("s3")
    before = s3.get_bucket_notification_configuration(Bucket="drops-of-ours")
    s3.put_bucket_notification_configuration(Bucket="drops-of-ours", NotificationConfiguration={})
    try:
        found = [one.what for one in examine(queue)]
    finally:
        before.pop("ResponseMetadata")
        s3.put_bucket_notification_configuration(Bucket="drops-of-ours", NotificationConfiguration=before)
    assert found == ["the bucket drops-of-ours has no notifications"]


def test_files_of_two_buckets_reach_the_queue_by_eventbridge(events: Deployment, twin: Twin) -> None:
    for bucket in events.landing_buckets:
        twin.client("s3").put_object(Bucket=bucket, Key="in/a.json", Body=b"{}")
        twin.client("s3").put_object(Bucket=bucket, Key="elsewhere/a.json", Body=b"{}")
    assert in_queue(twin, events.queue_url) == [("drops-of-a", "in/a.json"), ("drops-of-b", "in/a.json")]


def test_the_doctor_understands_eventbridge(events: Deployment, twin: Twin) -> None:
    assert [(one.check, one.what) for one in examine(events)] == []
    s3, rule = twin.client("s3"), events.landed_rules[0].rpartition("/")[2]
    s3.put_bucket_notification_configuration(Bucket="drops-of-b", NotificationConfiguration={})
    twin.client("events").disable_rule(Name=rule)
    try:
        found = {one.what: one.why for one in examine(events)}
    finally:
        twin.client("events").enable_rule(Name=rule)
        s3.put_bucket_notification_configuration(
            Bucket="drops-of-b", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
    assert set(found) == {
        "the bucket drops-of-b does not send its events to EventBridge",
        f"the rule {rule} is DISABLED",
    }
    assert found[f"the rule {rule} is DISABLED"] == "Files that land do not reach the queue."


def test_an_operator_of_one_service_examines_it_and_reads_no_other(
    shared_twin: Twin, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The twin judges each request against the role's policies."""
    people = "arn:aws:iam::123456789012:root"
    folder = tmp_path_factory.mktemp("operated")
    with deployed(shared_twin, folder, env="run", prefix="run", operators=people) as on:
        role = f"{on.name}-operator-{shared_twin.region}"

        def as_operator(service: str) -> Any:
            return clients.client(service, shared_twin.endpoint, shared_twin.region, role)

        assert list(examine(look_up(on.stack, as_operator))) == []
        with pytest.raises(ClientError, match="AccessDenied"):
            look_up(shared_twin.stack, as_operator)
        lake = look_up(shared_twin.stack, shared_twin.client).lake_bucket
        with pytest.raises(ClientError, match="AccessDenied"):
            as_operator("s3").list_objects_v2(Bucket=lake)
