"""Existing roles in the place of those that are made: for accounts in which a deployment may not make any.

In: the prefix of their names. The rest of a name is the job's, the function's, `schedules` or `slack`. Synth reports the
permissions of each in `cdk.out/iam-policy-report.txt` and `.json`. A role that is not in the table fails synth.
"""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.settings import Settings

JOBS = ("ingest", "compact", "maintain", "reconcile")
FUNCTIONS = (
    "start-ingest",
    "job-ended",
    "publish-freshness",
    "plan-compaction",
    "announce-files",
    "status-page",
    "start-job",
)


def role_names(settings: Settings) -> dict[str, str]:
    """The names of existing roles, by the path of the role's construct in the service."""
    paths = {f"{job.capitalize()}/Role": job for job in JOBS}
    paths |= {f"Functions/{name.title().replace('-', '')}Role": name for name in FUNCTIONS}
    paths |= {"Schedules/Role": "schedules", "AlarmTopic/SlackRole": "slack"}
    return {path: f"{settings.existing_roles}{name}" for path, name in paths.items()}


def adopt_roles(scope: Construct, settings: Settings) -> None:
    """Before the first role would be made."""
    names = {f"{scope.node.path}/{path}": name for path, name in role_names(settings).items()}
    iam.Role.customize_roles(scope, use_precreated_roles=names)
