"""An Athena workgroup for analysts, and a bucket for its results.

The workgroup decides where results go and how they are encrypted, whatever a client asks for. Results are copies of rows, which
no erasure reaches: they are deleted after a week.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_athena as athena
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import grants
from infra.buckets import private_bucket, removal_of
from infra.keys import Keys
from infra.lake import Lake
from infra.settings import Settings

RESULTS_DAYS = 7
WITHOUT_RESOURCE = ("athena:ListDataCatalogs", "athena:ListEngineVersions", "athena:ListWorkGroups")
OF_CATALOG = ("GetDataCatalog", "GetDatabase", "GetTableMetadata", "ListDatabases", "ListTableMetadata")
OF_WORKGROUP = (
    *("BatchGetNamedQuery", "BatchGetQueryExecution", "CreateNamedQuery", "DeleteNamedQuery", "GetNamedQuery"),
    *("GetQueryExecution", "GetQueryResults", "GetQueryResultsStream", "GetQueryRuntimeStatistics", "GetWorkGroup"),
    *("ListNamedQueries", "ListQueryExecutions", "StartQueryExecution", "StopQueryExecution", "UpdateNamedQuery"),
)
"""To run queries in one workgroup. https://docs.aws.amazon.com/athena/latest/ug/example-policies-workgroup.html"""


class Queries(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, keys: Keys, access_logs: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self.name, self._key = settings.name, keys.data
        gone = s3.LifecycleRule(id="results", expiration=Duration.days(RESULTS_DAYS))
        self.results = private_bucket(
            self, "results", settings=settings, key=keys.data, access_logs=access_logs, lifecycle_rules=[gone]
        )
        encrypted = athena.CfnWorkGroup.EncryptionConfigurationProperty(
            encryption_option="SSE_KMS", kms_key=keys.data.key_arn
        )
        group = athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=self.name,
            description="Queries of this service's tables",
            recursive_delete_option=settings.delete_data,  # with what people saved there
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=False,
                result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                    output_location=f"s3://{self.results.bucket_name}/", encryption_configuration=encrypted
                ),
            ),
        )
        group.apply_removal_policy(removal_of(settings))

    def let_in(self, role: iam.Role, lake: Lake) -> None:
        """Athena acts with the permissions of the person who runs the query. It looks up `default`, too, before any other
        database.
        https://docs.aws.amazon.com/athena/latest/ug/fine-grained-access-to-glue-resources.html"""
        group, catalog = (
            grants.arn("athena", f"workgroup/{self.name}"),
            grants.arn("athena", "datacatalog/AwsDataCatalog"),
        )
        grants.allow(role, "Query", [f"athena:{action}" for action in OF_WORKGROUP], [group])
        grants.allow(role, "LookAtCatalog", [f"athena:{action}" for action in OF_CATALOG], [catalog])
        grants.allow(role, "FindWorkgroup", WITHOUT_RESOURCE, ["*"], because="these actions know no resource")
        default = [grants.arn("glue", "catalog"), grants.arn("glue", "database/default")]
        grants.allow(role, "LookUpDefault", ["glue:GetDatabase"], default)
        of_objects = ("GetObject", "PutObject", "AbortMultipartUpload", "ListMultipartUploadParts")
        of_bucket = ("GetBucketLocation", "ListBucket", "ListBucketMultipartUploads")
        because = "Athena names the results"
        objects, bucket = [self.results.arn_for_objects("*")], self.results.bucket_arn
        grants.allow(role, "KeepResults", [f"s3:{action}" for action in of_objects], objects, because=because)
        grants.allow(role, "FindResults", [f"s3:{action}" for action in of_bucket], [bucket])
        grants.allow(role, "FindLake", ["s3:GetBucketLocation"], [lake.bucket.bucket_arn])
        grants.allow(role, "EncryptResults", ["kms:GenerateDataKey"], [self._key.key_arn])
