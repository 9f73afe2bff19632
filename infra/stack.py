"""The whole service on one screen: what there is, what feeds what, who may do what."""

from __future__ import annotations

from typing import Any

from aws_cdk import Aws, CfnOutput, Stack
from constructs import Construct

from forebay.declaration.schedule import schedules_of
from forebay.declaration.service import Service
from infra import grants
from infra.alarms import Alarms, alarm_topic, runbook_of
from infra.buckets import access_logs_bucket, arn_of
from infra.budget import budget
from infra.clocked import tables_that_wait
from infra.dashboard import dashboard
from infra.engines import engine_of
from infra.functions import Functions
from infra.jobs import Job, JobCode, ingest_job, upkeep_jobs
from infra.keys import Keys
from infra.lake import SCRATCH, SPARK_EVENTS, Lake
from infra.landing import Landing, landing_bucket_name, topic_arn_of
from infra.schedules import Schedules, when_a_job_ends
from infra.settings import Settings

__all__ = ["ForebayStack"]


class ForebayStack(Stack):
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, service: Service, **more: Any
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=not settings.delete_data, **more)
        bucket_arn, topic_arn = arn_of(landing_bucket_name(settings)), topic_arn_of(settings)

        # What there is
        keys = Keys(self, "Keys", settings=settings, landing_bucket_arn=bucket_arn, topic_arn=topic_arn)
        access_logs = access_logs_bucket(self, settings=settings)
        landing = Landing(self, "Landing", settings=settings, key=keys.data, access_logs=access_logs)
        lake = Lake(self, "Lake", settings=settings, keys=keys, access_logs=access_logs)
        code, engine = JobCode(self, "Code", service=service), engine_of(self, settings)
        shared: dict[str, Any] = {
            "settings": settings,
            "engine": engine,
            "code": code,
            "lake": lake,
            "key": keys.data,
        }
        ingest = ingest_job(self, **shared, queue_url=landing.queue.queue_url)
        looks_at = f"s3://{landing_bucket_name(settings)}/{settings.reconcile_below or settings.landing_prefix}"
        lost = {"--landing": looks_at, "--queue_url": landing.queue.queue_url}
        upkeep = upkeep_jobs(self, **shared, told={"reconcile": lost})
        alarms_to = alarm_topic(self, settings=settings, key=keys.data)
        functions = Functions(self, "Functions", settings=settings, key=keys.data)
        jobs = (ingest, *upkeep.values())
        told_of = {"SERVICE": service.name, "NAMESPACE": settings.namespace}
        runs_on = {"ENGINE": engine.said}
        by_function = {} if settings.engine == "glue" else {"start_job": runs_on}
        dead_urls = f"{landing.dead.queue_url},{landing.undelivered.queue_url}"
        made = functions.make(
            {
                **by_function,
                "start_ingest": {
                    **runs_on,
                    "JOB": ingest.name,
                    "QUEUE_URL": landing.queue.queue_url,
                    "MODE": settings.mode,
                    "CHECKPOINT": lake.checkpoint,
                    "LAKE_BUCKET": lake.bucket.bucket_name,
                    "ALARM_TOPIC": alarms_to.topic_arn,
                    "STAY_ON_AT_PERCENT": str(settings.stay_on_at_percent),
                    "LEAVE_AFTER_MINUTES": str(settings.leave_after_minutes),
                },
                "job_ended": {
                    **told_of,
                    **runs_on,
                    "ALARM_TOPIC": alarms_to.topic_arn,
                    "RUNBOOK": runbook_of(settings),
                },
                "publish_freshness": {
                    **told_of,
                    "QUEUE_URL": landing.queue.queue_url,
                    "DEAD_URLS": dead_urls,
                    "LAKE_BUCKET": lake.bucket.bucket_name,
                    "INGEST_JOB": ingest.name,
                    "WATCHED_TABLES": settings.watched_tables,
                },
                "plan_compaction": {
                    **runs_on,
                    "JOB": upkeep["compact"].name,
                    "LAKE_BUCKET": lake.bucket.bucket_name,
                    "TABLES_THAT_WAIT": tables_that_wait(service),
                },
                "announce_files": {
                    "LANDING_BUCKET": landing_bucket_name(settings),
                    "LANDING_PREFIX": settings.landing_prefix,
                    "QUEUE_URL": landing.queue.queue_url,
                },
                "status_page": {
                    **runs_on,
                    "NAME": settings.name,
                    "QUEUE_URL": landing.queue.queue_url,
                    "DEAD_URLS": dead_urls,
                    "LAKE_BUCKET": lake.bucket.bucket_name,
                    "PAGE_BUCKET": lake.artefacts.bucket_name,
                    "JOBS": ",".join(job.name for job in jobs),
                },
            }
        )
        start, ended, freshness = made["start_ingest"], made["job_ended"], made["publish_freshness"]
        planner, announcer, reporter = made["plan_compaction"], made["announce_files"], made["status_page"]

        # What wakes what
        schedules = Schedules(self, "Schedules", settings=settings)
        schedules.every(settings.start_every_minutes, "start_ingest", start)
        schedules.every(5, "publish_freshness", freshness)
        schedules.every(60, "measure_trend", freshness, {"trend": True})
        schedules.every(settings.plan_compaction_every_minutes, "plan_compaction", planner)
        schedules.every(settings.status_page_every_minutes, "status_page", reporter)
        # Small files daily or sooner, by the planner; the rest by the clock, in the hours that the declarations say.
        for name, declared in schedules_of(service.schedules).items():
            schedules.runs(name, declared, upkeep[declared.job], by=made.get("start_job"))
        when_a_job_ends(self, settings=settings, engine=engine, jobs=jobs, function=ended)

        # Who may do what
        for job in jobs:
            self._grant_run(job, lake, keys)
            engine.may_write_logs(job.role, job.log_group.log_group_arn)
            if settings.python_modules.startswith("s3://"):
                place = settings.python_modules.removeprefix("s3://")
                grants.allow(job.role, "ReadModules", ["s3:GetObject"], [f"arn:{Aws.PARTITION}:s3:::{place}"])
        for job in (ingest, upkeep["compact"], upkeep["maintain"]):
            because = "tables are made as their records arrive"
            grants.write_objects(job.role, "Lake", lake.bucket.bucket_arn, because=because)
        grants.find_landed_files(upkeep["reconcile"].role, bucket_arn)
        grants.read_ledger(upkeep["reconcile"].role, lake.bucket.bucket_arn)
        grants.send_messages(upkeep["reconcile"].role, landing.queue)
        grants.count_messages(upkeep["reconcile"].role, landing.queue)
        grants.take_messages(ingest.role, landing.queue)
        grants.read_landed_files(ingest.role, bucket_arn, settings.landing_prefix)
        if settings.landing_key:
            grants.allow(ingest.role, "ReadAdoptedKey", ["kms:Decrypt"], [settings.landing_key])
        grants.register_tables(ingest.role, lake.catalog)
        grants.publish_metrics(ingest.role, settings.namespace, "Glue")
        grants.count_messages(start, landing.queue)
        engine.may_keep_running(start, "StartIngest", ingest)
        grants.ask_to_stop(start, lake.bucket.bucket_arn)
        grants.remember_code(start, lake.bucket.bucket_arn)
        grants.allow(start, "TellAPerson", ["sns:Publish"], [alarms_to.topic_arn])
        grants.use_key(start, "ReadWriteAndTell", keys.data)
        if settings.mode == "auto":
            grants.read_ledger_log(start, lake.bucket.bucket_arn)
        grants.count_messages(freshness, landing.queue, landing.dead, landing.undelivered)
        grants.read_ledger_log(freshness, lake.bucket.bucket_arn)
        grants.read_with_key(freshness, "ReadLedgerKey", keys.data)
        grants.publish_metrics(freshness, settings.namespace)
        grants.read_health(planner, lake.bucket.bucket_arn)
        grants.read_with_key(planner, "ReadHealthKey", keys.data)
        engine.may_start(planner, "StartCompaction", upkeep["compact"])
        if "start_job" in made:
            engine.may_start(made["start_job"], "StartJob", *jobs)
        for job in upkeep.values():
            grants.publish_metrics(job.role, settings.namespace, "Glue")
        grants.read_metrics(freshness)
        if settings.watched:
            grants.read_health(freshness, lake.bucket.bucket_arn)
        grants.announce_landed_files(announcer, bucket_arn, settings.landing_prefix, lake.artefacts.bucket_arn)
        grants.send_messages(announcer, landing.queue)
        grants.use_key(announcer, "EncryptNotices", keys.data)
        grants.count_messages(reporter, landing.queue, landing.dead, landing.undelivered)
        grants.read_health(reporter, lake.bucket.bucket_arn)
        grants.read_ledger_log(reporter, lake.bucket.bucket_arn)
        grants.use_key(reporter, "ReadAndWriteKey", keys.data)
        grants.write_page(reporter, lake.artefacts.bucket_arn)
        grants.see_alarms(reporter, settings.name)
        engine.may_look(reporter, "SeeRuns", *jobs)
        grants.publish_metrics(ended, settings.namespace)
        grants.allow(ended, "TellAPerson", ["sns:Publish"], [alarms_to.topic_arn])
        engine.may_ask_why(ended, "AskWhy", *jobs)
        grants.use_key(ended, "EncryptMessage", keys.data)

        # What a person sees
        alarms = Alarms(self, "Alarms", settings=settings, topic=alarms_to, service=service.name)
        alarms.watch_landing(landing)
        alarms.watch_batches(landing.queue)
        alarms.watch_notifications()
        alarms.watch_trends()
        alarms.watch_the_watchers(functions.all, settings.name)
        for table in settings.watched:
            alarms.watch_table(table)
        if settings.monthly_budget_usd:
            budget(self, settings=settings, topic=alarms_to)
        if settings.mode != "continuous":
            alarms.wake(start, landing.queue)
        dashboard(self, settings=settings, service=service.name, landing=landing, jobs=jobs, alarms=alarms.all)
        for name, value in {
            "LandingBucket": landing_bucket_name(settings),
            "LandingPrefix": settings.landing_prefix or "/",
            "QueueUrl": landing.queue.queue_url,
            "DeadUrls": dead_urls,
            "LakeUri": lake.uri,
            "IngestJob": ingest.name,
            "AlarmTopicArn": alarms_to.topic_arn,
        }.items():
            CfnOutput(self, name, value=value)

    @staticmethod
    def _grant_run(job: Job, lake: Lake, keys: Keys) -> None:
        for prefix in (SCRATCH, SPARK_EVENTS):
            sid = "".join(word.capitalize() for word in prefix.strip("/").split("-"))
            grants.write_objects(
                job.role, sid, lake.artefacts.bucket_arn, prefix, because="Spark names what it leaves there"
            )
        grants.use_key(job.role, "UseDataKey", keys.data)
        grants.read_assets(job.role, *job.assets)
