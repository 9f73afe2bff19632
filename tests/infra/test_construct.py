"""`Forebay` in a stack of one's own: beside other things, and beside another service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra import node  # noqa: F401  isort: skip
import aws_cdk as cdk
from aws_cdk import aws_s3 as s3

from forebay.errors import InvalidConfiguration
from infra.forebay import Forebay
from infra.settings import Settings

pytestmark = pytest.mark.xdist_group("cdk")

NAMED_BY = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::Glue::Job": "Name",
    "AWS::Glue::Database": "DatabaseInput",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::KMS::Alias": "AliasName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::Scheduler::ScheduleGroup": "Name",
    "AWS::Events::Rule": "Name",
}
"""Names that an account or a region has once."""


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stack with a bucket of its own and two services, in an app without any of our CDK flags. Another stack's service shares
    the Glue database of the first."""
    outdir = tmp_path_factory.mktemp("own")
    app = cdk.App(outdir=str(outdir), analytics_reporting=False)
    stack = cdk.Stack(app, "studio")
    s3.Bucket(stack, "Mine")
    games = Forebay(stack, "Games", settings=Settings(env="prod", prefix="games"))
    Forebay(stack, "Games2", settings=Settings(env="prod", prefix="games-eu", freshness="30 min"))
    assert games.foundation.lake.uri.startswith("s3://")
    Forebay(cdk.Stack(app, "shop"), "Service", settings=Settings(env="prod", prefix="shop", database="games"))
    app.synth()
    return outdir


@pytest.fixture
def template(assembly: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((assembly / "studio.template.json").read_text())
    return found


def resources(template: dict[str, Any], within: str) -> dict[str, Any]:
    return {name: one for name, one in template["Resources"].items() if name.startswith(within)}


def test_two_services_in_one_stack_share_no_name(template: dict[str, Any]) -> None:
    taken: dict[tuple[str, str], str] = {}
    for logical_id, resource in template["Resources"].items():
        if named_by := NAMED_BY.get(resource["Type"]):
            name = resource.get("Properties", {}).get(named_by)
            if name is not None:
                key = (resource["Type"], json.dumps(name))
                assert key not in taken, f"{logical_id} and {taken[key]} have one name"
                taken[key] = logical_id
    assert {kind for kind, _ in taken} == set(NAMED_BY)


def test_each_service_tells_its_outputs_under_its_own_id(template: dict[str, Any]) -> None:
    names = ("LandingBucket", "LandingPrefix", "QueueUrl", "DeadUrls", "LakeUri", "IngestJob", "AlarmTopicArn")
    assert {f"{within}{name}" for within in ("Games", "Games2") for name in names} <= set(template["Outputs"])
    assert template["Outputs"]["GamesIngestJob"]["Value"] == "games-ingest"
    assert template["Outputs"]["Games2IngestJob"]["Value"] == "games-eu-ingest"


def test_all_that_can_be_tagged_is_tagged_with_its_own_service(template: dict[str, Any]) -> None:
    for kind in ("AWS::S3::Bucket", "AWS::Glue::Job", "AWS::Lambda::Function", "AWS::SQS::Queue", "AWS::KMS::Key"):
        for logical_id, resource in resources(template, "Games").items():
            if resource["Type"] == kind:
                tags = resource["Properties"]["Tags"]
                tags = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
                assert tags["deployment"] == ("games-eu" if logical_id.startswith("Games2") else "games"), logical_id
    (mine,) = [one for name, one in template["Resources"].items() if name.startswith("Mine")]
    assert "deployment" not in json.dumps(mine)


def test_a_job_may_read_its_code_where_the_stack_keeps_it(template: dict[str, Any]) -> None:
    """The stack's synthesizer has no prefix for assets."""
    statements = [
        statement
        for resource in resources(template, "GamesIngest").values()
        if resource["Type"] == "AWS::IAM::Policy"
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
        if statement["Sid"] == "ReadCode"
    ]
    assert json.dumps(statements[0]["Resource"]).endswith('"/*"]]}')


def test_services_that_share_a_glue_database_are_warned_of(assembly: Path) -> None:
    told = {name: (assembly / f"{name}.metadata.json").read_text() for name in ("studio", "shop")}
    assert "shares the Glue database games with studio/Games:" in told["shop"]
    assert "shares the Glue database" not in told["studio"]


def test_declarations_that_make_no_sense_are_refused_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "shop"\nwher = 1\n')
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path / "out"), analytics_reporting=False), "studio")
    with pytest.raises(InvalidConfiguration, match="wher"):
        Forebay(stack, "Shop", settings=Settings(service=str(tmp_path)))


def test_settings_that_do_not_fit_together_are_refused_here_too() -> None:
    with pytest.raises(InvalidConfiguration, match="names orders twice"):
        Forebay(cdk.Stack(cdk.App(), "studio"), "Shop", settings=Settings(watched_tables="orders,orders"))


QUEUE = {
    "landing_bucket": "drops",
    "landing_queue": "arn:aws:sqs:eu-west-1:123456789012:drops",
    "landing_dead_queue": "arn:aws:sqs:eu-west-1:123456789012:dead",
}
IRELAND = cdk.Environment(account="123456789012", region="eu-west-1")
AMERICA = "arn:aws:{}:us-east-1:123456789012:{}"


@pytest.fixture(scope="module")
def studio() -> cdk.Stack:
    """Two services, each with a lake in a bucket that is there already."""
    stack = cdk.Stack(cdk.App(), "studio")
    Forebay(stack, "One", settings=Settings(prefix="games", lake_bucket="studio-lake", **QUEUE))
    Forebay(stack, "Two", settings=Settings(prefix="logs", lake_bucket="studio-more", lake_prefix="in/lake/"))
    return stack


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"prefix": "games"}, "the prefix games is that of studio/One, too"),
        ({"prefix": "shop", "lake_bucket": "studio-lake"}, "the lake studio-lake/ is that of studio/One, too"),
        ({"prefix": "shop", **QUEUE}, "the queue is that of studio/One, too"),
        (
            {"prefix": "shop", **QUEUE, "landing_bucket": "studio-more"},
            "the lake studio-more/in/lake/ of studio/Two would have its data files loaded",
        ),
        (
            {"prefix": "shop", "lake_bucket": "drops", "lake_prefix": "in/lake/"},
            "is where studio/One takes in files",
        ),
    ],
)
def test_two_services_that_would_have_the_same_names_one_lake_or_one_queue_are_refused(
    studio: cdk.Stack, other: dict[str, str], said: str
) -> None:
    """Of two jobs with one checkpoint the lease lets one work, and the other never does. A message goes to one of two."""
    with pytest.raises(InvalidConfiguration, match=said):
        Forebay(studio, "Other", settings=Settings(**other))
    assert studio.node.try_remove_child("Other")


def test_services_may_have_one_name_in_two_places_and_one_bucket_for_two_lakes_and_what_lands() -> None:
    app = cdk.App()
    for unknown in ("test", "live"):
        Forebay(cdk.Stack(app, unknown), "Service", settings=Settings(prefix="games"))
    for region in ("eu-west-1", "us-east-1"):
        stack = cdk.Stack(app, region, env=cdk.Environment(account="123456789012", region=region))
        Forebay(stack, "Service", settings=Settings(prefix="games", lake_bucket="drops", lake_prefix=f"{region}/"))
    Forebay(cdk.Stack(app, "shop"), "Service", settings=Settings(prefix="shop", **QUEUE))


def test_what_is_adopted_must_be_where_the_stack_is() -> None:
    """As the app says it: here the stack knows its region, and no environment does."""
    topic, key = AMERICA.format("sns", "drops"), AMERICA.format("kms", "key/1234abcd-12ab-34cd-56ef-1234567890ab")
    settings = Settings(landing_bucket="drops", landing_topic=topic, data_key=key)
    with pytest.raises(InvalidConfiguration) as refused:
        Forebay(cdk.Stack(cdk.App(), "studio", env=IRELAND), "Games", settings=settings)
    assert {problem.where for problem in refused.value.problems} == {"landing_topic", "data_key"}
    nowhere = cdk.Environment(region="eu-wset-1")
    with pytest.raises(InvalidConfiguration, match="eu-wset-1"):
        Forebay(cdk.Stack(cdk.App(), "studio", env=nowhere), "Games", settings=Settings())
