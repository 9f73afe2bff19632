"""How much work a treatment is, counted and not timed, so a busy machine changes nothing.

Each call of a Python function is one step. A call of numpy, of Arrow's compute functions, or of a builtin that goes through its
argument is as many steps as its arguments have entries.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sized
from types import FrameType, ModuleType
from typing import Any

import pytest

from forebay.declaration.column_name import _folded, safe_name
from forebay.privacy.text import level_of
from forebay.privacy.token import remembered_token

REMEMBERED = (remembered_token, level_of, safe_name, _folded)
GO_THROUGH = ("sorted", "sum")


class Counted:
    """A module, of whose functions each call is counted."""

    def __init__(self, module: ModuleType, meter: list[int]) -> None:
        self._module, self._meter = module, meter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return found if isinstance(found, type) or not callable(found) else counted(found, self._meter)


def counted(function: Callable[..., Any], meter: list[int]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        meter[0] += 1 + sum(len(one) for one in given if isinstance(one, Sized) and not isinstance(one, str))
        return function(*given, **named)

    return call


def work_of(task: Callable[[], Any], modules: tuple[ModuleType, ...]) -> int:
    """Of `task`, as far as it is done in these modules, and in what they call. Nothing is remembered from before."""
    for remembered in REMEMBERED:
        remembered.cache_clear()
    meter = [0]

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        meter[0] += event == "call"

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name in ("np", "pc"):
                if hasattr(module, name):
                    patch.setattr(module, name, Counted(getattr(module, name), meter))
            for name in GO_THROUGH:
                patch.setattr(module, name, counted(getattr(builtins, name), meter), raising=False)
        sys.setprofile(on_event)
        try:
            task()
        finally:
            sys.setprofile(None)
    return meter[0]
