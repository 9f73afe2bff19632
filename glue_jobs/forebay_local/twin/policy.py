"""Whether policies let somebody do something, as IAM decides: one statement must allow it, and none may deny it.

Enters policy documents and a `Call`. Leaves a `Verdict`, with the statement that decided. Wildcards and the conditions that our
templates use are understood; a condition that is not is an error, so that nothing is judged by half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

USED = "rights.jsonl"
"""In the twin's folder: which statements were used, and what was refused."""

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """One action on one resource. `context` is what conditions ask about: the name of a key, and its value."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """`by` is the `Sid` of the statement that decided; empty where none spoke."""

    allowed: bool
    by: str = ""


def judge(documents: Iterable[Document], call: Call) -> Verdict:
    found = Verdict(False)
    for statement in (one for document in documents for one in _listed(document["Statement"])):
        if not _speaks_of(statement, call):
            continue
        by = str(statement.get("Sid", ""))
        if statement["Effect"] == "Deny":
            return Verdict(False, by)
        found = Verdict(True, by)
    return found


def _speaks_of(statement: Document, call: Call) -> bool:
    return (
        any(_like(pattern.lower(), call.action.lower()) for pattern in _listed(statement["Action"]))
        and any(_like(pattern, call.resource) for pattern in _listed(statement["Resource"]))
        and all(
            _holds(operator, call.context.get(key), [str(value) for value in _listed(values)])
            for operator, wanted in statement.get("Condition", {}).items()
            for key, values in wanted.items()
        )
    )


def _holds(operator: str, found: str | None, wanted: list[str]) -> bool:
    if operator == "Null":
        return (found is None) == (wanted[0].lower() == "true")
    compare = COMPARED.get(operator)
    if compare is None:
        raise ValueError(f"a policy has the condition {operator}, which the local twin cannot judge")
    return found is not None and any(compare(found, value) for value in wanted)


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(re.escape(glob).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _like(glob: str, text: str) -> bool:
    return glob == "*" or glob == text or (("*" in glob or "?" in glob) and bool(_pattern(glob).fullmatch(text)))


COMPARED: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda found, wanted: found == wanted,
    "StringLike": lambda found, wanted: _like(wanted, found),
    "ArnEquals": lambda found, wanted: _like(wanted, found),
    "ArnLike": lambda found, wanted: _like(wanted, found),
    "Bool": lambda found, wanted: found.lower() == wanted.lower(),
    "NumericLessThan": lambda found, wanted: float(found) < float(wanted),
}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
