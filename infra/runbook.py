"""The page that an alarm leads to: the address in `runbook_url`, or the dashboard, which shows the runbook of this version.

The runbook is a section of `infra/README.md`. A path in a message would lead nowhere at night.
"""

from __future__ import annotations

import re
from pathlib import Path

from aws_cdk import Aws

from infra.settings import Settings

__all__ = ["dashboard_name", "place_in_runbook", "runbook_text"]

README = Path(__file__).with_name("README.md")
SECTION = "## Runbook"
CONSOLE = f"https://{Aws.REGION}.console.aws.amazon.com/cloudwatch/home?region={Aws.REGION}#dashboards/dashboard"


def dashboard_name(settings: Settings) -> str:
    return f"{settings.name}-{Aws.REGION}"


def place_in_runbook(settings: Settings, alarm: str) -> str:
    """The console's address already has an anchor of its own, so the heading follows as text."""
    if settings.runbook_url:
        return f"{settings.runbook_url}#{alarm}"
    return f"{CONSOLE}/{dashboard_name(settings)} under {alarm}"


def runbook_text() -> str:
    """In Markdown, without links: they would lead out of the dashboard."""
    _, _, after = README.read_text().partition(f"\n{SECTION}\n")
    section, _, _ = after.partition("\n## ")
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", section).strip()
