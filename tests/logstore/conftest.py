"""One S3 server and up to three drivers for all tests of this folder; a bucket of its own for each test."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import boto3
import pytest

from forebay_local.twin.clients import KEY
from tests.fault_proxy import FaultProxy

ROOT = Path(__file__).resolve().parents[2]
JARS = Path(os.environ.get("FOREBAY_JARS") or ROOT / ".forebay" / "jars")
NOBODY = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


class Failed(Exception):
    """What a driver answered instead of a value."""

    def __init__(self, classes: list[str], text: str) -> None:
        self.classes, self.text = classes, text
        super().__init__(f"{' <- '.join(classes)}: {text}")


class DriverEnded(Exception):
    """It could not start, or it crashed; what it said is on standard error."""


class DriverProcess:
    """The other end of driver.py. `start` and `finish` are apart so that several drivers can work at once."""

    def __init__(self, endpoint: str, settings: dict[str, str] | None = None) -> None:
        quiet = {"spark.master": "local[1]", "spark.driver.memory": "1g", **(settings or {})}
        env = {
            **os.environ,
            **NOBODY,
            "PYTHONPATH": str(ROOT / "glue_jobs"),
            "AWS_ENDPOINT_URL_S3": endpoint,
            "DRIVER_SETTINGS": json.dumps(quiet),
        }
        command = [sys.executable, str(Path(__file__).with_name("driver.py"))]
        self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._owed = 1  # The first answer is "ready".

    def start(self, verb: str, **arguments: Any) -> None:
        while self._owed:
            # Of a test that failed half-way, or that the session is up.
            with suppress(Failed):
                self.finish()
        self._owed += 1
        print(json.dumps([verb, arguments]), file=self._process.stdin, flush=True)

    def finish(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout else ""
        self._owed -= 1
        if not line:
            raise DriverEnded(f"driver.py ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"], answer["text"])
        return answer["value"]

    def ask(self, verb: str, **arguments: Any) -> Any:
        self.start(verb, **arguments)
        return self.finish()

    def stop(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass(frozen=True)
class Bucket:
    """A bucket of this test alone; `settings` send a driver's requests for it through the fault proxy."""

    name: str
    proxy: FaultProxy

    @property
    def lake(self) -> str:
        return f"s3a://{self.name}"

    @property
    def through_proxy(self) -> dict[str, str]:
        return {f"fs.s3a.bucket.{self.name}.endpoint": self.proxy.url}

    def impatient(self) -> dict[str, str]:
        """S3A and the SDK try once and give up at once, so that failures reach the log store itself."""
        own = f"fs.s3a.bucket.{self.name}"
        return {
            f"{own}.attempts.maximum": "0",
            f"{own}.retry.limit": "0",
            f"{own}.retry.interval": "10ms",
            f"{own}.retry.throttle.limit": "0",
            f"{own}.retry.throttle.interval": "10ms",
        }


def load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("logstore_build", ROOT / "glue_jobs" / "java" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def log_store_build() -> ModuleType:
    return load_build()


@pytest.fixture(scope="session")
def log_store_jar(log_store_build: ModuleType) -> Path:
    """Where set-up puts it; nothing happens when set-up was there."""
    jar: Path = log_store_build.build(JARS, JARS / "forebay-logstore.jar")
    return jar


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    command = [sys.executable, "-m", "forebay_local.twin.server", "--with-parent", str(os.getpid())]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "glue_jobs"), KEY: NOBODY["AWS_ACCESS_KEY_ID"]}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server:
        words = server.stdout.readline().split() if server.stdout else []
        try:
            assert words[:1] == ["READY"], words
            yield urlsplit(words[1]).port or 0
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def start_driver(s3_port: int, log_store_jar: Path) -> Iterator[Callable[..., DriverProcess]]:
    started: list[DriverProcess] = []

    def start(**settings: str) -> DriverProcess:
        started.append(DriverProcess(f"http://127.0.0.1:{s3_port}", settings))
        return started[-1]

    yield start
    for driver in started:
        driver.stop()


@pytest.fixture(scope="session")
def driver(start_driver: Callable[..., DriverProcess]) -> DriverProcess:
    return start_driver()


@pytest.fixture(scope="session")
def drivers(driver: DriverProcess, start_driver: Callable[..., DriverProcess]) -> list[DriverProcess]:
    """Three; the other two are started only for a test that wants them, and waited for when they are first asked."""
    return [driver, start_driver(), start_driver()]


@pytest.fixture
def bucket(s3_port: int) -> Iterator[Bucket]:
    name = f"lake-{uuid4().hex[:12]}"
    s3 = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{s3_port}",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )
    s3.create_bucket(Bucket=name)
    s3.close()
    with FaultProxy(s3_port) as proxy:
        yield Bucket(name, proxy)
