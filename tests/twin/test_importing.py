"""A stack takes over what exists, by the requests of `cdk import`; what CloudFormation refuses, the twin refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay_local.twin.twin import Twin

BUCKET = "kept-lake"
LAKE = {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain", "Properties": {"BucketName": BUCKET}}
TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "kept-topic"}}
OF_LAKE = {
    "ResourceType": "AWS::S3::Bucket",
    "LogicalResourceId": "Lake",
    "ResourceIdentifier": {"BucketName": BUCKET},
}
STACK = "taken-over"


@pytest.fixture
def cloudformation(twin: Twin) -> Iterator[Any]:
    s3, found = twin.client("s3"), twin.client("cloudformation")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": twin.region})
    s3.put_object(Bucket=BUCKET, Key="a", Body=b"kept")
    yield found
    found.delete_stack(StackName=STACK)
    for one in s3.list_object_versions(Bucket=BUCKET)["Versions"]:
        s3.delete_object(Bucket=BUCKET, Key=one["Key"], VersionId=one["VersionId"])
    s3.delete_bucket(Bucket=BUCKET)


def request(
    resources: Mapping[str, Any], *, asked: Any = (OF_LAKE,), outputs: Any = None, **more: Any
) -> dict[str, Any]:
    template = {"Resources": resources, **({"Outputs": outputs} if outputs else {})}
    what = {
        "StackName": STACK,
        "ChangeSetName": "take",
        "ChangeSetType": "IMPORT",
        "TemplateBody": json.dumps(template),
    }
    return {**what, "ResourcesToImport": list(asked), **more}


def refused(cloudformation: Any, **asked: Any) -> str:
    with pytest.raises(ClientError) as refusal:
        cloudformation.create_change_set(**asked)
    return str(refusal.value.response["Error"]["Message"])


def failed(cloudformation: Any, **asked: Any) -> str:
    made = cloudformation.create_change_set(**asked)["Id"]
    found = cloudformation.describe_change_set(ChangeSetName=made)
    assert (found["Status"], found["ExecutionStatus"], found.get("Changes", [])) == ("FAILED", "UNAVAILABLE", [])
    return str(found["StatusReason"])


def imported(cloudformation: Any, **asked: Any) -> None:
    made = cloudformation.create_change_set(**asked)["Id"]
    found = cloudformation.describe_change_set(ChangeSetName=made)
    assert [one["ResourceChange"]["Action"] for one in found["Changes"]] == ["Import"] * len(asked["ResourcesToImport"])
    cloudformation.execute_change_set(ChangeSetName=made)


def held(cloudformation: Any) -> tuple[str, dict[str, str]]:
    (stack,) = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
    there = cloudformation.describe_stack_resources(StackName=STACK)["StackResources"]
    return stack["StackStatus"], {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in there}


def test_a_bucket_is_taken_over_with_what_is_in_it_and_belongs_to_the_stack_from_then_on(
    twin: Twin, cloudformation: Any
) -> None:
    imported(cloudformation, **request({"Lake": LAKE}))
    assert held(cloudformation) == ("IMPORT_COMPLETE", {"Lake": BUCKET})
    assert twin.client("s3").get_object(Bucket=BUCKET, Key="a")["Body"].read() == b"kept"
    versions = {"VersioningConfiguration": {"Status": "Enabled"}}
    changed = {"Lake": {**LAKE, "Properties": {**LAKE["Properties"], **versions}}, "Topic": TOPIC}
    cloudformation.update_stack(StackName=STACK, TemplateBody=json.dumps({"Resources": changed}))
    assert twin.client("s3").get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    status, there = held(cloudformation)
    assert (status, there.keys()) == ("UPDATE_COMPLETE", {"Lake", "Topic"})
    cloudformation.delete_stack(StackName=STACK)
    assert twin.client("s3").get_object(Bucket=BUCKET, Key="a")["Body"].read() == b"kept"


def test_a_stack_that_exists_takes_over_more(twin: Twin, cloudformation: Any) -> None:
    key = twin.client("kms").create_key()["KeyMetadata"]["KeyId"]
    kept = {"Type": "AWS::KMS::Key", "DeletionPolicy": "Retain", "Properties": {"KeyPolicy": {}}}
    of_key = {"ResourceType": "AWS::KMS::Key", "LogicalResourceId": "Key", "ResourceIdentifier": {"KeyId": key}}
    imported(cloudformation, **request({"Lake": LAKE}))
    imported(cloudformation, **request({"Lake": LAKE, "Key": kept}, asked=[of_key]))
    assert held(cloudformation) == ("IMPORT_COMPLETE", {"Lake": BUCKET, "Key": key})
    again = refused(cloudformation, **request({"Lake": LAKE, "Key": kept}))
    assert again == "Resources [Lake] passed in ResourceToImport are already in a stack and cannot be imported."
    changed = {"Lake": {**LAKE, "DeletionPolicy": "Delete"}, "Key": kept, "Other": LAKE}
    other = refused(cloudformation, **request(changed, asked=[{**OF_LAKE, "LogicalResourceId": "Other"}]))
    assert other.startswith("You have modified resources [Lake] in your template that are not being imported.")
    twin.client("kms").schedule_key_deletion(KeyId=key)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (request({"Lake": LAKE}, asked=()), "Must Provide at least one resource to import"),
        (
            request({"Lake": LAKE, "Topic": {**TOPIC, "DeletionPolicy": "Retain"}}),
            "Resources [Topic] is missing from ResourceToImport list",
        ),
        (
            request({"Lake": {name: LAKE[name] for name in ("Type", "Properties")}}),
            "The following resources to import [Lake] must have DeletionPolicy attribute specified in the template.",
        ),
        (
            request({"Lake": {**LAKE, "Properties": {"BucketName": {"Ref": "Name"}}}}),
            "Template format error: Unresolved resource dependencies [Name] in the Resources block of the template",
        ),
        (
            request({"Lake": LAKE}, outputs={"Said": {"Value": "done"}}),
            "As part of the import operation, you cannot modify or add [Outputs]",
        ),
        (
            request({"Lake": LAKE}, Tags=[{"Key": "service", "Value": "forebay"}]),
            "As part of the import operation, you cannot modify or add [Tags]",
        ),
        (
            request({"Lake": LAKE}, asked=[{**OF_LAKE, "ResourceIdentifier": {"Name": BUCKET}}]),
            "Invalid resource identifier for resource type AWS::S3::Bucket. Expected [BucketName]",
        ),
        (
            request({"Lake": LAKE}, asked=[{**OF_LAKE, "LogicalResourceId": "Sea"}]),
            "The logical resource ids [Sea] provided in ResourceToImport do not exist in the template.",
        ),
        (
            request({"Lake": TOPIC}),
            "Resource type of [Lake] passed in ResourceToImport does not match with resource type defined in the template. "
            "Resource type in ResourceToImport: AWS::S3::Bucket; Resource type in Template: AWS::SNS::Topic.",
        ),
    ],
)
def test_an_import_that_does_more_or_says_less_is_refused_and_leaves_no_stack(
    cloudformation: Any, asked: dict[str, Any], says: str
) -> None:
    assert refused(cloudformation, **asked) == says
    assert STACK not in [one["StackName"] for one in cloudformation.describe_stacks()["Stacks"]]


def test_what_does_not_exist_or_belongs_to_a_stack_fails_the_change_set_and_another_try_is_possible(
    twin: Twin, cloudformation: Any
) -> None:
    gone = {**OF_LAKE, "ResourceIdentifier": {"BucketName": "gone"}}
    assert failed(cloudformation, **request({"Lake": LAKE}, asked=[gone])) == (
        "Resource of type 'AWS::S3::Bucket' with identifier 'gone' was not found."
    )
    assert held(cloudformation)[0] == "REVIEW_IN_PROGRESS"
    ours = {**OF_LAKE, "ResourceIdentifier": {"BucketName": twin.lake_bucket}}
    (owner,) = twin.client("cloudformation").describe_stacks(StackName=twin.stack)["Stacks"]
    assert failed(cloudformation, **request({"Lake": LAKE}, asked=[ours])) == (
        f"{twin.lake_bucket} already exists in stack {owner['StackId']}"
    )
    imported(cloudformation, **request({"Lake": LAKE}))
    assert held(cloudformation) == ("IMPORT_COMPLETE", {"Lake": BUCKET})


def test_a_template_says_what_identifies_its_resources(cloudformation: Any) -> None:
    found = cloudformation.get_template_summary(TemplateBody=json.dumps({"Resources": {"Lake": LAKE, "Topic": TOPIC}}))
    assert found["ResourceIdentifierSummaries"] == [
        {"ResourceType": "AWS::S3::Bucket", "LogicalResourceIds": ["Lake"], "ResourceIdentifiers": ["BucketName"]}
    ]


def test_a_bucket_policy_that_was_kept_stands_in_the_way_of_a_new_one(twin: Twin, cloudformation: Any) -> None:
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": f"arn:aws:s3:::{BUCKET}/*"}
    document = {
        "Version": "2012-10-17",
        "Statement": [{**denied, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}],
    }
    twin.client("s3").put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(document))
    imported(cloudformation, **request({"Lake": LAKE}))
    policy = {"Type": "AWS::S3::BucketPolicy", "Properties": {"Bucket": {"Ref": "Lake"}, "PolicyDocument": document}}
    whole = json.dumps({"Resources": {"Lake": LAKE, "Policy": policy}})
    with pytest.raises(ClientError, match=f"The bucket policy already exists on bucket {BUCKET}"):
        cloudformation.update_stack(StackName=STACK, TemplateBody=whole)
    cloudformation.delete_stack(StackName=STACK)
    twin.client("s3").delete_bucket_policy(Bucket=BUCKET)
    imported(cloudformation, **request({"Lake": LAKE}))
    cloudformation.update_stack(StackName=STACK, TemplateBody=whole)
    assert twin.client("s3").get_bucket_policy(Bucket=BUCKET)["Policy"]
