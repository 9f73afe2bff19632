"""Tests, and the benches.

Each stream, job and command of them is a Python process of its own. Where an image forbids bytecode, as many do, each would
compile a thousand modules anew: a bench of a second would measure that. What is compiled is kept beside the other things that
set-up makes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

BYTECODE = os.environ.setdefault(
    "PYTHONPYCACHEPREFIX", str(Path(__file__).resolve().parents[1] / ".forebay" / "bytecode")
)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.pycache_prefix, sys.dont_write_bytecode = BYTECODE, False
