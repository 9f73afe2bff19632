"""Settings come from context; what is wrong is said at once, all of it, in words that help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forebay.declaration.mistakes.hints import OF_DEPLOYMENT
from forebay.errors import InvalidConfiguration
from infra.context import settings_in
from infra.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "arn:aws:sns:eu-west-1:123456789012:drops"
PYTHON = "s3://studio-tools/python.tar.gz"


def many(count: int) -> str:
    return ",".join(f"drops-{n:03}".ljust(62, "x") for n in range(count))


def problems(context: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidConfiguration) as refused:
        settings_in(context)
    return {p.where: f"{p.what} ({p.suggestion})" for p in refused.value.problems}


def test_every_environment_of_the_repository_is_accepted() -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    found = {env: settings_in({**context, "env": env}) for env in context["environments"]}
    assert {env: (s.name, s.freshness_s) for env, s in found.items()} == {
        "local": ("forebay-local", 600),
        "dev": ("forebay-dev", 600),
        "prod": ("forebay-prod", 300),
    }


def test_declarations_know_which_settings_are_of_the_deployment() -> None:
    assert set(OF_DEPLOYMENT) <= Settings.model_fields.keys()


def test_a_setting_on_the_command_line_wins_and_may_be_text() -> None:
    context = {"env": "dev", "environments": {"dev": {"workers": 3, "freshness": "1 h"}}, "workers": "7"}
    settings = settings_in(context)
    assert (settings.workers, settings.freshness_s) == (7, 3600)


def test_the_flags_of_the_cdk_are_not_settings() -> None:
    flags = {"@aws-cdk/core:newStyle": True, "aws:cdk:enable-path-metadata": True, "aws-cdk:enableDiffNoFail": "true"}
    assert settings_in(flags) == Settings()


def test_an_unknown_name_is_refused_with_the_name_that_was_meant() -> None:
    assert problems({"wrkers": 3}) == {"wrkers": "is unknown (did you mean workers?)"}


@pytest.mark.parametrize("freshness", ["soon", "5", 5, "5 s"])
def test_a_freshness_is_a_duration(freshness: object) -> None:
    assert "such as 5 min" in problems({"freshness": freshness})["freshness"]


def test_all_problems_are_told_at_once() -> None:
    found = problems({"workers": "many", "engine": "steam", "landing_prefix": "in", "colour": "blue"})
    assert set(found) == {"workers", "engine", "landing_prefix", "colour"}
    assert found["landing_prefix"].startswith("must be empty, or a key prefix that ends with /")


def test_a_typo_in_another_environment_shows_already_now() -> None:
    context = {"env": "dev", "environments": {"dev": {}, "prod": {"worker": 3}}}
    assert problems(context) == {"environments.prod.worker": "is unknown (did you mean workers?)"}


def test_an_environment_that_is_not_declared_is_refused() -> None:
    assert problems({"env": "live", "environments": {"dev": {}}}) == {
        "env": "there is no environment 'live' (declared: dev)"
    }


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"landing_bucket": "studio-drops"}, "landing_bucket needs exactly one of"),
        (
            {"landing_key": "arn:aws:kms:eu-west-1:123456789012:key/mrk-00000000000000000000000000000001"},
            "give landing_bucket, too",
        ),
        ({"landing_bucket": "drops,more,drops", "landing_topic": TOPIC}, "landing_bucket names drops twice"),
        ({"watched_tables": "alpha,beta,alpha"}, "watched_tables names alpha twice"),
        ({"landing_bucket": many(48), "landing_topic": TOPIC}, "landing_bucket has 3,023 characters; 3,000 fit"),
        (
            {"landing_bucket": many(47), "landing_topic": TOPIC, "landing_prefix": "deep/" * 10},
            "landing_bucket and landing_prefix make 6,439 characters of a policy; 5,500 fit",
        ),
        (
            {"landing_bucket": "drops", "landing_topic": ",".join(f"{TOPIC}{n:0>80}" for n in range(60))},
            "landing_topic has 7,259 characters; 5,000 fit",
        ),
        (
            {
                "landing_bucket": "drops",
                "landing_topic": TOPIC,
                "landing_key": ",".join(
                    f"arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-{n:012}" for n in range(70)
                ),
            },
            "landing_key has 5,319 characters; 5,000 fit",
        ),
        (
            {"operators": ",".join(f"arn:aws:iam::{n:012}:root" for n in range(60))},
            "operators has 1,859 characters; 1,700 fit",
        ),
        (
            {"vault_users": ",".join(f"arn:aws:iam::{n:012}:root" for n in range(60))},
            "vault_users has 1,859 characters; 1,700 fit",
        ),
        (
            {"vault_users": ",".join(2 * ["arn:aws:iam::123456789012:root"])},
            "vault_users names arn:aws:iam::123456789012:root",
        ),
        (
            {
                "vpc_subnets": ",".join(f"subnet-{n:08x}:eu-west-1a" for n in range(17)),
                "vpc_security_groups": "sg-0a1b2c3d",
            },
            "vpc_subnets names 17 subnets; a function takes 16 at most",
        ),
        (
            {
                "vpc_subnets": "subnet-0a1b2c3d:eu-west-1a",
                "vpc_security_groups": ",".join(f"sg-{n:08x}" for n in range(6)),
            },
            "vpc_security_groups names 6 security groups; a function takes 5 at most",
        ),
        (
            {"prefix": "default"},
            "the prefix 'default' is the name of a group of schedules or of a workgroup of AWS itself",
        ),
        ({"prefix": "primary"}, "the prefix 'primary' is the name of a group"),
        ({"keep_landed_days": 14}, "keep_landed_days must be 15 or more, or 0"),
        (
            {"prefix": "ssm-games", "engine": "emr-serverless", "python_modules": PYTHON},
            "Systems Manager keeps names that",
        ),
        (
            {
                "landing_bucket": many(47),
                "landing_topic": TOPIC,
                "reconcile_below": "in/%Y/%m/%d/",
                "table_metrics": ",".join(f"table_{n}" for n in range(100)),
                "engine": "emr-serverless",
                "python_modules": PYTHON,
            },
            "4,500 fit into a parameter of Systems Manager",
        ),
        (
            {"landing_bucket": "forebay-dev-lake-1", "landing_topic": "arn:aws:sns:eu-west-1:123456789012:t"},
            "has a name that is reserved",
        ),
        ({"delete_data": True}, "data is deleted only if delete_data is true and delete_data_of is forebay-dev"),
        ({"delete_data_of": "forebay-dev"}, "data is deleted only if"),
        ({"watched_tables": ",".join(f"t{n}" for n in range(151))}, "watched_tables names 151 tables; 150 fit"),
        (
            {"watched_tables": ",".join(f"{n:0>40}" for n in range(100))},
            "watched_tables has 4,099 characters; 3,000 fit",
        ),
        ({"delete_data": True, "delete_data_of": "forebay-prod"}, "but this deployment is 'forebay-dev'"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(context: dict[str, Any], said: str) -> None:
    assert said in problems(context)["context"]


def test_all_that_does_not_fit_together_is_told_at_once() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        settings_in({"landing_bucket": "studio-drops", "keep_landed_days": 7, "delete_data": True})
    said = [problem.what for problem in refused.value.problems]
    assert [what.split()[0] for what in said] == ["landing_bucket", "keep_landed_days", "data"]


@pytest.mark.parametrize(
    "name",
    [
        *("10.0.0.1", "xn--drops", "sthree-drops", "a..b", "drops-s3alias", "drops--ol-s3", "drops--use1-az4--x-s3"),
        *("drops.mrap", "Drops", "ab", "d" * 64),
    ],
)
def test_a_name_that_no_bucket_can_have_is_refused(name: str) -> None:
    assert "a bucket's name" in problems({"landing_bucket": name})["landing_bucket"]


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"alarm_url": "http://plain.example.org"}, "an address that begins with https://"),
        ({"alarm_slack": "#alarms"}, "such as T01234567/C0123456789"),
    ],
)
def test_who_is_told_of_alarms_must_be_somebody(context: dict[str, Any], said: str) -> None:
    (told,) = problems(context).values()
    assert said in told


@pytest.mark.parametrize("name", ["sthree-games", "sthree", "xn--games", "amzn-s3-demo"])
def test_a_prefix_that_no_bucket_may_begin_with_is_refused(name: str) -> None:
    assert "begin" in problems({"prefix": name})["prefix"]


@pytest.mark.parametrize("prefix", ["in*/", "in?/", "in/${aws:username}/", "Game Drops/", 'in"/'])
def test_a_landing_prefix_that_a_policy_or_s3_reads_otherwise_is_refused(prefix: str) -> None:
    """A star is a wildcard in a policy and a star in a notification; S3 wants a space of a filter written as %20."""
    assert "such as in/" in problems({"landing_prefix": prefix})["landing_prefix"]


@pytest.mark.parametrize("zone", ["eu-west-1a", "us-gov-west-1b", "cn-north-1a", "eusc-de-east-1a"])
def test_a_subnet_may_be_in_a_zone_of_any_partition(zone: str) -> None:
    subnets = f"subnet-0a1b2c3d:{zone}"
    assert settings_in({"vpc_subnets": subnets, "vpc_security_groups": "sg-0a1b2c3d"}).vpc_subnets == subnets


@pytest.mark.parametrize("name", ["data_key", "landing_key", "landing_queue_key", "assets_key", "replicate_to_key"])
@pytest.mark.parametrize("key", ["key/1234", "key/1234abcd-12ab-34cd-56ef-1234567890a", "alias/studio"])
def test_a_key_that_kms_cannot_have_is_refused_with_the_others_and_not_by_a_failed_synth(name: str, key: str) -> None:
    assert "must be the ARN of a KMS key" in problems({name: f"arn:aws:kms:eu-west-1:123456789012:{key}"})[name]


def test_the_longest_prefix_still_makes_names_that_s3_takes() -> None:
    longest = Settings(prefix="p" * 25)
    assert len(f"{longest.name}-artefacts-123456789012-ap-southeast-2") <= 63
    assert "prefix" in problems({"prefix": "p" * 26})


def test_the_readme_lists_every_setting_with_its_default_and_meaning() -> None:
    text = (ROOT / "infra" / "README.md").read_text()
    rows = {}
    for line in text.splitlines():
        if line.startswith("| `") and line.count("|") == 4:
            name, default, meaning = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
            rows[name] = (default, meaning)
    for name, field in Settings.model_fields.items():
        default = json.dumps(field.default) if field.default != "" else "empty"
        assert rows.get(name) == (default.strip('"'), field.description), (
            f"infra/README.md needs the row | `{name}` | `{default}` | {field.description} |"
        )
    assert set(rows) == set(Settings.model_fields)
