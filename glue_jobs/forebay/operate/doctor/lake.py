"""Checks the lake's bucket: commits cannot be overwritten, no rule deletes what a Delta log needs, it is private, and it has
one key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.landing import lifecycle_rules
from forebay.operate.doctor.policy import like, listed, statements
from forebay.operate.doctor.queues import key_of_data
from forebay.operate.stack.answer import answer_or_none
from forebay.operate.stack.deployment import Deployment

COMMIT = "some_table/_delta_log/00000000000000000007.json"
GUIDE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html"
HARMLESS = {"INTELLIGENT_TIERING"}
"""Storage classes that can be read at once, and cost nothing to read."""


def commits(on: Deployment) -> Iterator[Finding]:
    """From the policy; the jobs try it themselves at their start. A deployment without the statement gets no finding."""
    if on.outputs.get("ConditionalCommits") == "false":
        return
    answer = answer_or_none(lambda: on.client("s3").get_bucket_policy(Bucket=on.lake_bucket), {"NoSuchBucketPolicy"})
    policy = answer["Policy"] if answer else ""
    commit = f"{on.bucket_arn(on.lake_bucket)}/{on.key_in_lake(COMMIT)}"
    if not any(_refuses_unconditional(one, commit) for one in statements(policy)):
        what = f"the policy of {on.lake_bucket} does not refuse a commit that is put without a condition"
        why = "Another writer without conditional PUTs can overwrite a commit, and nobody notices the lost rows."
        fix = f"cdk deploy -c conditional_commits=true; see {GUIDE}"
        if not on.owns(on.lake_bucket):
            fix = f"add the statement of infra/README.md, Bring your own, to the bucket's policy; see {GUIDE}"
        yield warning(what, why, fix)


def _refuses_unconditional(statement: Mapping[str, Any], commit: str) -> bool:
    absent = {key.lower(): str(value).lower() for key, value in statement.get("Condition", {}).get("Null", {}).items()}
    return (
        statement["Effect"] == "Deny"
        and any(like(action.lower(), "s3:putobject") for action in listed(statement["Action"]))
        and any(like(resource, commit) for resource in listed(statement["Resource"]))
        and absent.get("s3:if-none-match") == "true"
    )


def lifecycle(on: Deployment) -> Iterator[Finding]:
    """Only the log of a table knows which of its objects are live; a rule goes by age."""
    for rule in lifecycle_rules(on, on.lake_bucket):
        deletes = {"Days", "Date"} & rule.get("Expiration", {}).keys()
        moves = {one["StorageClass"] for one in rule.get("Transitions", ())} - HARMLESS
        if rule["Status"] != "Enabled" or not (deletes or moves) or not _concerns(on.key_in_lake(""), rule):
            continue
        does = "deletes objects" if deletes else f"moves objects to {', '.join(sorted(moves))}"
        what = f"the lifecycle rule {rule.get('ID', '(unnamed)')!r} of {on.lake_bucket} {does}"
        why = "It affects live data files and commits in _delta_log: tables become unreadable, or expensive to read."
        yield error(what, why, "remove the rule; `forebay maintain` deletes what no table needs")


def _concerns(lake: str, rule: Mapping[str, Any]) -> bool:
    """A lake that is a folder of its bucket has neighbours, with rules of their own."""
    chosen = rule.get("Filter", {})
    below = str(chosen.get("Prefix", chosen.get("And", {}).get("Prefix", rule.get("Prefix", ""))))
    return below.startswith(lake) or lake.startswith(below)


def access(on: Deployment) -> Iterator[Finding]:
    for bucket in (on.lake_bucket, *on.landing_buckets):
        if not on.owns(bucket):
            continue
        ask = partial(on.client("s3").get_public_access_block, Bucket=bucket)
        answer = answer_or_none(ask, {"NoSuchPublicAccessBlockConfiguration"})
        blocked = answer["PublicAccessBlockConfiguration"] if answer else {}
        if len(blocked) < 4 or not all(blocked.values()):
            what = f"the bucket {bucket} does not block public access"
            fix = (
                f"aws s3api put-public-access-block --bucket {bucket} --public-access-block-configuration "
                "BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true"
            )
            yield warning(what, "One wrong policy would expose the data to everybody.", fix)


def vault(on: Deployment) -> Iterator[Finding]:
    """The bucket is deployed without versioning. Where somebody enables it, a lifecycle rule must delete old versions."""
    for bucket in on.vault_buckets:
        status = on.client("s3").get_bucket_versioning(Bucket=bucket).get("Status")
        if status and not any(map(_deletes_old_versions, lifecycle_rules(on, bucket))):
            yield warning(
                f"the vault {bucket} keeps old versions of its objects",
                "Values that were replaced, or are older than vault_keep_days, remain in these versions. Only an erasure "
                "deletes versions, and only for the people that it names.",
                "suspend the versioning, and add a lifecycle rule that deletes noncurrent versions after a day",
            )


def _deletes_old_versions(rule: Mapping[str, Any]) -> bool:
    """Whether a rule deletes old versions of all objects."""
    chosen = rule.get("Filter", {}) or {"Prefix": rule.get("Prefix", "")}
    return rule["Status"] == "Enabled" and "NoncurrentVersionExpiration" in rule and not any(chosen.values())


def encryption(on: Deployment) -> Iterator[Finding]:
    """The jobs may use the deployed key, and no other."""
    encryption = on.client("s3").get_bucket_encryption(Bucket=on.lake_bucket)["ServerSideEncryptionConfiguration"]
    found = [rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID", "") for rule in encryption["Rules"]]
    key = key_of_data(on)
    if key and found and found[0] and found[0].rpartition("/")[2] != key.rpartition("/")[2]:
        what = f"the lake {on.lake_bucket} encrypts with {found[0]}, and the deployed key is {key}"
        yield error(what, "The jobs may not use that key, so they cannot write.")


def catalog(on: Deployment) -> Iterator[Finding]:
    """Tables whose name in the database is another's: the job does not change such an entry."""
    glue, lake = on.client("glue"), on.outputs["LakeUri"].rstrip("/")
    database = _database_of(on)
    pages = glue.get_paginator("get_tables").paginate(DatabaseName=database) if database else ()
    for entry in (entry for page in pages for entry in page["TableList"]):
        place = str(entry.get("StorageDescriptor", {}).get("Location", "")).replace("s3a://", "s3://", 1).rstrip("/")
        if place != f"{lake}/{entry['Name']}" and _is_a_table(on, entry["Name"]):
            found = f"the entry {entry['Name']} of the Glue database {database} points to {place or 'no place'}"
            why = f"The table {lake}/{entry['Name']} has no entry, so readers do not find it by its name."
            yield error(found, why, "rename one of the two, or give the service its own database")


def _database_of(on: Deployment) -> str:
    if on.emr_application:
        return ""
    job = on.client("glue").get_job(JobName=on.outputs["IngestJob"])["Job"]
    return str(job.get("DefaultArguments", {}).get("--catalog", ""))


def _is_a_table(on: Deployment, name: str) -> bool:
    log = on.key_in_lake(f"{name}/_delta_log/")
    return bool(on.client("s3").list_objects_v2(Bucket=on.lake_bucket, Prefix=log, MaxKeys=1).get("Contents"))
