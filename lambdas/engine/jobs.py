"""The jobs' engine, for functions that start runs or look at them. It speaks Glue's words, whichever it is, so what decides
does not know."""

from __future__ import annotations

from typing import Any

import boto3

from lambdas.engine.emr_serverless import EmrServerless

GLUE = "glue"


def jobs_of(engine: str) -> Any:
    """`glue`, or `emr-serverless:<application>`."""
    name, _, application = engine.partition(":")
    if name == GLUE:
        return boto3.client("glue")
    return EmrServerless(boto3.client("emr-serverless"), boto3.client("ssm"), application)
