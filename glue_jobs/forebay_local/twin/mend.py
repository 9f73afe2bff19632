"""A mend: one function of moto, replaced by ours, and what we lean on when we do that.

moto is pinned to one exact version because the mends reach into it. `lay` refuses to lay any of them when a place moved, and
names every place. So a new moto fails with a message, and not with a twin that loses messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from forebay.errors import InvalidConfiguration, Problem

__all__ = ["MOTO", "Mend", "lay", "missing", "moved"]

MOTO = "5.2.5"
"""The only version that the mends were written for; pyproject.toml pins the same."""

ReliedOn = Callable[[], list[tuple[Any, str]]]
"""Makes some of moto's objects and says which of their attributes the mends read."""

INSTALL = "pip install 'forebay[dev]'"


@dataclass(frozen=True)
class Mend:
    """Replace `owner.name`. `takes` are the parameters of the stock function, None where it is a property. What is `new` must
    not be there before."""

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
        return [Problem("forebay local", "moto is not installed, the local twin is made of it", INSTALL)]
    if found != MOTO:
        return [Problem("forebay local", f"moto {found} is installed, the local twin needs exactly {MOTO}", INSTALL)]
    try:
        version("flask-cors")
    except PackageNotFoundError:
        return [Problem("forebay local", "moto is installed without its server", INSTALL)]
    return []


def moved(mends: Iterable[Mend], relied_on: ReliedOn = list) -> list[Problem]:
    """Each place in moto that is no longer as the mends expect it; must be asked before they are laid."""
    problems = [problem for mend in mends if (problem := _moved(mend))]
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
            problems.append(Problem(name, "is gone from moto, and a mend of the twin reads it", f"moto {MOTO} has it"))
    return problems


def lay(mends: Iterable[Mend], relied_on: ReliedOn = list) -> None:
    """Replace all, or refuse and replace none. Laid a second time it changes nothing."""
    mends = [mend for mend in mends if inspect.getattr_static(mend.owner, mend.name, None) is not mend.ours]
    problems = moved(mends, relied_on)
    if problems:
        raise InvalidConfiguration(problems)
    for mend in mends:
        setattr(mend.owner, mend.name, mend.ours)


def _moved(mend: Mend) -> Problem | None:
    was = inspect.getattr_static(mend.owner, mend.name, None)
    if mend.new:
        return None if was is None else Problem(mend.place, "is in moto now; the mend that adds it can go")
    if was is None:
        return Problem(mend.place, "is gone from moto, and a mend of the twin replaces it", f"moto {MOTO} has it")
    if mend.takes is None:
        if isinstance(was, property):
            return None
        return Problem(mend.place, "is no longer a property in moto, and a mend of the twin replaces it as one")
    takes = tuple(inspect.signature(was).parameters)
    if takes != mend.takes:
        return Problem(
            mend.place, f"takes ({', '.join(takes)}) now; the mend was written for ({', '.join(mend.takes)})"
        )
    return None
