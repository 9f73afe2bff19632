"""The JVM libraries of a local session, fetched once from Maven by the Ivy inside PySpark, each checked by its hash.

In: the lines of `jars.lock`, and a folder. Out: the folder with these jars. `NotFetched`, in one line: Maven does not answer,
or a file differs from the one in the lock. A checkout has them from its set-up; a wheel contains the lock and our own jar, and
fetches the rest at first use. It imports the standard library alone: set-up reads it before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

LOCK = Path(__file__).with_name("jars.lock")
"""Only in a wheel."""
LOG_STORE_JAR = "forebay-logstore.jar"


class NotFetched(Exception):
    """The text is for a person."""


class Jar:
    """A line of the lock."""

    def __init__(self, line: str) -> None:
        coordinates, self.sha256 = line.split()
        self.group, self.artifact, self.version = coordinates.split(":")
        self.name = f"{self.artifact}-{self.version}.jar"

    def take(self, fetched: Path, folder: Path) -> None:
        """Moves a fetched jar into the folder, if it is the one that the lock names."""
        if not fetched.exists():
            raise NotFetched(
                f"{self.group}:{self.artifact}:{self.version} could not be fetched; is Maven Central reachable?"
            )
        if hashlib.sha256(fetched.read_bytes()).hexdigest() != self.sha256:
            raise NotFetched(f"{self.name} is not the file that jars.lock names, so it was not installed")
        fetched.replace(folder / self.name)


def missing_from(folder: Path, lock: Path) -> list[Jar]:
    return [jar for jar in map(Jar, lock.read_text().splitlines()) if not (folder / jar.name).exists()]


def ivy_command(jars: Iterable[Jar], into: Path, *, java: str, pyspark: Path) -> list[str]:
    """The command that puts these jars into a folder, and nothing else: hadoop-aws by itself would bring 600 MB."""
    lines = (
        f'<dependency org="{j.group}" name="{j.artifact}" rev="{j.version}" transitive="false" conf="default->master"/>'
        for j in jars
    )
    module = into / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="forebay" module="jars"/><configurations><conf name="default"/>'
        f"</configurations><dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )
    ivy = next(pyspark.glob("jars/ivy-*.jar"))
    command = [java, "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(into / "ivy")]
    return [*command, "-ivy", str(module), "-types", "jar", "-retrieve", f"{into}/[artifact]-[revision].[ext]"]


def fetched_once(env: Mapping[str, str], *, lock: Path = LOCK, pyspark: Path | None = None) -> Path:
    """The folder with the libraries of an installed wheel, in the user's cache. Two processes may fetch at once."""
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "forebay" / f"jars-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    if missing := missing_from(folder, lock):
        print(f"forebay: fetching {len(missing)} JVM libraries into {folder}, once ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _fetch(missing, Path(scratch), folder, env, pyspark or _pyspark())
    own = folder / LOG_STORE_JAR
    if not own.exists() or own.read_bytes() != lock.with_name(LOG_STORE_JAR).read_bytes():
        new = folder / f".{LOG_STORE_JAR}.{os.getpid()}"
        shutil.copyfile(lock.with_name(LOG_STORE_JAR), new)
        new.replace(own)
    return folder


def _fetch(jars: Sequence[Jar], scratch: Path, folder: Path, env: Mapping[str, str], pyspark: Path) -> None:
    home = env.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=env.get("PATH"))
    if not java or not Path(java).exists():
        raise NotFetched("no Java was found to fetch the JVM libraries; install a JDK 17, or set JAVA_HOME")
    command = ivy_command(jars, scratch, java=java, pyspark=pyspark)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # each jar is looked at
    for jar in jars:
        jar.take(scratch / jar.name, folder)


def _pyspark() -> Path:
    import pyspark

    return Path(pyspark.__path__[0])
