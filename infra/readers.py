"""Roles for people: the analyst reads tables, the operator runs the commands of `forebay`, and one opens the vault. And Lake
Formation's grants.

A setting names who may assume a role. Without Lake Formation, IAM alone decides. With it, both must allow a read.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lakeformation as lf
from aws_cdk import aws_lambda as lam
from constructs import Construct

from forebay.address import is_s3
from forebay.lake.layout import OWN
from infra import grants
from infra.forms import listed
from infra.foundation import Foundation
from infra.jobs.job import Job
from infra.looks import look_at_parts


def analyst(scope: Construct, on: Foundation) -> iam.Role | None:
    """Reads tables, through Athena or directly, but not the ledger, the quarantine or parked records; and no lakes in other
    folders of the bucket."""
    if not on.settings.analysts:
        return None
    role = _role(scope, on, "analyst", on.settings.analysts)
    grants.read_tables(role, on.lake)
    role.add_to_policy(
        iam.PolicyStatement(
            sid="NothingOfForebaysOwn",
            effect=iam.Effect.DENY,
            actions=["s3:GetObject"],
            resources=[on.lake.arn_of(f"{OWN}*"), on.lake.arn_of(f"*/{OWN}*")],
        )
    )
    grants.look_up_tables(role, on.lake.catalog)
    grants.read_with_key(role, "ReadTablesKey", on.keys.data)
    if on.queries is not None:
        on.queries.let_in(role, on.lake)
    if on.settings.lake_formation:
        because = "Lake Formation decides by the table, and knows no resources here"
        grants.allow(role, "AskLakeFormation", ["lakeformation:GetDataAccess"], ["*"], because=because)
    return role


def operator(scope: Construct, on: Foundation, called: Sequence[lam.IFunction], jobs: Sequence[Job]) -> iam.Role | None:
    """Reads what landed, the lake and its logs; changes tables as retry, replay, rollback and drop do; moves messages; starts
    and ends jobs. `called` are the functions that a person calls."""
    if not on.settings.operators:
        return None
    role = _role(scope, on, "operator", on.settings.operators)
    _change_tables(role, on)
    grants.remove_entries_of_tables(role, on.lake.catalog)
    remove_loaded_files(role, on)
    grants.tell_of_periods(role)
    grants.take_messages(role, *on.landing.queues, on.untold, more=["sqs:GetQueueUrl"])
    grants.read_page_and_keep_lists(role, on.lake.artefacts.bucket_arn)
    grants.send_messages(role, on.landing.queue)
    grants.use_key(role, "UseDataKey", on.keys.data)
    grants.use_key_of_queue(role, on.settings.landing_queue_key)
    grants.allow(role, "CallFunctions", ["lambda:InvokeFunction"], [function.function_arn for function in called])
    on.engine.may_end(role, *jobs)
    look_at_parts(role, on, jobs)
    return role


def vault_user(scope: Construct, on: Foundation) -> iam.Role | None:
    """Reads and empties the vault, and looks up in the lake where its values came from. Nobody else can erase people where
    there is a vault: so the role may change tables and landed files, too, as an operator does."""
    if on.vault is None or not on.settings.vault_users:
        return None
    role = _role(scope, on, "vault", on.settings.vault_users, "VaultUser")
    on.vault.let_in_users(role)
    _change_tables(role, on)
    return role


def _change_tables(role: iam.Role, on: Foundation) -> None:
    """And read what landed; and erase people, where a subject is declared."""
    buckets, prefix, keys = on.landing.bucket_arns, on.settings.landing_prefix, listed(on.settings.landing_key)
    grants.write_tables(role, on.lake)
    grants.read_landed_files(role, buckets, prefix)
    grants.find_landed_files(role, buckets)
    read_moved_files(role, on)
    grants.use_keys_of_landed_files(role, keys)
    read_secret(role, on)
    if on.service.subject:
        grants.delete_old_versions_of_tables(role, on.lake)
    if on.service.privacy is not None and on.service.privacy.landing != "list":
        grants.clear_landed_files(role, buckets, prefix, keys)


def remove_loaded_files(role: iam.IRole, on: Foundation) -> None:
    """As `after_load` declares."""
    rule, buckets, prefix = on.service.after_load, on.landing.bucket_arns, on.settings.landing_prefix
    if rule is None:
        return
    grants.delete_landed_files(role, buckets, prefix)
    if rule.move:
        grants.archive_landed_files(role, rule.move, buckets, prefix, listed(on.settings.landing_key))


def read_moved_files(role: iam.IRole, on: Foundation) -> None:
    """As a replay does, once `after_load` has moved them."""
    grants.read_archives(role, on.service.archives)


def read_secret(role: iam.IRole, on: Foundation) -> None:
    """Where tokens are made, or looked for."""
    if on.service.privacy is not None and is_s3(on.service.privacy.secret):
        grants.read_secret(role, on.service.privacy.secret)


def grant_tables(
    scope: Construct, on: Foundation, ingest: iam.IRole, analyst: iam.IRole | None, operator: iam.IRole | None
) -> None:
    """In the account's catalog. Whoever deploys must be allowed to grant, as an administrator of Lake Formation is."""
    grants_made, catalog, name = Construct(scope, "LakeFormation"), Aws.ACCOUNT_ID, on.lake.catalog
    database = lf.CfnPrincipalPermissions.ResourceProperty(
        database=lf.CfnPrincipalPermissions.DatabaseResourceProperty(catalog_id=catalog, name=name)
    )
    tables = lf.CfnPrincipalPermissions.ResourceProperty(
        table=lf.CfnPrincipalPermissions.TableResourceProperty(
            catalog_id=catalog, database_name=name, table_wildcard={}
        )
    )
    wanted = [(ingest, "Ingest", ["CREATE_TABLE", "DESCRIBE"], ["ALTER", "DESCRIBE"])]
    if analyst is not None:
        wanted.append((analyst, "Analyst", ["DESCRIBE"], ["DESCRIBE", "SELECT"]))
    if operator is not None:
        wanted.append((operator, "Operator", ["DESCRIBE"], ["DESCRIBE", "DROP"]))
    for role, who, of_database, of_tables in wanted:
        for what, resource, permissions in (("Database", database, of_database), ("Tables", tables, of_tables)):
            granted = lf.CfnPrincipalPermissions(
                grants_made,
                f"{who}{what}",
                catalog=catalog,
                principal=lf.CfnPrincipalPermissions.DataLakePrincipalProperty(
                    data_lake_principal_identifier=role.role_arn
                ),
                resource=resource,
                permissions=permissions,
                permissions_with_grant_option=[],
            )
            granted.node.add_dependency(on.lake)


def _role(scope: Construct, on: Foundation, name: str, who: str, construct: str = "") -> iam.Role:
    """An account has a role's name once, whatever the region."""
    return iam.Role(
        scope,
        construct or name.capitalize(),
        role_name=f"{on.settings.name}-{name}-{Aws.REGION}",
        assumed_by=iam.CompositePrincipal(*map(iam.ArnPrincipal, listed(who))),
    )
