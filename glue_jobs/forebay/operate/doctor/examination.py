"""Runs the checks independently: one that AWS refuses is a finding, and the others continue.

In: a `Deployment`. Out: findings, one at a time. A missing permission is named, so callers learn which ones they lack. If
nobody answers at all, boto3's exception is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from botocore.exceptions import ClientError

from forebay.errors import Halt, InvalidConfiguration
from forebay.operate.doctor import account, alarms, functions, jobs, keys, lake, landing, logs, queues, rights
from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.stack.deployment import Deployment

Check = Callable[[Deployment], Iterator[Finding]]

BEFORE: tuple[Check, ...] = (
    account.identity,
    account.clock,
    account.stack,
    account.bootstrap,
    account.bootstrap_key,
    account.glue_quotas,
    account.functions_quota,
)
AFTER: tuple[Check, ...] = (
    account.identity,
    account.clock,
    account.stack,
    account.glue_quotas,
    account.functions_quota,
    landing.notification,
    landing.deletions,
    landing.topic,
    landing.subscription,
    landing.expiry,
    queues.deliveries,
    queues.redrive,
    queues.dead_letters,
    queues.encryption,
    keys.state,
    keys.services,
    lake.commits,
    lake.lifecycle,
    lake.access,
    lake.encryption,
    lake.vault,
    lake.catalog,
    jobs.definitions,
    jobs.roles,
    jobs.code,
    jobs.runs,
    rights.of_ingest,
    rights.denied,
    logs.groups,
    logs.reports,
    functions.state,
    functions.schedules,
    functions.rules,
    alarms.actions,
    alarms.listeners,
)

DENIED = (
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "UnauthorizedOperation",
    "403",
    "AuthorizationErrorException",
)


def checks_for(on: Deployment) -> tuple[Check, ...]:
    return AFTER if on.is_deployed else BEFORE


def examine(deployment: Deployment) -> Iterator[Finding]:
    for check in checks_for(deployment):
        yield from guarded(name_of(check), check(deployment))


def guarded(check: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of this check; a refusal of AWS on the way is the last of them."""
    yield from (replace(one, check=check) for one in _or_refusal(check, findings))


def _or_refusal(check: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    try:
        yield from findings
    except ClientError as refused:
        yield _refusal(check, refused)
    except (InvalidConfiguration, Halt) as unread:  # so the lake's objects report what S3 refused
        if not isinstance(unread.__cause__, ClientError):
            raise
        yield _refusal(check, unread.__cause__)


def name_of(check: Check) -> str:
    return f"{check.__module__.rpartition('.')[2]}.{check.__name__}"


def _refusal(check: str, refused: ClientError) -> Finding:
    answer = refused.response.get("Error", {})
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    operation = str(refused.operation_name)
    right = rights.DECRYPT if rights.DECRYPT in message else rights.NEEDED.get(operation, operation)
    if code in DENIED:
        why = f"The check {check} could not run: {message}"
        return warning(f"you may not {right}", why, f"allow {right} for the identity that runs `forebay doctor`")
    if code == "404" or "NotFound" in code or "NonExistent" in code or "NotExist" in code or code.startswith("NoSuch"):
        why = f"AWS answered {code} to {operation}: {message}. Somebody may have removed it by hand."
        fix = "cdk deploy; if that changes nothing, `cdk diff` and drift detection"
        return error("a part of the deployment is missing", why, fix)
    return warning(f"{operation} failed with {code}", f"The check {check} could not run: {message}", "run it again")
