"""What a person may decide about a deployment, one declaration each: name, type, default, meaning.

Enters: CDK context, from `cdk.json` and `-c name=value`. `environments` holds a group of settings for each environment, and
`-c env=NAME` picks one. A setting outside the groups holds for all of them, and one on the command line wins. Leaves: a
frozen, checked `Settings`. Unknown names and bad values are refused at synth, all together (`InvalidConfiguration`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from forebay.errors import InvalidConfiguration, Problem
from forebay.settings import problems_of

__all__ = ["ENVIRONMENT_KEYS", "SMALLEST_WORKER", "Settings", "engine_in", "place_of_declarations"]

ENVIRONMENT_KEYS = ("env", "environments")
LONGEST_BUCKET_NAME = 63
SMALLEST_WORKER = "G.025X"
"""Glue gives it to streaming jobs only. https://docs.aws.amazon.com/glue/latest/dg/add-job.html"""
LONGEST_REST = len("-artefacts-123456789012-ap-southeast-2")
_OF_THE_CDK = re.compile(r"(@|aws:|aws-|cdk-|.*:account=|acknowledged-issue-numbers$)")


def _words(pattern: str, said: str) -> Any:
    def check(value: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"must be {said}")
        return value

    return BeforeValidator(check)


EnvName = Annotated[str, _words(r"[a-z][a-z0-9]{0,9}", "a small letter, then up to 9 small letters or digits")]
Prefix = Annotated[
    str, _words(r"(|[a-z][a-z0-9-]{0,23}[a-z0-9])", "3 to 25 small letters, digits or -, such as forebay-eu")
]
Bucket = Annotated[
    str,
    _words(
        r"(|(?!xn--|sthree-|amzn-s3-demo-|.*\.\.|\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!-s3alias)(?<!--ol-s3))",
        "a bucket's name",
    ),
]
TopicArn = Annotated[str, _words(r"(|arn:[\w-]+:sns:[\w-]+:\d{12}:[\w.-]+)", "the ARN of an SNS topic")]
KeyArn = Annotated[str, _words(r"(|arn:[\w-]+:kms:[\w-]+:\d{12}:key/[\w-]+)", "the ARN of a KMS key")]
PolicyArn = Annotated[
    str, _words(r"(|arn:[\w-]+:iam::(\d{12}|aws):policy/[\w+=,.@/-]+)", "the ARN of a managed policy")
]
Release = Annotated[str, _words(r"emr-[a-z0-9-]+\.\d+\.\d+", "a release of EMR, such as emr-spark-8.1.0")]
Folder = Annotated[str, _words(r"(|[^/].*/)", "empty, or a key prefix that ends with /, such as in/")]
Email = Annotated[str, _words(r"(|[^@\s]+@[^@\s]+)", "an e-mail address")]
Url = Annotated[str, _words(r"(|https://[^\s/]+\S*)", "an address that begins with https://")]
Slack = Annotated[str, _words(r"(|T[A-Z0-9]{7,}/[CG][A-Z0-9]{7,})", "such as T01234567/C0123456789")]
Names = Annotated[str, _words(r"(|\w+(,\w+)*)", "names with commas between, such as pixelfarm,voxelkart")]
TableNames = Annotated[str, _words(r"(|\*|\w+(,\w+)*)", "names with commas between, or *")]
Window = Annotated[
    str, _words(r"(|(Mon|Tue|Wed|Thu|Fri|Sat|Sun):([0-9]|1[0-9]|2[0-3]))", "a day and hour in UTC, such as Sun:2")
]


class Settings(BaseModel):
    """One environment's decisions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: EnvName = Field("dev", description="the environment's name; it is part of every name")
    prefix: Prefix = Field("", description="what every name begins with; empty: forebay-<env>")
    service: str = Field(
        "", description="the declarations: a folder, or a service.toml; empty: the built-in example, game telemetry"
    )

    engine: Literal["glue", "emr-serverless"] = Field(
        "glue", description="what runs the jobs; what is proven of each is at the end of infra/README.md"
    )
    emr_release: Release = Field("emr-spark-8.1.0", description="emr-serverless: its release; Spark 4.1 or newer")
    mode: Literal["continuous", "drain", "auto"] = Field(
        "continuous",
        description="continuous: the job runs on; drain: it is started when files wait and ends when none do; "
        "auto: it drains, and stays on while its runs would fill most of an hour",
    )
    stay_on_at_percent: int = Field(
        50, ge=10, le=100, description="auto: so much of the last hour filled by runs makes the next one stay on"
    )
    leave_after_minutes: int = Field(
        30, ge=5, le=1440, description="auto: a run that stayed on ends when no batch came for so long"
    )
    start_every_minutes: int = Field(
        5, ge=1, le=59, description="how often to look whether the ingest job should run and does not"
    )
    drain_at_messages: int = Field(
        500, ge=1, description="drain and auto: this many waiting messages start the job at once, without the next look"
    )
    worker_type: Literal["G.025X", "G.1X", "G.2X", "G.4X", "G.8X"] = Field(
        "G.1X",
        description="the size of one Glue worker; G.025X, a quarter of a DPU with 4 GB, is for ingest alone: upkeep takes G.1X",
    )
    workers: int = Field(4, ge=2, le=100, description="Glue workers at most; auto scaling uses fewer when it can")
    maintenance_window: Window = Field(
        "Sun:2", description="when Glue may restart the continuous job, which it does weekly"
    )
    trigger_s: int = Field(60, ge=0, le=3600, description="seconds between batches of the continuous job")
    max_files_per_batch: int = Field(2000, ge=1, le=100_000, description="files that one batch takes at most")
    tables_at_once: int = Field(
        32, ge=1, le=64, description="tables that a batch commits at the same time; each waits for S3 most of its time"
    )
    python_modules: str = Field(
        "",
        description="glue: what pip installs when a job starts; empty: our own wheels, without internet. emr-serverless: the "
        "s3:// place of a packed environment",
    )

    plan_compaction_every_minutes: int = Field(
        60,
        ge=5,
        le=1440,
        description="how often to look whether tables have small files that are worth a compaction job",
    )

    status_page_every_minutes: int = Field(15, ge=1, le=1440, description="how often the status page is written anew")

    landing_bucket: Bucket = Field("", description="an existing bucket to adopt; empty: one is made")
    landing_topic: TopicArn = Field(
        "", description="the topic that an adopted bucket announces its files to; needed with landing_bucket"
    )
    landing_key: KeyArn = Field("", description="the KMS key of an adopted bucket's objects, if it has one")
    landing_prefix: Folder = Field("in/", description="only keys that begin so are files to load; empty: all")
    reconcile_below: Folder = Field(
        "",
        description="where the daily search for files that S3 never announced lists; such as in/%Y/%m/%d/, so that it lists "
        "the last days alone; empty: all below landing_prefix",
    )
    landing_ia_days: int = Field(
        60, ge=30, le=3650, description="days until a landed file moves to a cheaper storage class"
    )
    keep_landed_days: int = Field(400, ge=0, le=36_500, description="days until a landed file is deleted; 0: never")

    log_days: Literal[7, 14, 30, 60, 90, 180, 365] = Field(30, description="days that logs are kept")
    alarm_email: Email = Field(
        "", description="the e-mail address for alarms; empty: subscribe to the alarm topic yourself"
    )
    alarm_url: Url = Field("", description="an https:// address for alarms, such as that of an on-call service")
    alarm_slack: Slack = Field(
        "",
        description="a Slack channel for alarms: <workspace>/<channel>, by their ids; authorize the workspace by hand",
    )
    runbook_url: str = Field(
        "", description="where the runbook is; empty: infra/README.md of the code that was deployed"
    )
    freshness_minutes: int = Field(
        10, ge=1, le=1440, description="alarm when files wait longer than this until they are rows"
    )
    silence_minutes: int = Field(15, ge=5, le=1440, description="alarm when files wait and no batch ends for so long")
    quarantine_percent: float = Field(
        5, gt=0, le=100, description="alarm when a larger share of an hour's records was quarantined"
    )

    trend_percent: int = Field(
        50,
        ge=5,
        le=1000,
        description="alarm when the last day was so much slower, or its runs dearer, than the last week",
    )

    watched_tables: Names = Field(
        "",
        description="tables that get rows at all hours, commas between: an alarm for each when none come, or strangely many",
    )
    stale_table_minutes: int = Field(
        60, ge=5, le=1440, multiple_of=5, description="alarm when a watched table got no rows for so long"
    )
    table_metrics: TableNames = Field(
        "",
        description="tables whose own numbers become metrics, commas between, or *; each costs the price of 2 to 12 metrics. "
        "Watched tables have theirs, and errors are always told",
    )
    dpu_hour_usd: float = Field(
        0,
        ge=0,
        le=10,
        description="the price of a DPU-hour in your region: the dashboard then tells what jobs cost; 0: it does not",
    )
    monthly_budget_usd: int = Field(
        0, ge=0, description="alarm when all of this costs more in a month, or will; 0: no budget"
    )

    keep_deleted_days: int = Field(
        0,
        ge=0,
        le=3650,
        description="days for which a deleted object of the lake can be restored, by versions; 0: none",
    )
    permissions_boundary: PolicyArn = Field(
        "", description="the managed policy that bounds what every role made here may do; empty: none"
    )
    termination_protection: bool = Field(
        False,
        description="CloudFormation refuses to delete the stack; turn it on after the first deployment, which it would hinder",
    )
    conditional_commits: bool = Field(
        True, description="the lake's bucket policy refuses commits of writers that would overwrite another's"
    )
    delete_data: bool = Field(
        False, description="first of two switches: let a removed stack delete its (emptied) buckets and its keys"
    )
    delete_data_of: str = Field(
        "", description="second of two switches: the prefix whose data may go, spelled out, such as forebay-dev"
    )

    @property
    def name(self) -> str:
        return self.prefix or f"forebay-{self.env}"

    @property
    def namespace(self) -> str:
        """Of our metrics: two environments of one account have each their own."""
        return self.name

    @property
    def watched(self) -> list[str]:
        return [name for name in self.watched_tables.split(",") if name]

    @property
    def measured_tables(self) -> str:
        """As a job is told of them."""
        named = [name for name in self.table_metrics.split(",") if name]
        return "*" if "*" in named else ",".join(dict.fromkeys([*self.watched, *named]))

    @property
    def upkeep_worker_type(self) -> str:
        return "G.1X" if self.worker_type == SMALLEST_WORKER else self.worker_type

    @property
    def data_may_go(self) -> bool:
        return self.delete_data

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Self:
        """From all of an app's context; what belongs to the CDK itself is passed over."""
        ours = {key: value for key, value in context.items() if not _OF_THE_CDK.match(key)}
        groups = ours.pop("environments", {})
        problems = list(_unusable_groups(groups))
        if problems:
            raise InvalidConfiguration(problems)
        env = str(ours.get("env", "dev"))
        if groups and env not in groups:
            raise InvalidConfiguration.one(
                "env", f"there is no environment {env!r}", f"declared are {', '.join(sorted(groups))}"
            )
        problems += _unknown_names_elsewhere(cls, groups, env)
        try:
            settings = cls(**{**groups.get(env, {}), **ours})
        except ValidationError as refused:
            problems += _explained(cls, refused)
        if problems:
            raise InvalidConfiguration(problems)
        return settings

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if problems := list(self._do_not_belong_together()):
            raise ValueError("\n".join(problems))
        return self

    def _do_not_belong_together(self) -> Iterator[str]:
        if bool(self.landing_bucket) != bool(self.landing_topic):
            yield "landing_bucket and landing_topic are adopted together: give both, or neither"
        if self.landing_bucket.startswith(f"{self.name}-"):
            yield f"landing_bucket {self.landing_bucket!r} is named as the buckets that are made here: that name is taken"
        if self.landing_key and not self.landing_bucket:
            yield "landing_key is for an adopted bucket: give landing_bucket, too"
        if self.engine == "emr-serverless":
            yield from self._what_emr_lacks()
        if self.reconcile_below and not self.reconcile_below.startswith(self.landing_prefix):
            yield f"reconcile_below must begin with landing_prefix, {self.landing_prefix}"
        if self.keep_landed_days and self.keep_landed_days <= self.landing_ia_days:
            yield "keep_landed_days must be more than landing_ia_days, or 0"
        if self.delete_data != bool(self.delete_data_of):
            yield f"data goes only when delete_data is true and delete_data_of is {self.name}"
        if self.delete_data and self.termination_protection:
            yield "delete_data and termination_protection contradict each other: give one of them"
        if self.delete_data_of not in ("", self.name):
            yield f"delete_data_of is {self.delete_data_of!r}, but this deployment is {self.name!r}"
        if len(self.name) + LONGEST_REST > LONGEST_BUCKET_NAME:
            yield f"the prefix {self.name!r} is too long for the names of buckets"

    def _what_emr_lacks(self) -> Iterator[str]:
        if self.worker_type == SMALLEST_WORKER:
            yield f"worker_type {SMALLEST_WORKER} is Glue's alone: engine emr-serverless needs G.1X or larger"
        if self.worker_type == "G.8X":
            yield "worker_type G.8X has 32 vCPUs, and a worker of engine emr-serverless at most 16: G.4X or smaller"
        if not (self.python_modules.startswith("s3://") and self.python_modules.endswith(".tar.gz")):
            yield (
                "engine emr-serverless installs no modules: python_modules must be the s3:// place of a packed virtual "
                "environment, .tar.gz, with boto3, pydantic and pyarrow"
            )


def place_of_declarations(context: Mapping[str, Any]) -> str:
    """Where the declarations are, whatever else is wrong with the settings."""
    return _said_in(context, "service")


def engine_in(context: Mapping[str, Any]) -> str:
    """The engine, whatever else is wrong; one that there is not is for `Settings` to name."""
    return _said_in(context, "engine") or str(Settings.model_fields["engine"].default)


def _said_in(context: Mapping[str, Any], name: str) -> str:
    groups = context.get("environments", {})
    group = groups.get(str(context.get("env", "dev")), {}) if isinstance(groups, Mapping) else {}
    return str(context.get(name, group.get(name, "") if isinstance(group, Mapping) else ""))


def _unusable_groups(groups: Any) -> Iterator[Problem]:
    if not isinstance(groups, Mapping):
        yield Problem("environments", "is not a group of settings by environment", 'such as {"dev": {}, "prod": {}}')
        return
    for name, group in groups.items():
        if not isinstance(group, Mapping):
            yield Problem(f"environments.{name}", "is not a group of settings", 'such as {"workers": 10}')
        elif "env" in group:
            yield Problem(f"environments.{name}.env", "names itself twice", "remove it")


def _unknown_names_elsewhere(cls: type[Settings], groups: Mapping[str, Any], env: str) -> Iterator[Problem]:
    """A typo in the group of prod should show when dev is deployed, not on the day of prod."""
    for name, group in groups.items():
        for key in group if name != env else ():
            if key not in cls.model_fields:
                yield Problem(f"environments.{name}.{key}", "is unknown", _near(cls, key))


def _explained(cls: type[Settings], refused: ValidationError) -> Iterator[Problem]:
    for problem in problems_of(refused, lambda path: path or "context"):
        if problem.what == "is unknown":
            yield Problem(problem.where, problem.what, _near(cls, problem.where))
        elif problem.where == "context":
            yield problem
        else:
            yield Problem(problem.where, problem.what, cls.model_fields[problem.where].description or "")


def _near(cls: type[Settings], key: str) -> str:
    near = difflib.get_close_matches(key, cls.model_fields, 1)
    return f"did you mean {near[0]}?" if near else "infra/README.md lists the settings"
