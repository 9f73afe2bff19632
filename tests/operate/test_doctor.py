"""What belongs to a service, where a stack has several and other things besides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forebay.operate.doctor import landing
from forebay.operate.doctor.lake import vault
from forebay.operate.doctor.queues import dead_letters
from forebay.operate.stack.deployment import Deployment, Resource, look_up

NAMES = ("LandingBucket", "LandingPrefix", "QueueUrl", "DeadUrls", "LakeUri", "IngestJob", "AlarmTopicArn")


class Stack:
    """CloudFormation and STS, as far as they are asked."""

    meta = SimpleNamespace(region_name="eu-west-1")

    def get_caller_identity(self) -> dict[str, Any]:
        return {"Account": "123456789012"}

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        found = [
            {"OutputKey": f"{within}{name}", "OutputValue": f"{prefix}-ingest" if name == "IngestJob" else name}
            for within, prefix in (("Games", "games"), ("Games2", "games-eu"))
            for name in NAMES
        ]
        return {"Stacks": [{"StackStatus": "CREATE_COMPLETE", "Outputs": found}]}

    def get_paginator(self, _: str) -> Any:
        ids = ("GamesIngestJob1", "Games2IngestJob2", "MyOwnJob3")
        listed = [
            {
                "ResourceType": "AWS::Glue::Job",
                "ResourceStatus": "CREATE_COMPLETE",
                "LogicalResourceId": one,
                "PhysicalResourceId": one,
            }
            for one in ids
        ]
        return SimpleNamespace(paginate=lambda **_: [{"StackResourceSummaries": listed}])


def found(within: str) -> Deployment:
    return look_up("studio", lambda service: Stack(), within=within)


@pytest.mark.parametrize(
    ("within", "name", "job"), [("Games", "games", "GamesIngestJob1"), ("Games2", "games-eu", "Games2IngestJob2")]
)
def test_a_construct_of_a_larger_stack_is_looked_at_alone(within: str, name: str, job: str) -> None:
    on = found(within)
    assert on.is_deployed
    assert (on.name, on.of("Glue::Job")) == (name, [job])


def test_why_a_letter_died_is_not_asserted_for_nobody_has_read_it() -> None:
    sqs = SimpleNamespace(get_queue_attributes=lambda **_: {"Attributes": {"ApproximateNumberOfMessages": "2"}})
    on: Any = SimpleNamespace(
        dead_url="http://q/dead", undelivered_url="", queue_url="http://q/q", client=lambda _: sqs
    )
    (finding,) = dead_letters(on)
    assert finding.why.startswith("Each was not understood, or was received too often")
    assert finding.fix == "forebay queue dlq --queue-url http://q/q"


OLD_GO = {"ID": "old", "Status": "Enabled", "Filter": {}, "NoncurrentVersionExpiration": {"NoncurrentDays": 1}}


@pytest.mark.parametrize(
    ("status", "rules", "told"),
    [
        (None, [], False),
        ("Enabled", [], True),
        ("Suspended", [{**OLD_GO, "NoncurrentVersionExpiration": {}} | {"Status": "Disabled"}], True),
        ("Enabled", [{"ID": "uploads", "Status": "Enabled", "Filter": {}}], True),
        ("Enabled", [{**OLD_GO, "Filter": {"Prefix": "other/"}}], True),
        ("Enabled", [{**OLD_GO, "Filter": {"Prefix": ""}}], False),
        ("Suspended", [OLD_GO], False),
    ],
)
def test_a_vault_that_keeps_old_versions_is_told_of(
    status: str | None, rules: list[dict[str, Any]], told: bool
) -> None:
    """Its values would be there after they were replaced, and after their days."""
    s3 = SimpleNamespace(
        get_bucket_versioning=lambda **_: {"Status": status} if status else {},
        get_bucket_lifecycle_configuration=lambda **_: {"Rules": rules},
    )
    buckets = (
        Resource("S3::Bucket", "GamesVaultA1", "games-vault"),
        Resource("S3::Bucket", "GamesLakeA1", "games-lake"),
    )
    outputs = {"LakeUri": "s3://games-lake/tables", "LandingBucket": "games-landing"}
    on = Deployment(lambda _: s3, "games", "123456789012", "eu-west-1", outputs=outputs, resources=buckets)
    found = list(vault(on))
    assert [one.what for one in found] == ["the vault games-vault keeps old versions of its objects"] * told


MARKS, DELETES = "s3:ObjectRemoved:DeleteMarkerCreated", "s3:ObjectRemoved:Delete"


@pytest.mark.parametrize(
    ("events", "is_found"),
    [(("s3:ObjectRemoved:*",), False), ((DELETES, MARKS), False), ((DELETES,), True), ((MARKS,), True)],
    ids=["all", "both", "no marks", "only marks"],
)
def test_deletions_are_announced_by_the_two_events_that_all_of_them_stand_for(
    events: tuple[str, ...], is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 takes one configuration for each event, too."""
    monkeypatch.setattr(landing, "_forgetting", lambda on: ["games"])
    configured = [
        {"TopicArn": "t", "Events": ["s3:ObjectCreated:*"]},
        *({"TopicArn": "t", "Events": [e]} for e in events),
    ]
    s3 = SimpleNamespace(get_bucket_notification_configuration=lambda Bucket: {"TopicConfigurations": configured})  # noqa: N803
    on: Any = SimpleNamespace(
        adopts_queue=False,
        landed_rules=(),
        landing_buckets=("drops",),
        landing_prefix="",
        arrivals_topics=("t",),
        client=lambda service: s3,
    )
    assert len([*landing.deletions(on)]) == is_found


def test_a_construct_that_is_not_there_is_not_deployed() -> None:
    assert not found("Shop").is_deployed
    assert not found("").is_deployed
