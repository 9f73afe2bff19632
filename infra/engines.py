"""The engine of the jobs, by the setting `engine`: how a job is defined there, who may start one and see its runs, and which
event tells its end. Glue is what all of this was built for; EMR Serverless runs the same scripts, from the same
definitions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from aws_cdk import Aws, CfnResource
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_events as events
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from forebay.aws.emr import AT_WORK as EMR_AT_WORK
from forebay.spark import runtime
from infra import grants
from infra.network import Network
from infra.review import acknowledge
from infra.settings import Settings
from lambdas.engine.submission import GB_OF_A_VCPU, VCPUS_OF_A_WORKER

GLUE_AT_WORK = ("STARTING", "RUNNING", "STOPPING", "WAITING")
OF_FLEX = ("G.1X", "G.2X")
"""Workers that jobs without haste may have for less: they start when there is room.
https://docs.aws.amazon.com/glue/latest/dg/add-job.html"""
IDLE_MINUTES = 15


@dataclass(frozen=True)
class Definition:
    """A job, whatever runs it; arguments under Glue's names."""

    name: str
    role: iam.Role
    command: str
    script: str
    arguments: dict[str, str]
    workers: int
    timeout: int | None


class Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def role(self) -> iam.Role: ...


class Engine(Protocol):
    """`reference` names it in the environment of functions."""

    @property
    def reference(self) -> str: ...
    @property
    def principal(self) -> str: ...
    @property
    def logs(self) -> Sequence[str]:
        """The log groups of a job, under its prefix."""

    def define(self, scope: Construct, definition: Definition) -> CfnResource: ...
    def may_write_logs(self, role: iam.IGrantable, log_group_arns: Sequence[str]) -> None: ...
    def may_start(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None: ...
    def may_look(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        """At the jobs' lists of runs."""

    def may_ask_why(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        """A run ended as it did."""

    def may_keep_running(self, who: iam.IGrantable, sid: str, job: Named) -> None:
        """Start it, by what its runs and its definition say."""

    def may_end(self, who: iam.IGrantable, *jobs: Named) -> None:
        """See the jobs' runs and end them, as a person."""

    def ends(self, jobs: Sequence[Named]) -> events.EventPattern:
        """All states but those of a job at work, so that one we never heard of is not passed over."""


def engine_of(scope: Construct, settings: Settings) -> Engine:
    return Glue(settings, scope) if settings.engine == "glue" else EmrServerless(scope, "Engine", settings=settings)


class Glue:
    reference = "glue"
    principal = "glue.amazonaws.com"
    logs = ("output", "error")
    """The output of the script, and that of Spark and Glue.
    https://docs.aws.amazon.com/glue/latest/dg/monitor-continuous-logging.html"""

    def __init__(self, settings: Settings, scope: Construct | None = None) -> None:
        """`scope` is where connections to a VPC are made; whoever only starts jobs has none."""
        self._settings = settings
        self._network = Network.of(settings) if scope is not None else None
        self._connections = self._network.connections(scope) if self._network and scope is not None else []

    def define(self, scope: Construct, definition: Definition) -> CfnResource:
        streams = definition.command == "gluestreaming"
        worker_type = self._settings.worker_type if streams else self._settings.upkeep_worker_type
        job = glue.CfnJob(
            scope,
            "Job",
            name=definition.name,
            role=definition.role.role_arn,
            glue_version=runtime.GLUE,
            worker_type=worker_type,
            execution_class="FLEX" if not streams and worker_type in OF_FLEX else None,
            number_of_workers=definition.workers,
            max_retries=0,
            timeout=definition.timeout,
            maintenance_window=(self._settings.maintenance_window or None) if streams else None,
            execution_property=glue.CfnJob.ExecutionPropertyProperty(max_concurrent_runs=1),
            command=glue.CfnJob.JobCommandProperty(
                name=definition.command, python_version="3", script_location=definition.script
            ),
            default_arguments=definition.arguments,
            connections=self._reached(definition.role),
        )
        for connection in self._connections:
            job.node.add_dependency(connection)
        acknowledge(job, "GL1", "the log groups are encrypted with our key, without a security configuration")
        acknowledge(job, "GL3", "no job of ours uses bookmarks: Spark's checkpoint and the ledger say what is done")
        return job

    def _reached(self, role: iam.IRole) -> glue.CfnJob.ConnectionsListProperty | None:
        if self._network is None:
            return None
        names = [f"{self._network.name}-{subnet}" for subnet in self._network.subnets]
        self._network.let_glue_in(role, names)
        return glue.CfnJob.ConnectionsListProperty(connections=names)

    def may_write_logs(self, role: iam.IGrantable, log_group_arns: Sequence[str]) -> None:
        grants.write_job_logs(role, log_group_arns)

    def may_start(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        grants.allow(who, sid, ["glue:StartJobRun"], list(map(self._arn, jobs)))

    def may_look(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        grants.allow(who, sid, ["glue:GetJobRuns"], list(map(self._arn, jobs)))

    def may_ask_why(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        grants.allow(who, sid, ["glue:GetJobRun"], list(map(self._arn, jobs)))

    def may_keep_running(self, who: iam.IGrantable, sid: str, job: Named) -> None:
        grants.allow(who, sid, ["glue:StartJobRun", "glue:GetJobRuns", "glue:GetJob"], [self._arn(job)])

    def may_end(self, who: iam.IGrantable, *jobs: Named) -> None:
        """A person starts them here, too."""
        actions = ("glue:StartJobRun", "glue:BatchStopJobRun", "glue:GetJob", "glue:GetJobRuns")
        grants.allow(who, "StartAndStopJobs", actions, list(map(self._arn, jobs)))

    def ends(self, jobs: Sequence[Named]) -> events.EventPattern:
        return events.EventPattern(
            source=["aws.glue"],
            detail_type=["Glue Job State Change"],
            detail={"jobName": [job.name for job in jobs], "state": [{"anything-but": list(GLUE_AT_WORK)}]},
        )

    @staticmethod
    def _arn(job: Named) -> str:
        return f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}:job/{job.name}"


class EmrServerless(Construct):
    """One application, which starts with a run and stops when none is left. It knows no definitions of jobs, so these are
    parameters of Systems Manager, from which functions make what they submit."""

    principal = "emr-serverless.amazonaws.com"
    logs = ("output",)

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self._worker_type = settings.worker_type
        # The ingest job, and one that keeps the tables in shape, at the same time.
        vcpus = 2 * settings.workers * VCPUS_OF_A_WORKER[settings.worker_type]
        self._application = emr.CfnApplication(
            self,
            "Application",
            name=settings.name,
            type="SPARK",
            release_label=settings.emr_release,
            architecture="X86_64",
            auto_start_configuration=emr.CfnApplication.AutoStartConfigurationProperty(enabled=True),
            auto_stop_configuration=emr.CfnApplication.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=IDLE_MINUTES
            ),
            network_configuration=(
                emr.CfnApplication.NetworkConfigurationProperty(
                    subnet_ids=network.subnets, security_group_ids=list(network.security_groups)
                )
                if (network := Network.of(settings))
                else None
            ),
            maximum_capacity=emr.CfnApplication.MaximumAllowedResourcesProperty(
                cpu=f"{vcpus} vCPU", memory=f"{vcpus * GB_OF_A_VCPU} GB"
            ),
        )
        self.reference = f"emr-serverless:{self._application.attr_application_id}"

    def define(self, scope: Construct, definition: Definition) -> CfnResource:
        described = {
            "Name": definition.name,
            "Role": definition.role.role_arn,
            "Command": {"Name": definition.command, "ScriptLocation": definition.script},
            "DefaultArguments": definition.arguments,
            "WorkerType": self._worker_type,
            "NumberOfWorkers": definition.workers,
            "Timeout": definition.timeout,
        }
        return ssm.CfnParameter(
            scope,
            "Job",
            name=f"/{definition.name}",
            type="String",
            tier="Intelligent-Tiering",
            value=json.dumps(described),
        )

    def may_write_logs(self, role: iam.IGrantable, log_group_arns: Sequence[str]) -> None:
        groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:*"
        grants.allow(
            role, "FindLogs", ["logs:DescribeLogGroups"], [groups], because="EMR looks for the group in the list of all"
        )
        actions = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
        grants.allow(role, "WriteLogs", actions, log_group_arns)

    def may_start(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        """Whoever starts one looks first whether it runs, and hands over the role of the run."""
        grants.allow(who, sid, ["emr-serverless:StartJobRun", "emr-serverless:ListJobRuns"], [self._arn])
        ours = f"arn:{Aws.PARTITION}:ssm:{Aws.REGION}:{Aws.ACCOUNT_ID}:parameter"
        grants.allow(who, f"{sid}AsDefined", ["ssm:GetParameter"], [f"{ours}/{job.name}" for job in jobs])
        passed = {"StringEquals": {"iam:PassedToService": self.principal}}
        grants.allow(who, f"{sid}AsItsRole", ["iam:PassRole"], [job.role.role_arn for job in jobs], passed)

    def may_look(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        grants.allow(who, sid, ["emr-serverless:ListJobRuns"], [self._arn])

    def may_ask_why(self, who: iam.IGrantable, sid: str, *jobs: Named) -> None:
        runs = [f"{self._arn}/jobruns/*"]
        grants.allow(who, sid, ["emr-serverless:GetJobRun"], runs, because="a run's number is known when it is there")

    def may_keep_running(self, who: iam.IGrantable, sid: str, job: Named) -> None:
        self.may_start(who, sid, job)

    def may_end(self, who: iam.IGrantable, *jobs: Named) -> None:
        self.may_look(who, "SeeRuns", *jobs)
        self.may_ask_why(who, "SeeRun", *jobs)
        runs = [f"{self._arn}/jobruns/*"]
        because = "a run's number is known when it is there"
        grants.allow(who, "EndRuns", ["emr-serverless:CancelJobRun"], runs, because=because)

    def ends(self, jobs: Sequence[Named]) -> events.EventPattern:
        return events.EventPattern(
            source=["aws.emr-serverless"],
            detail_type=["EMR Serverless Job Run State Change"],
            detail={
                "applicationId": [self._application.attr_application_id],
                "state": [{"anything-but": list(EMR_AT_WORK)}],
            },
        )

    @property
    def _arn(self) -> str:
        return self._application.attr_arn
