"""The twin starts, is found again, stops, and never outlives its folder or kills what is not its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import boto3
import pytest

from forebay.errors import Halt, InvalidConfiguration
from forebay_local.twin import process
from forebay_local.twin import twin as local
from forebay_local.twin.process import Process
from forebay_local.twin.twin import Status, Stopped, Twin


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    local.down(folder)


def eventually(holds: Callable[[], bool], within_s: float = 10) -> bool:
    until = time.monotonic() + within_s
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def test_a_twin_is_found_again_until_it_is_taken_down(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copy.py").write_text("raise SystemExit('a module of the caller')")
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(2) as pool:  # two commands at once start one
        twin, other = pool.map(local.up, [state, state])
    assert other == twin
    assert json.loads((state / "twin.json").read_text())["env"] == twin.env
    seen = local.status(state)
    assert seen.running
    assert seen.twin == twin
    assert seen.memory_bytes > 20_000_000

    assert local.down(state) == Stopped(was_running=True, pid=twin.pid)
    assert not twin.process.alive
    assert not state.exists()
    assert local.down(state) == Stopped(was_running=False)
    assert local.status(state) == Status(running=False)


@pytest.mark.deep
def test_when_its_server_is_killed_or_its_folder_deleted_the_next_up_starts_another(state: Path) -> None:
    killed = local.up(state)
    os.kill(killed.pid, signal.SIGKILL)
    assert eventually(lambda: not killed.process.alive)
    assert not local.status(state).running

    orphan = local.up(state)
    assert orphan.process.alive
    assert orphan.process != killed.process
    shutil.rmtree(state)

    twin = local.up(state)
    assert twin.endpoint != orphan.endpoint
    assert eventually(lambda: not orphan.process.alive)
    assert twin.process.alive


def test_a_server_that_was_asked_to_ends_with_the_process_that_started_it(state: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from forebay_local.twin import twin; "
        "print(twin.up(Path(sys.argv[1]), with_parent=True).pid)"
    )
    said = subprocess.run([sys.executable, "-c", code, str(state)], env=environment(), capture_output=True, text=True)
    pid = int(said.stdout)
    assert eventually(lambda: process.started_at(pid) is None)


def test_a_process_that_got_the_number_of_a_dead_server_is_left_alone(state: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        state.mkdir()
        twin = Twin(state, stranger.pid, "long ago", "http://127.0.0.1:9", "r", "s", "l", "k", "in/", "q", "d", "key")
        local._remember(twin)
        (state / "server.pid").write_text(str(stranger.pid))
        assert local.down(state) == Stopped(was_running=False)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_down_leaves_what_is_not_its_own(state: Path) -> None:
    state.mkdir()
    (state / "twin.json").write_text("cut o")
    (state / "notes.txt").write_text("mine")
    assert local.down(state) == Stopped(was_running=False)
    assert [path.name for path in state.iterdir()] == ["notes.txt"]


def test_a_port_that_is_taken_is_said_in_one_line(state: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            InvalidConfiguration, match=rf"--port {port}: is not available on 127.0.0.1: .*any free port"
        ) as refused:
            local.up(state, port=port)
    assert "\n" not in str(refused.value)


def test_a_server_that_does_not_start_is_said_with_the_end_of_its_log_or_the_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    arguments = [sys.executable, "-c", "import sys; print('starting'); sys.exit('no such luck')"]
    with pytest.raises(Halt, match=r"ended before it was ready:\n(starting\n)?no such luck"):
        local._ready(process.start(arguments, environment=os.environ, log=log), log, wait_s=20)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Mock(free=0))
    with pytest.raises(Halt, match="is on a full disk; free some space, or name another folder with --state"):
        local._ready(process.start(arguments, environment=os.environ, log=log), log, wait_s=20)


def test_a_server_that_hangs_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    slow = process.start([sys.executable, "-c", "import time; time.sleep(60)"], environment=os.environ, log=log)
    with pytest.raises(Halt, match=r"not ready after 0\.2 s; its log .*server\.log ends with:\n\(nothing\)"):
        local._ready(slow, log, wait_s=0.2)
    slow.stop()
    assert not slow.alive


def test_a_process_that_ignores_a_request_to_end_is_made_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    deaf = process.start([sys.executable, "-c", code], environment=os.environ, log=log)
    assert eventually(lambda: "deaf" in log.read_text())
    deaf.stop(wait_s=0.2)
    assert not deaf.alive


def test_a_process_does_not_hold_a_file_of_its_caller(tmp_path: Path) -> None:
    """As the lock of `flock` around `make demo`: its next holder would wait for as long as the twin runs."""
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    started = process.start(
        [sys.executable, "-c", "import time; time.sleep(60)"], environment=os.environ, log=tmp_path / "log"
    )
    os.close(theirs)
    try:
        os.set_blocking(ours, False)
        assert os.read(ours, 1) == b"", "the other end is closed everywhere"
    finally:
        started.stop()
        os.close(ours)


def test_a_process_that_has_ended_holds_no_memory() -> None:
    assert Process(os.getpid(), "long ago").memory_bytes == 0


def test_status_counts_messages_and_objects(twin: Twin) -> None:
    before = local.status(twin.state)
    for number in range(3):
        twin.client("s3").put_object(Bucket=twin.landing_bucket, Key=f"in/status/{number}", Body=b"12345")
    twin.client("sqs").receive_message(QueueUrl=twin.queue_url)
    twin.client("sqs").send_message(QueueUrl=twin.dlq_url, MessageBody="dead")
    after = local.status(twin.state)
    assert (after.visible, after.in_flight, after.dead_letters) == (2, 1, 1)
    assert after.objects - before.objects == 3
    assert after.landed_bytes - before.landed_bytes == 15


def test_the_environment_is_all_that_boto3_needs(twin: Twin) -> None:
    code = "import boto3; print([b['Name'] for b in boto3.client('s3').list_buckets()['Buckets']])"
    said = subprocess.run(
        [sys.executable, "-c", code], env={**environment(), **twin.env}, capture_output=True, text=True, check=True
    )
    assert {f"'{twin.lake_bucket}'", f"'{twin.landing_bucket}'"} <= set(said.stdout.strip("[]\n").split(", "))


def test_objects_and_queue_may_be_on_two_servers(twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with local.running(tmp_path / "other") as other:
        for name, value in local.aws_environment(s3=twin, sqs=other).items():
            monkeypatch.setenv(name, value)
        session = boto3.Session()  # the default one keeps the credentials of an earlier test
        session.client("s3").put_object(Bucket=twin.landing_bucket, Key="in/two/a.json", Body=b"{}")
        (message,) = twin.client("sqs").receive_message(QueueUrl=twin.queue_url)["Messages"]
        session.client("sqs").send_message(QueueUrl=other.queue_url, MessageBody=message["Body"])
        twin.client("sqs").delete_message(QueueUrl=twin.queue_url, ReceiptHandle=message["ReceiptHandle"])
        got = session.client("sqs").receive_message(QueueUrl=other.queue_url)["Messages"]
        assert [json.loads(message["Body"])["Records"][0]["s3"]["object"]["key"] for message in got] == [
            "in/two/a.json"
        ]
        assert local.status(other.state).objects == 0


def test_nothing_but_the_server_needs_moto() -> None:
    code = (
        "import sys, forebay_local.twin.twin, forebay_local.feed; print('moto' in sys.modules, 'boto3' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False False"


def environment() -> dict[str, str]:
    package = str(Path(local.__file__).parents[2])
    return {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "PYTHONPATH": package}
