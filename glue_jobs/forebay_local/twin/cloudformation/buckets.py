"""A bucket's properties in a template, in the words of S3's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Properties = Mapping[str, Any]


def complete(s3: Any, bucket: str, properties: Properties) -> None:
    """The properties of a bucket that moto's CloudFormation ignores. The notification is last: S3 tests it when it is set."""
    if found := properties.get("VersioningConfiguration"):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=found)
    if found := properties.get("PublicAccessBlockConfiguration"):
        s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=found)
    if found := properties.get("OwnershipControls"):
        s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=found)
    if found := properties.get("LifecycleConfiguration"):
        rules = [_lifecycle_rule(rule, number) for number, rule in enumerate(found["Rules"])]
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})
    if found := properties.get("NotificationConfiguration"):
        _announce(s3, bucket, _notifications(found))


def _announce(s3: Any, bucket: str, wanted: Properties) -> None:
    """Each time it is set S3 sends a test event, so what already exists is left alone."""
    there = s3.get_bucket_notification_configuration(Bucket=bucket)
    there.pop("ResponseMetadata", None)
    if not there or _arns(there) != _arns(wanted):
        s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=wanted)


def _arns(configuration: Properties) -> list[str]:
    groups = [group for name, group in configuration.items() if name.endswith("Configurations")]
    return sorted(value for group in groups for one in group for name, value in one.items() if name.endswith("Arn"))


def _lifecycle_rule(rule: Properties, number: int) -> dict[str, Any]:
    below: dict[str, Any] = {"Prefix": rule.get("Prefix", "")}
    if size := rule.get("ObjectSizeGreaterThan"):
        below = {"And": {**below, "ObjectSizeGreaterThan": int(size)}}
    translated: dict[str, Any] = {"ID": rule.get("Id", f"rule-{number}"), "Status": rule["Status"], "Filter": below}
    if "ExpirationInDays" in rule:
        translated["Expiration"] = {"Days": int(rule["ExpirationInDays"])}
    elif rule.get("ExpiredObjectDeleteMarker"):
        translated["Expiration"] = {"ExpiredObjectDeleteMarker": True}
    if "Transitions" in rule:
        translated["Transitions"] = [
            {"Days": int(to["TransitionInDays"]), "StorageClass": to["StorageClass"]} for to in rule["Transitions"]
        ]
    if "NoncurrentVersionExpiration" in rule:
        translated["NoncurrentVersionExpiration"] = {
            name: int(days) for name, days in rule["NoncurrentVersionExpiration"].items()
        }
    if "AbortIncompleteMultipartUpload" in rule:
        days = rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]
        translated["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": int(days)}
    return translated


def _notifications(configuration: Properties) -> dict[str, Any]:
    groups = (
        ("TopicConfigurations", "Topic", "TopicConfigurations", "TopicArn"),
        ("QueueConfigurations", "Queue", "QueueConfigurations", "QueueArn"),
        ("LambdaConfigurations", "Function", "LambdaFunctionConfigurations", "LambdaFunctionArn"),
    )
    return {
        theirs: [_notification(one, there=target, here=arn) for one in configuration[ours]]
        for ours, target, theirs, arn in groups
        if configuration.get(ours)
    }


def _notification(one: Properties, *, there: str, here: str) -> dict[str, Any]:
    translated: dict[str, Any] = {"Events": [one["Event"]], here: one[there]}
    if "Filter" in one:
        translated["Filter"] = {"Key": {"FilterRules": one["Filter"]["S3Key"]["Rules"]}}
    return translated
