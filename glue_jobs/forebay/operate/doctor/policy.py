"""Decides whether the policy of a bucket, queue, topic or key allows an AWS service to act. Pure.

In: the policy's JSON, the service, the action, and the source. Out: yes or no. Only statements that allow are read, with the
conditions that such policies carry: the source's ARN and its account. A condition of another kind counts as not met.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

_COMPARED = {"ArnLike", "ArnEquals", "StringLike", "StringEquals"}


def lets_in(text: str, service: str, action: str, *, source: str, account: str) -> bool:
    """Whether `service` may do `action` for `source`, an ARN. `service` is such as `s3.amazonaws.com`."""
    facts = {"aws:sourcearn": source, "aws:sourceaccount": account}
    return any(
        one["Effect"] == "Allow"
        and _is_for(one, service)
        and any(like(pattern.lower(), action.lower()) for pattern in listed(one["Action"]))
        and _holds(one.get("Condition", {}), facts)
        for one in statements(text)
    )


def statements(text: str) -> Iterator[Mapping[str, Any]]:
    yield from listed(json.loads(text)["Statement"]) if text else ()


def _is_for(statement: Mapping[str, Any], service: str) -> bool:
    principal = statement.get("Principal", {})
    if principal == "*":
        return True
    return bool({service, "*"} & {*listed(principal.get("Service", ())), *listed(principal.get("AWS", ()))})


def _holds(conditions: Mapping[str, Any], facts: Mapping[str, str]) -> bool:
    for operator, wanted in conditions.items():
        for key, values in wanted.items():
            fact, plain = facts.get(key.lower()), operator.removesuffix("IfExists")
            if fact is None and plain != operator:
                continue
            if plain not in _COMPARED or fact is None:
                return False
            if not any(like(str(value), fact) for value in listed(values)):
                return False
    return True


def like(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern as in policies: * and ? are wildcards, brackets are not."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
