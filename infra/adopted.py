"""Whether what is adopted is where the service is, as far as the `cdk` command or the environment says where that is.

In: settings, a region and an account, each empty where nobody says it. Out: problems. A key, topic or subnet of elsewhere fails
the deployment: a subscription and its dead-letter queue must be in one region. A queue of elsewhere would not: but its metrics
are there, so no alarm here would ring, and nothing would wake a draining job.
https://docs.aws.amazon.com/sns/latest/dg/sns-configure-dead-letter-queue.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forebay.errors import Problem
from infra.forms import listed
from infra.settings import Settings

KEYS, TOPICS = ("data_key", "assets_key", "landing_queue_key"), ("landing_topic",)
QUEUES = ("landing_queue", "landing_dead_queue")
MEND_REGION = "adopt one in this region; buckets in another region can send their events here, with landing_eventbridge"
MEND_ACCOUNT = "adopt one in this account; a topic in another account works, with landing_topic"


def said_account(env: Mapping[str, str]) -> str:
    return env.get("CDK_DEFAULT_ACCOUNT", "")


def problems_of_adopted(settings: Settings, region: str, account: str) -> Iterator[Problem]:
    for name in (*KEYS, *TOPICS, *QUEUES):
        for arn in listed(getattr(settings, name)):
            _, _, _, its_region, its_account, *_ = arn.split(":")
            if region and its_region != region:
                yield Problem(name, f"is in {its_region}, but the service is in {region}", MEND_REGION)
            if account and its_account != account and name in QUEUES:
                yield Problem(name, f"is in account {its_account}, but the service is in {account}", MEND_ACCOUNT)
    for subnet in listed(settings.vpc_subnets):
        zone = subnet.partition(":")[2]
        if region and zone[:-1] != region:
            yield Problem("vpc_subnets", f"{zone} is not a zone of {region}", "give subnets of the region's VPC")
