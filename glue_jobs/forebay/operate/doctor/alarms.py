"""Checks that the alarms exist, are enabled, and notify somebody."""

from __future__ import annotations

from collections.abc import Iterator

from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.policy import lets_in
from forebay.operate.stack.deployment import Deployment

PENDING = ("PendingConfirmation", "Deleted")


def actions(on: Deployment) -> Iterator[Finding]:
    wanted = on.of("CloudWatch::Alarm")
    pages = on.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=f"{on.name}-")
    found = {one["AlarmName"]: one for page in pages for one in page["MetricAlarms"]}
    for name in wanted:
        if name not in found:
            yield error(f"the alarm {name} does not exist", "A failure of what it watches goes unnoticed.")
        elif not found[name]["ActionsEnabled"]:
            fix = f"aws cloudwatch enable-alarm-actions --alarm-names {name}"
            yield error(f"the actions of the alarm {name} are disabled", "The alarm notifies nobody.", fix)
        elif not found[name]["AlarmActions"]:
            yield error(f"the alarm {name} has no action", "The alarm notifies nobody.")


def listeners(on: Deployment) -> Iterator[Finding]:
    topic, sns = on.alarm_topic, on.client("sns")
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    found = [one for page in pages for one in page["Subscriptions"]]
    waiting = [one for one in found if one["SubscriptionArn"] in PENDING]
    if len(found) == len(waiting) and not on.of("Chatbot::SlackChannelConfiguration"):
        fix = f"aws sns subscribe --topic-arn {topic} --protocol email --notification-endpoint YOU@EXAMPLE.ORG"
        yield warning("nobody is subscribed to the alarms", f"{topic} has no confirmed subscription.", fix)
    for one in waiting:
        what = f"{one['Endpoint']} has not confirmed its subscription to the alarms"
        why = "Until then it gets no alarms. The link is in the message from SNS, and expires after three days."
        fix = f"aws sns subscribe --topic-arn {topic} --protocol {one['Protocol']} --notification-endpoint {one['Endpoint']}"
        yield warning(what, why, fix)
    policy = sns.get_topic_attributes(TopicArn=topic)["Attributes"].get("Policy", "")
    alarm = f"arn:{on.partition}:cloudwatch:{on.region}:{on.account}:alarm:{on.name}-any"
    if not lets_in(policy, "cloudwatch.amazonaws.com", "sns:Publish", source=alarm, account=on.account):
        what = f"the policy of {topic} does not let CloudWatch publish"
        yield error(what, "Alarms notify nobody.")
