"""A copy of the lake in another bucket, by S3 itself, such as for the day on which a region is lost.

S3 copies objects one by one and in no order: for minutes the copy may have a commit without its data files. It copies what is
new, not what was there before, and marks of deletion, but not that a version was deleted for good. So an erasure of a person
must be repeated in the copy, and the copy needs a rule that deletes old versions. The target's owner sets that up.
"""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import grants
from infra.principals import TRUST, conditions
from infra.settings import Settings


def replicate(scope: Construct, bucket: s3.IBucket, key: kms.IKey, *, settings: Settings) -> None:
    """The permissions are those of AWS's page: https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html"""
    trusted = conditions("s3", TRUST, StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID})
    role = iam.Role(scope, "LakeReplication", assumed_by=iam.ServicePrincipal("s3.amazonaws.com", conditions=trusted))
    to, of_target = f"arn:{Aws.PARTITION}:s3:::{settings.replicate_to}", "all of the lake is copied"
    grants.allow(role, "KnowRules", ["s3:GetReplicationConfiguration", "s3:ListBucket"], [bucket.bucket_arn])
    reads = [f"s3:GetObjectVersion{what}" for what in ("ForReplication", "Acl", "Tagging")]
    grants.allow(role, "ReadVersions", reads, [bucket.arn_for_objects("*")], because=of_target)
    writes = [f"s3:Replicate{what}" for what in ("Object", "Delete", "Tags")]
    grants.allow(role, "WriteCopies", writes, [f"{to}/*"], because=of_target)
    grants.read_with_key(role, "DecryptVersions", key)
    grants.allow(role, "EncryptCopies", ["kms:Encrypt"], [settings.replicate_to_key])
    raw = bucket.node.default_child
    assert isinstance(raw, s3.CfnBucket)
    raw.replication_configuration = s3.CfnBucket.ReplicationConfigurationProperty(
        role=role.role_arn, rules=[_everything(to, settings.replicate_to_key)]
    )


def _everything(to: str, key: str) -> s3.CfnBucket.ReplicationRuleProperty:
    of = s3.CfnBucket
    return of.ReplicationRuleProperty(
        id="lake",
        priority=0,
        status="Enabled",
        filter=of.ReplicationRuleFilterProperty(prefix=""),
        delete_marker_replication=of.DeleteMarkerReplicationProperty(status="Enabled"),
        source_selection_criteria=of.SourceSelectionCriteriaProperty(
            sse_kms_encrypted_objects=of.SseKmsEncryptedObjectsProperty(status="Enabled")
        ),
        destination=of.ReplicationDestinationProperty(
            bucket=to, encryption_configuration=of.EncryptionConfigurationProperty(replica_kms_key_id=key)
        ),
    )
