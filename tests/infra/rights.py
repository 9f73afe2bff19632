"""The policies of a template with literal ARNs, and what IAM says of each action: which resources it takes.

cfn-lint compares actions with resources only where these are literal, and in a template they hardly ever are. Its copy of IAM's
service authorization reference is used here for all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import cfnlint.data.AdditionalSpecs

from tests.infra.synthesized import Synthesized, listed

REGION, ACCOUNT = "eu-west-1", "123456789012"
HERE = f"{REGION}:{ACCOUNT}"
SAID = {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT}
ARNS = {
    "AWS::EMRServerless::Application": f"arn:aws:emr-serverless:{HERE}:/applications/{{}}",
    "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{{}}",
    "AWS::KMS::Key": f"arn:aws:kms:{HERE}:key/{{}}",
    "AWS::Lambda::Function": f"arn:aws:lambda:{HERE}:function:{{}}",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{HERE}:log-group:/{{}}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
    "AWS::SNS::Topic": f"arn:aws:sns:{HERE}:{{}}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{HERE}:{{}}",
}

OF_S3 = {"bucket": ["arn:aws:s3:::*"], "object": ["arn:aws:s3:::*/*"]}
"""cfn-lint has one form for both."""


def policies(service: Synthesized) -> Iterator[tuple[str, Any]]:
    """Of roles that are made, in one policy or several, and of those that were there before."""
    for kind in ("IAM::Policy", "IAM::ManagedPolicy"):
        for name, policy in service.of(kind).items():
            yield name, _resolved(policy["Properties"]["PolicyDocument"], service.template["Resources"])
    yield from reported(service)


def reported(service: Synthesized) -> Iterator[tuple[str, Any]]:
    """Roles that were there before: synth leaves what each needs in a report."""
    report = service.outdir / "iam-policy-report.json"
    resources = service.template["Resources"]
    by_path = {name[:-8]: name for name in resources}
    for role in json.loads(report.read_text())["roles"] if report.exists() else ():
        statements = _spelt(role["identityPolicyStatements"], by_path, resources)
        yield role["roleName"], {"Version": "2012-10-17", "Statement": statements}


def unfit(statement: Any) -> Iterator[str]:
    """Actions that take none of the statement's resources, and resources that none of its actions takes."""
    actions, resources = listed(statement["Action"]), listed(statement["Resource"])
    for action in actions:
        if not any(_fits(action, resource) for resource in resources):
            yield f"{action} takes none of {', '.join(resources)}"
    for resource in resources:
        if not any(_fits(action, resource) for action in actions):
            yield f"{resource} is taken by none of {', '.join(actions)}"


def takes(action: str) -> list[str]:
    """The forms of the ARNs of its resources; none if it knows no resources."""
    service, _, right = action.lower().partition(":")
    known = _authorization()[service]
    kinds = listed(known["Actions"][right].get("Resources") or [])
    of_s3 = OF_S3 if service == "s3" else {}
    return [arn for kind in kinds for arn in of_s3.get(kind) or known["Resources"][kind.lower()]["ARNFormats"]]


def _fits(action: str, resource: str) -> bool:
    if resource == "*":
        return True
    return any(_is_of(form, resource) for form in takes(action))


def _is_of(form: str, resource: str) -> bool:
    """The form of a bucket would fit an object, too."""
    if ":s3:::" in form and ("/" in form) != ("/" in resource):
        return False
    return all(map(_overlap, _glob(form).split(":", 5), resource.split(":", 5)))


def _glob(form: str) -> str:
    return re.sub(r"\$\{\w+\}|\.\*", "*", form)


@cache
def _overlap(one: str, other: str) -> bool:
    """Whether some text fits both patterns."""
    if not one or not other:
        return not (one or other).strip("*")
    if one[0] == "*":
        return _overlap(one[1:], other) or _overlap(one, other[1:])
    if other[0] == "*":
        return _overlap(other, one)
    return one[0] == other[0] and _overlap(one[1:], other[1:])


@cache
def _authorization() -> Any:
    return json.loads(Path(cfnlint.data.AdditionalSpecs.__path__[0], "Policies.json").read_text())


# --- literal ARNs ---


def _resolved(value: Any, resources: dict[str, Any]) -> Any:
    match value:
        case list():
            return [_resolved(one, resources) for one in value]
        case {"Ref": name, **rest} if not rest:
            return SAID.get(name) or _arn(name, resources)
        case {"Fn::GetAtt": [name, "Arn"], **rest} if not rest:
            return _arn(name, resources)
        case {"Fn::Join": [separator, parts], **rest} if not rest:
            return separator.join(_resolved(parts, resources))
        case {"Fn::Sub": str(text), **rest} if not rest:
            return re.sub(r"\$\{([\w:]+)\}", lambda name: SAID[name[1]], text)
        case dict():
            return {key: _resolved(one, resources) for key, one in value.items()}
    return value


def _spelt(value: Any, by_path: dict[str, str], resources: dict[str, Any]) -> Any:
    """As the report writes what CloudFormation fills in: `(forebay-dev/Default/Lake/Artefacts/Resource.Arn)`."""
    match value:
        case list():
            return [_spelt(one, by_path, resources) for one in value]
        case dict():
            return {key: _spelt(one, by_path, resources) for key, one in value.items()}
        case str():
            for name, said in (("PARTITION", "aws"), ("REGION", REGION), ("ACCOUNT", ACCOUNT)):
                value = value.replace(f"({name})", said)
            return re.sub(r"\(([^()]*)\.(Arn|Ref)\)", lambda path: _arn(by_path[logical_id(path[1])], resources), value)
    return value


def logical_id(path: str) -> str:
    """The logical id without its hash; the CDK leaves these two steps out of it, and one that says the same as the step
    before."""
    steps = [step for step in path.split("/")[1:] if step not in ("Default", "Resource")]
    return "".join(step for before, step in pairwise(["", *steps]) if not before.endswith(step))


def _arn(logical_id: str, resources: dict[str, Any]) -> str:
    """Of `Ref`, which is the ARN of a topic alone, no policy uses anything else."""
    return ARNS[resources[logical_id]["Type"]].format(logical_id)
