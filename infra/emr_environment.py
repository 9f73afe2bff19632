"""The Python environment that jobs bring to EMR Serverless, which installs nothing: one archive, for `python_modules`.

Enters `requirements.lock`; leaves `forebay-emr-python.tar.gz`, the same bytes each time: the packages of jobs, for EMR's
Python and platform, each checked by its hash. EMR unpacks it beside the job. `bin/python` starts the interpreter in the
archive, if one was packed, or else EMR's own of that version. Where there is none, it says so. PySpark is EMR's. The package
index is asked when it is built, and never by a job.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from forebay.errors import InvalidConfiguration
from forebay.spark import runtime

ROOT = Path(__file__).resolve().parent.parent
NAME = "forebay-emr-python.tar.gz"
PLATFORM = "x86_64-manylinux_2_28"
"""Amazon Linux 2023, as uv calls it: numpy's wheels need no older one."""
NEEDED = (
    *("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3"),
    *("delta-spark", "importlib-metadata", "zipp"),
    *("numpy", "pyarrow"),
    *runtime.GLUE_LACKS,
)
"""The packages of jobs, with their dependencies. A test starts with just these and imports everything."""
GLIBC = 34
"""The minor version of glibc 2 in EMR's images, of Amazon Linux 2023.
https://docs.aws.amazon.com/linux/al2023/ug/compare-with-al2.html"""
INTERPRETER = "python"
"""The folder of the interpreter in the archive."""
NOT_NEEDED = ("test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "__pycache__")
"""Folders of the standard library that no job imports."""
OF_GLIBC = re.compile(rb"GLIBC_2\.(\d+)\0")
START = f"""#!/bin/sh
# The interpreter of this archive, or else EMR's own, with the packages of this archive.
here=$(cd "${{0%/*}}/.." && pwd)
export PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
[ -x "$here/{INTERPRETER}/bin/python{runtime.PYTHON}" ] && exec "$here/{INTERPRETER}/bin/python{runtime.PYTHON}" "$@"
command -v python{runtime.PYTHON} >/dev/null || {{
  echo "forebay: this environment is for Python {runtime.PYTHON}, which is missing here: choose another emr_release" >&2
  exit 1
}}
exec python{runtime.PYTHON} "$@"
"""


def emr_environment(folder: Path, *, interpreter: Path | None = None, glibc: int = GLIBC) -> Path:
    """`interpreter` is the folder of a relocatable CPython for EMR's platform, with `bin` and `lib` in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        root = Path(scratch, "environment")
        _install(root / "lib", Path(scratch, "part.lock"), (ROOT / "requirements.lock").read_text())
        start = root / "bin" / "python"
        start.parent.mkdir()
        start.write_text(START)
        if interpreter is not None:
            pack_interpreter(interpreter, root / INTERPRETER, glibc=glibc)
        return _packed(root, folder / NAME)


def pack_interpreter(interpreter: Path, to: Path, *, glibc: int = GLIBC) -> None:
    """The program, its shared library if it has one, and the standard library without what no job imports."""
    program, library = interpreter / "bin" / f"python{runtime.PYTHON}", f"python{runtime.PYTHON}"
    if not program.exists() or not (interpreter / "lib" / library / "os.py").exists():
        hint = "`uv python install` fetches one; infra/README.md has the command"
        raise InvalidConfiguration.one(str(interpreter), f"has no bin/{program.name} and lib/{library}", hint)
    (to / "bin").mkdir(parents=True)
    shutil.copy(program, to / "bin" / program.name)
    shutil.copytree(interpreter / "lib" / library, to / "lib" / library, ignore=shutil.ignore_patterns(*NOT_NEEDED))
    for shared in (interpreter / "lib").glob("libpython*.so*"):
        shutil.copy(shared, to / "lib" / shared.name)
    if (needed := _needed_glibc(to)) > glibc:
        problem = f"needs glibc 2.{needed}, and the image has 2.{glibc}: it would not start there"
        raise InvalidConfiguration.one(str(interpreter), problem, "take the build that `uv python install` fetches")


def _needed_glibc(folder: Path) -> int:
    """The loader refuses a program, or one of its libraries, that names a later version than it has."""
    files = (file for file in folder.rglob("*") if file.is_file() and (file.parent.name == "bin" or ".so" in file.name))
    return max((int(version) for file in files for version in OF_GLIBC.findall(file.read_bytes())), default=0)


def _install(to: Path, part: Path, lock: str) -> None:
    part.write_text("".join(entry for name in NEEDED for entry in _locked(name, lock)))
    uv = shutil.which("uv") or str(ROOT / ".forebay" / "uv" / "bin" / "uv")
    command = [uv, "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", runtime.PYTHON, "--python-platform", PLATFORM]
    command += ["--link-mode", "copy", "--target", str(to), "-r", str(part)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        hint = "is the package index reachable? `make setup` fetches uv"
        raise InvalidConfiguration.one("the environment for EMR", f"cannot be built: {ran.stderr.strip()[-500:]}", hint)


def _locked(name: str, lock: str) -> Iterator[str]:
    """A package's entries; the markers choose one of them."""
    found = re.findall(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL)
    if not found:
        raise InvalidConfiguration.one("requirements.lock", f"does not name {name}", "`make lock` resolves it")
    yield from found


def _packed(root: Path, to: Path) -> Path:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        for file in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            entry = tarfile.TarInfo(file.relative_to(root).as_posix())
            entry.size, entry.mode = file.stat().st_size, 0o755 if file.parent.name == "bin" else 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)
    with to.open("wb") as packed, gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=3, mtime=0) as zipped:
        zipped.write(body.getvalue())
    return to
