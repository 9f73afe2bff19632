"""The service's own template, as the CDK writes it, is in the twin: every resource of it, wired as it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.errors import Halt, InvalidConfiguration
from forebay_local.twin import assembly, synth
from forebay_local.twin import twin as twins
from forebay_local.twin.assembly import Assembly
from forebay_local.twin.clients import client
from forebay_local.twin.twin import Twin


@pytest.fixture(scope="module")
def plan() -> Assembly:
    return assembly.read(synth.assembly())


@pytest.fixture(scope="module")
def template(plan: Assembly) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(plan.template)
    return read


Look = Callable[[Callable[[str], Any], str], object]

LOOK: dict[str, Look] = {
    "AWS::S3::Bucket": lambda of, ref: of("s3").head_bucket(Bucket=ref),
    "AWS::S3::BucketPolicy": lambda of, ref: of("s3").get_bucket_policy(Bucket=ref),
    "AWS::SNS::Topic": lambda of, ref: of("sns").get_topic_attributes(TopicArn=ref),
    "AWS::SNS::Subscription": lambda of, ref: of("sns").get_subscription_attributes(SubscriptionArn=ref),
    "AWS::SQS::Queue": lambda of, ref: of("sqs").get_queue_attributes(QueueUrl=ref),
    "AWS::KMS::Key": lambda of, ref: of("kms").describe_key(KeyId=ref),
    "AWS::KMS::Alias": lambda of, ref: of("kms").describe_key(KeyId=ref),
    "AWS::IAM::Role": lambda of, ref: of("iam").get_role(RoleName=ref),
    "AWS::Glue::Database": lambda of, ref: of("glue").get_database(Name=ref),
    "AWS::Glue::Job": lambda of, ref: of("glue").get_job(JobName=ref),
    "AWS::Logs::LogGroup": lambda of, ref: one(
        of("logs").describe_log_groups(logGroupNamePrefix=ref)["logGroups"], "logGroupName", ref
    ),
    "AWS::Lambda::Function": lambda of, ref: of("lambda").get_function(FunctionName=ref),
    "AWS::Events::Rule": lambda of, ref: of("events").describe_rule(Name=ref),
    "AWS::Scheduler::ScheduleGroup": lambda of, ref: of("scheduler").get_schedule_group(Name=ref),
    "AWS::Scheduler::Schedule": lambda of, ref: one(of("scheduler").list_schedules()["Schedules"], "Name", ref),
    "AWS::CloudWatch::Alarm": lambda of, ref: one(
        of("cloudwatch").describe_alarms(AlarmNames=[ref])["MetricAlarms"], "AlarmName", ref
    ),
    "AWS::Budgets::Budget": lambda of, ref: of("budgets").describe_budget(AccountId="123456789012", BudgetName=ref),
    "AWS::CloudWatch::Dashboard": lambda of, ref: of("cloudwatch").get_dashboard(DashboardName=ref),
}
"""How each type is asked for; those that are a part of another resource are looked for below."""

PARTS = {
    *("AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::IAM::Policy", "AWS::Lambda::Permission"),
    "AWS::Lambda::EventInvokeConfig",
}


def one(found: list[dict[str, Any]], key: str, ref: str) -> None:
    assert ref in [thing[key] for thing in found]


def test_every_logical_id_of_the_template_exists_in_the_twin(twin: Twin, template: dict[str, Any]) -> None:
    made = twin.client("cloudformation").describe_stack_resources(StackName=twin.stack)["StackResources"]
    assert {resource["LogicalResourceId"] for resource in made} == set(template["Resources"])
    unknown = {resource["ResourceType"] for resource in made} - LOOK.keys() - PARTS
    assert not unknown, "say how to look for these"
    for resource in made:
        if look := LOOK.get(resource["ResourceType"]):
            look(twin.client, resource["PhysicalResourceId"])


def test_policies_are_on_what_they_are_for(twin: Twin, template: dict[str, Any]) -> None:
    sqs, iam = twin.client("sqs"), twin.client("iam")
    for url in (twin.queue_url, twin.dlq_url):
        policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"]
        assert "aws:SecureTransport" in policy
    for topic in twin.client("sns").list_topics()["Topics"]:
        policy = twin.client("sns").get_topic_attributes(TopicArn=topic["TopicArn"])["Attributes"]["Policy"]
        assert "AllowPublishThroughSSLOnly" in policy
    roles = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    policies = [resource for resource in template["Resources"].values() if resource["Type"] == "AWS::IAM::Policy"]
    assert sum(len(iam.list_role_policies(RoleName=role)["PolicyNames"]) for role in roles) == len(policies)


def test_the_buckets_keep_what_the_template_says(twin: Twin) -> None:
    s3 = twin.client("s3")
    assert s3.get_bucket_versioning(Bucket=twin.landing_bucket)["Status"] == "Enabled"
    assert s3.get_public_access_block(Bucket=twin.lake_bucket)["PublicAccessBlockConfiguration"]["BlockPublicPolicy"]
    rules = {rule["ID"]: rule for rule in s3.get_bucket_lifecycle_configuration(Bucket=twin.landing_bucket)["Rules"]}
    assert rules["landed-files"]["Filter"]["Prefix"] == twin.prefix
    assert rules["old-versions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert rules["abandoned-uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 3}
    (rule,) = s3.get_bucket_encryption(Bucket=twin.lake_bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"


def test_only_objects_below_the_prefix_are_announced_and_without_an_envelope(twin: Twin) -> None:
    s3, sqs = twin.client("s3"), twin.client("sqs")
    s3.put_object(Bucket=twin.landing_bucket, Key="in/a.json", Body=b"{}")
    s3.put_object(Bucket=twin.landing_bucket, Key="out/b.json", Body=b"{}")
    s3.put_object(Bucket=twin.lake_bucket, Key="in/c.json", Body=b"{}")
    (message,) = sqs.receive_message(QueueUrl=twin.queue_url, MaxNumberOfMessages=10)["Messages"]
    assert [record["s3"]["object"]["key"] for record in json.loads(message["Body"])["Records"]] == ["in/a.json"]


def test_the_queues_are_as_declared(twin: Twin) -> None:
    sqs = twin.client("sqs")
    queue = sqs.get_queue_attributes(QueueUrl=twin.queue_url, AttributeNames=["All"])["Attributes"]
    dead = sqs.get_queue_attributes(QueueUrl=twin.dlq_url, AttributeNames=["All"])["Attributes"]
    assert json.loads(queue["RedrivePolicy"]) == {"deadLetterTargetArn": dead["QueueArn"], "maxReceiveCount": 5}
    assert queue["VisibilityTimeout"] == "300"
    assert int(dead["MessageRetentionPeriod"]) > int(queue["MessageRetentionPeriod"])


def test_the_jobs_code_is_where_its_arguments_say(twin: Twin) -> None:
    (job,) = [job for job in twin.client("glue").get_jobs()["Jobs"] if job["Name"] == f"{twin.stack}-ingest"]
    arguments = job["DefaultArguments"]
    shipped = ",".join(arguments[f"--extra-{name}"] for name in ("py-files", "jars"))
    for place in (job["Command"]["ScriptLocation"], *shipped.split(",")):
        bucket, _, key = place.removeprefix("s3://").partition("/")
        assert twin.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] > 0


def test_the_template_deployed_again_changes_and_announces_nothing(twin: Twin, plan: Assembly) -> None:
    before = twin.client("sns").list_subscriptions()["Subscriptions"]
    outputs = assembly.deploy(plan, client=twin.client)
    assert outputs["LandingBucket"] == twin.landing_bucket
    assert twin.client("sns").list_subscriptions()["Subscriptions"] == before
    assert "Messages" not in twin.client("sqs").receive_message(QueueUrl=twin.queue_url, WaitTimeSeconds=0)


# --- a stack of a few resources, to be changed ---

ALARM = {
    "AlarmName": "late",
    "MetricName": "age",
    "Namespace": "forebay",
    "Statistic": "Maximum",
    "Period": "60",
    "EvaluationPeriods": 1,
    "Threshold": "600",
    "ComparisonOperator": "GreaterThanThreshold",
}


def stack(name: str, **resources: Any) -> Assembly:
    template = {"Resources": resources, "Outputs": {"Said": {"Value": "done"}}}
    return Assembly(Path(name), name, json.dumps(template), ())


def alarm(**changed: Any) -> dict[str, Any]:
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": {**ALARM, **changed}}


def test_an_update_changes_adds_renames_and_removes(twin: Twin) -> None:
    cloudwatch = twin.client("cloudwatch")
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/changing", "RetentionInDays": 7}}

    def alarms() -> dict[str, float]:
        found = cloudwatch.describe_alarms(AlarmNames=["late", "later", "other"])["MetricAlarms"]
        return {alarm["AlarmName"]: alarm["Threshold"] for alarm in found}

    def state() -> str:
        (found,) = cloudwatch.describe_alarms(AlarmNames=["late"])["MetricAlarms"]
        return str(found["StateValue"])

    def days() -> int:
        (found,) = twin.client("logs").describe_log_groups(logGroupNamePrefix="/changing")["logGroups"]
        return int(found["retentionInDays"])

    outputs = assembly.deploy(stack("changing", Late=alarm(), Log=group), client=twin.client)
    assert (outputs, alarms(), days()) == ({"Said": "done"}, {"late": 600.0}, 7)
    assert state() == "INSUFFICIENT_DATA"
    cloudwatch.set_alarm_state(AlarmName="late", StateValue="ALARM", StateReason="a test")
    group["Properties"] = {"LogGroupName": "/changing", "RetentionInDays": "30"}
    changed = stack("changing", Late=alarm(Threshold=900), Other=alarm(AlarmName="other"), Log=group)
    assembly.deploy(changed, client=twin.client)
    assert (alarms(), days()) == ({"late": 900.0, "other": 600.0}, 30)
    assert state() == "ALARM", "a change of the alarm is no change of its state"
    assembly.deploy(stack("changing", Late=alarm(AlarmName="later"), Log=group), client=twin.client)
    assert alarms() == {"later": 600.0}
    twin.client("cloudformation").delete_stack(StackName="changing")
    assert alarms() == {}


def test_rights_that_do_not_fit_into_the_policy_of_a_role_are_judged_too(twin: Twin) -> None:
    """The CDK writes what is longer than IAM allows into managed policies, `OverflowPolicy1` and so on."""
    role = {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "crowded", "AssumeRolePolicyDocument": {}}}

    def deployed(bucket: str) -> None:
        lists = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{bucket}"}
        document = {"Version": "2012-10-17", "Statement": [lists]}
        properties = {"PolicyDocument": document, "Roles": [{"Ref": "Role"}], "Path": "/", "Description": "the rest"}
        overflow = {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}
        assembly.deploy(stack("crowded", Role=role, RoleOverflowPolicy1=overflow), client=twin.client)

    def may_list(bucket: str) -> bool:
        s3 = client("s3", twin.endpoint, twin.region, "crowded")
        try:
            s3.list_objects_v2(Bucket=bucket)
        except ClientError as refusal:
            return refusal.response["Error"]["Code"] != "AccessDenied"
        return True

    def simulated(bucket: str) -> str:
        (found,) = twin.client("iam").simulate_principal_policy(
            PolicySourceArn=arn, ActionNames=["s3:ListBucket"], ResourceArns=[f"arn:aws:s3:::{bucket}"]
        )["EvaluationResults"]
        return str(found["EvalDecision"])

    deployed(twin.lake_bucket)
    arn = twin.client("iam").get_role(RoleName="crowded")["Role"]["Arn"]
    assert (may_list(twin.lake_bucket), may_list(twin.landing_bucket)) == (True, False)
    assert (simulated(twin.lake_bucket), simulated(twin.landing_bucket)) == ("allowed", "implicitDeny")
    for bucket in (twin.landing_bucket, twin.lake_bucket) * 3:  # IAM keeps five versions of a policy
        deployed(bucket)
    deployed(twin.landing_bucket)
    assert (may_list(twin.lake_bucket), may_list(twin.landing_bucket)) == (False, True)
    twin.client("cloudformation").delete_stack(StackName="crowded")
    ours = twin.client("iam").list_policies(Scope="Local")["Policies"]
    assert [one for one in ours if "crowded" in one["PolicyName"]] == []


@pytest.mark.parametrize(
    ("resource", "complaint"),
    [
        ({"Type": "AWS::Neptune::DBCluster"}, "the local twin cannot make a resource of type AWS::Neptune::DBCluster"),
        (alarm(Treshold=1), 'AWS::CloudWatch::Alarm late: .*Unknown parameter in input: "Treshold"'),
        (alarm(Period="often"), "AWS::CloudWatch::Alarm late: invalid literal for int"),
    ],
)
def test_what_cannot_be_made_fails_the_deploy_with_a_sentence(
    twin: Twin, resource: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(Halt, match=f"(?s)wrong cannot be deployed into the twin: .*{complaint}"):
        assembly.deploy(stack("wrong", It=resource), client=twin.client)


def bucket(policy: str) -> dict[str, Any]:
    return {"Type": "AWS::S3::Bucket", "DeletionPolicy": policy, "Properties": {"BucketName": "first-lake"}}


def test_a_first_deploy_that_failed_leaves_no_bucket_behind_and_the_next_one_succeeds(twin: Twin) -> None:
    """What is only retained, as buckets were before, stays behind a rollback, and its name is taken."""
    s3 = twin.client("s3")
    broken = stack("first", Lake=bucket("RetainExceptOnCreate"), Late={**alarm(Treshold=1), "DependsOn": "Lake"})
    with pytest.raises(Halt, match="Unknown parameter"):
        assembly.deploy(broken, client=twin.client)
    assert "first-lake" not in [found["Name"] for found in s3.list_buckets()["Buckets"]]
    (found,) = twin.client("cloudformation").describe_stacks(StackName="first")["Stacks"]
    assert found["StackStatus"] == "ROLLBACK_COMPLETE"
    assert twin.client("cloudformation").list_stack_resources(StackName="first")["StackResourceSummaries"] == []
    assert "first-lake" not in [found["Name"] for found in s3.list_buckets()["Buckets"]], "asking makes nothing"

    mended = stack("first", Lake=bucket("RetainExceptOnCreate"), Late={**alarm(), "DependsOn": "Lake"})
    assert assembly.deploy(mended, client=twin.client) == {"Said": "done"}
    twin.client("cloudformation").delete_stack(StackName="first")
    assert "first-lake" in [found["Name"] for found in s3.list_buckets()["Buckets"]], "a deleted stack keeps its data"
    s3.delete_bucket(Bucket="first-lake")


def test_a_first_deploy_that_failed_keeps_what_is_retained_come_what_may(twin: Twin) -> None:
    broken = stack("first", Lake=bucket("Retain"), Late={**alarm(Treshold=1), "DependsOn": "Lake"})
    with pytest.raises(Halt, match="Unknown parameter"):
        assembly.deploy(broken, client=twin.client)
    twin.client("s3").delete_bucket(Bucket="first-lake")
    twin.client("cloudformation").delete_stack(StackName="first")


def test_a_protected_stack_is_not_deleted(twin: Twin) -> None:
    cloudformation = twin.client("cloudformation")
    assembly.deploy(stack("safe", Late=alarm()), client=twin.client)
    cloudformation.update_termination_protection(StackName="safe", EnableTerminationProtection=True)
    with pytest.raises(ClientError, match="cannot be deleted while TerminationProtection is enabled"):
        cloudformation.delete_stack(StackName="safe")
    cloudformation.update_termination_protection(StackName="safe", EnableTerminationProtection=False)
    cloudformation.delete_stack(StackName="safe")


# --- the assembly ---


def test_a_folder_that_is_no_assembly_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"is not a cloud assembly: .*`make synth` writes one"):
        twins.up(tmp_path / "state", cloud=tmp_path)
    assert not (tmp_path / "state" / "server.log").exists()


def test_an_assembly_is_not_deployed_beside_a_running_twin(twin: Twin, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"is not deployed, because a twin runs in .*local down --state"):
        twins.up(twin.state, cloud=tmp_path)


def test_without_the_app_beside_the_package_an_assembly_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"there is no infrastructure app in .*--assembly cdk\.out"):
        synth.assembly(tmp_path)


def test_a_synth_is_kept_until_something_that_it_reads_changes(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    app = tmp_path / "infra" / "app.py"
    app.write_text(
        "import os, pathlib, sys; out = pathlib.Path(os.environ['CDK_OUTDIR']); out.mkdir(); "
        "(out / 'said').write_text(' '.join(sys.argv[1:]))"
    )
    first = synth.assembly(tmp_path)
    (first / "mine").touch()
    assert synth.assembly(tmp_path) == first
    assert (first / "mine").exists()
    assert (first / "said").read_text() == "--without-review -c env=local"
    (tmp_path / "cdk.json").write_text("{}")
    assert synth.assembly(tmp_path) != first
    app.write_text("raise SystemExit('forebay: workers: must be at least 2')")
    with pytest.raises(Halt, match=r"cannot be synthesized; .*\nforebay: workers: must be at least 2"):
        synth.assembly(tmp_path)


@pytest.mark.parametrize("named", ["shop", "shop/service.toml"])
def test_changed_declarations_are_synthesized_again(named: str, tmp_path: Path) -> None:
    """`forebay local up` deployed the earlier ones otherwise."""
    (tmp_path / "shop" / "transforms").mkdir(parents=True)
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"environments": {"local": {"service": named}}}}))
    seen, of_prod = {synth.fingerprint(tmp_path)}, synth.fingerprint(tmp_path, "prod")
    for file in ("service.toml", "transforms/shop.py"):
        (tmp_path / "shop" / file).write_text("x = 1")
        seen.add(synth.fingerprint(tmp_path))
    assert len(seen) == 3
    assert synth.fingerprint(tmp_path, "prod") == of_prod
    (tmp_path / "cdk.json").write_text("{")
    assert synth.fingerprint(tmp_path) not in seen
