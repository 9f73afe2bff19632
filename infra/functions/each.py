"""Each function: its environment and its permissions. Its code is the folder of `lambdas` with its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aws_cdk import aws_lambda as lam
from aws_cdk import aws_sqs as sqs

from forebay.aws.prices import read_prices
from forebay.capacity.rules import share_of_budget
from forebay.declaration.schedule import schedules_of
from forebay.settings import IngestSettings
from forebay.spark.runtime import DPU_OF
from infra import grants
from infra.clocked import tables_that_wait
from infra.foundation import Foundation
from infra.functions.function import Functions
from infra.jobs.job import Job
from infra.runbook import place_in_runbook, region_of
from infra.settings import Settings

DRAIN_MINUTES = int(IngestSettings.model_fields["drain_cap_s"].default) // 60
SPARE_MINUTES = 30
"""For a drain to start, and to finish the batch and the merge that it is at when its time is over."""


def start_ingest(functions: Functions, on: Foundation, ingest: Job) -> lam.Function:
    """Starts and ends runs of the ingest job, as the freshness asks."""
    settings, lake = on.settings, on.lake
    function = functions.make(
        "start_ingest",
        ENGINE=on.engine.reference,
        JOB=ingest.name,
        QUEUE_URL=on.landing.queue.queue_url,
        CHECKPOINT=on.lake.checkpoint,
        LAKE=on.lake.uri,
        ALARM_TOPIC=on.alarms_to.topic_arn,
        FRESHNESS_S=str(settings.freshness_s),
        SHARE_PER_MILLE=str(int(1000 * share_of_budget(settings.budget_usd_month, usd_an_hour(settings)))),
        DRAIN_MINUTES_AT_MOST=str(DRAIN_MINUTES + SPARE_MINUTES),
    )
    grants.count_messages(function, on.landing.queue)
    on.engine.may_keep_running(function, "StartIngest", ingest)
    grants.ask_to_stop(function, lake)
    grants.remember_code(function, lake)
    grants.publish_messages(function, on.alarms_to.topic_arn)
    grants.use_key(function, "ReadWriteAndTell", on.keys.data)
    grants.see_batches(function, lake)
    return function


def usd_an_hour(settings: Settings) -> float:
    """The price of an hour of an ingest run, with all its workers."""
    price = settings.dpu_hour_usd or read_prices().dpu_hour(is_on_emr=settings.engine != "glue")
    return settings.workers * DPU_OF[settings.worker_type] * price


def job_ended(functions: Functions, on: Foundation, jobs: Iterable[Job]) -> lam.Function:
    """Publishes what a run took, and tells a person when it failed."""
    function = functions.make(
        "job_ended",
        SERVICE=on.service.name,
        NAMESPACE=on.settings.namespace,
        ENGINE=on.engine.reference,
        ALARM_TOPIC=on.alarms_to.topic_arn,
        RUNBOOK=place_in_runbook(on.settings, "job-failed", region_of(functions)),
    )
    grants.publish_metrics(function, on.settings.namespace)
    grants.publish_messages(function, on.alarms_to.topic_arn)
    on.engine.may_ask_why(function, "AskWhy", *jobs)
    grants.use_key(function, "EncryptMessage", on.keys.data)
    keep_what_failed(function, on.untold)
    return function


def keep_what_failed(function: lam.Function, queue: sqs.IQueue) -> None:
    """Events that the function could not deal with in three attempts."""
    lam.CfnEventInvokeConfig(
        function,
        "WhenItFails",
        function_name=function.function_name,
        qualifier="$LATEST",
        destination_config=lam.CfnEventInvokeConfig.DestinationConfigProperty(
            on_failure=lam.CfnEventInvokeConfig.OnFailureProperty(destination=queue.queue_arn)
        ),
    )
    grants.send_messages(function, queue)


def publish_freshness(functions: Functions, on: Foundation, ingest: Job, upkeep: Mapping[str, Job]) -> lam.Function:
    """Publishes how late the service is, and each hour how the last day compares with the last week. Also whether keys can be
    used, and whether each schedule's runs succeed."""
    lake, schedules = on.lake, schedules_of(on.service.schedules)
    function = functions.make(
        "publish_freshness",
        SERVICE=on.service.name,
        NAMESPACE=on.settings.namespace,
        QUEUE_URL=on.landing.queue.queue_url,
        DEAD_URLS=on.landing.dead_urls,
        LAKE=on.lake.uri,
        INGEST_JOB=ingest.name,
        WATCHED_TABLES=on.settings.watched_tables,
        KEYS=on.keys.data.key_arn,
        SCHEDULE_GROUP=on.settings.name,
        SCHEDULES=",".join(schedules),
        ENGINE=on.engine.reference,
    )
    grants.look_at_key(function, on.keys.data)
    if schedules:
        grants.look_at_schedules(function, on.settings.name)
        on.engine.may_look(
            function, "SeeRuns", *(upkeep[job] for job in sorted({one.job for one in schedules.values()}))
        )
    grants.count_messages(function, *on.landing.queues)
    grants.read_ledger_log(function, lake)
    grants.read_with_key(function, "ReadLedgerKey", on.keys.data)
    grants.publish_metrics(function, on.settings.namespace)
    grants.read_metrics(function)
    if on.settings.watched:
        grants.read_health(function, lake)
    return function


def plan_compaction(functions: Functions, on: Foundation, compact: Job) -> lam.Function:
    """Starts the compaction job for tables with many small files."""
    function = functions.make(
        "plan_compaction",
        ENGINE=on.engine.reference,
        JOB=compact.name,
        LAKE=on.lake.uri,
        TABLES_THAT_WAIT=tables_that_wait(on.service),
    )
    grants.read_health(function, on.lake)
    grants.read_with_key(function, "ReadHealthKey", on.keys.data)
    on.engine.may_start(function, "StartCompaction", compact)
    return function


def announce_files(functions: Functions, on: Foundation) -> lam.Function:
    """Announces landed files again, when a person asks."""
    function = functions.make(
        "announce_files",
        LANDING_BUCKETS=",".join(on.landing.buckets),
        LANDING_PREFIX=on.settings.landing_prefix,
        QUEUE_URL=on.landing.queue.queue_url,
    )
    lists = on.lake.artefacts.bucket_arn
    grants.announce_landed_files(function, on.landing.bucket_arns, on.settings.landing_prefix, lists)
    grants.send_messages(function, on.landing.queue)
    grants.use_key_of_queue(function, on.settings.landing_queue_key)
    grants.use_key(function, "EncryptNotices", on.keys.data)
    return function


def status_page(functions: Functions, on: Foundation, jobs: Iterable[Job]) -> lam.Function:
    """Writes a page that says how the service is."""
    jobs, lake = list(jobs), on.lake
    function = functions.make(
        "status_page",
        ENGINE=on.engine.reference,
        NAME=on.settings.name,
        SERVICE=on.service.name,
        NAMESPACE=on.settings.namespace,
        QUEUE_URL=on.landing.queue.queue_url,
        DEAD_URLS=on.landing.dead_urls,
        LAKE=on.lake.uri,
        PAGE_BUCKET=on.lake.artefacts.bucket_name,
        JOBS=",".join(job.name for job in jobs),
    )
    grants.count_messages(function, *on.landing.queues)
    grants.read_health(function, lake)
    grants.read_ledger_log(function, lake)
    grants.use_key(function, "ReadAndWriteKey", on.keys.data)
    grants.write_page(function, on.lake.artefacts.bucket_arn)
    grants.see_alarms(function, on.settings.name)
    grants.read_metrics(function)
    on.engine.may_look(function, "SeeRuns", *jobs)
    return function


def start_job(functions: Functions, on: Foundation, jobs: Iterable[Job]) -> lam.Function:
    """Starts a job by its name, now or when its present run has ended."""
    jobs = list(jobs)
    function = functions.make(
        "start_job",
        ENGINE=on.engine.reference,
        ARTEFACTS=on.lake.artefacts.bucket_name,
        JOBS=",".join(job.name for job in jobs),
    )
    on.engine.may_start(function, "StartJob", *jobs)
    grants.keep_waiting_runs(function, on.lake.artefacts.bucket_arn)
    grants.use_key(function, "ReadAndWriteKey", on.keys.data)
    return function
