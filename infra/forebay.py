"""The whole service on one screen: its parts, their triggers, and the tools for people.

`Forebay` is a construct, for a stack of this repository's app or for one of your own. Several services fit into one stack or
account, each under its own prefix. A mistake in declarations or settings is `InvalidConfiguration`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra import node  # noqa: F401  isort: skip
from aws_cdk import Annotations, CfnOutput, Stack, Tags, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from forebay.address import is_s3, overlap
from forebay.capacity.rules import Rules
from forebay.declaration.schedule import schedules_of
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration, Problem
from infra.adopted import problems_of_adopted
from infra.alarm_topic import alarm_topic, untold_queue
from infra.alarms import Alarms
from infra.buckets import access_logs_bucket, arn_of
from infra.budget import TAG, budget
from infra.dashboard import dashboard
from infra.declarations import declared, functions_of
from infra.deliveries import rule_arns_of, topic_arns_of
from infra.engines import engine_of
from infra.forms import listed
from infra.foundation import Foundation
from infra.functions import each
from infra.functions.function import Functions
from infra.jobs.code import JobCode
from infra.jobs.ingest import ingest_job
from infra.jobs.job import Job
from infra.jobs.upkeep import upkeep_jobs
from infra.keys import Keys
from infra.lake import Lake
from infra.landing import Landing, landing_buckets
from infra.network import make_endpoints
from infra.queries import Queries
from infra.readers import analyst, grant_tables, operator, vault_user
from infra.refusals import contradictions
from infra.regions import problems_of_region
from infra.replication import replicate
from infra.review import acknowledge_nist
from infra.roles import adopt_roles
from infra.schedules import WAITING_EVERY_MINUTES, Schedules, when_a_job_ends
from infra.settings import Settings
from infra.vault import Vault

ACCESS_LOGS_BY_POLICY = "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy"


@dataclass(frozen=True)
class Jobs:
    ingest: Job
    upkeep: dict[str, Job]

    @property
    def all(self) -> list[Job]:
        return [self.ingest, *self.upkeep.values()]


def tags_of(settings: Settings) -> dict[str, str]:
    return {"service": "forebay", "environment": settings.env, TAG: settings.name}


class Forebay(Construct):
    """One service. Without `service` the declarations are those that the settings name. Everything gets `tags`.

    It sets the one CDK flag that its buckets need, for itself alone: their owner is enforced, so S3 cannot deliver access logs
    by ACL, which is the default of an app without flags."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        service: Service | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.settings = settings
        problems = [*contradictions(settings), *self._problems_of_place(), *self._problems_beside_others()]
        if problems:
            raise InvalidConfiguration(problems)
        self.node.set_context(ACCESS_LOGS_BY_POLICY, True)
        acknowledge_nist(self, "IAMNoInlinePolicy", "a policy is of one role alone, and comes and goes with it")
        if settings.existing_roles:
            adopt_roles(self, settings)
        on = self.foundation = self._foundation(settings, service or declared(settings.service))
        if settings.replicate_to:
            replicate(self, on.lake.bucket, on.keys.data, settings=settings)
        if settings.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", settings.permissions_boundary)
            iam.PermissionsBoundary.of(self).apply(boundary)
        for name, value in (tags_of(settings) if tags is None else tags).items():
            Tags.of(self).add(name, value)
        jobs = Jobs(ingest_job(self, on), upkeep_jobs(self, on))
        functions = Functions(self, "Functions", settings=settings, key=on.keys.data)
        start = each.start_ingest(functions, on, jobs.ingest)
        called = [each.announce_files(functions, on), each.start_job(functions, on, jobs.all)]
        self._wake(on, jobs, functions, start, by=called[1])
        self._show(on, jobs, functions)
        self._let_people_in(on, jobs, called)
        make_endpoints(self, settings)
        self._tell(on, jobs)

    def _problems_of_place(self) -> Iterator[Problem]:
        """Where the stack says its region and account."""
        stack = Stack.of(self)
        region, account = ("" if Token.is_unresolved(one) else one for one in (stack.region, stack.account))
        yield from problems_of_region(region, self.settings.engine)
        yield from problems_of_adopted(self.settings, region, account)

    def _problems_beside_others(self) -> Iterator[Problem]:
        """Names and lakes of other services of the app. Whether two tables ever have the same name, only their records tell."""
        mine, shared = self.settings, []
        for other in self.node.root.node.find_all():
            if not isinstance(other, Forebay) or other is self:
                continue
            of_other, path = other.settings, other.node.path
            if mine.name == of_other.name and _are_in_one_place(Stack.of(self), Stack.of(other)):
                yield Problem("prefix", f"the prefix {mine.name} is that of {path}, too", "each service needs its own")
            if mine.lake_bucket and mine.lake == of_other.lake:
                yield Problem(
                    "lake_bucket", f"the lake {mine.lake} is that of {path}, too", "give each its lake_prefix"
                )
            if _lands_in_lake(of_other, mine):
                what = f"the lake {mine.lake} is where {path} takes in files: it would load the lake's data files"
                yield Problem("lake_bucket", what, "choose another bucket for the lake")
            if _lands_in_lake(mine, of_other):
                what = f"the lake {of_other.lake} of {path} would have its data files loaded"
                yield Problem("landing_bucket", what, "choose a landing_prefix outside of that lake")
            if mine.landing_queue and mine.landing_queue == of_other.landing_queue:
                what = f"the queue is that of {path}, too, so each would get some of the files"
                yield Problem("landing_queue", what, "let both subscribe to the topic")
            if mine.catalog == of_other.catalog:
                shared.append(path)
        if shared:
            warning = f"shares the Glue database {mine.catalog} with {', '.join(shared)}"
            Annotations.of(self).add_warning_v2(
                "forebay:shared-database", f"{warning}: of two tables of one name, one has no entry"
            )

    def _foundation(self, settings: Settings, service: Service) -> Foundation:
        made = "" if settings.landing_bucket else arn_of(landing_buckets(settings)[0])
        topics = topic_arns_of(settings)
        keys = Keys(self, "Keys", settings=settings, landing_bucket_arn=made, topic_arns=topics)
        access_logs = access_logs_bucket(self, settings=settings)
        return Foundation(
            settings=settings,
            service=service,
            keys=keys,
            landing=Landing(
                self,
                "Landing",
                settings=settings,
                key=keys.data,
                access_logs=access_logs,
                deletions=service.on_delete == "forget",
            ),
            lake=Lake(self, "Lake", settings=settings, keys=keys, access_logs=access_logs),
            engine=engine_of(self, settings),
            code=JobCode(self, "Code", service=service, functions=functions_of(service, settings.service)),
            alarms_to=alarm_topic(self, settings=settings, key=keys.data),
            untold=untold_queue(self, settings=settings),
            vault=self._vault(settings, service, keys, access_logs),
            queries=self._queries(settings, keys, access_logs),
        )

    def _vault(self, settings: Settings, service: Service, keys: Keys, access_logs: s3.IBucket) -> Vault | None:
        if service.privacy is None or not is_s3(service.privacy.vault):
            return None
        return Vault(self, "Vault", settings=settings, privacy=service.privacy, keys=keys, access_logs=access_logs)

    def _queries(self, settings: Settings, keys: Keys, access_logs: s3.IBucket) -> Queries | None:
        if not (settings.analysts and settings.athena):
            return None
        return Queries(self, "Queries", settings=settings, keys=keys, access_logs=access_logs)

    def _wake(self, on: Foundation, jobs: Jobs, functions: Functions, start: lam.Function, *, by: lam.Function) -> None:
        """The functions that run on a schedule, when a job ends, or when a person calls them."""
        settings, schedules = on.settings, Schedules(self, "Schedules", settings=on.settings)
        freshness = each.publish_freshness(functions, on, jobs.ingest, jobs.upkeep)
        planner = each.plan_compaction(functions, on, jobs.upkeep["compact"])
        schedules.every(Rules(settings.freshness_s).look_every_s // 60, "start_ingest", start)
        schedules.every(5, "publish_freshness", freshness)
        schedules.every(60, "measure_trend", freshness, {"trend": True})
        schedules.every(settings.plan_compaction_every_minutes, "plan_compaction", planner)
        schedules.every(settings.status_page_every_minutes, "status_page", each.status_page(functions, on, jobs.all))
        schedules.every(WAITING_EVERY_MINUTES, "start_waiting", by, {"waiting": True})
        # Small files daily or sooner, by the planner; the rest by the clock, in the hours that the declarations say.
        for name, schedule in schedules_of(on.service.schedules).items():
            schedules.runs(name, schedule, jobs.upkeep[schedule.job], by=by)
        ended = each.job_ended(functions, on, jobs.all)
        when_a_job_ends(self, settings=settings, engine=on.engine, jobs=jobs.all, function=ended, untold=on.untold)

    def _show(self, on: Foundation, jobs: Jobs, functions: Functions) -> None:
        """The alarms, the dashboard and the roles of people."""
        settings, landing, service = on.settings, on.landing, on.service.name
        alarms = Alarms(self, "Alarms", settings=settings, topic=on.alarms_to, service=service)
        alarms.watch_landing(landing)
        rules = rule_arns_of(settings) if settings.landing_eventbridge else []
        alarms.watch_deliveries(topic_arns_of(settings), rules, on.untold)
        alarms.watch_batches(landing.queue)
        alarms.watch_catalog()
        alarms.watch_notifications()
        alarms.watch_trends()
        alarms.watch_the_watchers(functions.all)
        for table in settings.watched:
            alarms.watch_table(table)
        if settings.budget_usd_month:
            budget(self, settings=settings, topic=on.alarms_to)
        dashboard(self, settings=settings, service=service, landing=landing, jobs=jobs.all, alarms=alarms.all)

    def _let_people_in(self, on: Foundation, jobs: Jobs, called: list[lam.Function]) -> None:
        reader = analyst(self, on)
        acting = operator(self, on, called, jobs.all)
        vault_user(self, on)
        if on.settings.lake_formation:
            grant_tables(self, on, jobs.ingest.role, reader, acting)

    def _tell(self, on: Foundation, jobs: Jobs) -> None:
        """The outputs for other tools."""
        for name, value in {
            "LandingBucket": ",".join(on.landing.buckets),
            "LandingPrefix": on.settings.landing_prefix or "/",
            "QueueUrl": on.landing.queue.queue_url,
            "DeadUrls": on.landing.dead_urls,
            "LakeUri": on.lake.uri,
            "IngestJob": jobs.ingest.name,
            "AlarmTopicArn": on.alarms_to.topic_arn,
            "DataKey": on.keys.data.key_arn,
            "ConditionalCommits": str(on.settings.conditional_commits).lower(),
        }.items():
            CfnOutput(self, name, value=value).override_logical_id(f"{self._within}{name}")

    @property
    def _within(self) -> str:
        """The beginning of logical ids in this construct; `Default` leaves no trace in them."""
        path = self.node.path.partition("/")[2]
        return re.sub(r"[^A-Za-z0-9]", "", path.replace("Default", ""))


def _lands_in_lake(one: Settings, other: Settings) -> bool:
    """Whether S3 would announce files of the other one's lake to this one."""
    landing = (f"s3://{bucket}/{one.landing_prefix}" for bucket in listed(one.landing_bucket))
    return bool(other.lake_bucket) and any(overlap(place, f"s3://{other.lake}") for place in landing)


def _are_in_one_place(one: Stack, other: Stack) -> bool:
    """As far as they say where they are."""
    says = "unknown" not in one.environment
    return one.node.path == other.node.path or (says and one.environment == other.environment)
