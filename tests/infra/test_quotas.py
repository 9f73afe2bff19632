"""A service as large as settings allow stays within what AWS allows: else its first deployment fails, or its next one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from infra.network import Network
from infra.settings import Settings
from tests.infra.synthesized import Synthesized, listed, synthesized, text

AN_ARN = "arn:aws-us-gov:lambda:ap-southeast-2:123456789012:function:" + "g" * 40
AS_LONG_AS = {"<AWS::Partition>": "aws-us-gov", "<AWS::Region>": "ap-southeast-2", "<AWS::AccountId>": "123456789012"}
BUCKETS = ",".join(f"drops-{n:03}".ljust(62, "x") for n in range(47))
TOPICS = ",".join(f"arn:aws-us-gov:sns:ap-southeast-2:123456789012:drops-{n:040}" for n in range(49))
PEOPLE = ",".join(f"arn:aws:iam::123456789012:role/team-{n:02}" for n in range(40))
TABLES = ",".join(f"table_{n:03}_with_a_name" for n in range(136))
EMR = {"engine": "emr-serverless", "python_modules": "s3://studio-tools/python.tar.gz"}
LARGE: dict[str, dict[str, Any]] = {
    "events": {"landing_bucket": BUCKETS, "landing_eventbridge": True, "operators": PEOPLE, "analysts": PEOPLE},
    "topics": {"landing_bucket": BUCKETS, "landing_topic": TOPICS, "watched_tables": TABLES, "operators": PEOPLE},
    "emr": {"landing_bucket": BUCKETS, "landing_eventbridge": True, **EMR, "table_metrics": "alpha,beta"},
    "producers": {"producer_accounts": ",".join(f"{n:012}" for n in range(384))},
}


@pytest.fixture(scope="module")
def larges(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Synthesized]:
    places = {name: tmp_path_factory.mktemp(name) for name in LARGE}
    return {name: synthesized(places[name], env="prod", prefix="p" * 25, **said) for name, said in LARGE.items()}


@pytest.mark.parametrize("large", LARGE)
def test_a_service_as_large_as_settings_allow_is_within_the_quotas(large: str, larges: dict[str, Synthesized]) -> None:
    beyond = [f"{what}: {size:,} of {most:,}" for what, size, most in sizes(larges[large]) if size > most]
    assert not beyond, beyond


def test_tables_whose_names_differ_by_a_sign_alone_are_watched_side_by_side(chosen: Synthesized) -> None:
    found = chosen.template["Resources"].values()
    names = {one["Properties"]["AlarmName"] for one in found if one["Type"] == "AWS::CloudWatch::Alarm"}
    assert {name.rpartition("stale-table-")[2] for name in names if "stale-table" in name} == {"a_1", "a1", "A1"}


def sizes(service: Synthesized) -> Iterator[tuple[str, int, int]]:
    """What, how large, and the quota. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html and the pages
    that `infra/quotas.py` names."""
    inline, attached = defaultdict[str, int](int), defaultdict[str, int](int)
    for name, resource in service.template["Resources"].items():
        said = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::IAM::Policy":
                for role in said["Roles"]:
                    inline[text(role)] += length(said["PolicyDocument"])
            case "AWS::IAM::ManagedPolicy":
                yield f"policy {name}", length(said["PolicyDocument"]), 6_144
                for role in said["Roles"]:
                    attached[text(role)] += 1
            case "AWS::IAM::Role":
                yield f"trust of {name}", length(said["AssumeRolePolicyDocument"]), 2_048
            case "AWS::Lambda::Function":
                variables = said["Environment"]["Variables"]
                yield f"environment of {name}", sum(len(k) + len(spelt(v)) for k, v in variables.items()), 4_096
            case "AWS::SQS::QueuePolicy":
                yield f"policy {name}", length(said["PolicyDocument"]), 8_192
            case "AWS::S3::BucketPolicy":
                yield f"policy {name}", length(said["PolicyDocument"]), 20_480
            case "AWS::KMS::Key":
                yield f"policy of {name}", length(said["KeyPolicy"]), 32_768
            case "AWS::Events::Rule":
                yield f"pattern of {name}", length(said["EventPattern"]), 2_048
            case "AWS::SSM::Parameter":
                yield f"parameter {name}", len(spelt(said["Value"])), 8_192
            case "AWS::CloudWatch::Dashboard":
                widgets = json.loads(text(said["DashboardBody"]))["widgets"]
                yield "alarms of a widget", max(len(one["properties"].get("alarms", ())) for one in widgets), 100
    yield from ((f"inline policies of {role}", size, 10_240) for role, size in inline.items())
    yield from ((f"policies attached to {role}", count, 10) for role, count in attached.items())
    yield "resources", len(service.template["Resources"]), 500
    yield "template", len(json.dumps(service.template)), 1_000_000


def length(document: Any) -> int:
    return len(json.dumps(_filled(document), separators=(",", ":")))


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_filled, value))
    if isinstance(value, dict) and not any(key == "Ref" or key.startswith("Fn::") for key in value):
        return {key: _filled(one) for key, one in value.items()}
    return spelt(value) if isinstance(value, dict) else value


def spelt(value: Any) -> str:
    """With what CloudFormation will put in, at its longest."""
    said = text(value)
    for short, long in AS_LONG_AS.items():
        said = said.replace(short, long)
    said = said.replace("ACCOUNT", "123456789012-ap-southeast-2")
    while "<" in said:
        before, _, rest = said.partition("<")
        said = before + AN_ARN + rest.partition(">")[2]
    return said


def test_each_rule_of_many_buckets_may_fill_the_queue(larges: dict[str, Synthesized]) -> None:
    service = larges["events"]
    rules = [one["Properties"] for one in service.of("Events::Rule").values() if "-landed" in one["Properties"]["Name"]]
    named = [name for rule in rules for name in rule["EventPattern"]["detail"]["bucket"]["name"]]
    assert (named, len(rules)) == (BUCKETS.split(","), 2)
    sends = service.one("SQS::QueuePolicy", "LandingQueuePolicy")["PolicyDocument"]["Statement"]
    (let_in,) = [one for one in sends if one.get("Sid") == "RuleDelivers"]
    sources = [text(arn).rpartition("/")[2] for arn in listed(let_in["Condition"]["ArnEquals"]["aws:SourceArn"])]
    assert sources == [rule["Name"] for rule in rules]


def test_an_endpoint_has_one_subnet_of_each_zone() -> None:
    """EC2 refuses a second one: DuplicateSubnetsInSameZone."""
    network = Network.of(
        Settings(
            vpc_subnets="subnet-0000000a:eu-west-1a,subnet-0000000b:eu-west-1b,subnet-0000000c:eu-west-1a",
            vpc_security_groups="sg-0a1b2c3d",
        )
    )
    assert network
    assert network.one_subnet_of_each_zone == ["subnet-0000000a", "subnet-0000000b"]
    assert len(network.subnets) == 3
