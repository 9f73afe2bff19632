"""Make a fresh machine ready: `make demo`, `make test` and all other targets call this first.

Needs git, make, Python 3.11 to 3.13 with pip (or uv on the PATH) and a JDK 17; everything else comes from here, pinned and
verified by hash:

* `.venv/`           Python packages of `requirements.lock`
* `.forebay/job-packages/`   what deployed jobs import and Glue lacks, for Glue's Python
* `.forebay/jars/`   the JVM libraries of `jars.lock`, fetched by the Ivy that ships inside PySpark
* `.forebay/jars/forebay-logstore.jar`   compiled from `glue_jobs/java`
* `.forebay/jars/classes.jsa` the JVM's archive of their classes, so that each run starts in half the time
* `.forebay/bytecode/`       what the tests import, compiled

A second run only checks stamps, which takes well under a second. This module uses only the standard library, and syntax that
an old Python can parse, so that an old Python can print the message about its age.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "glue_jobs" / "forebay" / "spark"))
sys.path.insert(0, str(ROOT / "glue_jobs" / "java"))
sys.dont_write_bytecode = True

import libraries  # noqa: E402
import runtime  # noqa: E402

VENV = ROOT / ".venv"
CACHE = ROOT / ".forebay"
JARS = CACHE / "jars"
JOB_PACKAGES = CACHE / "job-packages"
PYTHON = VENV / "bin" / "python"


def main() -> None:
    check_python()
    java_home = check_java()
    new = install_packages()
    leave_out_archived_pyspark()
    with tests_compiled():
        fetch_job_packages()
        fetch_jars(java_home)
        build_log_store(java_home)
        archive_classes(java_home)
    if new:
        print(f'ready: export PATH="{VENV}/bin:$PATH" makes `forebay` a command here', file=sys.stderr)


# --- what the machine must bring -------------------------------------------------------------------------------------


def check_python() -> None:
    low, high = runtime.PYTHON_MIN, runtime.PYTHON_MAX
    if not low <= sys.version_info[:2] <= high:
        found = ".".join(map(str, sys.version_info[:3]))
        stop(
            f"forebay needs Python {dotted(low)} to {dotted(high)}; `{sys.executable}` is {found}.",
            debian="apt-get install python3",
            macos="brew install python@3.13",
            amazon="dnf install python3.13",
            also="or name another one: make PYTHON=/path/to/python3.13 ...",
        )


def check_java() -> str:
    """The home of a JDK that is new enough. Compiling the log store needs javac, so a bare runtime does not do."""
    named = Path(os.environ.get("JAVA_HOME", ""), "bin")
    javac = shutil.which("javac", path=str(named)) or shutil.which("javac")
    output = ""
    if javac:
        run = subprocess.run([javac, "-version"], capture_output=True, text=True)
        output = (run.stdout + run.stderr).strip()
        number = re.search(r"javac (?:1\.)?(\d+)", output)
        if number and int(number.group(1)) >= runtime.JAVA:
            return str(Path(javac).resolve().parent.parent)
    stop(
        f"forebay needs a JDK {runtime.JAVA} (with javac); "
        + (f"`{javac}` says {output!r}." if javac else "found none."),
        debian=f"apt-get install openjdk-{runtime.JAVA}-jdk-headless",
        macos=f"brew install openjdk@{runtime.JAVA}",
        amazon=f"dnf install java-{runtime.JAVA}-amazon-corretto-devel",
        also="if it is installed, set JAVA_HOME",
    )
    raise AssertionError


def stop(what: str, *, debian: str, macos: str, amazon: str, also: str = "") -> None:
    line = f"{what} Install it: Debian/Ubuntu `{debian}`, macOS `{macos}`, Amazon Linux `{amazon}`"
    sys.exit(line + (f"; {also}." if also else "."))


# --- Python packages -------------------------------------------------------------------------------------------------


def install_packages() -> bool:
    """Whether there was anything to do. With uv, if need be a pinned one: it is some ten times quicker than pip."""
    stamp = VENV / ".forebay-stamp"
    wanted = fingerprint(ROOT / "requirements.lock", ROOT / "pyproject.toml", text=dotted(sys.version_info[:2]))
    if stamp.exists() and stamp.read_text() == wanted and PYTHON.exists():
        return False
    uv = shutil.which("uv") or pinned_uv()
    with Progress("Python packages, into .venv") as progress:
        # The stamp goes first: an interrupted install must not look finished.
        stamp.unlink(missing_ok=True)
        progress.run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(VENV)])
        python = ["--python", str(PYTHON)]
        progress.run([uv, "pip", "sync", "--quiet", "--require-hashes", *python, str(ROOT / "requirements.lock")])
        editable = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        progress.run([uv, "pip", "install", "--quiet", *python, *editable])
        stamp.write_text(wanted)
    return True


def fetch_job_packages() -> None:
    """The packages that jobs import and Glue lacks, for Glue's Python and platform, which may differ from this machine's."""
    lock, stamp = ROOT / "requirements.lock", JOB_PACKAGES / ".stamp"
    wanted = fingerprint(lock, text=f"{runtime.GLUE_LACKS} {runtime.PYTHON} {runtime.PLATFORM}")
    if stamp.exists() and stamp.read_text() == wanted:
        return
    uv = shutil.which("uv") or pinned_uv()
    with Progress("Python packages of jobs, into .forebay/job-packages") as progress:
        shutil.rmtree(JOB_PACKAGES, ignore_errors=True)
        JOB_PACKAGES.mkdir(parents=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            part = Path(scratch, "requirements.lock")
            part.write_text("".join(locked(name, lock.read_text()) for name in runtime.GLUE_LACKS))
            command = [uv, "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
            command += ["--python-version", runtime.PYTHON, "--python-platform", runtime.PLATFORM]
            progress.run([*command, "--link-mode", "copy", "--target", str(JOB_PACKAGES), "-r", str(part)])
        stamp.write_text(wanted)


def locked(name: str, lock: str) -> str:
    """A package's version and hashes, as the lock file has them."""
    found = re.search(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f"set-up: requirements.lock does not name {name}, which jobs ship; `make lock` resolves it")
    return found.group()


def leave_out_archived_pyspark() -> None:
    """PySpark is installed twice. Each Python process of Spark would import the one in a zip, and compile it each time.
    Without the zip they import the other, with cached bytecode. (The zip is for clusters, which have their own.)"""
    for archive in VENV.glob("lib/python3*/site-packages/pyspark/python/lib/pyspark.zip"):
        archive.unlink()


@contextmanager
def tests_compiled() -> Iterator[None]:
    """While the network is busy. Else each worker of the first `make test` compiles some two thousand modules, all the same.
    `tests/__init__.py` says where they are kept. A failure fails no set-up: the tests compile what is missing."""
    stamp = CACHE / "bytecode" / "stamp"
    wanted = fingerprint(ROOT / "requirements.lock", text=f"{ROOT} {sys.version}")
    if stamp.exists() and stamp.read_text() == wanted:
        yield
        return
    command = [str(PYTHON), "-m", "pytest", "-q", "--collect-only"]
    compiling = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        with Progress("bytecode of the tests, into .forebay/bytecode"):
            compiling.wait()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(wanted)
    finally:
        compiling.terminate()
        compiling.wait()


def pinned_uv() -> str:
    """From the index that pip is configured for, and only if the hash is in the lock file."""
    home = CACHE / "uv"
    program = home / "bin" / "uv"
    if not program.exists():
        if not importlib.util.find_spec("pip"):
            stop(
                f"set-up needs uv, or a pip that fetches it; `{sys.executable}` has no pip.",
                debian="apt-get install python3-pip",
                macos="brew install uv",
                amazon="dnf install python3.13-pip",
            )
        with Progress("uv, the package installer") as progress:
            shutil.rmtree(home, ignore_errors=True)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
            progress.run([*command, "--require-hashes", "-r", str(ROOT / "dev" / "uv.lock"), "--target", str(home)])
    return str(program)


# --- JVM libraries ---------------------------------------------------------------------------------------------------


def fetch_jars(java_home: str) -> None:
    """Exactly the jars of `jars.lock`."""
    lock = ROOT / "jars.lock"
    if missing := libraries.missing_from(JARS, lock):
        JARS.mkdir(parents=True, exist_ok=True)
        doing = Progress(f"{len(missing)} JVM libraries, into .forebay/jars")
        with doing as progress, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            into, java = Path(scratch), f"{java_home}/bin/java"
            pyspark = next(VENV.glob("lib/python3*/site-packages/pyspark"))
            command = libraries.ivy_command(missing, into, java=java, pyspark=pyspark)
            progress.run(command)
            try:
                for jar in missing:
                    jar.take(into / jar.name, JARS)
            except libraries.NotFetched as why:
                sys.exit(f"set-up: {why}")
    keep = {JARS / libraries.Jar(line).name for line in lock.read_text().splitlines()} | {
        JARS / libraries.LOG_STORE_JAR
    }
    for stale in set(JARS.glob("*.jar")) - keep:
        stale.unlink()


def build_log_store(java_home: str) -> None:
    import build as logstore

    os.environ["JAVA_HOME"] = java_home
    try:
        logstore.build(JARS, JARS / "forebay-logstore.jar")
    except logstore.BuildFailed as failure:
        sys.exit(f"set-up: the log store could not be compiled: {failure}")


def archive_classes(java_home: str) -> None:
    """A run goes without it, and only starts slower: so no failure here is one of set-up."""
    archive, stamp = JARS / runtime.CLASSES, JARS / "classes.stamp"
    made_of = [
        ROOT / "requirements.lock",
        ROOT / "jars.lock",
        JARS / "forebay-logstore.jar",
        ROOT / "dev" / "warm_up.py",
    ]
    if Path(java_home, "release").exists():
        made_of.append(Path(java_home, "release"))
    wanted = fingerprint(*made_of, text=f"{ROOT} {java_home}")
    if stamp.exists() and stamp.read_text() == wanted:
        return
    made = JARS / f"{runtime.CLASSES}.new"
    with Progress("what the JVM knows of classes, into .forebay/jars"):
        for old in (made, archive):
            old.unlink(missing_ok=True)
        command = [str(PYTHON), str(ROOT / "dev" / "warm_up.py"), str(made)]
        ran = subprocess.run(command, env={**os.environ, "JAVA_HOME": java_home}, capture_output=True, text=True)
    if ran.returncode == 0 and made.exists():
        made.replace(archive)
    else:
        reason = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"set-up: it could not be made, so runs start slower: {reason}", file=sys.stderr, flush=True)
    stamp.write_text(wanted)


# --- small things ----------------------------------------------------------------------------------------------------


class Progress:
    """Lines that say what is being done, and how long it took."""

    def __init__(self, what: str) -> None:
        self.what, self.began = what, time.monotonic()

    def __enter__(self) -> Progress:
        print(f"set-up: {self.what} ...", file=sys.stderr, flush=True)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            took = f"{time.monotonic() - self.began:.0f} s"
            print(f"set-up: {self.what}: done in {took}", file=sys.stderr, flush=True)

    def run(self, command: list[str]) -> None:
        """Runs a command in silence; when it fails, its own words are shown."""
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if ran.returncode:
            tail = "\n".join(ran.stdout.strip().splitlines()[-15:])
            sys.exit(
                f"\nset-up: {self.what} failed; `{Path(command[0]).name} {' '.join(command[1:4])} ...` says:\n{tail}"
            )


def fingerprint(*files: Path, text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nset-up: interrupted; run it again to continue")
