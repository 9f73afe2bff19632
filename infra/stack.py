"""The stack of this repository's app: one service, and nothing else."""

from __future__ import annotations

from typing import Any

from infra import node  # noqa: F401  isort: skip
from aws_cdk import Stack
from constructs import Construct

from forebay.declaration.service import Service
from infra.forebay import Forebay, tags_of
from infra.settings import Settings

__all__ = ["ForebayStack"]


class ForebayStack(Stack):
    """CloudFormation gives the stack's tags to all that it makes."""

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, service: Service, **more: Any
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            termination_protection=settings.termination_protection,
            tags=tags_of(settings),
            **more,
        )
        # The CDK leaves this id out of logical ids.
        Forebay(self, "Default", settings=settings, service=service, tags={})
