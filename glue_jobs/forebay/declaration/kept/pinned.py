"""Pinned declarations: a repeated batch or retry must use those of its first attempt.

In: a service. Out: plain JSON, and the service again. The code that reads them may be older than the code that wrote them,
after a rollback. Unknown fields are ignored if they have no effect: at their default, or in a section about upkeep. Any other
is a `Halt` with the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from forebay.declaration.service import Service
from forebay.errors import Halt

AT_DEFAULT = "at_default"
OF_UPKEEP = re.compile(r"schedules\.|tables\.\d+\.compaction\.")


def pinned(service: Service) -> dict[str, Any]:
    """Includes every value in force, because the code that reads it may have other defaults."""
    return {**service.model_dump(mode="json"), AT_DEFAULT: sorted(_at_default(service, ""))}


def unpinned(plain: Mapping[str, Any], what: str) -> Service:
    """The service again. `what` names the work that began with these declarations, for the message of a `Halt`."""
    at_default, left = frozenset(plain.get(AT_DEFAULT, ())), {k: v for k, v in plain.items() if k != AT_DEFAULT}
    while True:
        try:
            return Service.model_validate(left)
        except ValidationError as refused:
            problems = {".".join(map(str, problem["loc"])): problem for problem in refused.errors()}
            unknown = {
                path: problem["loc"] for path, problem in problems.items() if problem["type"] == "extra_forbidden"
            }
            decide = sorted(path for path in problems if path not in unknown or not _decides_nothing(path, at_default))
            if decide:
                raise other_code_needed(what, decide[0]) from refused
            for path in unknown.values():
                left = _without(left, path)


def other_code_needed(what: str, field: str) -> Halt:
    return Halt(
        f"{what} was started by another version of the code, and this version does not understand its {field}. Start that "
        "version again, let it finish, and then change versions"
    )


def _decides_nothing(path: str, at_default: frozenset[str]) -> bool:
    return path in at_default or bool(OF_UPKEEP.match(path))


def _at_default(model: BaseModel, where: str) -> Iterator[str]:
    defaults = _defaults(type(model))
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name in defaults and value == defaults[name]:
            yield f"{where}{name}"
        for key, inner in _parts(value):
            if isinstance(inner, BaseModel):
                yield from _at_default(inner, f"{where}{name}.{key}")


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    fields = kind.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()}


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"{key}.", inner) for key, inner in value.items())
    elif isinstance(value, tuple):
        yield from ((f"{at}.", inner) for at, inner in enumerate(value))
    else:
        yield "", value


def _without(plain: Any, path: tuple[int | str, ...]) -> Any:
    """A copy without the value at this path."""
    first, *rest = path
    if not rest:
        return {key: value for key, value in plain.items() if key != first}
    if isinstance(plain, Mapping):
        return {key: _without(value, tuple(rest)) if key == first else value for key, value in plain.items()}
    return [_without(value, tuple(rest)) if at == first else value for at, value in enumerate(plain)]
