"""Start, stop and look at the local twin of a service, deployed from its template; all that is known of it is in one folder.

`up` leaves a `Twin`: the addresses of everything, and the environment under which boto3, S3A and the AWS command find it. The
folder holds `twin.json` (that `Twin`), the server's log and its mark. Everything else is in the server's memory, so the
folder may be deleted at any time: the server sees it, and ends. `InvalidConfiguration` says that moto is missing or another
version, or that the port is taken. `Halt` says that the server did not start, with the end of its log.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forebay
from forebay.errors import Halt, InvalidConfiguration
from forebay_local.twin import assembly, clients, synth
from forebay_local.twin.clients import A_PERSON, KEY, access_key, know, new_key
from forebay_local.twin.patch import missing
from forebay_local.twin.policy import USED
from forebay_local.twin.process import Process, start
from forebay_local.twin.server import MARK

KNOWN = "twin.json"
LOG = "server.log"
RUNS = "runs"
"""The output of each run of a job, and its files."""
REGION = "eu-west-1"


@dataclass(frozen=True)
class Twin:
    """A twin that runs, or ran."""

    state: Path
    pid: int
    started: str
    endpoint: str
    region: str
    stack: str
    landing_bucket: str
    lake_bucket: str
    prefix: str
    queue_url: str
    dlq_url: str
    key: str

    def __post_init__(self) -> None:
        """A process with this object has access to the twin."""
        know(self.endpoint, self.key)

    @property
    def process(self) -> Process:
        return Process(self.pid, self.started)

    @property
    def env(self) -> dict[str, str]:
        """The variables with which boto3, S3A and the AWS command use this twin."""
        return {"AWS_ENDPOINT_URL": self.endpoint, **_identity(self.region, self.endpoint)}

    def client(self, service: str) -> Any:
        """A boto3 client of this twin, whatever the environment says."""
        return clients.client(service, self.endpoint, self.region)


@dataclass(frozen=True)
class Status:
    """The state of a twin; if it is not running, all numbers are 0."""

    running: bool
    twin: Twin | None = None
    visible: int = 0
    in_flight: int = 0
    dead_letters: int = 0
    objects: int = 0
    landed_bytes: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True)
class Stopped:
    """The result of `down`."""

    was_running: bool
    pid: int | None = None


# --- up, down, status ---


def up(
    state: Path, *, port: int = 0, cloud: Path | None = None, with_parent: bool = False, wait_s: float = 180
) -> Twin:
    """Start the twin of this folder and deploy the service's template into it, or return the one that runs.

    `cloud` is the assembly to deploy, where none runs; without it, that of this repository's app for the environment `local`.
    The twin lives on after us until `down`; `with_parent` ends it with this process, for tests and demonstrations.
    """
    problems = missing()
    if problems:
        raise InvalidConfiguration(problems)
    with _alone(state):
        there = find(state)
        if there and cloud:
            hint = f"`forebay local down --state {state}` stops it and deletes its contents"
            raise InvalidConfiguration.one(str(cloud), f"is not deployed, because a twin runs in {state}", hint)
        if there:
            return there
        _refuse_if_taken(port)
        plan = assembly.read(cloud or synth.assembly())
        key = new_key()
        process, endpoint = _start(state, port, key, with_parent, wait_s)
        try:
            know(endpoint, key)
            twin = _deploy(state, process, endpoint, key, plan)
            _remember(twin)
        except BaseException:
            process.stop()
            raise
        return twin


def down(state: Path) -> Stopped:
    """Stop the twin of this folder and remove what it left there; of one that is gone, only the files."""
    if not state.is_dir():
        return Stopped(was_running=False)
    with _alone(state):
        there = find(state)
        if there:
            there.process.stop()
        for name in (KNOWN, LOG, MARK, USED):  # not the whole folder: somebody may have named one that holds more
            (state / name).unlink(missing_ok=True)
        shutil.rmtree(state / RUNS, ignore_errors=True)
        if not any(state.iterdir()):
            state.rmdir()
    return Stopped(was_running=there is not None, pid=there.pid if there else None)


def status(state: Path) -> Status:
    """Look at the twin of this folder; counts its objects one by one, 0.2 s a thousand."""
    twin = find(state)
    if twin is None:
        return Status(running=False)
    visible, in_flight = _depth(twin, twin.queue_url)
    dead = sum(_depth(twin, twin.dlq_url))
    pages = twin.client("s3").get_paginator("list_objects_v2").paginate(Bucket=twin.landing_bucket)
    sizes = [listed["Size"] for page in pages for listed in page.get("Contents", [])]
    memory = twin.process.memory_bytes
    return Status(True, twin, visible, in_flight, dead, len(sizes), sum(sizes), memory)


def find(state: Path) -> Twin | None:
    """The twin of this folder, if it runs."""
    try:
        known = json.loads((state / KNOWN).read_text())
        mark = (state / MARK).read_text()
        twin = Twin(state, **{f.name: known[f.name] for f in dataclasses.fields(Twin) if f.name != "state"})
    except (OSError, ValueError, KeyError, TypeError):  # none, or the file of another version
        return None
    return twin if mark == str(twin.pid) and twin.process.alive else None


@contextmanager
def running(state: Path) -> Iterator[Twin]:
    """A twin for as long as the block runs, and no longer, whatever becomes of this process."""
    twin = up(state, with_parent=True)
    try:
        yield twin
    finally:
        down(state)


# --- two of them ---


def aws_environment(*, s3: Twin, sqs: Twin) -> dict[str, str]:
    """The environment under which objects are in one twin and the queue in another."""
    return {
        "AWS_ENDPOINT_URL_S3": s3.endpoint,
        "AWS_ENDPOINT_URL_SQS": sqs.endpoint,
        **_identity(s3.region, s3.endpoint, sqs.endpoint),
    }


# --- starting ---


def _start(state: Path, port: int, key: str, with_parent: bool, wait_s: float) -> tuple[Process, str]:
    arguments = [
        sys.executable,
        "-P",  # a module in the folder of the caller is not one of the server
        "-m",
        "forebay_local.twin.server",
        "--port",
        str(port),
        "--state",
        str(state.absolute()),
    ]
    if with_parent:
        arguments += ["--with-parent", str(os.getpid())]
    package = str(Path(forebay.__file__).parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
    log = state / LOG
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", KEY: key}
    process = start(arguments, environment=environment, log=log)
    try:
        return process, _ready(process, log, wait_s)
    except BaseException:
        process.stop()
        raise


def _refuse_if_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as why:
            where, suggestion = f"forebay local --port {port}", "leave it out to use any free port"
            raise InvalidConfiguration.one(where, f"is not available on 127.0.0.1: {why.strerror}", suggestion) from why


def _ready(process: Process, log: Path, wait_s: float) -> str:
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        alive = process.alive  # first, so that the log has the output before its end
        output = log.read_text() if log.exists() else ""
        for line in output.splitlines():
            if line.startswith("READY "):
                return line.split()[1]
        if not alive and not shutil.disk_usage(log.parent).free:
            raise Halt(
                f"forebay local: {log.parent} is on a full disk; free some space, or name another folder with --state"
            )
        if not alive:
            raise Halt(f"forebay local: the server ended before it was ready:\n{_tail(output)}")
        time.sleep(0.02)
    raise Halt(f"forebay local: the server was not ready after {wait_s:g} s; its log {log} ends with:\n{_tail(output)}")


def _tail(text: str, lines: int = 15) -> str:
    return "\n".join(text.splitlines()[-lines:]) or "(nothing)"


def _deploy(state: Path, process: Process, endpoint: str, key: str, plan: assembly.Assembly) -> Twin:
    def client(service: str) -> Any:
        return clients.client(service, endpoint, REGION)

    outputs = assembly.deploy(plan, client=client)
    missing = {"LandingBucket", "LandingPrefix", "QueueUrl", "DeadUrls", "LakeUri"} - outputs.keys()
    if missing:
        raise InvalidConfiguration.one(
            str(plan.folder), f"has no output {', '.join(sorted(missing))}", "is it forebay's?"
        )
    return Twin(
        state=state,
        pid=process.pid,
        started=process.started,
        endpoint=endpoint,
        region=REGION,
        stack=plan.stack,
        landing_bucket=outputs["LandingBucket"],
        lake_bucket=outputs["LakeUri"].removeprefix("s3://"),
        prefix=outputs["LandingPrefix"].removeprefix("/"),
        queue_url=_here(client("sqs"), outputs["QueueUrl"]),
        dlq_url=_here(client("sqs"), outputs["DeadUrls"].split(",")[0]),
        key=key,
    )


def _here(sqs: Any, url: str) -> str:
    """A template's queue is at AWS's address; this is where the twin answers for it."""
    return str(sqs.get_queue_url(QueueName=url.rpartition("/")[2])["QueueUrl"])


def _remember(twin: Twin) -> None:
    known = {**dataclasses.asdict(twin), "state": str(twin.state), "env": twin.env}
    new = twin.state / f".{KNOWN}.new"
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)  # it holds the key
    new.write_text(json.dumps(known, indent=2) + "\n")
    new.replace(twin.state / KNOWN)


def _identity(region: str, *endpoints: str) -> dict[str, str]:
    return {
        **access_key(A_PERSON, *endpoints),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,  # boto3 reads only this one
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _depth(twin: Twin, queue_url: str) -> tuple[int, int]:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    attributes = twin.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
    return int(attributes[names[0]]), int(attributes[names[1]])


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """One `up` or `down` of a folder at a time: a lock on the folder itself, so nothing is left behind."""
    while True:
        state.mkdir(parents=True, exist_ok=True)
        handle = os.open(state, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_still(state, handle):  # a `down` we waited for may have removed it
                yield
                return
        finally:
            os.close(handle)


def _is_still(state: Path, handle: int) -> bool:
    try:
        return os.path.samestat(state.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
