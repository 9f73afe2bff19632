"""The buckets of the tables: the lake, the jobs' own scratch space, and the catalog's database.

The lake has no lifecycle rule that deletes or moves a current object: only a Delta log knows which file is live.
"""

from __future__ import annotations

from aws_cdk import Aws, Duration
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from forebay.lake.layout import CHECKPOINT
from infra.buckets import private_bucket
from infra.keys import Keys
from infra.settings import Settings

COMMITS = "*/_delta_log/" + "?" * 20 + ".json"
SCRATCH = "scratch/"
LISTS = "announce/"
"""In the artefacts bucket: lists of files to announce again."""
PAGE = "status/index.html"
SPARK_EVENTS = "spark-events/"
DECLARATIONS = "declarations"


class Lake(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, keys: Keys, access_logs: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = self._bucket(settings, keys.data, access_logs)
        self.artefacts = private_bucket(
            self,
            "artefacts",
            settings=settings,
            key=keys.data,
            access_logs=access_logs,
            lifecycle_rules=[
                s3.LifecycleRule(id="scratch", prefix=SCRATCH, expiration=Duration.days(7)),
                s3.LifecycleRule(id="spark-events", prefix=SPARK_EVENTS, expiration=Duration.days(settings.log_days)),
            ],
        )
        self.prefix = settings.lake_prefix
        self.catalog = settings.catalog
        if not settings.database:
            self._make_database()

    def _bucket(self, settings: Settings, key: kms.IKey, access_logs: s3.IBucket) -> s3.IBucket:
        """The policy of an adopted one is its owner's; infra/README.md has the statement that belongs into it."""
        if settings.lake_bucket:
            return s3.Bucket.from_bucket_name(self, "Lake", settings.lake_bucket)
        bucket = private_bucket(
            self,
            "lake",
            settings=settings,
            key=key,
            access_logs=access_logs,
            versioned=bool(settings.keep_deleted_days),
            lifecycle_rules=[_deleted_for_good(settings.keep_deleted_days)],
        )
        if settings.conditional_commits:
            bucket.add_to_resource_policy(_no_commit_over_another(bucket))
        return bucket

    def _make_database(self) -> None:
        glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self.catalog,
                description="The tables of forebay",
                location_uri=f"{self.uri}/",
            ),
        )

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket.bucket_name}/{self.prefix}".rstrip("/")

    def arn_of(self, key: str) -> str:
        """The ARN of objects, by their path in the lake."""
        return self.bucket.arn_for_objects(f"{self.prefix}{key}")

    @property
    def declarations(self) -> str:
        """The folder that `forebay tables push` writes and jobs follow."""
        return f"{self.uri}/{DECLARATIONS}"

    @property
    def checkpoint(self) -> str:
        """The folder of the progress of the ingest job."""
        return f"{self.uri}/{CHECKPOINT}"


def _no_commit_over_another(bucket: s3.IBucket) -> iam.PolicyStatement:
    """A writer without our log store would put its commit over another's, and nobody would notice. Parts of a multipart
    upload cannot carry the condition; its completion can, and must.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html"""
    return iam.PolicyStatement(
        sid="CommitsAreConditional",
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=["s3:PutObject"],
        resources=[bucket.arn_for_objects(COMMITS)],
        conditions={"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}},
    )


def _deleted_for_good(after_days: int) -> s3.LifecycleRule:
    """For objects that were deleted or replaced. A Delta log never needs one of them. Without versions the rule has nothing to
    do; after `keep_deleted_days` was taken back, it deletes those that S3 still has."""
    days = Duration.days(after_days or 1)
    return s3.LifecycleRule(id="deleted", noncurrent_version_expiration=days, expired_object_delete_marker=True)
