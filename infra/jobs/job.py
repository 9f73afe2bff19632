"""One job: its definition, its role with the permissions that every job needs, and its logs.

The Spark settings are those of `forebay.spark.session.job_settings()`. Whatever engine runs the job, it is defined here once,
with arguments under Glue's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from forebay.spark.session import job_settings
from infra import grants
from infra.engines import Definition
from infra.forms import listed
from infra.lake import SCRATCH, SPARK_EVENTS
from infra.logs import kept_for
from infra.principals import TRUST, conditions

if TYPE_CHECKING:
    from infra.foundation import Foundation

SCRIPTS = Path(__file__).resolve().parents[2] / "glue_jobs"


@dataclass(frozen=True)
class Work:
    """The differences between jobs. `minutes_at_most` of None: the job is continuous."""

    name: str
    command: str
    workers: int
    arguments: dict[str, str]
    minutes_at_most: int | None = None


class Job(Construct):
    def __init__(self, scope: Construct, on: Foundation, work: Work) -> None:
        super().__init__(scope, work.name.capitalize())
        self.name = f"{on.settings.name}-{work.name}"
        self.script = assets.Asset(self, "Script", path=str(SCRIPTS / f"{work.name}.py"))
        prefix = f"/{on.settings.name}/{work.name}"
        self.log_groups = [self._log_group(on, f"{prefix}/{kind}") for kind in on.engine.logs]
        trusted = conditions(on.engine.principal, TRUST, StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID})
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal(on.engine.principal, conditions=trusted))
        definition = Definition(
            name=self.name,
            role=self.role,
            command=work.command,
            script=self.script.s3_object_url,
            arguments={**_of_every_job(on, prefix), **work.arguments},
            workers=work.workers,
            timeout=work.minutes_at_most,
        )
        self.resource = on.engine.define(self, definition)
        # A run may begin as soon as the job is there.
        self.resource.node.add_dependency(self.role)
        self._grant(on)

    def _log_group(self, on: Foundation, name: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            f"{name.rpartition('/')[2].capitalize()}Log",
            log_group_name=name,
            retention=kept_for(on.settings.log_days),
            encryption_key=on.keys.data,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _grant(self, on: Foundation) -> None:
        for prefix in (SCRATCH, SPARK_EVENTS):
            sid = "".join(word.capitalize() for word in prefix.strip("/").split("-"))
            because = "Spark names what it leaves there"
            grants.write_objects(self.role, sid, on.lake.artefacts.bucket_arn, prefix, because=because)
        grants.use_key(self.role, "UseDataKey", on.keys.data)
        grants.read_assets(self.role, self.script.bucket, self.script.s3_object_key.rpartition("/")[0])
        if on.settings.assets_key:
            grants.allow(self.role, "ReadCodeKey", ["kms:Decrypt"], [on.settings.assets_key])
        on.engine.may_write_logs(self.role, [group.log_group_arn for group in self.log_groups])
        grants.publish_metrics(self.role, on.settings.namespace)
        modules = [one.removeprefix("s3://") for one in listed(on.settings.python_modules) if one.startswith("s3://")]
        if modules:
            places = [f"arn:{Aws.PARTITION}:s3:::{place}" for place in modules]
            grants.allow(self.role, "ReadModules", ["s3:GetObject"], places)


def _of_every_job(on: Foundation, log_prefix: str) -> dict[str, str]:
    artefacts = f"s3://{on.lake.artefacts.bucket_name}"
    return {
        "--lake": on.lake.uri,
        "--service": on.lake.declarations,
        "--metrics": f"cloudwatch:{on.settings.namespace}",
        **({"--metrics_of_tables": tables} if (tables := on.settings.measured_tables) else {}),
        "--datalake-formats": "delta",
        "--conf": conf_argument({**job_settings(), **log_settings(on.settings.log_level)}),
        **on.code.arguments,
        **(
            {"--additional-python-modules": on.settings.python_modules}
            if on.settings.python_modules
            else on.code.packages
        ),
        "--enable-auto-scaling": "true",
        "--custom-logGroup-prefix": log_prefix,
        "--enable-spark-ui": "true",
        "--spark-event-logs-path": f"{artefacts}/{SPARK_EVENTS}",
        "--TempDir": f"{artefacts}/{SCRATCH}",
    }


def log_settings(level: str) -> dict[str, str]:
    """At INFO Spark writes about every task of every batch, and CloudWatch bills each byte."""
    return {"spark.log.level": level, "spark.executor.syncLogLevel.enabled": "true"}


def conf_argument(settings: dict[str, str]) -> str:
    """Glue takes one --conf; more are written into its value."""
    return " --conf ".join(f"{key}={value}" for key, value in settings.items())
