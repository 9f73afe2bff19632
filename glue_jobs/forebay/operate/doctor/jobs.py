"""Checks that the Glue jobs are defined as deployed, that their code exists, that Glue may use their roles, and how their last
run ended.

With the engine EMR Serverless there are no Glue jobs, and these checks find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forebay.counted import counted
from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.policy import listed
from forebay.operate.stack.answer import answer_or_none
from forebay.operate.stack.deployment import Deployment
from forebay.spark import runtime

SHIPPED = ("--extra-py-files", "--extra-jars", "--additional-python-modules")
NOT_THERE = ("404", "NoSuchKey", "NoSuchBucket")
ENDED_BADLY = ("FAILED", "ERROR", "TIMEOUT", "EXPIRED")


def definitions(on: Deployment) -> Iterator[Finding]:
    """Definitions that somebody may have edited in the console."""
    for job in _jobs(on):
        if job.get("GlueVersion") != runtime.GLUE:
            what = (
                f"the job {job['Name']} runs on Glue {job.get('GlueVersion')}, but forebay is tested on {runtime.GLUE}"
            )
            yield error(what, "Another version of Spark or Delta may lack what the job needs.")
        if (most := job.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1)) != 1:
            what = f"the job {job['Name']} allows {counted(most, 'run')} at one time"
            yield warning(what, "The second run waits for the first one's lease, and is billed.")
        arguments = job.get("DefaultArguments", {})
        wanted = {"--lake": on.outputs["LakeUri"]}
        if job["Name"] == on.outputs["IngestJob"]:
            wanted |= {"--queue_url": on.queue_url, "--landing_buckets": ",".join(on.landing_buckets)}
        for name, value in wanted.items():
            if arguments.get(name) != value:
                what = f"the job {job['Name']} has {name} {arguments.get(name, '(none)')}, but {value} was deployed"
                yield error(what, "It uses another queue, bucket or lake.")


def roles(on: Deployment) -> Iterator[Finding]:
    for job in _jobs(on):
        role = job["Role"].rpartition("/")[2]
        policy = on.client("iam").get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
        trusted = [who for one in listed(policy["Statement"]) for who in listed(one["Principal"].get("Service", ()))]
        if "glue.amazonaws.com" not in trusted:
            what = f"the role {role} does not trust glue.amazonaws.com"
            yield error(what, f"The job {job['Name']} cannot start.")


def code(on: Deployment) -> Iterator[Finding]:
    """A lifecycle rule of the CDK's bucket, or a clean-up of old assets, may have taken it."""
    asked: set[str] = set()
    for job in _jobs(on):
        arguments = job.get("DefaultArguments", {})
        places = [
            job["Command"]["ScriptLocation"],
            *(p for name in SHIPPED for p in arguments.get(name, "").split(",")),
        ]
        for place in places:
            if place.startswith("s3://") and place not in asked:
                asked.add(place)
                if not _is_there(on, place):
                    what = f"{place} does not exist, and the job {job['Name']} needs it"
                    fix = "cdk deploy; if that changes nothing: cdk deploy --force"
                    yield error(what, "The next run fails when it starts.", fix)


def _is_there(on: Deployment, place: str) -> bool:
    bucket, _, key = place.removeprefix("s3://").partition("/")
    asked = answer_or_none(lambda: on.client("s3").head_object(Bucket=bucket, Key=key), NOT_THERE)
    return asked is not None


def runs(on: Deployment) -> Iterator[Finding]:
    """The newest run of each job."""
    for name in on.of("Glue::Job"):
        found = newest_runs(on, name)
        if found and found[0]["JobRunState"] in ENDED_BADLY:
            run = found[0]
            what = f"the last run of {name}, {run['Id']}, ended as {run['JobRunState']}"
            why = run.get("ErrorMessage", "").strip() or "Glue gives no reason."
            fix = f"see job-failed in the runbook; aws logs tail {run.get('LogGroupName', '/aws-glue/jobs')}/error"
            yield warning(what, why, fix)


def newest_runs(on: Deployment, job: str) -> list[dict[str, Any]]:
    """The newest first; none where the engine is not Glue."""
    if job not in on.of("Glue::Job"):
        return []
    return list(on.client("glue").get_job_runs(JobName=job, MaxResults=5)["JobRuns"])


def _jobs(on: Deployment) -> Iterator[dict[str, Any]]:
    for name in on.of("Glue::Job"):
        yield on.client("glue").get_job(JobName=name)["Job"]
