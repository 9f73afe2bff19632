"""Ctrl-C while `forebay ingest` starts, as a terminal sends it: to the whole group of processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.lake.lease import hold, holder

STARTS = """
import sys, time
import forebay.jobs.ingest as job

def starts(*_, **__):
    print("starts", flush=True)
    while True:
        try:
            time.sleep(60)  # a session whose JVM does not answer, in code that swallows what it is told
        except BaseException:
            pass

for name in ("check_queue", "check_lake"):
    setattr(job, name, lambda *_: None)
setattr(job, sys.argv[1], starts)
from forebay.cli.main import main
main(["ingest", "--lake", sys.argv[2], "--queue-url", "http://localhost/q"])
"""


@pytest.mark.parametrize("phase", ["service_for", "session_for"])
def test_an_ingest_that_has_begun_nothing_ends_with_one_line(phase: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS, phase, str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, start_new_session=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "starts\n"
        os.killpg(job.pid, signal.SIGINT)
        _, said = job.communicate(timeout=60)
    assert (job.returncode, said) == (130, "forebay: stopped\n")


WAITS = """
import sys, time
import forebay.jobs.ingest as job

real = time.sleep
time.sleep = lambda s: print("waits", flush=True) or real(60)
for name in ("check_queue", "check_lake", "session_for", "check_expressions"):
    setattr(job, name, lambda *_, **__: None)
from forebay.cli.main import main
main(["ingest", "--lake", sys.argv[1], "--queue-url", "http://localhost/q"])
"""


def test_an_ingest_that_waits_for_its_second_lease_ends_with_one_line_and_lets_go_of_the_first(tmp_path: Path) -> None:
    other = hold(f"{tmp_path}/_forebay/checkpoints/ingest", wait_s=0)
    command = [sys.executable, "-c", WAITS, str(tmp_path)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, start_new_session=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "waits\n"
        (writer,) = (tmp_path / "_forebay" / "writers").iterdir()
        assert holder(str(writer)) is not None
        os.killpg(job.pid, signal.SIGINT)
        _, said = job.communicate(timeout=60)
    *told, last = said.splitlines()
    assert (job.returncode, last) == (130, "forebay: stopped")
    assert [json.loads(one)["event"] for one in told] == ["LeaseAwaited"]
    assert holder(str(writer)) is None
    other.let_go()
