"""The twin's cloud assembly: made by this repository's CDK app, run in a process of its own when anything changed.

Synth takes some seconds, so its result is kept in `.forebay/assembly/<hash>`, by the content of everything that it is made
of. The package knows the app only as a command: `infra` may import `forebay`, and never the other way round.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import forebay
from forebay.address import is_s3
from forebay.errors import Halt, InvalidConfiguration

ROOT = Path(forebay.__file__).resolve().parents[2]
MADE_OF = ("infra", "lambdas", "glue_jobs", "cdk.json", "requirements.lock", ".forebay/jars/forebay-logstore.jar")
KEPT = 3
"""Results that are kept: another process may just be deploying an older one."""


def assembly(root: Path = ROOT, *, env: str = "local") -> Path:
    """The folder of the assembly for this environment, made if it is not there yet."""
    if not (root / "infra" / "app.py").exists():
        raise InvalidConfiguration.one(
            "forebay local", f"there is no infrastructure app in {root}", "name a synthesized one: --assembly cdk.out"
        )
    kept = root / ".forebay" / "assembly"
    kept.mkdir(parents=True, exist_ok=True)
    wanted = kept / f"{env}-{fingerprint(root, env)}"
    with _alone(kept):
        if not wanted.exists():
            _synthesize(root, env, wanted)
            _forget_older(kept, wanted)
    return wanted


def fingerprint(root: Path = ROOT, env: str = "local") -> str:
    """The fingerprint of everything that a synth reads."""
    digest = hashlib.sha256(repr(sys.version_info[:2]).encode())
    for place in (*MADE_OF, *_declarations(root, env)):
        path = (root / place).resolve()
        files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _counts(file))
        for file in files:
            digest.update(f"{os.path.relpath(file, root)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _declarations(root: Path, env: str) -> Iterator[str]:
    """The folder of the declarations and functions, if `cdk.json` names one."""
    with suppress(OSError, ValueError, TypeError, AttributeError):  # the app says what is wrong with the file
        context = json.loads((root / "cdk.json").read_text()).get("context", {})
        service = {**context, **context.get("environments", {}).get(env, {})}.get("service")
        if service and not is_s3(service):
            yield str(Path(service).parent) if service.endswith(".toml") else service


def _counts(file: Path) -> bool:
    return file.is_file() and file.suffix not in (".pyc", ".md") and "egg-info" not in str(file)


def _synthesize(root: Path, env: str, wanted: Path) -> None:
    new = wanted.with_name(f".{wanted.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CDK_", "AWS_"))}
    environment |= {"CDK_OUTDIR": str(new), "PYTHONPATH": os.pathsep.join([str(root), str(root / "glue_jobs")])}
    command = [sys.executable, "-m", "infra.app", "--without-review", "-c", f"env={env}"]
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        end = "\n".join((ran.stderr or ran.stdout).strip().splitlines()[-15:])
        raise Halt(f"the twin's infrastructure cannot be synthesized; `python -m infra.app -c env={env}` says:\n{end}")
    new.replace(wanted)


def _forget_older(kept: Path, wanted: Path) -> None:
    others = sorted(
        (path for path in kept.iterdir() if path.is_dir() and path != wanted), key=lambda p: p.stat().st_mtime
    )
    for old in others[: -(KEPT - 1)]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One synth at a time."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
