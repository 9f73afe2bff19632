"""Synth takes seconds, so it is done once for each of the two services that the tests look at."""

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
KEY = "arn:aws:kms:eu-west-1:210987654321:key/1234abcd"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """Everything is made anew; it drains."""
    return synthesized(tmp_path_factory.mktemp("made"), env="dev", mode="drain")


@pytest.fixture(scope="session")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """The landing bucket was there already; it runs on; tables of its own; data may go with the stack."""
    service = tmp_path_factory.mktemp("declarations") / "service.toml"
    service.write_text(SERVICE)
    return synthesized(
        tmp_path_factory.mktemp("adopted"),
        env="prod",
        mode="continuous",
        service=str(service),
        landing_bucket="studio-drops",
        landing_topic=TOPIC,
        landing_key=KEY,
        landing_prefix="",
        alarm_email="night@example.org",
        alarm_url="https://oncall.example.org/in",
        alarm_slack="T01234567/C0123456789",
        watched_tables="orders",
        monthly_budget_usd="200",
        dpu_hour_usd="0.44",
        delete_data="true",
        delete_data_of="forebay-prod",
    )
