"""How many of the files that a module makes are held: what looks through a bucket must not hold the whole bucket."""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakSet

import pytest

from forebay.landed_file import LandedFile


def files_alive(monkeypatch: pytest.MonkeyPatch, module: str) -> WeakSet[LandedFile]:
    """Those that `module` makes from now on, as long as somebody holds them."""
    alive: WeakSet[LandedFile] = WeakSet()

    class Watched(LandedFile):
        def __init__(self, *values: Any, **named: Any) -> None:
            super().__init__(*values, **named)
            alive.add(self)

    monkeypatch.setattr(sys.modules[module], "LandedFile", Watched)
    return alive
