"""The vault: a bucket and a key of its own, for what personal values were. Only where a declaration keeps something there.

Both are named as the declarations name them. A key that is declared by its ARN is adopted: its policy is its owner's. The
ingest job may fill the vault: it makes keys, and can decrypt none. `vault_users` may take on the role that can.
"""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from forebay.address import bucket_and_key
from forebay.declaration.privacy import Privacy
from infra import grants
from infra.buckets import private_bucket, removal_of
from infra.keys import Keys
from infra.settings import Settings


class Vault(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        privacy: Privacy,
        keys: Keys,
        access_logs: s3.IBucket,
    ) -> None:
        super().__init__(scope, construct_id)
        name, prefix = bucket_and_key(privacy.vault)
        self.bucket = private_bucket(
            self, "vault", settings=settings, key=keys.data, access_logs=access_logs, bucket_name=name
        )
        self.prefix = f"{prefix}/"
        self.data_key, self.key = keys.data, self._key(settings, privacy.vault_key)

    def _key(self, settings: Settings, declared: str) -> kms.IKey:
        if declared.startswith("arn:"):
            return kms.Key.from_key_arn(self, "Key", declared)
        return kms.Key(
            self,
            "Key",
            alias=declared,
            description=f"{settings.name}: the keys of the vault",
            enable_key_rotation=True,
            removal_policy=removal_of(settings),
        )

    def let_in_job(self, role: iam.IGrantable) -> None:
        """To add rows, and to let those of replaced files leave; nothing that it made can it decrypt again."""
        because = "data files of the vault's table get names of their own"
        deletes = [self.bucket.arn_for_objects(f"{self.prefix}*/_delta_log/*")]
        self._write(role, because, deletes)
        grants.allow(role, "MakeKeysOfVault", ["kms:GenerateDataKey"], [self.key.key_arn])

    def let_in_upkeep(self, role: iam.IGrantable) -> None:
        """To delete rows past their days, and to compact files. It has no permission on the key, so it cannot decrypt."""
        because = "data files of the vault's table get names of their own"
        self._write(role, because, [self.bucket.arn_for_objects(f"{self.prefix}*")])

    def let_in_users(self, role: iam.IGrantable) -> None:
        """To show, to encrypt by a newer key, and to delete."""
        because = "whom the vault is about, and where his rows are, only its table knows"
        objects = self.bucket.arn_for_objects(f"{self.prefix}*")
        self._write(role, because, [objects])
        grants.delete_old_versions(role, "Vault", self.bucket.bucket_arn, objects, because=because)
        grants.use_key(role, "UseDataKey", self.data_key)
        actions = ["kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"]
        grants.allow(role, "OpenKeysOfVault", actions, [self.key.key_arn])

    def _write(self, role: iam.IGrantable, because: str, deletes: list[str]) -> None:
        where = self.bucket.bucket_arn
        grants.write_objects(role, "Vault", where, self.prefix, because=because, deletes=deletes)
