"""What is adopted must be where the service is: else AWS refuses it, or an alarm looks at a queue that it cannot see."""

from __future__ import annotations

import pytest

from infra import app
from infra.adopted import problems_of_adopted
from infra.context import settings_in
from tests.infra.conftest import BROUGHT, IN_A_VPC

HERE = "arn:aws:sns:eu-west-1:210987654321"
QUEUES = {"landing_bucket": "drops", "landing_queue": "arn:aws:sqs:eu-west-1:123456789012:q"}
QUEUES |= {"landing_dead_queue": "arn:aws:sqs:eu-west-1:123456789012:dead"}


def said(region: str = "eu-west-1", account: str = "123456789012", **context: object) -> list[str]:
    return [f"{p.where}: {p.what}" for p in problems_of_adopted(settings_in(context), region, account)]


@pytest.mark.parametrize("context", [BROUGHT, IN_A_VPC, {}])
def test_what_is_in_the_region_and_the_account_is_fine_and_so_is_all_where_nobody_names_them(
    context: dict[str, object],
) -> None:
    assert said(**context) == said("", "", **context) == []


def test_a_queue_of_another_region_or_account_is_refused_for_no_alarm_could_see_it() -> None:
    assert said("eu-central-1", **QUEUES) == [
        "landing_queue: is in eu-west-1, but the service is in eu-central-1",
        "landing_dead_queue: is in eu-west-1, but the service is in eu-central-1",
    ]
    assert said(account="210987654321", **QUEUES) == [
        "landing_queue: is in account 123456789012, but the service is in 210987654321",
        "landing_dead_queue: is in account 123456789012, but the service is in 210987654321",
    ]


def test_a_key_works_in_its_region_alone_and_may_be_of_another_account() -> None:
    key = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ac"
    assert said("us-east-1", data_key=key) == ["data_key: is in eu-west-1, but the service is in us-east-1"]
    assert said(data_key=key) == []


def test_a_topic_of_another_region_is_refused_for_neither_cloudformation_nor_its_dead_letters_would_find_the_way() -> (
    None
):
    topics = {"landing_bucket": "drops", "landing_topic": f"{HERE}:near,arn:aws:sns:us-east-1:210987654321:far"}
    (problem,) = problems_of_adopted(settings_in(topics), "eu-west-1", "123456789012")
    assert (problem.where, problem.what) == ("landing_topic", "is in us-east-1, but the service is in eu-west-1")
    assert "landing_eventbridge" in problem.suggestion, "the remedy must work"
    assert said("", **topics) == []


def test_a_subnets_zone_is_one_of_the_region() -> None:
    subnets = {
        "vpc_subnets": "subnet-0a1b2c3d:eu-west-1a,subnet-0a1b2c3e:eu-west-2a",
        "vpc_security_groups": "sg-0a1b2c3d",
    }
    assert said(**subnets) == ["vpc_subnets: eu-west-2a is not a zone of eu-west-1"]


def test_it_is_told_at_synth_with_everything_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "210987654321")
    words = [word for pair in QUEUES.items() for word in ("-c", "=".join(pair))]
    assert app.main([*words, "-c", "service=/nowhere"]) == 2
    told = capsys.readouterr().err
    assert "landing_queue: is in account 123456789012" in told
    assert "/nowhere" in told
