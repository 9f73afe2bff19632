"""cfn-lint finds nothing in the template, nor in its rights, and each right is on resources that its action takes.

An exception has its reason here, and no other may be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from cfnlint.config import ConfigMixIn
from cfnlint.runner import Runner, run_template_by_file_path
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER as SCHEMAS

from infra.looks import WITHOUT_RESOURCE
from infra.queries import WITHOUT_RESOURCE as OF_ATHENA
from infra.regions import SERVICES, regions_of
from tests.infra.conftest import SHAPES
from tests.infra.rights import logical_id, policies, takes, unfit
from tests.infra.synthesized import listed

pytestmark = pytest.mark.xdist_group("cdk")


CFN_EXCEPTIONS = {
    "W3010": "a person names the zone of each subnet, because Glue asks for it and nothing here may look it up",
    "W3005": "the CDK names a role with the policy that a run must find there; the role alone would be enough",
}
NOT_EVERYWHERE = ("AWS::Budgets::Budget", "AWS::Chatbot::SlackChannelConfiguration")
"""Of the settings `budget_usd_month` and `alarm_slack`: some regions lack them, and CloudFormation says so there."""
OF_EMRS_GUIDE = "FindLogs"
"""EMR's guide gives logs:DescribeLogGroups on all of the region and account, for which IAM's reference has another form.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html"""


@pytest.mark.parametrize("which", SHAPES)
@pytest.mark.deep
def test_cfn_lint_finds_nothing_in_any_region_where_the_service_is(request: pytest.FixtureRequest, which: str) -> None:
    service = request.getfixturevalue(which)
    (template,) = service.outdir.glob("*.template.json")
    engine = "emr-serverless" if which == "emr" else "glue"
    regions = sorted(set.intersection(*map(set, regions_of((engine, *SERVICES)).values())))
    assert len(regions) > 20, "the list of regions has become too short to be right"
    found = linted(template, *one_of_each_kind(template, regions))
    assert [one for one in found if one[0] not in CFN_EXCEPTIONS and not _of_an_option(*one)] == []


def one_of_each_kind(template: Path, regions: Sequence[str]) -> list[str]:
    """Regions of one partition are alike to cfn-lint, if it has the same schemas of the template's resources for them."""
    session = boto3.Session()
    known = {region: [session.get_partition_for_region(region)] for region in regions}
    for kind in sorted({one["Type"] for one in json.loads(template.read_text())["Resources"].values()}):
        for number, (alike, _) in enumerate(SCHEMAS.get_resource_schemas_by_regions(kind, regions)):
            for region in alike:
                known[region].append(f"{kind} {number}")
    return sorted({tuple(said): region for region, said in known.items()}.values())


def linted(template: Path, *regions: str) -> list[tuple[str, str]]:
    """As the command `cfn-lint` does, which takes seconds to start."""
    config = ConfigMixIn(regions=[*regions])
    found = run_template_by_file_path(str(template), config, _rules(), ignore_bad_template=False)
    return [(one.rule.id, one.message) for one in found]


@cache
def _rules() -> Any:
    return Runner(ConfigMixIn()).rules


def _of_an_option(rule: str, message: str) -> bool:
    return rule == "E3006" and any(f"'{kind}'" in message for kind in NOT_EVERYWHERE)


@pytest.mark.parametrize("which", SHAPES)
def test_cfn_lint_finds_nothing_in_the_rights_of_any_role(
    request: pytest.FixtureRequest, which: str, tmp_path: Path
) -> None:
    """With the roles that were there before, which no template has."""
    rights = dict(policies(request.getfixturevalue(which)))
    if which == "brought":
        assert {"studio-forebay-ingest", "studio-forebay-start-ingest"} <= rights.keys()
    assert linted(template_of(rights, tmp_path), "eu-west-1") == []


@pytest.mark.parametrize("which", SHAPES)
def test_each_right_is_on_resources_that_its_action_takes(request: pytest.FixtureRequest, which: str) -> None:
    found = [
        f"{name} {statement.get('Sid')}: {problem}"
        for name, document in policies(request.getfixturevalue(which))
        for statement in listed(document["Statement"])
        if not (which == "emr" and statement.get("Sid") == OF_EMRS_GUIDE)
        for problem in unfit(statement)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("action", "resource", "problems"),
    [
        ("s3:GetObject", "arn:aws:s3:::lake/a/*", 0),
        ("s3:GetObject", "arn:aws:s3:::lake", 2),
        ("s3:ListBucket", "arn:aws:s3:::lake/*", 2),
        (["s3:ListBucket", "s3:GetObject"], ["arn:aws:s3:::lake", "arn:aws:s3:::lake/*"], 0),
        (["s3:ListBucket", "s3:GetObject"], ["arn:aws:s3:::lake", "arn:aws:sqs:eu-west-1:123456789012:q"], 2),
        ("logs:PutLogEvents", "arn:aws:logs:eu-west-1:123456789012:log-group:/a:*", 0),
        ("cloudwatch:PutMetricData", "*", 0),
        ("cloudwatch:PutMetricData", "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:a", 2),
    ],
)
def test_a_right_on_another_kind_of_resource_is_found(action: Any, resource: Any, problems: int) -> None:
    assert len(list(unfit({"Action": action, "Resource": resource}))) == problems


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("forebay-dev/Default/Lake/Lake/Resource", "Lake"),
        ("forebay-dev/Default/Lake/Artefacts/Resource", "LakeArtefacts"),
        ("forebay-dev/Default/Landing/Queue/Resource", "LandingQueue"),
    ],
)
def test_a_bucket_that_a_brought_role_may_read_is_found_by_its_path(path: str, expected: str) -> None:
    assert logical_id(path) == expected


def test_cfn_lint_would_find_a_right_that_there_is_not(tmp_path: Path) -> None:
    wrong = {"Effect": "Allow", "Action": ["s3:PutObjekt"], "Resource": ["arn:aws:s3:::lake/*"]}
    found = linted(template_of({"r": {"Version": "2012-10-17", "Statement": [wrong]}}, tmp_path), "eu-west-1")
    assert {rule for rule, _ in found} == {"W3037"}


def template_of(policies: dict[str, Any], folder: Path) -> Path:
    made = {
        f"Policy{number}": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document}}
        for number, document in enumerate(policies.values())
    }
    template = folder / "policies.template.json"
    template.write_text(json.dumps({"Resources": made}))
    return template


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
    return bool(takes(action))
