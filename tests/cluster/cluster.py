"""Spark's standalone cluster: a master, two workers of one core each, and spark-submit, as processes of this machine.

Nothing of this repository is on their paths, save what a job brings: the package as its zip, the scripts, and the jars.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from forebay.spark.session import aws_settings, jars, job_settings
from infra.bundle import package_zip
from lambdas.engine.submission import PYTHON
from tests.cluster.glue_python import ROOT

T = TypeVar("T")

WORKERS = 2
START_S = 600
"""Of a machine that has other things to do. Who waits is told sooner when the process that should answer has ended."""
WITHOUT_PYTHON = "/usr/bin:/bin"
"""A path with the tools that Spark's scripts call."""
ENVIRONMENT, PYTHON_OF_EMR = PYTHON.removeprefix("./").partition("/")[0], PYTHON
"""Where EMR unpacks an environment, beside the job, and the Python in it."""
QUICK_TO_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""As for all tests: they end before a second compiler has paid."""


@dataclass(frozen=True)
class Cluster:
    folder: Path
    python: Path
    master: str
    package: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def submit(self, script: str, *arguments: str, environment: Path | None = None) -> subprocess.Popen[bytes]:
        """What it says goes into `<script>.log`. `environment` is an archive with the Python of driver and executors, as EMR
        gets it; then nothing on their path is a Python of that version."""
        found = os.pathsep.join(sorted(str(jar) for jar in jars({}).glob("*.jar")))
        settings = {
            **job_settings(),
            **aws_settings(self.environment),
            "spark.driver.extraClassPath": found,
            "spark.executor.extraClassPath": found,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.defaultJavaOptions": QUICK_TO_START,
            "spark.executor.defaultJavaOptions": QUICK_TO_START,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.pyspark.python": str(self.python),
        }
        path = {}
        if environment is not None:
            path = {"PATH": WITHOUT_PYTHON}
            settings |= {
                "spark.archives": f"{environment}#{ENVIRONMENT}",
                "spark.pyspark.python": PYTHON_OF_EMR,
                "spark.pyspark.driver.python": PYTHON_OF_EMR,
                "spark.executorEnv.PATH": WITHOUT_PYTHON,
            }
            with tarfile.open(environment) as archive:
                archive.extractall(self.folder / ENVIRONMENT, filter="data")
        command = [str(self.python.with_name("spark-submit")), "--master", self.master, "--py-files", str(self.package)]
        for pair in settings.items():
            command += ["--conf", "=".join(pair)]
        # A script's own folder is the first that Python looks into: beside this one lies no package.
        alone = shutil.copy(ROOT / "glue_jobs" / f"{script}.py", self.folder)
        command += [str(alone), *arguments]
        return self.start(f"{script}.log", command, path)

    def start(self, log: str, command: Sequence[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """In a group of its own, so that nothing of it outlives the cluster."""
        env = {**self.environment, **(more or {})}
        with (self.folder / log).open("ab") as out:
            process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=out, stderr=out, start_new_session=True
            )
        self.started.append(process)
        return process

    def run(self, script: str, *arguments: str, environment: Path | None = None) -> None:
        self.ended(script, self.submit(script, *arguments, environment=environment))

    def ended(self, script: str, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        assert status == 0, f"{script} ended with {status}:\n{self.said(script)[-6000:]}"

    def said(self, script: str) -> str:
        return (self.folder / f"{script}.log").read_text(errors="replace")

    def executors(self) -> list[int]:
        """The processes of executors that run now: each works in a folder of its worker's."""
        running = (pid for pid, command in commands() if "CoarseGrainedExecutorBackend" in command)
        return [pid for pid in running if _works_in(pid).startswith(str(self.folder))]


def _works_in(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""  # it ended meanwhile


@contextmanager
def running(folder: Path, python: Path, env: Mapping[str, str]) -> Iterator[Cluster]:
    """`env` says where S3 and SQS are."""
    environment = _environment(python, env)
    cluster = Cluster(folder, python, "", package_zip(folder / "forebay.zip"), environment)
    where = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    spark_class = f"{environment['SPARK_HOME']}/bin/spark-class"
    try:
        master = cluster.start("master.log", [spark_class, "org.apache.spark.deploy.master.Master", *where])
        url = seen(folder / "master.log", r"Starting Spark master at (spark://\S+)", master)
        workers = [_start_worker(cluster, f"worker-{number}", spark_class, *where, url) for number in range(WORKERS)]
        for log, worker in workers:
            seen(log, "(Successfully registered)", worker)
        yield replace(cluster, master=url)
    finally:
        for process in reversed(cluster.started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _start_worker(cluster: Cluster, name: str, spark_class: str, *more: str) -> tuple[Path, subprocess.Popen[bytes]]:
    room = ("--cores", "1", "--memory", "1g", "--work-dir", str(cluster.folder / name))
    command = [spark_class, "org.apache.spark.deploy.worker.Worker", *room, *more]
    return cluster.folder / f"{name}.log", cluster.start(f"{name}.log", command)


def _environment(python: Path, env: Mapping[str, str]) -> dict[str, str]:
    """What processes of the cluster get: nothing of this one's that could lead them to its packages."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "JAVA_HOME")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | dict(env)
    return environment | {
        "SPARK_HOME": str(next(python.parents[1].glob("lib/python3*/site-packages/pyspark"))),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_ENV_LOADED": "1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_TO_START,
    }


def seen(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    found = until(lambda: re.search(pattern, log.read_text(errors="replace")), process, f"{log.name}: {pattern}")
    return str(found.group(1))


def until(look: Callable[[], T | None], process: subprocess.Popen[bytes], what: str) -> T:
    """What `look` finds while the process runs."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        over = process.poll() is not None
        if (found := look()) is not None:
            return found
        assert not over, f"the process ended first, with {process.returncode}: {what}"
        time.sleep(0.05)
    raise AssertionError(f"not within {START_S} s: {what}")


def commands() -> Iterator[tuple[int, str]]:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield int(place.parent.name), place.read_text(errors="replace").replace("\0", " ")
        except OSError:
            continue  # it ended meanwhile
