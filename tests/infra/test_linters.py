"""cfn-lint finds nothing in the template, nor in its rights. An exception has its reason here, and no other may be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cfnlint.data.AdditionalSpecs
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
"""Of the settings `budget_usd_month` and `alarm_slack`: some regions lack them, and CloudFormation says so there."""
RESOURCES_FIT_ACTIONS = "I3510"


@pytest.mark.parametrize("which", SHAPES)
@pytest.mark.deep
def test_cfn_lint_finds_nothing_in_any_region_where_the_service_is(
    request: pytest.FixtureRequest, which: str, tmp_path: Path
) -> None:
    service = request.getfixturevalue(which)
    (template,) = service.outdir.glob("*.template.json")
    engine = "emr-serverless" if which == "emr" else "glue"
    regions = sorted(set.intersection(*map(set, regions_of((engine, *SERVICES)).values())))
    assert len(regions) > 20, "the list of regions has become too short to be right"
    found = linted(template, tmp_path, *regions)
    assert [one for one in found if one[0] not in CFN_EXCEPTIONS and not _of_an_option(*one)] == []


def linted(template: Path, folder: Path, *regions: str) -> list[tuple[str, str]]:
    cfn_lint = str(Path(sys.executable).with_name("cfn-lint"))
    command = [cfn_lint, "-t", str(template), "-f", "json", "--include-checks", RESOURCES_FIT_ACTIONS, "-r", *regions]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return [(one["Rule"]["Id"], one["Message"]) for one in json.loads(ran.stdout)]


def _of_an_option(rule: str, message: str) -> bool:
    return rule == "E3006" and any(f"'{kind}'" in message for kind in NOT_EVERYWHERE)


def test_cfn_lint_knows_the_rights_of_roles_that_were_there_before(brought: Synthesized, tmp_path: Path) -> None:
    """Their resources are paths of the stack in the report; the roles that are made have the same ones, as ARNs."""
    rights = dict(of_report(brought))
    assert {"studio-forebay-ingest", "studio-forebay-start-ingest"} <= rights.keys()
    for document in rights.values():
        document["Statement"] = [{**one, "Resource": "*"} for one in document["Statement"]]
    assert linted(template_of(rights, tmp_path), tmp_path, "eu-west-1") == []


def test_cfn_lint_would_find_a_right_that_there_is_not_and_one_on_another_kind_of_resource(tmp_path: Path) -> None:
    bucket = "arn:aws:s3:::lake"
    wrong = {"Effect": "Allow", "Action": ["s3:PutObjekt", "sqs:SendMessage"], "Resource": [bucket]}
    found = linted(template_of({"r": {"Version": "2012-10-17", "Statement": [wrong]}}, tmp_path), tmp_path, "eu-west-1")
    assert {rule for rule, _ in found} == {"W3037", RESOURCES_FIT_ACTIONS}


def template_of(policies: dict[str, Any], folder: Path) -> Path:
    made = {
        f"Policy{number}": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document}}
        for number, document in enumerate(policies.values())
    }
    template = folder / "policies.template.json"
    template.write_text(json.dumps({"Resources": made}))
    return template


def policies(service: Synthesized) -> Iterator[tuple[str, Any]]:
    for name, policy in service.of("IAM::Policy").items():
        yield name, policy["Properties"]["PolicyDocument"]
    yield from of_report(service)


def of_report(service: Synthesized) -> Iterator[tuple[str, Any]]:
    """Roles that were there before: synth leaves what each needs in a report."""
    report = service.outdir / "iam-policy-report.json"
    for role in json.loads(report.read_text())["roles"] if report.exists() else ():
        yield role["roleName"], {"Version": "2012-10-17", "Statement": role["identityPolicyStatements"]}


ON_ALL = (
    "ec2:",
    *("cloudwatch:DescribeAlarm", "cloudwatch:GetMetricData", "cloudwatch:PutMetricData"),
    *("logs:GetQueryResults", "sns:GetSubscriptionAttributes"),
)
"""Lambda accepts a role in a VPC with these rights on all interfaces alone. CloudWatch lists all alarms, or none, and our
metrics are in no dataset. Whether the results of a query know a log group, AWS's pages say differently. A subscription has an
ARN once a person has subscribed."""


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
    assert {one for one in on_all if must_name_resources(one[1])} == set()


def test_the_list_of_what_knows_no_resource_is_iams_own() -> None:
    assert [action for action in (*WITHOUT_RESOURCE, *OF_ATHENA) if must_name_resources(action)] == []
    assert must_name_resources("s3:GetObject")


def must_name_resources(action: str) -> bool:
    """As cfn-lint's copy of IAM's service authorization reference has it."""
    if action.startswith(ON_ALL):
        return False
    service, _, right = action.lower().partition(":")
    return bool(authorization()[service]["Actions"][right].get("Resources"))


@cache
def authorization() -> Any:
    return json.loads(Path(cfnlint.data.AdditionalSpecs.__path__[0], "Policies.json").read_text())
