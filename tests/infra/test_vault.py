"""The vault is deployed where a declaration keeps something there: whoever fills it cannot open it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.infra.synthesized import Synthesized

BUCKET = re.compile("'Vault[0-9A-F]{8}'")


def rights(stack: Synthesized, role: str) -> Iterator[tuple[str, str]]:
    """Actions of a role, and what they are allowed on."""
    for name, policy in stack.of("IAM::Policy").items():
        if name.startswith(role):
            for one in policy["Properties"]["PolicyDocument"]["Statement"]:
                if one["Effect"] == "Allow":
                    for action in _listed(one["Action"]):
                        for resource in _listed(one["Resource"]):
                            yield action, str(resource)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_vault_has_a_bucket_and_a_key_as_declared(auto: Synthesized) -> None:
    (bucket,) = [one for name, one in auto.of("S3::Bucket").items() if name.startswith("Vault")]
    assert bucket["Properties"]["BucketName"] == "studio-vault"
    assert "VersioningConfiguration" not in bucket["Properties"]
    assert {"alias/studio-vault"} < {one["Properties"]["AliasName"] for one in auto.of("KMS::Alias").values()}


def test_the_job_makes_keys_and_only_the_vaults_users_decrypt_with_them(auto: Synthesized) -> None:
    of_roles = {name.partition("DefaultPolicy")[0]: set(rights(auto, name)) for name in auto.of("IAM::Policy")}
    on_key = {role: {action for action, on in found if "VaultKey" in on} for role, found in of_roles.items()}
    assert {role: found for role, found in on_key.items() if found} == {
        "IngestRole": {"kms:GenerateDataKey"},
        "VaultUser": {"kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"},
        "Operator": {"kms:DescribeKey", "kms:GetKeyPolicy"},  # to see whether the key is enabled
    }
    about = {"s3:GetBucketVersioning", "s3:GetLifecycleConfiguration"}  # the doctor, as an operator
    in_bucket = {
        role
        for role, found in of_roles.items()
        if any(BUCKET.search(on) and action not in about for action, on in found)
    }
    assert in_bucket == {"IngestRole", "MaintainRole", "VaultUser"}
    of_secret = {role for role, found in of_roles.items() if any("studio-secrets/tokens" in on for _, on in found)}
    assert of_secret == {"IngestRole", "MaintainRole", "VaultUser", "Operator"}


def test_an_analyst_reads_objects_of_the_lake_alone_and_looks_up_tables(auto: Synthesized) -> None:
    """No vault, no secret, nothing that landed, no log, no metric, no page, no code. Only query results are written."""
    found = {one for one in rights(auto, "Analyst") if not one[0].startswith(("glue:Get", "athena:"))}
    of_lake = {action for action, on in found if re.search("'Lake[0-9A-F]{8}'", on)}
    assert of_lake == {"s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation"}
    elsewhere = {on for action, on in found if action.startswith("s3:") and not re.search("'Lake[0-9A-F]{8}'", on)}
    assert elsewhere
    assert all(re.search("'QueriesResults[0-9A-F]{8}'", on) for on in elsewhere)
    assert {action for action, _ in found if not action.startswith("s3:")} == {"kms:Decrypt", "kms:GenerateDataKey"}
    assert not [on for action, on in found if action.startswith("kms:") and "KeysData" not in on]


def test_who_erases_persons_may_clear_what_landed_where_that_is_declared(auto: Synthesized) -> None:
    wanted = {"s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"}
    of_operator = {action for action, on in rights(auto, "Operator") if "-landing-" in on}
    assert wanted <= of_operator
    assert not wanted & {action for action, on in rights(auto, "IngestRole") if "-landing-" in on}


def test_the_job_deletes_nothing_of_the_vault_but_what_a_checkpoint_makes_superfluous(auto: Synthesized) -> None:
    deletes = [on for action, on in rights(auto, "IngestRole") if action == "s3:DeleteObject" and BUCKET.search(on)]
    assert len(deletes) == 1
    assert "shop/*/_delta_log/*" in deletes[0]


def test_who_makes_old_files_go_may_delete_old_versions_and_nobody_else(auto: Synthesized) -> None:
    on_lake, on_vault = re.compile("'Lake[0-9A-F]{8}'"), BUCKET
    for action in ("s3:ListBucketVersions", "s3:GetObjectVersion", "s3:DeleteObjectVersion"):
        who = {
            where.pattern: {
                name.partition("DefaultPolicy")[0]
                for name in auto.of("IAM::Policy")
                for one, on in rights(auto, name)
                if one == action and where.search(on)
            }
            for where in (on_lake, on_vault)
        }
        assert who == {on_lake.pattern: {"MaintainRole", "Operator", "VaultUser"}, on_vault.pattern: {"VaultUser"}}


def test_without_a_subject_nobody_may_delete_old_versions_of_the_lake(chosen: Synthesized) -> None:
    found = {action for name in chosen.of("IAM::Policy") for action, _ in rights(chosen, name)}
    assert "s3:DeleteObjectVersion" not in found
