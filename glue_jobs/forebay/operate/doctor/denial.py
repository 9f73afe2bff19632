"""Finds the statements of a bucket's policy that deny a role what it needs. Pure.

In: the policy's JSON, what is known of the role's requests, and the actions on objects under a prefix, or on the bucket. Out: a
`Denial` for each such statement, with the conditions that nobody can decide from here, such as an endpoint of a VPC. IAM's own
simulation leaves out the policies of resources where the caller is a role.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.operate.doctor.policy import like, listed, statements

NEVER_SENT = {"s3:if-none-match", "s3:objectcreationoperation"}
"""Keys by which a lake's policy refuses commits without a condition. Those of the jobs have one."""
COMPARED = {
    "Like": like,
    "Equals": operator.eq,
    "EqualsIgnoreCase": lambda wanted, fact: wanted.lower() == fact.lower(),
}
NUMBERS = {
    "NumericLessThan": operator.lt,
    "NumericLessThanEquals": operator.le,
    "NumericGreaterThan": operator.gt,
    "NumericGreaterThanEquals": operator.ge,
    "NumericEquals": operator.eq,
}
VARIABLE = re.compile(r"\$\{[^}]*\}")
"""A part of a policy that only AWS can fill in, by the request."""


@dataclass(frozen=True)
class Requests:
    """The requests of a role, from its own session. `endpoints` are those of a VPC through which they may come."""

    role: str
    role_id: str
    account: str
    endpoints: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, str]:
        return {
            "aws:principalarn": self.role,
            "aws:principalaccount": self.account,
            "aws:principaltype": "AssumedRole",
            "aws:principalisawsservice": "false",
            "aws:viaawsservice": "false",
            "aws:userid": f"{self.role_id}:session",
            "aws:securetransport": "true",
            "s3:tlsversion": "1.3",
        }


@dataclass(frozen=True)
class Asked:
    """Actions on everything under `arn`, or on that alone."""

    actions: tuple[str, ...]
    arn: str
    is_below: bool = True


@dataclass(frozen=True)
class Denial:
    """`undecided` are conditions, as text; empty where the statement denies in any case."""

    statement: str
    actions: tuple[str, ...]
    resource: str
    undecided: tuple[str, ...]


def denials(text: str, requests: Requests, wanted: Sequence[Asked]) -> Iterator[Denial]:
    for number, one in enumerate(statements(text), 1):
        if one["Effect"] != "Deny":
            continue
        is_for, undecided = _is_for(one, requests), _undecided(one.get("Condition", {}), requests)
        if is_for is None or undecided is None:
            continue
        name = str(one.get("Sid") or f"number {number}")
        for asked in wanted:
            actions = tuple(action for action in asked.actions if _has_action(one, action))
            if actions and (resource := _resource(one, asked)):
                by_variable = (f"Resource {resource}",) if VARIABLE.search(resource) else ()
                yield Denial(name, actions, resource, (*is_for, *undecided, *by_variable))


def _is_for(statement: Mapping[str, Any], requests: Requests) -> tuple[str, ...] | None:
    """Gives what nobody can decide about it; None where the statement is for others. `NotPrincipal` spares a role only if it
    names the role and the role's account: the account alone spares nobody but its root user."""
    spares, principal = "NotPrincipal" in statement, statement.get("NotPrincipal", statement.get("Principal", "*"))
    root = f"{requests.role.partition('iam:')[0]}iam::{requests.account}:root"
    named = listed(principal if isinstance(principal, str) else principal.get("AWS", ()))
    has_account = bool({"*", requests.account, root} & {*named})
    has_role = "*" in named or any(_is_role(str(one), requests) for one in named)
    if not spares:
        return () if has_role or has_account else None
    if has_role and not has_account:
        return (f"NotPrincipal without {root}",)
    return None if has_role else ()


def _is_role(named: str, requests: Requests) -> bool:
    """The name of a session has the role's name without its path."""
    before, _, name = requests.role.partition(":role/")
    session = f"{before.replace(':iam:', ':sts:')}:assumed-role/{name.rpartition('/')[2]}/"
    return named == requests.role or named.startswith(session)


def _has_action(statement: Mapping[str, Any], action: str) -> bool:
    has = "Action" in statement
    listed_here = listed(statement["Action" if has else "NotAction"])
    return has is any(like(pattern.lower(), action.lower()) for pattern in listed_here)


def _resource(statement: Mapping[str, Any], asked: Asked) -> str:
    """The first pattern of the statement that has something of what is asked; empty if none has."""
    if "NotResource" in statement:
        is_spared = any(
            like(pattern, f"{asked.arn}x" if asked.is_below else asked.arn)
            for pattern in listed(statement["NotResource"])
        )
        return "" if is_spared else asked.arn
    found = (str(pattern) for pattern in listed(statement.get("Resource", "*")))
    meets = _may_begin if asked.is_below else like
    return next((pattern for pattern in found if meets(VARIABLE.sub("*", pattern), asked.arn)), "")


def _may_begin(pattern: str, prefix: str) -> bool:
    """Whether a text that begins so fits the pattern."""
    for part, letter in zip(pattern, prefix, strict=False):
        if part == "*":
            return True
        if part not in ("?", letter):
            return False
    return len(pattern) >= len(prefix)


def _undecided(conditions: Mapping[str, Any], requests: Requests) -> tuple[str, ...] | None:
    """The conditions that nobody can decide here; None where one of them is surely not met."""
    found = []
    for test, keys in conditions.items():
        for key, values in keys.items():
            is_met = _is_met(test, key.lower(), [str(value) for value in listed(values)], requests)
            if is_met is False:
                return None
            if is_met is None:
                found.append(f"{test} {key}")
    return tuple(found)


def _is_met(test: str, key: str, values: Sequence[str], requests: Requests) -> bool | None:
    plain = test.rpartition(":")[2].removesuffix("IfExists")  # each fact is one value, and is there
    if key in NEVER_SENT:
        return False
    if key == "aws:sourcevpce":
        return _by_endpoint(plain, values, requests.endpoints)
    fact = requests.facts.get(key, "")
    if not fact or any(map(VARIABLE.search, values)):
        return None
    if plain in ("Null", "Bool"):
        return (fact if plain == "Bool" else "false") in map(str.lower, values)
    if plain in NUMBERS:
        return _by_number(plain, values, fact)
    for kind in ("String", "Arn"):
        is_not, rest = plain.startswith(f"{kind}Not"), plain.removeprefix(f"{kind}Not").removeprefix(kind)
        if plain.startswith(kind) and rest in COMPARED:
            compare = like if kind == "Arn" else COMPARED[rest]
            return is_not is not any(compare(value, fact) for value in values)
    return None


def _by_number(test: str, values: Collection[str], fact: str) -> bool | None:
    try:
        return any(NUMBERS[test](float(fact), float(value)) for value in values)
    except ValueError:
        return None


def _by_endpoint(test: str, values: Collection[str], endpoints: Collection[str]) -> bool | None:
    """A statement spares the requests from the endpoints that it names, and one of them may be ours."""
    spares = test in ("StringNotEquals", "StringNotLike")
    return False if spares and set(values) & set(endpoints) else None
