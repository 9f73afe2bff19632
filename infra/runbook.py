"""The page that an alarm leads to: the address in `runbook_url`, or the dashboard, which shows the runbook of this version.

The runbook is a section of `infra/README.md`. A path in a message would lead nowhere at night.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from aws_cdk import Aws, Stack, Token
from constructs import IConstruct

from forebay.aws.console import console_domain
from infra.regions import region_in
from infra.settings import Settings

README = Path(__file__).with_name("README.md")
SECTION = "## Runbook"


def dashboard_name(settings: Settings) -> str:
    return f"{settings.name}-{Aws.REGION}"


def region_of(scope: IConstruct) -> str:
    """As the stack says it, or else the environment; empty where nobody does."""
    region = Stack.of(scope).region
    return region_in(os.environ) if Token.is_unresolved(region) else region


def place_in_runbook(settings: Settings, alarm: str, region: str) -> str:
    """`region` decides whose console it is. Its address already has an anchor of its own, so the heading follows as text."""
    if settings.runbook_url:
        return f"{settings.runbook_url}#{alarm}"
    page = f"https://{Aws.REGION}.{console_domain(region)}/cloudwatch/home?region={Aws.REGION}"
    return f"{page}#dashboards/dashboard/{dashboard_name(settings)} under {alarm}"


def runbook_text() -> str:
    """In Markdown, without links: they would lead out of the dashboard."""
    _, _, after = README.read_text().partition(f"\n{SECTION}\n")
    section, _, _ = after.partition("\n## ")
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", section).strip()
