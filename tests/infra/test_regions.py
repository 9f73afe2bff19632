"""A region that is misspelt, or that lacks something, is told before anything is deployed."""

from __future__ import annotations

import pytest

from forebay.errors import InvalidConfiguration
from infra import app
from infra.regions import SERVICES, problems_of_region, region_in, regions_of

KNOWN = {"emr-serverless": {"eu-west-1"}, "sqs": {"eu-west-1", "eu-south-9"}, "glue": {"eu-west-1", "eu-south-9"}}


def said(region: str, engine: str = "glue") -> list[str]:
    known = {name: there for name, there in KNOWN.items() if name in (engine, "sqs")}
    return [f"{p.where}: {p.what} ({p.suggestion})" for p in problems_of_region(region, engine, known)]


def test_a_region_with_everything_is_fine_and_so_is_one_that_nobody_names() -> None:
    assert said("eu-west-1", "emr-serverless") == said("eu-south-9") == said("") == []


def test_a_region_without_the_engine_is_refused_with_some_that_have_it() -> None:
    assert said("eu-south-9", "emr-serverless") == [
        "region: eu-south-9 does not have the engine emr-serverless (eu-west-1 and others do)"
    ]


def test_a_misspelt_region_is_refused_with_the_one_that_was_meant() -> None:
    assert said("eu-wst-1") == ["region: 'eu-wst-1' is not a known region (did you mean eu-west-1?)"]


def test_the_list_of_botocore_knows_the_engines_and_all_services() -> None:
    found = regions_of(("glue", "emr-serverless", *SERVICES))
    assert set(found) == {"glue", "emr-serverless", *SERVICES}
    assert {"eu-west-1", "cn-north-1", "us-gov-west-1"} <= found["glue"]


def test_the_cdk_commands_region_counts_before_the_environments() -> None:
    assert region_in({"CDK_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "us-east-1"}) == "eu-west-1"
    assert region_in({"AWS_DEFAULT_REGION": "us-east-1"}) == "us-east-1"
    assert region_in({}) == ""


def test_a_wrong_region_is_told_with_everything_else_that_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-wst-1")
    assert app.main(["-c", "wrkers=3"]) == 2
    told = capsys.readouterr().err
    assert "region: 'eu-wst-1' is not a known region (did you mean eu-west-1?)" in told
    assert "wrkers: is unknown (did you mean workers?)" in told
    with pytest.raises(InvalidConfiguration, match="is not a known region"):
        app.build({}, region="eu-wst-1")
