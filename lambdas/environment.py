"""The settings of a function: a frozen dataclass whose fields are the names of environment variables, in lowercase letters.

Out: the dataclass, or `InvalidConfiguration` with everything that is missing or of the wrong type. Unset optional fields keep
their defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from forebay.errors import InvalidConfiguration, Problem

T = TypeVar("T")


def read(settings: type[T], env: Mapping[str, str]) -> T:
    values: dict[str, Any] = {}
    problems = []
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        name = field.name.upper()
        if env.get(name):
            try:
                values[field.name] = int(env[name]) if field.type in (int, "int") else env[name]
            except ValueError:
                problems.append(Problem(name, f"is not a whole number; got {env[name]!r}"))
        elif field.default is dataclasses.MISSING:
            problems.append(Problem(name, "is missing", "the stack sets it"))
    if problems:
        raise InvalidConfiguration(problems)
    return settings(**values)
