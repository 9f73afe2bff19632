"""`forebay doctor`: can the deployed service work?"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.options import AsJson
from forebay.cli.show import console, print_json, styled
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from forebay.operate.doctor.finding import Finding
    from forebay.operate.stack.deployment import Deployment

COLORS = {"error": "red", "warning": "yellow"}


def doctor(
    stack: Annotated[
        str,
        typer.Option(envvar="FOREBAY_STACK", help="The stack's name, such as forebay-prod.", show_default=False),
    ],
    within: Annotated[str, typer.Option(help="The construct's id, if the service is part of your own stack.")] = "",
    probe: Annotated[
        bool, typer.Option("--probe", help="Also send a test object through the whole service, then remove it.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option(min=1, help="With --probe: how long to wait for the object, in seconds.")
    ] = 900,
    before: Annotated[
        bool, typer.Option("--before", help="Before the first deployment: check the account alone.")
    ] = False,
    rights: Annotated[
        bool, typer.Option("--rights", help="Print the policy that this command needs, and do nothing else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the deployment, and say how to fix what is wrong.

    Only reads, unless --probe is given. Exit status 1 if it finds a problem.
    """
    from forebay.aws.client import client
    from forebay.operate.doctor.examination import checks_for, examine
    from forebay.operate.doctor.rights import policy_for_doctor
    from forebay.operate.stack.deployment import look_up

    if rights:
        print_json([policy_for_doctor()])
        return
    on = look_up(stack, client, within=within)
    if on.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE") and not on.is_deployed:
        hint = "is it a forebay stack? In your own stack, --within names the construct"
        raise InvalidConfiguration.one(f"stack {stack} {within}".strip(), "has no outputs from forebay", hint)
    if not (on.status or before):
        where = f"account {on.account}, {on.region}"
        hint = "are the name and the region correct? Before the first deployment, add --before"
        raise InvalidConfiguration.one(f"stack {stack}", f"is not in {where}", hint)
    found = list(examine(on))
    if probe and on.is_deployed:
        found += _probed(on, wait_s)
    if as_json:
        print_json(map(asdict, found))
    else:
        _show(on, found, len(checks_for(on)), probe)
    raise typer.Exit(1 if found else 0)


def _probed(on: Deployment, wait_s: float) -> list[Finding]:
    from forebay.operate.doctor import probe
    from forebay.operate.doctor.examination import guarded

    journey = probe.journey(on, probe.outcome_in_ledger(on), wait_s=wait_s)
    return [
        *guarded("probe.conditional_put", probe.conditional_put(on)),
        *guarded("probe.journey", journey),
    ]


def _show(on: Deployment, found: list[Finding], checks: int, probe: bool) -> None:
    for one in found:
        console.print(styled(one.severity, COLORS[one.severity], f"  {one.what}"))
        console.print(f"  why   {one.why}")
        console.print(f"  fix   {one.fix}")
    where = f"{on.stack} in account {on.account}, {on.region}"
    counts = Counter(one.severity for one in found)
    sums = ", ".join(f"{count} {severity}{'s' * (count > 1)}" for severity, count in sorted(counts.items())) or "well"
    console.print(f"{where}: {sums}; {checks} checks{' and the probe' if probe and on.is_deployed else ''}")
    if not on.is_deployed:
        console.print("Nothing is deployed there yet: only the account was checked.")
