"""Synth takes seconds, so it is done once for each of the services that the tests look at."""

from __future__ import annotations

import pytest

from tests.infra.synthesized import Synthesized, synthesized

SERVICE = """
name = "shop"

[[tables]]
name = "orders"
where = { event = "order" }
compaction = { group = "asia" }

[schedules.night]
job = "compact"
group = "asia"
at = "daily 03:30"
zone = "Asia/Tokyo"
"""
TOPIC = "arn:aws:sns:eu-west-1:210987654321:studio-drops"
KEY = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ac"
REPLICA_KEY = "arn:aws:kms:us-west-2:123456789012:key/5678abcd-12ab-34cd-56ef-1234567890ab"
PRODUCER = "210987654321"
BOUNDARY = "arn:aws:iam::123456789012:policy/studio-boundary"
IN_A_VPC = {
    "landing_bucket": "studio-drops,studio-more",
    "landing_eventbridge": True,
    "vpc_subnets": "subnet-0a1b2c3d:eu-west-1a,subnet-0a1b2c3e:eu-west-1b",
    "vpc_security_groups": "sg-0a1b2c3d",
    "vpc_endpoints": "vpc-0a1b2c3d",
    "vpc_route_tables": "rtb-0a1b2c3d",
    "lake_formation": True,
    "analysts": "arn:aws:iam::123456789012:role/analysts",
    "operators": "arn:aws:iam::123456789012:root",
}
BROUGHT = {
    "landing_bucket": "studio-drops",
    "landing_queue": "arn:aws:sqs:eu-west-1:123456789012:studio-arrivals",
    "landing_dead_queue": "arn:aws:sqs:eu-west-1:123456789012:studio-dead",
    "landing_queue_key": "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890aa",
    "lake_bucket": "studio-lake",
    "lake_prefix": "games/eu/",
    "data_key": "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "database": "studio_games",
    "existing_roles": "studio-forebay-",
}
PYTHON = "s3://studio-tools/python.tar.gz"
SHAPES = ("made", "adopted", "auto", "in_vpc", "brought", "emr")
"""The fixtures below: what holds of every template is asked of each."""
WITH_AN_ARCHIVE = """
name = "shop"
after_load = { move = "s3://studio-archive/old/" }
[[tables]]
name = "orders"
"""
THAT_FORGETS = """
name = "shop"
on_delete = "forget"
former_archives = ["s3://studio-archive/old/", "s3://older"]
[[tables]]
name = "{game}"
"""
WITH_A_VAULT = """
name = "shop"
after_load = { delete = true }
[privacy]
subject = "user_id"
secret = "s3://studio-secrets/tokens"
vault = "s3://studio-vault/shop"
vault_key = "alias/studio-vault"
landing = "rewrite"
personal = [{ path = "email", vault = true }]
[[tables]]
name = "orders"
"""


def declared(folders: pytest.TempPathFactory, text: str) -> str:
    """The place of these declarations."""
    service = folders.mktemp("declarations") / "service.toml"
    service.write_text(text)
    return str(service)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """Everything is made anew, another account puts files there, and the lake is copied."""
    return synthesized(
        tmp_path_factory.mktemp("made"),
        env="dev",
        producer_accounts=PRODUCER,
        keep_deleted_days=30,
        replicate_to="studio-copies",
        replicate_to_key=REPLICA_KEY,
    )


@pytest.fixture(scope="session")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """The landing bucket was there already; a run stays on while files come; tables of its own; data may go with the stack."""
    return synthesized(
        tmp_path_factory.mktemp("adopted"),
        env="prod",
        freshness="4 min",
        service=declared(tmp_path_factory, SERVICE),
        landing_bucket="studio-drops",
        landing_topic=TOPIC,
        landing_key=KEY,
        landing_prefix="",
        alarm_email="night@example.org",
        alarm_url="https://oncall.example.org/in",
        alarm_slack="T01234567/C0123456789",
        watched_tables="orders",
        budget_usd_month="200",
        dpu_hour_usd="0.44",
        python_modules="s3://studio-tools/a.whl,pydantic==2.11,s3://studio-tools/more/b.whl",
        delete_data="true",
        delete_data_of="forebay-prod",
    )


@pytest.fixture(scope="session")
def auto(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """Six small workers; personal fields have a vault, files are deleted once loaded, and everybody who may be let in is."""
    return synthesized(
        tmp_path_factory.mktemp("auto"),
        env="prod",
        worker_type="G.025X",
        workers="6",
        service=declared(tmp_path_factory, WITH_A_VAULT),
        assets_key=REPLICA_KEY,
        table_metrics="*",
        **dict.fromkeys(("vault_users", "operators", "analysts"), IN_A_VPC["analysts"]),
    )


@pytest.fixture(scope="session")
def in_vpc(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """In a VPC without internet; several buckets announce by EventBridge; people have roles, and Lake Formation decides."""
    return synthesized(tmp_path_factory.mktemp("in_vpc"), env="dev", **IN_A_VPC)


@pytest.fixture(scope="session")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """All that can be brought was there already."""
    return synthesized(tmp_path_factory.mktemp("brought"), env="dev", **BROUGHT)


@pytest.fixture(scope="session")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """Settings and declarations that most services leave alone. None of them touches what the others are about."""
    return synthesized(
        tmp_path_factory.mktemp("chosen"),
        env="dev",
        service=declared(tmp_path_factory, THAT_FORGETS),
        keep_landed_days=20,
        reconcile_below="in/%Y/%m/%d/",
        permissions_boundary=BOUNDARY,
        freshness="30 min",
        budget_usd_month=100,
        termination_protection="true",
        watched_tables="a_1,a1,A1",
        operators=IN_A_VPC["operators"],
        analysts=IN_A_VPC["operators"],
        athena=False,
    )


@pytest.fixture(scope="session")
def emr(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """The jobs run on EMR Serverless; files of an adopted bucket move to an archive."""
    return synthesized(
        tmp_path_factory.mktemp("emr"),
        env="prod",
        engine="emr-serverless",
        python_modules=PYTHON,
        workers="10",
        service=declared(tmp_path_factory, WITH_AN_ARCHIVE),
        landing_bucket="studio-drops",
        landing_topic=TOPIC,
        landing_key=KEY,
        operators=IN_A_VPC["operators"],
    )
