"""One run of a Glue job as a process of this machine: its command, and its result.

Enters what Glue is given: a script's place, and arguments. `Submitted.start` fetches the files into the run's folder and starts
spark-submit there; `Run.wait` says how it ended, with the reason as Glue would print it: the last error that the script let
out.
"""

from __future__ import annotations

import filecmp
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.spark.session import aws_settings, laptop_settings
from forebay_local.twin.clients import access_key

LOGS = ("output", "error")
"""The output of the script, on stdout and stderr, and that of Spark: by the names of Glue's log groups."""
LOG_STORE_JAR = "forebay-logstore.jar"


@dataclass(frozen=True)
class Ended:
    state: str
    message: str = ""


class Run:
    """A process that was started."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process, self._folder = process, folder

    def wait(self, *, stopping: Callable[[], bool], minutes_at_most: float | None) -> Ended:
        try:
            status = self._process.wait(60 * minutes_at_most if minutes_at_most else None)
        except subprocess.TimeoutExpired:
            self.stop()
            return Ended("TIMEOUT", f"Job run exceeded its timeout of {minutes_at_most:g} minutes")
        if stopping():
            return Ended("STOPPED", "Job run was stopped")
        if status == 0:
            return Ended("SUCCEEDED")
        return Ended("FAILED", self._reason() or f"exit status {status}")

    def _reason(self) -> str:
        """The reason, from the script's output, or else from that of spark-submit."""
        reasons = (reason((self._folder / name).read_text(errors="replace")) for name in LOGS)
        return next(filter(None, reasons), "")

    def stop(self, *, wait_s: float = 20) -> None:
        """The whole group: spark-submit, the JVM, and its Pythons."""
        for how, patience in ((signal.SIGTERM, wait_s), (signal.SIGKILL, 5)):
            if self._process.poll() is not None:
                return
            try:
                os.killpg(self._process.pid, how)
                self._process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


@dataclass(frozen=True)
class Submitted:
    """The request of StartJobRun, with the job's own arguments and the run's. It runs as its role."""

    job: str
    role: str
    run_id: str
    script: str
    arguments: Mapping[str, str]

    def start(self, s3: Any, folder: Path, endpoint: str, region: str) -> Run:
        folder.mkdir(parents=True, exist_ok=True)

        def fetched(argument: str) -> list[str]:
            places = [place for place in self.arguments.get(argument, "").split(",") if place]
            return [str(_fetch(s3, place, folder)) for place in places]

        script = _fetch(s3, self.arguments.get("--scriptLocation", self.script), folder)
        fetched("--extra-files")
        environment = _environment(os.environ, endpoint, region, self.role)
        settings = self._platform(environment, fetched("--extra-jars"))
        command = [str(Path(sys.executable).parent / "spark-submit")]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        if conf := self.arguments.get("--conf"):
            command += [word for pair in conf.split(" --conf ") for word in ("--conf", pair.strip())]
        if packages := fetched("--extra-py-files"):
            command += ["--py-files", ",".join(packages)]
        command += [str(script), "--JOB_NAME", self.job, "--JOB_RUN_ID", self.run_id]
        command += [word for pair in self.arguments.items() for word in pair]
        with (folder / LOGS[0]).open("wb") as out, (folder / LOGS[1]).open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        return Run(process, folder)

    def _platform(self, environment: Mapping[str, str], extra_jars: list[str]) -> dict[str, str]:
        """The parts that Glue provides: Spark with Delta, and S3. The log store is the job's own."""
        settings = laptop_settings(os.environ) | aws_settings(environment)
        there = settings["spark.driver.extraClassPath"].split(os.pathsep)
        jars = os.pathsep.join(class_path(there, extra_jars))
        return settings | {"spark.app.name": self.job, "spark.driver.extraClassPath": jars}


def class_path(there: Sequence[str], fetched: Sequence[str]) -> list[str]:
    """A fetched jar that is also here, byte by byte, is taken from here: the JVM starts in half the time with the archive of
    classes, which is for that class path alone."""
    same = {jar: here for jar in fetched for here in there if filecmp.cmp(jar, here, shallow=False)}
    own = [jar for jar in there if Path(jar).name != LOG_STORE_JAR or jar in same.values()]
    return own + [jar for jar in fetched if jar not in same]


def reason(log: str) -> str:
    """The error that ended a Python script: the last line of its last traceback, with what follows it to the next log line.
    Without a traceback, the last line, except warnings of the JVM."""
    lines = log.splitlines()
    at = max((n for n, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")), default=None)
    if at is None:
        written = [line for line in lines if line.strip() and not line.startswith("WARNING: ")]
        return written[-1].strip()[:2000] if written else ""
    after = [line for line in lines[at + 1 :] if line and not line.startswith((" ", "\t"))]
    error = after[0] if after else lines[at]
    name, colon, message = error.partition(": ")
    return (f"{name.rpartition('.')[2]}{colon}{message}" if re.fullmatch(r"[\w.]+", name) else error)[:2000]


def _fetch(s3: Any, place: str, folder: Path) -> Path:
    bucket, _, key = place.removeprefix("s3://").partition("/")
    to = folder / Path(key).name
    s3.download_file(bucket, key, str(to))
    return to


def _environment(ours: Mapping[str, str], endpoint: str, region: str, who: str) -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "JAVA_HOME", "FOREBAY_JARS")
    return {
        **{name: ours[name] for name in kept if name in ours},
        **access_key(who, endpoint),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONWARNINGS": "ignore",
    }
