"""Whether what is adopted is where the service is, as far as the `cdk` command or the environment says where that is.

In: settings, a region and an account, each empty where nobody says it. Out: problems. A key or subnet of elsewhere fails the
deployment. A queue of elsewhere would not: but its metrics are there, so no alarm here would ring, and nothing would wake a
draining job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forebay.errors import Problem
from infra.settings import Settings, listed

__all__ = ["problems_of_adopted", "said_account"]

KEYS, QUEUES = ("data_key", "landing_queue_key"), ("landing_queue", "landing_dead_queue")
MEND = "adopt one that is there; notifications of elsewhere can reach the service by landing_topic"


def said_account(env: Mapping[str, str]) -> str:
    return env.get("CDK_DEFAULT_ACCOUNT", "")


def problems_of_adopted(settings: Settings, region: str, account: str) -> Iterator[Problem]:
    for name in (*KEYS, *QUEUES):
        if not (arn := getattr(settings, name)):
            continue
        _, _, _, its_region, its_account, *_ = arn.split(":")
        if region and its_region != region:
            yield Problem(name, f"is in {its_region}, and the service in {region}", MEND)
        if account and its_account != account and name in QUEUES:
            yield Problem(name, f"is of account {its_account}, and the service of {account}", MEND)
    for subnet in listed(settings.vpc_subnets):
        zone = subnet.partition(":")[2]
        if region and zone[:-1] != region:
            yield Problem("vpc_subnets", f"{zone} is no zone of {region}", "give subnets of the region's VPC")
