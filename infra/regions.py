"""Whether a region has what is deployed, as far as that is known offline: by the list that comes with botocore.

In: a region's name, as the `cdk` command or the environment says it; empty where nobody says it. Out: problems. A region that
is younger than the list is refused, too: then a newer botocore is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import boto3

from forebay.errors import Problem, meant

SERVICES = ("cloudwatch", "events", "kms", "lambda", "logs", "s3", "scheduler", "sns", "sqs")
BY_ENVIRONMENT = ("CDK_DEFAULT_REGION", "AWS_REGION", "AWS_DEFAULT_REGION")


def region_in(env: Mapping[str, str]) -> str:
    return next((env[name] for name in BY_ENVIRONMENT if env.get(name)), "")


def regions_of(services: tuple[str, ...]) -> dict[str, Set[str]]:
    """The regions of all partitions; a service without a list is in every region, or in one for all."""
    session = boto3.Session()
    partitions = session.get_available_partitions()
    listed = {name: {r for p in partitions for r in session.get_available_regions(name, p)} for name in services}
    return {name: found for name, found in listed.items() if found}


def problems_of_region(region: str, engine: str, regions: Mapping[str, Set[str]] | None = None) -> Iterator[Problem]:
    if not region:
        return
    found = regions_of((engine, *SERVICES)) if regions is None else regions
    everywhere = sorted(set().union(*found.values()))
    if region not in everywhere:
        hint = meant(region, everywhere, "a newer boto3 may know it")
        yield Problem("region", f"{region!r} is not a known region", hint)
        return
    for name, there in found.items():
        if region not in there:
            kind = "the engine" if name == engine else "the service"
            yield Problem(
                "region", f"{region} does not have {kind} {name}", f"{', '.join(sorted(there)[:5])} and others do"
            )
