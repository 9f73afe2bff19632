"""The jobs: the ingest job, of which a drain is a run with one more argument, and those that keep the tables in shape.

Code goes to the account's asset bucket under the hash of its content, so a changed line or declaration changes a job's
arguments, and `cdk diff` shows it. The Spark settings are those of `forebay.spark.session.job_settings()`. A job exists here
when its script does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from forebay.declaration.service import Service
from forebay.spark.session import job_settings
from infra.bundle import LOG_STORE_JAR, built, package_zip
from infra.declarations import one_text
from infra.engines import Definition, Engine
from infra.lake import SCRATCH, SPARK_EVENTS, Lake
from infra.logs import kept_for
from infra.settings import Settings

__all__ = ["SCRIPTS", "UPKEEP", "Job", "JobCode", "Upkeep", "conf_argument", "ingest_job", "upkeep_jobs"]

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "glue_jobs"


@dataclass(frozen=True)
class Upkeep:
    """A job that runs now and then. `workers` of 0: as many as the settings say."""

    name: str
    script: str
    minutes_at_most: int
    workers: int = 0


UPKEEP = (
    Upkeep("compact", "compact.py", 120),
    Upkeep("maintain", "maintain.py", 240),
    Upkeep("reconcile", "reconcile.py", 240, workers=2),  # Glue's least; it uses one
)


def conf_argument(settings: dict[str, str]) -> str:
    """Glue takes one --conf; more are written into its value."""
    return " --conf ".join(f"{key}={value}" for key, value in settings.items())


class JobCode(Construct):
    """What all jobs ship with."""

    def __init__(
        self, scope: Construct, construct_id: str, *, service: Service, log_store_jar: Path = LOG_STORE_JAR
    ) -> None:
        super().__init__(scope, construct_id)
        self.log_store = assets.Asset(self, "LogStore", path=str(built(log_store_jar)))
        with TemporaryDirectory() as folder:
            self.package = assets.Asset(self, "Package", path=str(package_zip(Path(folder, "forebay.zip"))))
            written = Path(folder, "service.toml")
            written.write_text(one_text(service))
            self.declarations = assets.Asset(self, "Declarations", path=str(written))

    @property
    def assets(self) -> tuple[assets.Asset, ...]:
        return self.package, self.log_store, self.declarations


class Job(Construct):
    """One job, its role and its log."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        engine: Engine,
        script: Path,
        code: JobCode,
        lake: Lake,
        key: kms.IKey,
        arguments: dict[str, str],
        command: str,
        number_of_workers: int,
        timeout: int | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = f"{settings.name}-{construct_id.lower()}"
        self.script = assets.Asset(self, "Script", path=str(script))
        self.log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/{settings.name}/{construct_id.lower()}",
            retention=kept_for(settings.log_days),
            encryption_key=key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                engine.principal, conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
        )
        self.assets = (*code.assets, *engine.extra_jars, self.script)
        definition = Definition(
            name=self.name,
            role=self.role,
            command=command,
            script=self.script.s3_object_url,
            arguments={**self._of_glue(settings, engine, code, lake), **arguments},
            workers=number_of_workers,
            timeout=timeout,
        )
        self.resource = engine.define(self, definition)
        # A run may begin as soon as the job is there.
        self.resource.node.add_dependency(self.role)

    def _of_glue(self, settings: Settings, engine: Engine, code: JobCode, lake: Lake) -> dict[str, str]:
        artefacts = f"s3://{lake.artefacts.bucket_name}"
        return {
            "--datalake-formats": "delta",
            "--conf": conf_argument(job_settings()),
            "--extra-py-files": code.package.s3_object_url,
            "--extra-jars": ",".join(jar.s3_object_url for jar in (code.log_store, *engine.extra_jars)),
            "--extra-files": code.declarations.s3_object_url,
            "--additional-python-modules": settings.python_modules or f"pydantic=={metadata.version('pydantic')}",
            "--enable-auto-scaling": "true",
            "--enable-metrics": "true",
            "--enable-observability-metrics": "true",
            "--enable-continuous-cloudwatch-log": "true",
            "--continuous-log-logGroup": self.log_group.log_group_name,
            "--enable-spark-ui": "true",
            "--spark-event-logs-path": f"{artefacts}/{SPARK_EVENTS}",
            "--TempDir": f"{artefacts}/{SCRATCH}",
        }


def declared_arguments(settings: Settings, code: JobCode, lake: Lake) -> dict[str, str]:
    """What every script of ours is told. Glue puts the declarations beside the script, under their own name."""
    return {
        "--lake": lake.uri,
        "--service": code.declarations.s3_object_key,
        "--metrics": f"cloudwatch:{settings.namespace}",
    }


def ingest_job(
    scope: Construct, *, settings: Settings, engine: Engine, code: JobCode, lake: Lake, key: kms.IKey, queue_url: str
) -> Job:
    """A streaming job in both modes: only those may run without a timeout, and only they have a maintenance window."""
    return Job(
        scope,
        "Ingest",
        settings=settings,
        engine=engine,
        script=SCRIPTS / "ingest.py",
        code=code,
        lake=lake,
        key=key,
        command="gluestreaming",
        number_of_workers=settings.workers,
        arguments={
            **declared_arguments(settings, code, lake),
            "--queue_url": queue_url,
            "--checkpoint": lake.checkpoint,
            "--catalog": lake.catalog,
            "--trigger_s": str(settings.trigger_s),
            "--max_files_per_batch": str(settings.max_files_per_batch),
        },
    )


def upkeep_jobs(
    scope: Construct,
    *,
    settings: Settings,
    engine: Engine,
    code: JobCode,
    lake: Lake,
    key: kms.IKey,
    told: Mapping[str, Mapping[str, str]],
    scripts: Path = SCRIPTS,
) -> dict[str, Job]:
    """`told` are arguments of one job alone, by its name."""
    return {
        upkeep.name: Job(
            scope,
            upkeep.name.capitalize(),
            settings=settings,
            engine=engine,
            script=scripts / upkeep.script,
            code=code,
            lake=lake,
            key=key,
            command="glueetl",
            number_of_workers=upkeep.workers or settings.workers,
            timeout=upkeep.minutes_at_most,
            arguments={**declared_arguments(settings, code, lake), **told.get(upkeep.name, {})},
        )
        for upkeep in UPKEEP
        if (scripts / upkeep.script).exists()
    }
