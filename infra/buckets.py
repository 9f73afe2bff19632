"""A bucket as all of ours are: private, encrypted, TLS only, its accesses logged, and kept when the stack is removed.

`name_of` builds a bucket's name from the environment's alone, so that policies can name a bucket that is not made yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.review import acknowledge_nist
from infra.settings import Settings

LEAST_DAYS_OF_ACCESS_LOGS = 90
WITHOUT_VERSIONS = {
    "access": "S3 writes access logs once, and they are deleted by age",
    "artefacts": "scratch space, Spark's event logs and pages that are written again",
    "lake": "Delta logs keep versions of tables; the setting keep_deleted_days adds those of S3",
    "results": "results are copies, which a query makes again",
    "vault": "an erasure must leave no version behind",
}
WITHOUT_COPY = {
    "access": WITHOUT_VERSIONS["access"],
    "artefacts": WITHOUT_VERSIONS["artefacts"],
    "landing": "producers have the files until they landed, and the lake has their records afterwards",
    "lake": "the setting replicate_to copies it to a bucket of another region",
    "results": WITHOUT_VERSIONS["results"],
    "vault": "an erasure must leave no copy behind",
}
"""Why a bucket has no versions, or no copy elsewhere, by its role; NIST 800-53 asks for both."""


def name_of(settings: Settings, role: str) -> str:
    return f"{settings.name}-{role}-{Aws.ACCOUNT_ID}-{Aws.REGION}"


def arn_of(bucket_name: str) -> str:
    return f"arn:{Aws.PARTITION}:s3:::{bucket_name}"


def removal_of(settings: Settings) -> RemovalPolicy:
    """A first deployment that fails takes its empty buckets and keys along, so that the next one finds their names free; later
    nothing deletes them. CloudFormation never deletes a bucket that has something in it, so even with both switches a person
    empties it."""
    return RemovalPolicy.DESTROY if settings.delete_data else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def private_bucket(
    scope: Construct,
    role: str,
    *,
    settings: Settings,
    key: kms.IKey,
    access_logs: s3.IBucket,
    versioned: bool = False,
    lifecycle_rules: Sequence[s3.LifecycleRule] = (),
    bucket_name: str = "",
) -> s3.Bucket:
    bucket = s3.Bucket(
        scope,
        role.capitalize(),
        bucket_name=bucket_name or name_of(settings, role),
        versioned=versioned,
        encryption=s3.BucketEncryption.KMS,
        encryption_key=key,
        bucket_key_enabled=True,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        server_access_logs_bucket=access_logs,
        server_access_logs_prefix=f"{role}/",
        lifecycle_rules=[abandoned_uploads(), *lifecycle_rules],
        removal_policy=removal_of(settings),
    )
    _explain(bucket, role, versioned=versioned, copied=role == "lake" and bool(settings.replicate_to))
    return _with_its_policy(bucket, settings)


def access_logs_bucket(scope: Construct, *, settings: Settings) -> s3.Bucket:
    """S3 writes access logs to buckets with S3's own key only."""
    bucket = s3.Bucket(
        scope,
        "AccessLogs",
        bucket_name=name_of(settings, "access"),
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=[s3.LifecycleRule(id="expire", expiration=Duration.days(days_of_access_logs(settings)))],
        removal_policy=removal_of(settings),
    )
    _explain(bucket, "access", versioned=False, copied=False)
    acknowledge_nist(bucket, "S3DefaultEncryptionKMS", "S3 writes access logs to buckets with S3's own key only")
    return _with_its_policy(bucket, settings)


def _explain(bucket: s3.Bucket, role: str, *, versioned: bool, copied: bool) -> None:
    if not versioned:
        acknowledge_nist(bucket, "S3BucketVersioningEnabled", WITHOUT_VERSIONS[role])
    if not copied:
        acknowledge_nist(bucket, "S3BucketReplicationEnabled", WITHOUT_COPY[role])


def _with_its_policy(bucket: s3.Bucket, settings: Settings) -> s3.Bucket:
    """A bucket that is kept also keeps its policy."""
    assert bucket.policy is not None, "TLS alone needs one"
    bucket.policy.apply_removal_policy(removal_of(settings))
    return bucket


def days_of_access_logs(settings: Settings) -> int:
    return max(settings.log_days, LEAST_DAYS_OF_ACCESS_LOGS)


def abandoned_uploads() -> s3.LifecycleRule:
    """Parts of uploads that never ended: no object, so nothing that a table could miss."""
    return s3.LifecycleRule(id="abandoned-uploads", abort_incomplete_multipart_upload_after=Duration.days(3))
