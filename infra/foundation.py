"""The foundation of jobs and functions: the settings, the declarations, and the resources that exist before them."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from forebay.declaration.service import Service
from infra.engines import Engine
from infra.jobs.code import JobCode
from infra.keys import Keys
from infra.lake import Lake
from infra.landing import Landing
from infra.queries import Queries
from infra.settings import Settings
from infra.vault import Vault


@dataclass(frozen=True)
class Foundation:
    settings: Settings
    service: Service
    keys: Keys
    landing: Landing
    lake: Lake
    engine: Engine
    code: JobCode
    alarms_to: sns.Topic
    untold: sqs.Queue
    """Events of ended jobs whose message could not be sent."""
    vault: Vault | None = None
    queries: Queries | None = None
