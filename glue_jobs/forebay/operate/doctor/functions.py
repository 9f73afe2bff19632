"""Checks of the Lambda functions and their triggers: schedules, and the rule for jobs that ended."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from forebay.operate.doctor.finding import Finding, error
from forebay.operate.stack.answer import answer_or_none
from forebay.operate.stack.deployment import Deployment


def state(on: Deployment) -> Iterator[Finding]:
    for name in on.of("Lambda::Function"):
        configuration = on.client("lambda").get_function(FunctionName=name)["Configuration"]
        for attribute, good in (("State", ("Active", "Inactive")), ("LastUpdateStatus", ("Successful", "InProgress"))):
            if configuration.get(attribute, good[0]) not in good:
                what = f"the function {name} has {attribute} {configuration[attribute]}"
                yield error(what, configuration.get(f"{attribute}Reason", "Lambda gives no reason."))
        reserved = on.client("lambda").get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        if reserved == 0:
            what = f"the function {name} is throttled completely"
            fix = f"aws lambda delete-function-concurrency --function-name {name}"
            yield error(what, "Somebody stopped it with a reserved concurrency of 0.", fix)


def schedules(on: Deployment) -> Iterator[Finding]:
    group = next(iter(on.of("Scheduler::ScheduleGroup")), "")
    for name in on.of("Scheduler::Schedule"):
        ask = partial(on.client("scheduler").get_schedule, Name=name, GroupName=group)
        schedule = answer_or_none(ask, {"ResourceNotFoundException"})
        if schedule is None:
            yield error(f"the schedule {name} does not exist", "Its target never runs.")
            continue
        if schedule["State"] != "ENABLED":
            what = f"the schedule {name} is {schedule['State']}"
            fix = "enable it in the console of EventBridge Scheduler; a deployment without changes does not"
            yield error(what, "Its target does not run.", fix)


def rules(on: Deployment) -> Iterator[Finding]:
    for rule in on.of("Events::Rule"):
        described = on.client("events").describe_rule(Name=rule)
        if described["State"] != "ENABLED":
            fix = f"aws events enable-rule --name {rule}"
            yield error(f"the rule {rule} is {described['State']}", _unheard(on, rule), fix)
        if not on.client("events").list_targets_by_rule(Rule=rule)["Targets"]:
            yield error(f"the rule {rule} has no target", _unheard(on, rule))


def _unheard(on: Deployment, rule: str) -> str:
    if any(arn.endswith(f"/{rule}") for arn in on.landed_rules):
        return "Files that land do not reach the queue."
    return "Nobody is notified of failed jobs."
