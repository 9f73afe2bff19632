"""The files that jobs ship with: `python -m infra.bundle [FOLDER [CPYTHON]]` (`make bundle`) writes them, into dist/.

* `forebay.zip`: the package, for `--extra-py-files`;
* `forebay-<version>-py3-none-any.whl`: the same as a wheel, for pip, with what starts Spark on a laptop;
* `forebay-logstore.jar`: the log store, and Delta Kernel's two jars, for `--extra-jars`;
* `forebay-emr-python.tar.gz`: the Python environment for EMR Serverless (`emr_environment`), for `python_modules`.

`CPYTHON` is the folder of a relocatable interpreter, which the environment for EMR then contains.

The same sources give the same bytes, on whatever day and in whatever folder, so that a hash says what runs. The template ships
this zip and these jars. `SHA256SUMS` beside them has the hashes.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from forebay.errors import InvalidConfiguration
from forebay.spark import runtime
from forebay.transforms import PACKAGE as TRANSFORMS
from infra.emr_environment import emr_environment

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "glue_jobs" / "forebay"
JARS = ROOT / ".forebay" / "jars"
LOG_STORE_JAR = JARS / "forebay-logstore.jar"
KERNEL_JARS = tuple(JARS / f"delta-kernel-{part}-{runtime.DELTA}.jar" for part in ("api", "defaults"))
"""Delta's own jar has no Kernel. An engine that brings the same version has it twice, and either copy does."""
OF_A_PERSON = "cli"
"""The room that no job runs."""
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest timestamp of a zip, for every entry."""
EPOCH = "315532800"
"""The same timestamp, for the builder of wheels."""


def bundle(folder: Path, *, root: Path = ROOT, log_store_jar: Path = LOG_STORE_JAR) -> list[Path]:
    """The files, with their hashes beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [package_zip(folder / "forebay.zip", root / "glue_jobs" / "forebay"), wheel(folder, root, log_store_jar)]
    for jar in (log_store_jar, *KERNEL_JARS):
        made.append(Path(shutil.copyfile(built(jar), folder / jar.name)))
    write_sums(folder, made)
    return made


def write_sums(folder: Path, made: Iterable[Path]) -> None:
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made]
    (folder / "SHA256SUMS").write_text("".join(sums))


def package_zip(to: Path, package: Path = PACKAGE, *, functions: Path | None = None) -> Path:
    """`functions` is the folder of the functions that declarations name, if there is one."""
    ours = (file for file in files_of(package) if file.relative_to(package).parts[0] != OF_A_PERSON)
    files = {f"{package.name}/{file.relative_to(package).as_posix()}": file.read_bytes() for file in ours}
    if functions is not None:
        files |= modules_of(functions)
    to.write_bytes(zipped(files))
    return to


def zipped(files: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The same bytes each time."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, how)
    return body.getvalue()


def modules_of(functions: Path) -> dict[str, bytes]:
    """The modules of the folder and of folders in it, by their names in the zip. Python imports none from a folder in a zip
    without `__init__.py`, and needs no such file beside the declarations."""
    found: dict[str, bytes] = {}
    for file in files_of(functions):
        below = file.relative_to(functions)
        if file.suffix == ".py" and not any(part.startswith(".") for part in below.parts):
            for folder in below.parents:
                found.setdefault(Path(TRANSFORMS, folder, "__init__.py").as_posix(), b"")
            found[Path(TRANSFORMS, below).as_posix()] = file.read_bytes()
    return dict(sorted(found.items()))


def wheel(folder: Path, root: Path = ROOT, log_store_jar: Path = LOG_STORE_JAR) -> Path:
    """Built from a copy, so that nothing which lies about in the repository gets in. Spark on a laptop needs our jar, and the
    list of the others."""
    with TemporaryDirectory() as scratch:
        copy = Path(scratch, "forebay")
        package = root / "glue_jobs" / "forebay"
        for file in (root / "pyproject.toml", root / "README.md", root / "LICENSE", *files_of(package)):
            to = copy / file.relative_to(root)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
            to.chmod(0o644)
        for file in (root / "jars.lock", built(log_store_jar)):
            to = copy / "glue_jobs" / "forebay" / "spark" / file.name
            shutil.copyfile(file, to)
            to.chmod(0o644)
        code = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, str(folder.absolute())],
            cwd=copy,
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
            capture_output=True,
            text=True,
            check=True,
        )
    return folder / ran.stdout.split()[-1]


def built(jar: Path) -> Path:
    if not jar.exists():
        raise InvalidConfiguration.one(str(jar), "does not exist yet: it is fetched or built", "run `make setup`")
    return jar


def files_of(package: Path) -> Iterable[Path]:
    return sorted(path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")


def main(folder: Path, interpreter: Path | None = None) -> None:
    made = [*bundle(folder), emr_environment(folder, interpreter=interpreter)]
    write_sums(folder, made)
    print(*made, sep="\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3] or ["dist"]))
