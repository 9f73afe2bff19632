"""`forebay ingest` as a person runs it: the environment decides which servers, a mistake is one line, Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from forebay.batch.events import BatchCommitted
from forebay.events import Event
from forebay.jobs.declarations import DeclarationsChosen
from forebay.jobs.ingest import ingest
from forebay.settings import IngestSettings
from forebay_local.twin.twin import Twin, aws_environment, running
from tests.journey.story import Story, event, lines, story

FOREBAY = [sys.executable, "-m", "forebay.cli.main"]


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "FOREBAY_LAKE"))}
    return subprocess.run([*FOREBAY, *arguments], env={**clean, **env}, capture_output=True, text=True, timeout=240)


@pytest.mark.deep
@pytest.mark.jvm
def test_objects_and_queue_may_be_on_two_different_servers(twin: Twin, tmp_path: Path) -> None:
    with running(tmp_path / "other") as other, story(twin) as told:
        told.put("a.json", lines([event("alpha", n) for n in range(5)]))
        queue = other.client("sqs").create_queue(QueueName="elsewhere")["QueueUrl"]
        messages = twin.client("sqs").receive_message(QueueUrl=told.queue_url)["Messages"]
        for message in messages:
            other.client("sqs").send_message(QueueUrl=queue, MessageBody=message["Body"])
        env = {**aws_environment(s3=twin, sqs=other), "FOREBAY_LOG": "error"}
        ran = run("ingest", "--drain", "--wait-s", "1", "--lake", told.lake, "--queue-url", queue, env=env)
        assert (ran.returncode, ran.stderr) == (0, "")
        sums = told.accounts()
        assert sums.differences() == []
        assert sums.rows["alpha"] == 5


@pytest.mark.deep
@pytest.mark.jvm
def test_an_interrupt_ends_a_continuous_run_cleanly_and_leaves_nothing_running(twin: Twin) -> None:
    with story(twin) as told:
        told.put("a.json", lines([event("alpha", 1)]))
        arguments = ["ingest", "--trigger-s", "0", "--wait-s", "1", "--lake", told.lake, "--queue-url", told.queue_url]
        job = subprocess.Popen(
            [*FOREBAY, *arguments],
            env={**os.environ, **twin.env, "FOREBAY_LOG": "error"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        children: list[int] = []
        with job:
            until = time.monotonic() + 200
            while told.accounts().all_files < 1 and time.monotonic() < until:
                children = descendants(job.pid) or children
                time.sleep(1)
            os.killpg(job.pid, signal.SIGINT)  # as a terminal does: to everything that runs in it
            _, said = job.communicate(timeout=120)
        assert (job.returncode, said) == (0, "forebay: finishes the work that it has begun, then stops\n")
        assert told.accounts().rows["alpha"] == 1
        assert children
        assert not still_alive(children, within_s=60)


def test_forebay_stop_ends_a_continuous_run_from_elsewhere_after_its_batch(told: Story) -> None:
    told.put("a.json", lines([event("alpha", 1)]))
    said: list[str] = []

    def stop_after_the_batch(seen: Event) -> None:
        told.events.append(seen)
        if isinstance(seen, BatchCommitted):
            stopping.start()

    def stop_from_elsewhere() -> None:
        said.append(run("stop", "--lake", told.lake, env=told.twin.env).stdout)

    stopping = threading.Thread(target=stop_from_elsewhere)
    settings = IngestSettings(lake=told.lake, queue_url=told.queue_url, trigger_s=0, wait_s=1)
    ingest(settings, emit=stop_after_the_batch, stop=threading.Event())
    stopping.join()
    assert "has finished its batch and ended" in " ".join(said[0].split())
    assert told.accounts().rows["alpha"] == 1
    assert "no job is running" in run("stop", "--lake", told.lake, env=told.twin.env).stdout


def test_a_run_that_names_no_declarations_uses_those_of_the_lake_and_says_so(told: Story, tmp_path: Path) -> None:
    declared = tmp_path / "service.toml"
    declared.write_text('name = "mine"\n[[tables]]\nname = "ticks"\n')
    for number, told.service in enumerate([str(declared), ""]):
        told.put(f"{number}.json", lines([event("alpha", number)]))
        told.take_in()
    chosen = [(seen.service, seen.place) for seen in told.events if isinstance(seen, DeclarationsChosen)]
    assert chosen == [("mine", str(declared)), ("mine", "those of the lake")]
    assert told.accounts().rows["ticks"] == 2


@pytest.mark.parametrize(
    ("arguments", "env", "says"),
    [
        (
            ["--queue-url", "http://127.0.0.1:9/1/q", "--lake", "s3://lake"],
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            "forebay: queue http://127.0.0.1:9/1/q: does not answer (AWS_ENDPOINT_URL is http://127.0.0.1:9",
        ),
        (["--queue-url", "arrivals", "--lake", "s3://lake"], {}, "forebay: queue arrivals: is not a URL"),
        (["--queue-url", "https://sqs/q", "--lake", "lake"], {}, "forebay: lake lake: is not a folder here"),
        (
            ["--queue-url", "https://sqs/q", "--lake", "s3://lake", "--service", "nowhere"],
            {},
            "forebay: nowhere: does not exist",
        ),
    ],
)
def test_a_mistake_is_one_line_and_has_its_exit_status(arguments: list[str], env: dict[str, str], says: str) -> None:
    ran = run(
        "ingest",
        *arguments,
        env={"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", **env},
    )
    assert ran.returncode == (3 if "does not answer" in says else 2)
    assert ran.stderr.startswith(says)
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr


def test_a_queue_and_a_lake_that_are_not_there_are_named(twin: Twin) -> None:
    missing = twin.queue_url + "-not"
    ran = run("ingest", "--queue-url", missing, "--lake", f"s3://{twin.lake_bucket}", env=twin.env)
    assert (ran.returncode, "there is no such queue" in ran.stderr) == (2, True)
    ran = run("ingest", "--queue-url", twin.queue_url, "--lake", "s3://no-such-lake", env=twin.env)
    assert (ran.returncode, "there is no bucket no-such-lake" in ran.stderr) == (2, True)


def test_the_help_tells_what_each_option_means() -> None:
    said = run("ingest", "--help", env={"COLUMNS": "120"}).stdout
    for word in ("--queue-url", "--lake", "--drain", "stop when the queue is empty".capitalize()):
        assert word in said


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
        found += [int(child), *descendants(int(child))]
    return found


def still_alive(pids: list[int], *, within_s: float) -> list[int]:
    """Those that have not ended in this time: the JVM sees only afterwards that its Python is gone."""
    until = time.monotonic() + within_s
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
