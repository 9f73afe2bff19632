"""A Python environment with what Glue brings, and what jobs bring along: no more, and nothing of this repository.

In: uv and an interpreter of Glue's version, which uv finds or fetches. Out: the environment's folder, made once for each set of
packages. Jobs' packages come from the zip of wheels that a deployment ships, without an index, as Glue installs them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from forebay.errors import InvalidConfiguration
from forebay.spark import runtime
from infra.wheels import SUFFIX, wheels_zip

ROOT = Path(__file__).resolve().parents[2]
BROUGHT = (f"pyspark=={runtime.SPARK}", f"delta-spark=={runtime.DELTA}", *runtime.GLUE_HAS)
"""PySpark and Delta are Glue's own there."""


def glue_python(folder: Path = ROOT / ".forebay" / "glue-python") -> Path:
    """The interpreter."""
    wheels = wheels_zip(folder.parent / f"packages{SUFFIX}")
    wanted = hashlib.sha256(repr((BROUGHT, runtime.PYTHON)).encode() + wheels.read_bytes()).hexdigest()
    python, stamp = folder / "bin" / "python", folder / ".stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    uv = shutil.which("uv") or str(ROOT / ".forebay" / "uv" / "bin" / "uv")
    _run([uv, "venv", "--quiet", "--python", _interpreter(), str(folder)])
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    _run([*install, *BROUGHT])
    with zipfile.ZipFile(wheels) as archive:
        archive.extractall(folder / "shipped")
    shipped = folder / "shipped" / "wheels"
    _run([*install, "--no-index", "--find-links", str(shipped), "-r", str(shipped / "requirements.txt")])
    stamp.write_text(wanted)
    return python


def _interpreter() -> str:
    """One of pyenv's, which uv does not see while another version is chosen there; else one that uv finds, or fetches."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(home.glob(f"versions/{runtime.PYTHON}.*/bin/python"))
    return str(found[-1]) if found else runtime.PYTHON


def _run(command: list[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        hint = f"the cluster test needs Python {runtime.PYTHON} and the package index"
        raise InvalidConfiguration.one(" ".join(command[1:4]), f"failed: {ran.stderr.strip()[-500:]}", hint)
