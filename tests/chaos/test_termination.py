"""A termination in the middle of a batch, as `timeout` and service managers send it: to driver, JVM and workers. The
batch is finished, and nobody reads a traceback. Where the JVM is killed, one line says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forebay_local.twin.twin import Twin
from tests.journey.story import Story, event, lines, story

ROOT = Path(__file__).resolve().parents[2]
SLEEPS = """
import sys
from tests.chaos.driver import POINTS, Death, raise_killed
POINTS["never, but it sleeps after its first table"](Death(raise_killed))
from forebay.cli.main import main
main(sys.argv[1:])
"""


@contextmanager
def in_mid_batch(told: Story) -> Iterator[subprocess.Popen[str]]:
    told.put("a.json", lines([event(game, n) for game in ("alpha", "beta") for n in range(2)]))
    arguments = ["ingest", "--trigger-s", "0", "--wait-s", "1", "--lake", told.lake, "--queue-url", told.queue_url]
    environment = {**os.environ, **told.twin.env, "FOREBAY_LOG": "error"}
    command = [sys.executable, "-c", SLEEPS, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as job:
        try:
            assert job.stdout is not None
            assert job.stdout.readline() == "FIRST TABLE IS IN\n"
            yield job
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)


def jvm_of(job: subprocess.Popen[str]) -> int:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
        if name == "java" and int(rest.split()[1]) == job.pid:
            return int(entry.parent.name)
    raise AssertionError("no JVM")


@pytest.mark.deep
@pytest.mark.jvm
def test_a_termination_of_all_processes_ends_the_job_after_its_batch_without_a_word(twin: Twin) -> None:
    with story(twin) as told:
        with in_mid_batch(told) as job:
            os.killpg(job.pid, signal.SIGTERM)
            _, said = job.communicate("go on\n", timeout=240)
        assert (job.returncode, said) == (0, "")
        sums = told.accounts()
        assert (sums.differences(), sums.files) == ([], {"loaded": 1})
        assert (sums.rows["alpha"], sums.rows["beta"]) == (2, 2)


@pytest.mark.deep
@pytest.mark.jvm
def test_a_jvm_that_is_killed_is_one_line(twin: Twin) -> None:
    with story(twin) as told:
        with in_mid_batch(told) as job:
            os.kill(jvm_of(job), signal.SIGKILL)
            _, said = job.communicate("go on\n", timeout=240)
        assert job.returncode == 1
        assert said.startswith("forebay: Spark's JVM ended (exit status -9)")
        assert said.count("\n") == 1
