"""AWS's rules for solutions, and those that follow NIST 800-53, asked at every synth; a finding fails it.

Intended findings are acknowledged in place, one at a time, with the reason: `acknowledge` for a rule,
`acknowledge_wildcards` for resources of a policy that end with a star, `acknowledge_nist` for a rule of NIST.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import cdk_nag
from aws_cdk import Acknowledgment, App, Stack, Validations
from constructs import IConstruct


def review(app: App) -> None:
    Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app), cdk_nag.NIST80053R5Checks(app))


def acknowledge(what: IConstruct, rule: str, reason: str) -> None:
    Validations.of(what).acknowledge(Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason))


def acknowledge_nist(what: IConstruct, rule: str, reason: str) -> None:
    Validations.of(what).acknowledge(Acknowledgment(id=f"NIST.800.53.R5::NIST.800.53.R5-{rule}", reason=reason))


def acknowledge_shared_name(what: IConstruct, reason: str) -> None:
    """Where CloudFormation's own rules take a name for unique that is so within something else."""
    Validations.of(what).acknowledge(Acknowledgment(id="CloudFormation-Validate::E3019", reason=reason))


def acknowledge_wildcards(role: IConstruct, resources: Iterable[str], reason: str) -> None:
    for resource in resources:
        text = _as_the_rules_print_it(Stack.of(role).resolve(resource))
        if "*" in text:
            acknowledge(role, f"IAM5[Resource::{text}]", reason)


def _as_the_rules_print_it(value: Any) -> str:
    if isinstance(value, str):
        return value
    ((function, of),) = value.items()
    if function == "Fn::Join":
        separator, parts = of
        return str(separator).join(map(_as_the_rules_print_it, parts))
    if function == "Fn::Sub":
        return re.sub(r"\$\{(.*?)\}", r"<\1>", of)
    return f"<{of}>" if function == "Ref" else f"<{'.'.join(of)}>"
