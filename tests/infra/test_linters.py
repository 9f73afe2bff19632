"""What the linters of CloudFormation and of IAM find in the template. An exception has its reason here, and no other may be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.looks import WITHOUT_RESOURCE
from infra.queries import WITHOUT_RESOURCE as OF_ATHENA
from infra.regions import SERVICES, regions_of
from tests.infra.conftest import SHAPES
from tests.infra.synthesized import Synthesized, listed

pytestmark = pytest.mark.xdist_group("cdk")

CFN_EXCEPTIONS = {
    "W3010": "a person names the zone of each subnet, because Glue asks for it and nothing here may look it up",
    "W3005": "the CDK names a role with the policy that a run must find there; the role alone would be enough",
}
NOT_EVERYWHERE = ("AWS::Budgets::Budget", "AWS::Chatbot::SlackChannelConfiguration")
"""Of the settings `monthly_budget_usd` and `alarm_slack`: some regions lack them, and CloudFormation says so there."""
IAM_EXCEPTIONS = {
    # A right whose API knows no resources; each has its reason where it is granted, which cdk-nag asks for.
    "RESOURCE_STAR": "actions without resources, such as cloudwatch:PutMetricData",
}
OF_EMRS_GUIDE = "logs:DescribeLogGroups"
"""EMR's guide gives it on all groups of the region and account, which parliament's list does not know yet.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html"""


@pytest.mark.parametrize("which", SHAPES)
def test_cfn_lint_finds_nothing_in_any_region_where_the_service_is(
    request: pytest.FixtureRequest, which: str, tmp_path: Path
) -> None:
    service = request.getfixturevalue(which)
    (template,) = service.outdir.glob("*.template.json")
    engine = "emr-serverless" if which == "emr" else "glue"
    cfn_lint = str(Path(sys.executable).with_name("cfn-lint"))
    regions = sorted(set.intersection(*map(set, regions_of((engine, *SERVICES)).values())))
    assert len(regions) > 20, "the list of regions has become too short to be right"
    command = [cfn_lint, "-t", str(template), "-f", "json", "-r", *regions]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = [(one["Rule"]["Id"], one["Message"]) for one in json.loads(ran.stdout)]
    assert [one for one in found if one[0] not in CFN_EXCEPTIONS and not _of_an_option(*one)] == []


def _of_an_option(rule: str, message: str) -> bool:
    return rule == "E3006" and any(f"'{kind}'" in message for kind in NOT_EVERYWHERE)


@pytest.mark.parametrize("which", SHAPES)
def test_parliament_finds_nothing_wrong_in_any_role(request: pytest.FixtureRequest, which: str) -> None:
    service = request.getfixturevalue(which)
    found = [
        f"{name} {finding.issue}: {finding.detail} {finding.location}"
        for name, document in policies(service)
        for finding in analyzed(document)
        if finding.issue not in IAM_EXCEPTIONS and OF_EMRS_GUIDE not in str(finding.detail)
    ]
    assert found == []


def test_parliament_reads_the_rights_of_roles_that_were_there_before(brought: Synthesized) -> None:
    assert {"studio-forebay-ingest", "studio-forebay-start-ingest"} <= {name for name, _ in policies(brought)}


def test_parliament_would_find_a_right_that_there_is_not() -> None:
    wrong = {"Effect": "Allow", "Action": ["s3:PutObjekt"], "Resource": ["arn:aws:s3:::lake/*"]}
    assert {finding.issue for finding in analyzed({"Version": "2012-10-17", "Statement": [wrong]})} == {
        "UNKNOWN_ACTION"
    }


def policies(service: Synthesized) -> Iterator[tuple[str, Any]]:
    for name, policy in service.of("IAM::Policy").items():
        yield name, resolved(policy["Properties"]["PolicyDocument"])
    for role in reported(service):
        said = role["identityPolicyStatements"]
        yield role["roleName"], {"Version": "2012-10-17", "Statement": [spelt(one) for one in said]}


def reported(service: Synthesized) -> list[Any]:
    """Roles that were there before: synth leaves what each needs in a report."""
    report = service.outdir / "iam-policy-report.json"
    return list(json.loads(report.read_text())["roles"]) if report.exists() else []


def spelt(value: Any) -> Any:
    """As the report writes what CloudFormation fills in: `(forebay-dev/Default/Lake/Artefacts/Resource.Arn)`."""
    if isinstance(value, str):
        for name, said in (("PARTITION", "aws"), ("REGION", "eu-west-1"), ("ACCOUNT", "123456789012")):
            value = value.replace(f"({name})", said)
        return re.sub(r"\(([^()]*)\.(Arn|Ref)\)", lambda path: arn_of(logical_id_of(path[1])), value)
    if isinstance(value, list):
        return [spelt(one) for one in value]
    return {key: spelt(one) for key, one in value.items()} if isinstance(value, dict) else value


def logical_id_of(path: str) -> str:
    return "".join(step for step in path.split("/")[1:] if step not in ("Default", "Resource"))


def resolved(value: Any) -> Any:
    """With names in the place of what CloudFormation fills in, so that ARNs look like ARNs."""
    if isinstance(value, list):
        return [resolved(one) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"} and value["Ref"].startswith("AlarmTopic"):
        return f"arn:aws:sns:eu-west-1:123456789012:{value['Ref']}"
    if set(value) == {"Ref"}:
        return {"AWS::Partition": "aws", "AWS::Region": "eu-west-1", "AWS::AccountId": "123456789012"}.get(
            value["Ref"], value["Ref"].lower()
        )
    if set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return str(separator).join(resolved(parts))
    if set(value) == {"Fn::Sub"}:
        text = value["Fn::Sub"]
        for name, said in (("Partition", "aws"), ("Region", "eu-west-1"), ("AccountId", "123456789012")):
            text = text.replace(f"${{AWS::{name}}}", said)
        return text
    if set(value) == {"Fn::GetAtt"}:
        return arn_of(value["Fn::GetAtt"][0])
    return {key: resolved(one) for key, one in value.items()}


def arn_of(logical_id: str) -> str:
    here = "eu-west-1:123456789012"
    kinds = {
        "AlarmTopic": f"arn:aws:sns:{here}:{logical_id}",
        "EngineApplication": f"arn:aws:emr-serverless:{here}:/applications/{logical_id}",
        "Keys": f"arn:aws:kms:{here}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        "Functions": f"arn:aws:lambda:{here}:function:{logical_id}",
        "LandingBucket": f"arn:aws:s3:::{logical_id.lower()}",
        "LandingQ": f"arn:aws:sqs:{here}:{logical_id}",
        "LandingD": f"arn:aws:sqs:{here}:{logical_id}",
        "LandingU": f"arn:aws:sqs:{here}:{logical_id}",
        "Untold": f"arn:aws:sqs:{here}:{logical_id}",
        "Lake": f"arn:aws:s3:::{logical_id.lower()}",
        "VaultKey": f"arn:aws:kms:{here}:key/1234abcd-12ab-34cd-56ef-1234567890ac",
        "Vault": f"arn:aws:s3:::{logical_id.lower()}",
        "QueriesResults": f"arn:aws:s3:::{logical_id.lower()}",
    }
    if "Role" in logical_id:
        return f"arn:aws:iam::123456789012:role/{logical_id}"
    if "Log" in logical_id:
        return f"arn:aws:logs:{here}:log-group:/{logical_id}:*"
    return next(arn for begins, arn in kinds.items() if logical_id.startswith(begins))


def analyzed(document: Any) -> list[Any]:
    parliament = imported()
    found = parliament.analyze_policy_string(json.dumps(document)).findings
    return list(found)


def imported() -> Any:
    """parliament asks for its own files by `pkg_resources`, which setuptools no longer has. The stand-in is for it alone:
    others in this process ask whether there is one."""
    shim = types.ModuleType("pkg_resources")
    shim.resource_filename = (  # type: ignore[attr-defined]
        lambda package, name: str(Path(sys.modules[package].__file__ or "").parent / name)
    )
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore")  # its own sources have escapes that Python frowns at
        patched.setitem(sys.modules, "pkg_resources", shim)
        import parliament

    return parliament


LISTS_ALL = ("ec2:", "cloudwatch:DescribeAlarm")
"""Lambda accepts a role in a VPC with these rights on all interfaces alone; CloudWatch lists all alarms, or none."""


@pytest.mark.parametrize("which", SHAPES)
def test_a_right_on_everything_is_of_an_action_that_knows_no_resource(
    request: pytest.FixtureRequest, which: str
) -> None:
    service = request.getfixturevalue(which)
    on_all = {
        (name, action)
        for name, document in policies(service)
        for statement in listed(document["Statement"])
        if statement["Effect"] == "Allow" and "*" in listed(statement["Resource"])
        for action in listed(statement["Action"])
    }
    assert on_all, "metrics are published on everything"
    assert {
        (name, action) for name, action in on_all if knows_resources(action) and not action.startswith(LISTS_ALL)
    } == set()


def test_the_list_of_what_knows_no_resource_is_iams_own() -> None:
    assert [action for action in (*WITHOUT_RESOURCE, *OF_ATHENA) if knows_resources(action)] == []
    assert knows_resources("s3:GetObject")


def knows_resources(action: str) -> bool:
    """As parliament's copy of IAM's service authorization reference has it."""
    known = [
        kind["resource_type"]
        for service in imported().iam_definition
        for right in service["privileges"]
        if f"{service['prefix']}:{right['privilege']}".lower() == action.lower()
        for kind in right["resource_types"]
    ]
    assert known, f"{action} is no action"
    return any(known)
