"""Checks that the KMS keys are enabled, and that the services that pass on encrypted data may use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forebay.operate.doctor.finding import Finding, error
from forebay.operate.doctor.policy import lets_in, like, listed, statements
from forebay.operate.doctor.queues import key_of_data
from forebay.operate.stack.deployment import Deployment


def state(on: Deployment) -> Iterator[Finding]:
    for key in on.of("KMS::Key"):
        about = on.client("kms").describe_key(KeyId=key)["KeyMetadata"]
        if about["KeyState"] == "PendingDeletion":
            why = "When the key is deleted, everything that it encrypted is lost: files, tables, messages."
            fix = f"aws kms cancel-key-deletion --key-id {key} && aws kms enable-key --key-id {key}"
            yield error(f"the KMS key {key} is scheduled for deletion", why, fix)
        elif about["KeyState"] != "Enabled":
            what = f"the KMS key {key} is {about['KeyState']}"
            yield error(what, "Nothing can be read or written.", f"aws kms enable-key --key-id {key}")


def services(on: Deployment) -> Iterator[Finding]:
    key = key_of_data(on)
    if not key:
        return
    policy = on.client("kms").get_key_policy(KeyId=key, PolicyName="default")["Policy"]
    alarm = f"arn:{on.partition}:cloudwatch:{on.region}:{on.account}:alarm:{on.name}-any"
    users = [(service, source, "Notifications cannot reach the queue.") for service, source in on.fillers]
    if any(map(on.owns, on.arrivals_topics)):
        why = "S3 cannot publish to the encrypted topic, and drops its notifications."
        users += [("s3.amazonaws.com", on.bucket_arn(bucket), why) for bucket in on.landing_buckets]
    users.append(("cloudwatch.amazonaws.com", alarm, "Alarms notify nobody."))
    for service, source, why in users:
        if not lets_in(policy, service, "kms:GenerateDataKey", source=source, account=on.account):
            yield error(f"the policy of the KMS key {key} does not let {service} use it", why)
    if not logs_may_use_it(on, policy):
        what = f"the policy of the KMS key {key} does not let CloudWatch Logs use it"
        yield error(what, "Log groups that are encrypted with it receive nothing.")


def logs_may_use_it(on: Deployment, policy: str) -> bool:
    """Under a condition on the log group, which is read as far as it names ours. The service's name ends as names of the
    partition do."""
    principal = f"logs.{on.region}."
    ours = f"arn:{on.partition}:logs:{on.region}:{on.account}:log-group:/{on.name}/any"
    for one in statements(policy):
        who = one.get("Principal", {})
        if one["Effect"] == "Allow" and isinstance(who, dict) and _names(who, principal):
            wanted = [arn for by in one.get("Condition", {}).values() for arns in by.values() for arn in listed(arns)]
            if not wanted or any(like(arn, ours) for arn in wanted):
                return True
    return False


def _names(who: dict[str, Any], principal: str) -> bool:
    return any(one.startswith(principal) for one in listed(who.get("Service", ())))
