"""The ingest job. A drain is a run of it with one more argument."""

from __future__ import annotations

from constructs import Construct

from forebay.capacity.rules import Rules
from infra import grants
from infra.forms import listed
from infra.foundation import Foundation
from infra.jobs.job import Job, Work
from infra.readers import read_moved_files, read_secret
from infra.settings import SMALLEST_WORKER

OF_A_SMALL_WORKER = 1 << 30
"""Bytes that a task may take where a worker has 4 GB for two tasks and the JVM."""


def ingest_job(scope: Construct, on: Foundation) -> Job:
    """A streaming job: only those may run without a timeout, and only they have a maintenance window."""
    arguments = {
        "--queue_url": on.landing.queue.queue_url,
        "--landing_buckets": ",".join(on.landing.buckets),
        "--checkpoint": on.lake.checkpoint,
        "--catalog": on.lake.catalog,
        "--trigger_s": str(Rules(on.settings.freshness_s).batch_every_s),
        "--tables_at_once": str(on.settings.tables_at_once),
    }
    if on.settings.worker_type == SMALLEST_WORKER:
        arguments["--task_memory_bytes"] = str(OF_A_SMALL_WORKER)
    job = Job(scope, on, Work("ingest", "gluestreaming", on.settings.workers, arguments))
    grants.append_to_tables(job.role, on.lake)
    grants.take_messages(job.role, on.landing.queue)
    grants.send_messages(job.role, on.landing.queue)  # files that S3 withheld are announced again
    grants.use_key_of_queue(job.role, on.settings.landing_queue_key)
    grants.read_landed_files(job.role, on.landing.bucket_arns, on.settings.landing_prefix)
    grants.find_landed_files(job.role, on.landing.bucket_arns)  # is every file of an hour in?
    read_moved_files(job.role, on)
    grants.tell_of_periods(job.role)
    grants.use_keys_of_landed_files(job.role, listed(on.settings.landing_key))
    grants.register_tables(job.role, on.lake.catalog)
    read_secret(job.role, on)
    if on.vault is not None:
        on.vault.let_in_job(job.role)
    return job
