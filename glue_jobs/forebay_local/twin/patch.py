"""A patch replaces one function of moto by ours, and names the parts of moto that it relies on.

moto is pinned to one exact version because the patches reach into it. `apply` refuses to apply any of them when a place moved,
and names every place. So a new moto fails with a message, and not with a twin that loses messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from forebay.errors import InvalidConfiguration, Problem

MOTO = "5.2.5"
"""The only version that the patches were written for; pyproject.toml pins the same."""

ReliedOn = Callable[[], list[tuple[Any, str]]]
"""Makes some of moto's objects and says which of their attributes the patches read."""

INSTALL = "make setup"


@dataclass(frozen=True)
class Patch:
    """Replaces `owner.name`. `takes` are the parameters of the stock function, None for a property. A `new` function must not
    exist before."""

    owner: Any
    name: str
    takes: tuple[str, ...] | None
    ours: Any
    new: bool = False

    @property
    def place(self) -> str:
        module = getattr(self.owner, "__module__", None)
        return ".".join(filter(None, [module, self.owner.__name__, self.name]))


def missing(version: Callable[[str], str] = version) -> list[Problem]:
    """Why the twin cannot run with the moto that is installed, without importing it; empty when it can."""
    try:
        found = version("moto")
    except PackageNotFoundError:
        return [Problem("forebay local", "moto is not installed, but the local twin needs it", INSTALL)]
    if found != MOTO:
        return [
            Problem("forebay local", f"moto {found} is installed, but the local twin needs exactly {MOTO}", INSTALL)
        ]
    try:
        version("flask-cors")
    except PackageNotFoundError:
        return [Problem("forebay local", "moto is installed without its server", INSTALL)]
    return []


def moved(patches: Iterable[Patch], relied_on: ReliedOn = list) -> list[Problem]:
    """Each place in moto that is no longer as the patches expect it; must be asked before they are applied."""
    problems = [problem for patch in patches if (problem := _moved(patch))]
    try:
        wanted = relied_on()
    except (AttributeError, TypeError) as why:
        return [
            *problems,
            Problem(relied_on.__module__, f"cannot look at moto's objects any more: {why}", f"moto {MOTO}"),
        ]
    for thing, attribute in wanted:
        if not hasattr(thing, attribute):
            name = f"{type(thing).__module__}.{type(thing).__name__}.{attribute}"
            problems.append(
                Problem(name, "no longer exists in moto, but a patch of the twin reads it", f"moto {MOTO} has it")
            )
    return problems


def apply(patches: Iterable[Patch], relied_on: ReliedOn = list) -> None:
    """Replace all, or refuse and replace none. Applied a second time it changes nothing."""
    patches = [patch for patch in patches if inspect.getattr_static(patch.owner, patch.name, None) is not patch.ours]
    problems = moved(patches, relied_on)
    if problems:
        raise InvalidConfiguration(problems)
    for patch in patches:
        setattr(patch.owner, patch.name, patch.ours)


def _moved(patch: Patch) -> Problem | None:
    was = inspect.getattr_static(patch.owner, patch.name, None)
    if patch.new:
        return None if was is None else Problem(patch.place, "is in moto now; the patch that adds it can go")
    if was is None:
        return Problem(
            patch.place, "no longer exists in moto, but a patch of the twin replaces it", f"moto {MOTO} has it"
        )
    if patch.takes is None:
        if isinstance(was, property):
            return None
        return Problem(patch.place, "is no longer a property in moto, but a patch of the twin replaces it as one")
    takes = tuple(inspect.signature(was).parameters)
    if takes != patch.takes:
        return Problem(
            patch.place, f"takes ({', '.join(takes)}) now; the patch was written for ({', '.join(patch.takes)})"
        )
    return None
