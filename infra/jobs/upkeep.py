"""The jobs that keep the tables in shape: compaction, maintenance, and the search for files that were never announced."""

from __future__ import annotations

from constructs import Construct

from forebay.errors import InvalidConfiguration
from infra import grants
from infra.forms import listed
from infra.foundation import Foundation
from infra.jobs.job import Job, Work
from infra.readers import read_secret, remove_loaded_files

LEAST_WORKERS = 2
"""Glue allows no fewer; reconcile uses one."""


def upkeep_jobs(scope: Construct, on: Foundation) -> dict[str, Job]:
    """By the names that declared schedules use."""
    return {
        "compact": compact_job(scope, on),
        "maintain": maintain_job(scope, on),
        "reconcile": reconcile_job(scope, on),
    }


def compact_job(scope: Construct, on: Foundation) -> Job:
    job = Job(scope, on, Work("compact", "glueetl", on.settings.workers, {}, minutes_at_most=120))
    grants.write_tables(job.role, on.lake)
    return job


def maintain_job(scope: Construct, on: Foundation) -> Job:
    """It needs the tokens' secret to find older files with rows of erased subjects."""
    job = Job(scope, on, Work("maintain", "glueetl", on.settings.workers, {}, minutes_at_most=240))
    grants.write_tables(job.role, on.lake)
    read_secret(job.role, on)
    if on.service.subject:
        grants.delete_old_versions_of_tables(job.role, on.lake)
    if on.vault is not None:
        on.vault.let_in_upkeep(job.role)
    _clear_landed_files(job, on)
    return job


def _clear_landed_files(job: Job, on: Foundation) -> None:
    """As `after_load` declares; without it, the job has no permission on landed files."""
    rule, prefix = on.service.after_load, on.settings.landing_prefix
    if rule is None:
        return
    landing = [f"s3://{bucket}/{prefix}" for bucket in on.landing.buckets]
    if inside := [place for place in landing if rule.move.startswith(place)]:
        problem = f"the service would load the moved files again, because {rule.move} is below {inside[0]}"
        raise InvalidConfiguration.one("after_load.move", problem, "choose another place, or set landing_prefix")
    grants.read_landed_files(job.role, on.landing.bucket_arns, prefix)
    grants.use_keys_of_landed_files(job.role, listed(on.settings.landing_key))
    remove_loaded_files(job.role, on)


def reconcile_job(scope: Construct, on: Foundation) -> Job:
    below = on.settings.reconcile_below or on.settings.landing_prefix
    arguments = {
        "--landing": ",".join(f"s3://{bucket}/{below}" for bucket in on.landing.buckets),
        "--queue_url": on.landing.queue.queue_url,
    }
    job = Job(scope, on, Work("reconcile", "glueetl", LEAST_WORKERS, arguments, minutes_at_most=240))
    grants.find_landed_files(job.role, on.landing.bucket_arns)
    grants.read_landed_files(job.role, on.landing.bucket_arns, on.settings.landing_prefix)  # manifests of periods
    grants.use_keys_of_landed_files(job.role, listed(on.settings.landing_key))
    grants.keep_periods(job.role, on.lake)
    grants.tell_of_periods(job.role)
    grants.read_tables(job.role, on.lake)
    grants.remember_reconcile(job.role, on.lake)
    grants.send_messages(job.role, on.landing.queue)
    grants.use_key_of_queue(job.role, on.settings.landing_queue_key)
    grants.count_messages(job.role, on.landing.queue)
    return job
