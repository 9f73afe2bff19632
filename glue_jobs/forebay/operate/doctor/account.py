"""Checks of the account itself: the caller, the clocks, the stack, and quotas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.stack.answer import answer_or_none
from forebay.operate.stack.deployment import Deployment
from forebay.spark.runtime import DPU_OF

LATE_S, REFUSED_S = 60, 240
"""AWS refuses requests whose clock is five minutes off, some services earlier."""
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
JOBS, DPUS = 4, 16
"""The jobs and DPUs of a deployment with the default settings, at their peak."""
LEAST_CONCURRENT = 10
RUNS_QUOTA, DPUS_QUOTA = "Max concurrent job runs per account", "Max task DPUs per account"
"""https://docs.aws.amazon.com/general/latest/gr/glue.html"""


def identity(on: Deployment) -> Iterator[Finding]:
    arn = on.client("sts").get_caller_identity()["Arn"]
    if arn.endswith(":root"):
        why = "Nothing limits the damage that a mistaken command by the root user can do."
        yield warning("you are the root user of the account", why, "sign in with a role: aws sso login")


def clock(on: Deployment) -> Iterator[Finding]:
    """Checks the clock by the date of an answer from AWS."""
    headers = on.client("sts").get_caller_identity()["ResponseMetadata"]["HTTPHeaders"]
    if "date" not in headers:
        return
    off = abs((on.now() - _utc(parsedate_to_datetime(headers["date"]))).total_seconds())
    if off >= LATE_S:
        level = error if off >= REFUSED_S else warning
        why = "AWS refuses requests whose time is five minutes off, and file ages are wrong."
        yield level(f"this machine's clock is {off:,.0f} s off AWS's", why, "sudo chronyc makestep")


def bootstrap(on: Deployment) -> Iterator[Finding]:
    """Before the first deployment: the bucket and the roles that `cdk deploy` uses."""
    if answer_or_none(lambda: on.client("ssm").get_parameter(Name=BOOTSTRAP), {"ParameterNotFound"}) is None:
        what = f"the CDK is not bootstrapped in account {on.account}, region {on.region}"
        why = "`cdk deploy` puts the jobs' code into a bucket that `cdk bootstrap` makes."
        yield error(what, why, f"cdk bootstrap aws://{on.account}/{on.region}")


def bootstrap_key(on: Deployment) -> Iterator[Finding]:
    """Jobs read their code from the CDK's bucket. Its key, if it has one, is in no policy of theirs by itself."""
    bucket, region = f"cdk-hnb659fds-assets-{on.account}-{on.region}", on.region
    none = {"ServerSideEncryptionConfigurationNotFoundError", "NoSuchBucket", "404"}
    found = answer_or_none(lambda: on.client("s3").get_bucket_encryption(Bucket=bucket), none)
    rules = found["ServerSideEncryptionConfiguration"]["Rules"] if found else []
    defaults = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules]
    for key in (by["KMSMasterKeyID"] for by in defaults if by.get("KMSMasterKeyID")):
        arn = key if key.startswith("arn:") else f"arn:aws:kms:{region}:{on.account}:key/{key}"
        why = "Jobs read their code from that bucket. Without kms:Decrypt on the key, no job starts."
        yield warning(f"{bucket} is encrypted with {key}", why, f"deploy with -c assets_key={arn}")


def stack(on: Deployment) -> Iterator[Finding]:
    if on.status == "ROLLBACK_COMPLETE" or on.status.endswith("_FAILED"):
        why = "A deployment or a removal failed; the stack may be in a mixed state."
        fix = f"aws cloudformation describe-stack-events --stack-name {on.stack}, then cdk deploy"
        yield error(f"the stack {on.stack} is in {on.status}", why, fix)
    elif on.status.endswith("_IN_PROGRESS"):
        why = "A deployment is in progress; other findings may concern parts that are not ready."
        fix = f"aws cloudformation wait stack-update-complete --stack-name {on.stack}"
        yield warning(f"the stack {on.stack} is in {on.status}", why, fix)


def glue_quotas(on: Deployment) -> Iterator[Finding]:
    if on.emr_application:
        return
    pages = on.client("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode="glue")
    allowed = {one["QuotaName"]: (one["Value"], one["QuotaCode"]) for page in pages for one in page["Quotas"]}
    jobs, dpus = _wanted(on)
    for name, wanted in ((RUNS_QUOTA, jobs), (DPUS_QUOTA, dpus)):
        value, code = next((found for known, found in allowed.items() if known.lower() == name.lower()), (None, ""))
        if value is not None and value < wanted:
            what = f"the quota {name!r} of Glue is {value:g}, but this service may need {wanted:g}"
            why = "A run beyond the quota does not start, or waits, and files wait with it."
            fix = (
                "aws service-quotas request-service-quota-increase --service-code glue "
                f"--quota-code {code} --desired-value {4 * wanted:g}"
            )
            yield error(what, why, fix)


def _wanted(on: Deployment) -> tuple[float, float]:
    names = on.of("Glue::Job")
    if not names:
        return JOBS, DPUS
    found = [on.client("glue").get_job(JobName=name)["Job"] for name in names]
    return len(found), sum(DPU_OF.get(job.get("WorkerType", ""), 1) * job.get("NumberOfWorkers", 1) for job in found)


def functions_quota(on: Deployment) -> Iterator[Finding]:
    limit = on.client("lambda").get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"]
    if limit < LEAST_CONCURRENT:
        what = f"{limit} Lambda functions may run at one time in this account and region"
        why = "A throttled function starts no job and measures nothing."
        fix = (
            "aws service-quotas request-service-quota-increase --service-code lambda "
            "--quota-code L-B99A9384 --desired-value 1000"
        )
        yield warning(what, why, fix)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
