"""The settings of a deployment, one declaration each: name, type, default, meaning.

`context` reads them from the CDK's context, and `refusals` says which of them do not fit together.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from forebay.capacity.freshness import seconds_of
from infra.forms import (
    Accounts,
    Bucket,
    Buckets,
    Database,
    Email,
    EnvName,
    Folder,
    FolderOfLake,
    Freshness,
    KeyArn,
    KeyArns,
    Names,
    PolicyArn,
    Prefix,
    Principals,
    QueueArn,
    Release,
    RolePrefix,
    RouteTables,
    SecurityGroups,
    Slack,
    Subnets,
    TableNames,
    TopicArns,
    Url,
    Vpc,
    Window,
    listed,
)

SMALLEST_WORKER = "G.025X"
"""Glue gives it to streaming jobs only. https://docs.aws.amazon.com/glue/latest/dg/add-job.html"""


class Settings(BaseModel):
    """One environment's decisions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: EnvName = Field("dev", description="the environment's name; it is part of every name")
    prefix: Prefix = Field("", description="what every name begins with; empty: forebay-ENV")
    service: str = Field(
        "", description="the declarations: a folder, or a service.toml; empty: the built-in example, game telemetry"
    )

    engine: Literal["glue", "emr-serverless"] = Field(
        "glue", description="the engine of the jobs; infra/README.md says what is proven of each"
    )
    emr_release: Release = Field("emr-spark-8.1.0", description="emr-serverless: its release; Spark 4.1 or newer")
    freshness: Freshness = Field(
        "10 min",
        description="the longest time from a file's arrival to its rows. It decides when runs start and end, and alarms "
        "ring when files take longer; `forebay plan-capacity` shows the price of other values",
    )
    budget_usd_month: int = Field(
        0,
        ge=0,
        description="the most that all of this may cost per month. Ingest runs use at most three quarters of it, even if files "
        "are late. Alarms ring then, at 80 % of it, and when more is expected; 0: no budget",
    )
    worker_type: Literal["G.025X", "G.1X", "G.2X", "G.4X", "G.8X"] = Field(
        "G.1X",
        description="the size of one Glue worker; G.025X, a quarter of a DPU with 4 GB, is only for ingest: upkeep uses G.1X",
    )
    workers: int = Field(
        2,
        ge=2,
        le=100,
        description="the largest number of workers; one is the driver, and auto scaling uses fewer when it can",
    )
    maintenance_window: Window = Field(
        "Sun:2", description="when Glue may restart a continuous run, which it does weekly"
    )
    tables_at_once: int = Field(
        32, ge=1, le=64, description="the number of tables that a batch commits at once; each mostly waits for S3"
    )
    python_modules: str = Field(
        "",
        description="glue: the packages that pip installs when a job starts; empty: our own wheels, without internet. "
        "emr-serverless: the s3:// address of a packed environment",
    )

    plan_compaction_every_minutes: int = Field(
        60,
        ge=5,
        le=1440,
        description="how often to check whether tables have enough small files for a compaction job",
    )

    status_page_every_minutes: int = Field(20, ge=1, le=1440, description="how often the status page is updated")

    landing_bucket: Buckets = Field(
        "",
        description="existing buckets to adopt, comma-separated; empty: one is made. One of the next three says how they "
        "announce files",
    )
    landing_topic: TopicArns = Field(
        "", description="adopted buckets: the SNS topics to which they announce their files, comma-separated"
    )
    landing_eventbridge: bool = Field(
        False, description="adopted buckets: they announce their files to EventBridge, whose rule fills our queue"
    )
    landing_queue: QueueArn = Field(
        "", description="adopted buckets: the existing SQS queue that receives their notifications; none is made"
    )
    landing_dead_queue: QueueArn = Field("", description="where landing_queue moves messages received too often")
    landing_queue_key: KeyArn = Field("", description="the KMS key of landing_queue, if it has one")
    landing_key: KeyArns = Field(
        "", description="the KMS keys of adopted buckets' objects, comma-separated, if they have any"
    )
    producer_accounts: Accounts = Field(
        "",
        description="other AWS accounts that may put files into the landing bucket created here, comma-separated",
    )
    landing_prefix: Folder = Field("in/", description="only files whose keys have this prefix are loaded; empty: all")
    reconcile_below: Folder = Field(
        "",
        description="where the daily search for files that S3 never announced lists keys, such as in/%Y/%m/%d/ to list only "
        "the last days; empty: everything under landing_prefix",
    )
    landing_ia_days: int = Field(
        60,
        ge=30,
        le=3650,
        description="days until a landed file moves to a cheaper storage class, if it is kept for longer",
    )
    keep_landed_days: int = Field(
        400,
        ge=0,
        le=36_500,
        description="days until a landed file is deleted, 15 or more; 0: never. The bucket created here keeps its bytes for "
        "30 more days, as an old version",
    )

    lake_bucket: Bucket = Field("", description="an existing bucket for the lake; empty: one is made")
    lake_prefix: FolderOfLake = Field(
        "",
        description="the lake's folder in its bucket, so that several services can share one lake_bucket; empty: the root",
    )
    data_key: KeyArn = Field(
        "", description="an existing KMS key for queues, topics, landed files, tables and logs; empty: one is made"
    )
    assets_key: KeyArn = Field(
        "", description="the KMS key of the CDK's bucket, if cdk bootstrap was given one; jobs read their code with it"
    )
    database: Database = Field("", description="an existing Glue database for the tables; empty: one is made")
    existing_roles: RolePrefix = Field(
        "",
        description="the prefix of existing roles: jobs and functions run as PREFIXingest, PREFIXstart-ingest and so on, and "
        "no role is created; empty: roles are created",
    )

    vpc_subnets: Subnets = Field(
        "",
        description="private subnets for jobs and functions, each with its zone; empty: they run outside of any VPC",
    )
    vpc_security_groups: SecurityGroups = Field(
        "", description="security groups of jobs and functions; Glue requires one that allows all TCP from itself"
    )
    vpc_endpoints: Vpc = Field(
        "",
        description="the VPC in which endpoints are created, so that its subnets need no internet; empty: they have internet",
    )
    vpc_route_tables: RouteTables = Field(
        "", description="with vpc_endpoints: the route tables of the subnets, which get the route to S3"
    )
    lake_formation: bool = Field(
        False, description="grant the ingest job and the analysts the permissions that they need in Lake Formation"
    )
    analysts: Principals = Field(
        "",
        description="who may assume a role that reads the tables, but not forebay's own; empty: no such role",
    )
    athena: bool = Field(
        True,
        description="analysts get an Athena workgroup, with an encrypted bucket for its results; false: give them your own",
    )
    operators: Principals = Field(
        "",
        description="who may assume a role for all `forebay` commands, the quarantine and the ledger; empty: no such role",
    )
    vault_users: Principals = Field(
        "",
        description="who may assume a role that shows a person's values in the vault, and erases people; empty: no such role",
    )

    log_level: Literal["INFO", "WARN", "ERROR"] = Field(
        "WARN",
        description="the lowest level of Spark's own messages in the jobs' logs; events are always logged",
    )
    log_days: Literal[7, 14, 30, 60, 90, 180, 365] = Field(30, description="days that logs are kept")
    alarm_email: Email = Field(
        "", description="the e-mail address for alarms; empty: subscribe to the alarm topic yourself"
    )
    alarm_url: Url = Field("", description="an https:// address for alarms, such as that of an on-call service")
    alarm_slack: Slack = Field(
        "",
        description="a Slack channel for alarms: WORKSPACE/CHANNEL, by their ids; authorize the workspace by hand",
    )
    runbook_url: Url = Field(
        "",
        description="the address of your runbook, which alarms link to; empty: the dashboard, which shows forebay's",
    )
    quarantine_percent: float = Field(
        5, gt=0, le=100, description="alarm when a larger share of an hour's records was quarantined"
    )

    trend_percent: int = Field(
        50,
        ge=5,
        le=1000,
        description="alarm when the last day was this much slower, or its runs this much more expensive, than the last week",
    )

    watched_tables: Names = Field(
        "",
        description="tables that get rows at all hours, comma-separated: each gets an alarm for missing and for unusual rows",
    )
    stale_table_minutes: int = Field(
        60, ge=5, le=1440, multiple_of=5, description="alarm when a watched table got no rows for this long"
    )
    table_metrics: TableNames = Field(
        "",
        description="tables that get their own metrics, comma-separated, or *; each costs the price of 2 to 12 metrics. "
        "Watched tables always have them, and errors are always published",
    )
    dpu_hour_usd: float = Field(
        0,
        ge=0,
        le=10,
        description="the price of a DPU-hour in your region, so that the dashboard shows the cost of jobs; 0: it does not",
    )

    keep_deleted_days: int = Field(
        0,
        ge=0,
        le=3650,
        description="days for which a deleted object of the lake can be restored, from S3 versions; 0: none",
    )
    replicate_to: Bucket = Field(
        "",
        description="an existing bucket with versioning to which S3 copies the lake, such as one in another region; needs "
        "keep_deleted_days",
    )
    replicate_to_key: KeyArn = Field("", description="the KMS key of replicate_to, in its region")
    permissions_boundary: PolicyArn = Field(
        "", description="the managed policy that limits every role created here; empty: none"
    )
    termination_protection: bool = Field(
        False,
        description="CloudFormation refuses to delete the stack; turn it on after the first deployment, which it would disturb",
    )
    conditional_commits: bool = Field(
        True, description="the lake's bucket policy refuses commits of writers that would overwrite another's"
    )
    delete_data: bool = Field(
        False, description="first of two switches: let a removed stack delete its (emptied) buckets and its keys"
    )
    delete_data_of: str = Field(
        "", description="second of two switches: the prefix whose data may be deleted, such as forebay-dev"
    )

    @property
    def name(self) -> str:
        return self.prefix or f"forebay-{self.env}"

    @property
    def namespace(self) -> str:
        """The namespace of our metrics: each environment of an account has its own."""
        return self.name

    @property
    def catalog(self) -> str:
        """The Glue database of the tables."""
        return self.database or self.name.replace("-", "_")

    @property
    def lake(self) -> str:
        """The place of an adopted lake."""
        return f"{self.lake_bucket}/{self.lake_prefix}"

    @property
    def freshness_s(self) -> int:
        return seconds_of(self.freshness)

    @property
    def watched(self) -> list[str]:
        return listed(self.watched_tables)

    @property
    def measured_tables(self) -> str:
        """As a job's argument."""
        named = listed(self.table_metrics)
        return "*" if "*" in named else ",".join(dict.fromkeys([*self.watched, *named]))

    @property
    def landed_files_move(self) -> bool:
        """To a cheaper storage class, before they are deleted."""
        return not self.keep_landed_days or self.keep_landed_days > self.landing_ia_days

    @property
    def upkeep_worker_type(self) -> str:
        return "G.1X" if self.worker_type == SMALLEST_WORKER else self.worker_type
