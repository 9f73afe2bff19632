"""Do now what the clock would: deliver a deployed schedule's own target.

The twin's schedules do not fire by themselves, so that nothing happens on a laptop that nobody asked for, and a test
decides what happens when.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from forebay.errors import Halt, InvalidConfiguration
from forebay_local.twin import clients

Client = Callable[[str], Any]
API_CALL = re.compile(r"arn:[^:]+:scheduler:::aws-sdk:([^:]+):([^:]+)")


def schedules(client: Client) -> dict[str, str]:
    """Every schedule of the twin and its group."""
    pages = client("scheduler").get_paginator("list_schedules").paginate()
    return {found["Name"]: found["GroupName"] for page in pages for found in page["Schedules"]}


def fire(client: Client, name: str) -> Any:
    """The target's answer. An unknown schedule is `InvalidConfiguration`; a function that fails is a `Halt` with
    its error."""
    known = schedules(client)
    if name not in known:
        raise InvalidConfiguration.one(
            f"schedule {name}", "is not in the twin", f"known: {', '.join(sorted(known)) or 'none'}"
        )
    scheduler = client("scheduler")
    target = scheduler.get_schedule(Name=name, GroupName=known[name])["Target"]
    arn, payload = target["Arn"], json.loads(target.get("Input") or "{}")
    as_role = partial(
        clients.client,
        endpoint=scheduler.meta.endpoint_url,
        region=scheduler.meta.region_name,
        who=clients.role_of(target["RoleArn"]),
    )
    if ":lambda:" in arn:
        return _invoke(as_role("lambda"), arn, payload)
    if call := API_CALL.fullmatch(arn):
        service, action = call.groups()
        method = re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()
        answer = getattr(as_role(service), method)(**payload)
        answer.pop("ResponseMetadata", None)
        return answer
    raise Halt(f"schedule {name}: the local twin cannot deliver to {arn}")


def _invoke(functions: Any, arn: str, event: Any) -> Any:
    answered = functions.invoke(FunctionName=arn, Payload=json.dumps(event))
    answer = json.loads(answered["Payload"].read() or "null")
    if "FunctionError" in answered:
        raise Halt(f"{arn.rpartition(':')[2]}: {answer['errorType']}: {answer['errorMessage']}")
    return answer
