"""Settings that are each valid alone, and do not fit together.

In: settings. Out: problems, one for each contradiction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from forebay.errors import Problem
from infra.forms import listed
from infra.quotas import beyond_quotas
from infra.settings import SMALLEST_WORKER, Settings

RESERVED_NAMES = ("aws", "ssm")
OF_EVERY_ACCOUNT = ("default", "primary")
"""A group of Scheduler and a database of Glue; a workgroup of Athena."""
LEAST_DAYS_LANDED = 15
"""A message may wait for 14 days, and reconcile looks back 15."""
SEVERAL = (
    *("landing_bucket", "landing_topic", "landing_key", "producer_accounts", "analysts", "operators", "vault_users"),
    *("vpc_subnets", "vpc_security_groups", "vpc_route_tables", "watched_tables", "table_metrics"),
)
"""Settings that are comma-separated lists."""


def contradictions(settings: Settings) -> Iterator[Problem]:
    yield from (Problem("context", what) for what in _sentences(settings))


def _sentences(settings: Settings) -> Iterator[str]:
    yield from _cannot_be_adopted(settings)
    yield from _cannot_be_a_network(settings)
    if settings.name in OF_EVERY_ACCOUNT:
        yield f"the prefix {settings.name!r} is the name of a group of schedules or of a workgroup of AWS itself"
    if settings.engine == "emr-serverless":
        yield from _what_emr_lacks(settings)
    if settings.reconcile_below and not settings.reconcile_below.startswith(settings.landing_prefix):
        yield f"reconcile_below must begin with landing_prefix, {settings.landing_prefix}"
    if 0 < settings.keep_landed_days < LEAST_DAYS_LANDED:
        yield f"keep_landed_days must be {LEAST_DAYS_LANDED} or more, or 0: a message may wait for 14 days"
    for setting in SEVERAL:
        for one, count in Counter(listed(getattr(settings, setting))).items():
            if count > 1:
                yield f"{setting} names {one} twice"
    yield from _cannot_be_replicated(settings)
    yield from beyond_quotas(settings)
    if settings.delete_data != bool(settings.delete_data_of):
        yield f"data is deleted only if delete_data is true and delete_data_of is {settings.name}"
    if settings.delete_data and settings.termination_protection:
        yield "delete_data and termination_protection contradict each other: set only one of them"
    if settings.delete_data_of not in ("", settings.name):
        yield f"delete_data_of is {settings.delete_data_of!r}, but this deployment is {settings.name!r}"


def _cannot_be_adopted(settings: Settings) -> Iterator[str]:
    ways = [settings.landing_topic, settings.landing_eventbridge, settings.landing_queue]
    if bool(settings.landing_bucket) != (sum(map(bool, ways)) == 1):
        yield (
            "landing_bucket needs exactly one of landing_topic, landing_eventbridge and landing_queue, "
            "and each of them needs landing_bucket"
        )
    if bool(settings.landing_queue) != bool(settings.landing_dead_queue):
        yield "landing_queue and landing_dead_queue are adopted together: give both, or neither"
    if settings.landing_queue_key and not settings.landing_queue:
        yield "landing_queue_key is for an adopted queue: give landing_queue, too"
    if settings.landing_key and not settings.landing_bucket:
        yield "landing_key is for adopted buckets: give landing_bucket, too"
    if settings.producer_accounts and settings.landing_bucket:
        yield "producer_accounts is for the bucket that is created here; the policy of an adopted bucket is yours"
    for setting in ("landing_bucket", "lake_bucket"):
        for bucket in listed(getattr(settings, setting)):
            if bucket.startswith(f"{settings.name}-"):
                yield f"{setting} {bucket!r} has a name that is reserved for the buckets created here"
    if settings.lake_bucket in listed(settings.landing_bucket) and settings.lake_bucket:
        yield "lake_bucket is a landing bucket, too: the lake's own objects would be announced as files to load"
    if settings.existing_roles and (settings.analysts or settings.operators or settings.vault_users):
        yield "existing_roles creates no roles: give analysts, operators and vault_users your own roles"
    if settings.existing_roles and settings.permissions_boundary:
        yield "permissions_boundary is for roles that are created here; existing_roles have their own"


def _cannot_be_replicated(settings: Settings) -> Iterator[str]:
    if bool(settings.replicate_to) != bool(settings.replicate_to_key):
        yield "replicate_to and replicate_to_key belong together: give both, or neither"
    if settings.replicate_to and not settings.keep_deleted_days:
        yield "replicate_to needs versions: set keep_deleted_days, too"
    if settings.replicate_to and settings.lake_bucket:
        yield "replicate_to is for the lake that is created here; the replication of an adopted bucket is yours"
    if settings.replicate_to and settings.existing_roles:
        yield "existing_roles creates no roles, and replicate_to needs one: replicate the bucket yourself"


def _cannot_be_a_network(settings: Settings) -> Iterator[str]:
    if bool(settings.vpc_subnets) != bool(settings.vpc_security_groups):
        yield "vpc_subnets and vpc_security_groups belong together: give both, or neither"
    if bool(settings.vpc_endpoints) != bool(settings.vpc_route_tables):
        yield "vpc_endpoints and vpc_route_tables belong together: give both, or neither"
    if settings.vpc_endpoints and not settings.vpc_subnets:
        yield "vpc_endpoints are for jobs and functions in a VPC: give vpc_subnets, too"


def _what_emr_lacks(settings: Settings) -> Iterator[str]:
    if settings.worker_type == SMALLEST_WORKER:
        yield f"worker_type {SMALLEST_WORKER} is only for Glue: engine emr-serverless needs G.1X or larger"
    if settings.name.startswith(RESERVED_NAMES):
        yield f"the prefix {settings.name!r}: Systems Manager keeps names that begin with {' or '.join(RESERVED_NAMES)} for AWS"
    if settings.worker_type == "G.8X":
        yield "worker_type G.8X has 32 vCPUs, but a worker of engine emr-serverless has at most 16: use G.4X or smaller"
    if not (settings.python_modules.startswith("s3://") and settings.python_modules.endswith(".tar.gz")):
        yield (
            "engine emr-serverless installs no modules: python_modules must be the s3:// address of a packed virtual "
            "environment, .tar.gz, as `make bundle` makes it"
        )
