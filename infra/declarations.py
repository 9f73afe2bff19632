"""The declarations as one file for the job, and the service they declare.

A job is given single files beside its script, so the tables of `tables/*.toml` are written into one service.toml. It is
checked first, in the same words as everywhere; its text decides its place, so a changed table shows as a changed argument.
"""

from __future__ import annotations

import json
from typing import Any

from forebay.declaration.loading import load_service
from forebay.declaration.service import FILLED, Service
from forebay.errors import InvalidConfiguration
from infra.clocked import problems_of_schedules

__all__ = ["declared", "one_text"]


def declared(place: str) -> Service:
    """Raises `InvalidConfiguration` with everything that is wrong."""
    service = load_service(place, strict=True)
    if problems := problems_of_schedules(service):
        raise InvalidConfiguration(problems)
    return service


def one_text(service: Service) -> str:
    """TOML that declares the same service."""
    facts = service.model_dump(exclude={"tables", *FILLED}, exclude_none=True)
    lines = [f"{key} = {_toml(value)}" for key, value in facts.items()]
    for table in service.tables:
        lines += ["", "[[tables]]"]
        lines += [f"{key} = {_toml(value)}" for key, value in table.model_dump(exclude_none=True).items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # A string of JSON is one of TOML, save for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
