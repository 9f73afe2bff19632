"""Checks the path from the landing bucket to the queue: the bucket's notification, also of deletions if a service wants them,
the topic's policy, the subscription, and expiry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from forebay.counted import counted
from forebay.lake.layout import SERVICES
from forebay.lake.objects import open_objects
from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.policy import lets_in
from forebay.operate.stack.answer import answer_or_none
from forebay.operate.stack.deployment import Deployment

CREATED = ("s3:ObjectCreated:*", "s3:ObjectCreated:Put")
DELETED = "s3:ObjectRemoved:*"
BOTH_DELETED = {"s3:ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated"}
NOT_FOUND = ("NotFound", "NotFoundException")
NOT_ANNOUNCED = "Files that land are not announced, and are not loaded before the nightly reconcile."
LEAST_DAYS = 15
"""SQS keeps a message for 14 days; reconcile looks that far back."""


def notification(on: Deployment) -> Iterator[Finding]:
    """A bucket that is not ours may announce its files by another way, which only the probe can tell."""
    for bucket in on.landing_buckets:
        found = on.client("s3").get_bucket_notification_configuration(Bucket=bucket)
        if on.landed_rules:
            yield from _to_events(bucket, found)
        else:
            yield from _to_us(on, bucket, found)


def _to_events(bucket: str, found: Mapping[str, Any]) -> Iterator[Finding]:
    if "EventBridgeConfiguration" not in found:
        what = f"the bucket {bucket} does not send its events to EventBridge"
        fix = "switch it on in the bucket's properties; see an adopted landing bucket in infra/README.md"
        yield error(what, NOT_ANNOUNCED, fix)


def _to_us(on: Deployment, bucket: str, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Checks that the bucket notifies us. For an adopted queue, any notification is enough: its owner chooses the way."""
    if on.adopts_queue:
        if not any(key.endswith("Configurations") or key == "EventBridgeConfiguration" for key in found):
            what = f"the bucket {bucket} has no notifications"
            yield warning(what, NOT_ANNOUNCED)
        return
    ours = [one for one in found.get("TopicConfigurations", ()) if one["TopicArn"] in on.arrivals_topics]
    if not ours:
        level = error if on.owns(bucket) else warning
        what = f"the bucket {bucket} does not notify the topic {' or '.join(on.arrivals_topics)}"
        yield level(what, NOT_ANNOUNCED)
        return
    if not any(set(CREATED) & set(one["Events"]) for one in ours):
        what = f"the bucket {bucket} notifies only of {', '.join(ours[0]['Events'])}"
        yield error(what, "These events do not include files that are put.")
    if not any(_reaches(one, on.landing_prefix) for one in ours):
        what = f"the bucket {bucket} does not notify of all keys under {on.landing_prefix or 'its root'}"
        yield error(what, "Files with other keys are never announced.")


def deletions(on: Deployment) -> Iterator[Finding]:
    """Checks that S3 announces deletions to our queue, if a service has `on_delete = "forget"`."""
    wanting = [] if on.adopts_queue else _forgetting(on)
    if not wanting:
        return
    why = f'The service {wanting[0]} has on_delete = "forget", but rows of deleted files stay in its tables.'
    fix = "deploy with these declarations; see an adopted landing bucket in infra/README.md"
    for rule in on.landed_rules:
        pattern = on.client("events").describe_rule(Name=rule.rpartition("/")[2]).get("EventPattern", "{}")
        if "Object Deleted" not in json.loads(pattern).get("detail-type", ["Object Deleted"]):
            yield error(f"the rule {rule} does not pass on deletions", why, fix)
    for bucket in [] if on.landed_rules else on.landing_buckets:
        found = on.client("s3").get_bucket_notification_configuration(Bucket=bucket)
        ours = [one for one in found.get("TopicConfigurations", ()) if one["TopicArn"] in on.arrivals_topics]
        announced = {event for one in ours if _reaches(one, on.landing_prefix) for event in one["Events"]}
        if DELETED not in announced and not announced >= BOTH_DELETED:
            what = f"the bucket {bucket} does not announce deletions ({DELETED})"
            yield error(what, why, fix)


def _forgetting(on: Deployment) -> list[str]:
    kept = open_objects(on.outputs["LakeUri"], s3=on.client("s3"))
    texts = {name: kept.read(f"{SERVICES}/{name}") for name in kept.names(SERVICES) if name.endswith(".json")}
    services = {name.removesuffix(".json"): json.loads(text) for name, text in texts.items() if text is not None}
    return sorted(name for name, service in services.items() if service.get("on_delete") == "forget")


def _reaches(configuration: Mapping[str, Any], prefix: str) -> bool:
    rules = configuration.get("Filter", {}).get("Key", {}).get("FilterRules", ())
    parts = {rule["Name"].lower(): rule["Value"] for rule in rules}
    return prefix.startswith(parts.get("prefix", "")) and not parts.get("suffix")


def topic(on: Deployment) -> Iterator[Finding]:
    for topic_arn in filter(on.owns, on.arrivals_topics):
        policy = on.client("sns").get_topic_attributes(TopicArn=topic_arn)["Attributes"].get("Policy", "")
        for bucket in on.landing_buckets:
            source = on.bucket_arn(bucket)
            if not lets_in(policy, "s3.amazonaws.com", "sns:Publish", source=source, account=on.account):
                what = f"the policy of the topic {topic_arn} does not let S3 publish for {bucket}"
                yield error(what, "S3 drops the notifications that it may not publish.")


def subscription(on: Deployment) -> Iterator[Finding]:
    for topic_arn in on.arrivals_topics:
        yield from _subscription_to(on, topic_arn)


def _subscription_to(on: Deployment, topic_arn: str) -> Iterator[Finding]:
    arn = next(name for name in on.of("SNS::Subscription") if name.startswith(f"{topic_arn}:"))
    answer = answer_or_none(lambda: on.client("sns").get_subscription_attributes(SubscriptionArn=arn), NOT_FOUND)
    if answer is None:
        what = f"the queue is not subscribed to {topic_arn}"
        fix = (
            f"aws sns subscribe --topic-arn {topic_arn} --protocol sqs "
            f"--notification-endpoint {on.queue_arn(on.queue_url)} --attributes RawMessageDelivery=true"
        )
        yield error(what, "Notifications end at the topic.", fix)
        return
    attributes = answer["Attributes"]
    if attributes.get("Endpoint") != on.queue_arn(on.queue_url):
        what = f"the subscription delivers to {attributes.get('Endpoint')}"
        yield error(what, f"The job reads from {on.queue_arn(on.queue_url)}.")
    if str(attributes.get("PendingConfirmation", "false")).lower() == "true":
        what = "the queue's subscription is not confirmed"
        yield error(what, "An unconfirmed subscription gets nothing.")
    if attributes.get("FilterPolicy"):
        what = f"the subscription has a filter policy: {attributes['FilterPolicy']}"
        fix = (
            f"aws sns set-subscription-attributes --subscription-arn {arn} --attribute-name FilterPolicy "
            "--attribute-value '{}'"
        )
        yield error(what, "SNS drops messages that the filter refuses, without a dead letter.", fix)
    if not attributes.get("RedrivePolicy"):
        what = "the subscription has no dead-letter queue"
        yield warning(what, "What SNS cannot deliver is lost until reconcile finds the files.")


def expiry(on: Deployment) -> Iterator[Finding]:
    """Files that are deleted before they are surely loaded."""
    for bucket, rule in ((name, rule) for name in on.landing_buckets for rule in lifecycle_rules(on, name)):
        days = rule.get("Expiration", {}).get("Days", LEAST_DAYS)
        if rule["Status"] == "Enabled" and days < LEAST_DAYS:
            what = f"the rule {rule.get('ID', '(unnamed)')!r} of {bucket} deletes files after {counted(days, 'day')}"
            why = "A message may wait for 14 days, and reconcile looks back 15 days: a file may be deleted before it is loaded."
            yield warning(what, why, f"set the rule to {LEAST_DAYS} days or more")


def lifecycle_rules(on: Deployment, bucket: str) -> list[dict[str, Any]]:
    ask = partial(on.client("s3").get_bucket_lifecycle_configuration, Bucket=bucket)
    answer = answer_or_none(ask, {"NoSuchLifecycleConfiguration"})
    return list(answer["Rules"]) if answer else []
