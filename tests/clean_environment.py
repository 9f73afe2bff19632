"""A Python environment with nothing but what a test installs there, at the locked versions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.bundle import ROOT

LOCK = ROOT / "requirements.lock"


def program(name: str) -> str:
    """`uv` or `uvx`: those of set-up, or the machine's."""
    ours = ROOT / ".forebay" / "uv" / "bin" / name
    return str(ours) if ours.exists() else name


def installed(home: Path, *packages: str | Path, pinned: Sequence[str] = ()) -> Path:
    """The folder of its programs. `pinned`: versions of packages that are not in the lock."""
    subprocess.run([program("uv"), "venv", "-q", "--python", sys.executable, home], check=True)
    more = home / "pinned.txt"
    more.write_text("\n".join(pinned))
    command = [program("uv"), "pip", "install", "-q", "--python", home, "-c", LOCK, "-c", more, *packages]
    offline_if_possible(command).check_returncode()
    return home / "bin"


def offline_if_possible(command: Sequence[str | Path], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of uv. As a rule, uv's cache has what set-up fetched."""
    program, *arguments = command
    done = subprocess.run([program, "--offline", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done
