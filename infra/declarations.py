"""The declarations as one file for the job, and the service they declare.

A job is given single files beside its script, so the tables of `tables/*.toml` are written into one service.toml. It is
checked first, in the same words as everywhere; its text decides its place, so a changed table shows as a changed argument.
"""

from __future__ import annotations

import json
from datetime import date, time
from pathlib import Path
from typing import Any

from forebay.declaration.loading import load_service
from forebay.declaration.service import FILLED, Service
from forebay.errors import InvalidConfiguration, Problem
from forebay.transforms import PACKAGE, package_beside
from infra.clocked import problems_of_schedules


def declared(place: str) -> Service:
    """Raises `InvalidConfiguration` with everything that is wrong."""
    service = load_service(place, strict=True)
    if problems := problems_of_schedules(service):
        raise InvalidConfiguration(problems)
    return service


def functions_of(service: Service, place: str) -> Path | None:
    """The folder of functions beside the declarations, if there is one. Tables may name some later, in declarations that are
    pushed. Their code is shipped, and not run here."""
    folder = package_beside(place)
    missing = [
        Problem(f"table {table.name}: transform", f"{PACKAGE}/{module}.py does not exist beside the declarations")
        for table in service.tables
        if table.transform is not None and not _has(folder, module := table.transform.partition(":")[0])
    ]
    if missing:
        raise InvalidConfiguration(missing)
    return folder


def _has(folder: Path | None, module: str) -> bool:
    return folder is not None and ((folder / f"{module}.py").is_file() or (folder / module).is_dir())


def one_text(service: Service) -> str:
    """TOML that declares the same service, with what was declared and no defaults: its text changes where a declaration does,
    and not with a version that knows more settings."""
    left_out = {"tables", *FILLED, *(() if service.rollups else ("rollups",))}
    facts = service.model_dump(exclude=left_out, exclude_unset=True, exclude_none=True)
    lines = [f"{key} = {_toml(value)}" for key, value in facts.items()]
    for table in service.tables:
        lines += ["", "[[tables]]"]
        fields = table.model_dump(exclude_unset=True, exclude_none=True)
        lines += [f"{key} = {_toml(value)}" for key, value in fields.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    # A string of JSON is one of TOML, save for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
