"""One thing that is wrong: how bad it is, what it is, why it matters, and the command or line that fixes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
"""`error`: files are not loaded, or could be lost. `warning`: the service works, and somebody should look."""

DEPLOY = "cdk deploy"


@dataclass(frozen=True)
class Finding:
    """`check` is the name of the check, which `examination` adds."""

    severity: Severity
    check: str
    what: str
    why: str
    fix: str


def error(what: str, why: str, fix: str = DEPLOY) -> Finding:
    return Finding("error", "", what, why, fix)


def warning(what: str, why: str, fix: str = DEPLOY) -> Finding:
    return Finding("warning", "", what, why, fix)
