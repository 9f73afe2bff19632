"""The JVM of a local session: how it starts, and how its end is reported.

In: a configuration. Out: PySpark's gateway to it. `timeout` and service managers send a termination to the whole process
group. It must not end the JVM while its driver finishes a batch. So the JVM ignores it, and ends when its driver's pipe
closes. If it dies anyway, PySpark and py4j would print a traceback from each of their threads; the driver reports it once
instead.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, Any

GREETINGS = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Setting default log level to",
    b"To adjust logging level use",
)
ENDS_WITHIN_S = 5
_launching = False


def launch(conf: Any) -> Any:
    """Starts the JVM by hand, since its launcher greets with lines that no logging setting can silence, and Delta prints what a
    VACUUM deleted. Our own output may be JSON for another program, so no line of the JVM is among it."""
    from pyspark.java_gateway import launch_gateway

    _tell_its_end_once()
    _log_no_refused_queries()
    with _ignoring_terminations():
        gateway = launch_gateway(conf, {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT})  # type: ignore[no-untyped-call]
    threading.Thread(target=_pass_on, args=(gateway.proc.stdout,), daemon=True).start()
    return gateway


def jvm_ended(failure: Exception) -> int | None:
    """The exit status of the JVM that this process launched, if it has ended; negative for a signal. Connections to it
    fail shortly before it ends."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        no_answer = isinstance(failure, ConnectionError) or type(failure).__module__.startswith("py4j")
        process.wait(ENDS_WITHIN_S if no_answer else 0)
    status: int | None = process.returncode
    return status


def _pass_on(output: IO[bytes]) -> None:
    """The JVM's output, without its greetings, into our stderr."""
    for line in output:
        if not line.startswith(GREETINGS):
            sys.stderr.write(line.decode("utf-8", "replace"))
            sys.stderr.flush()


@contextmanager
def _ignoring_terminations() -> Iterator[None]:
    """Makes processes that are started inside ignore terminations. Java keeps ignoring a signal that its process ignored at
    the start. PySpark replaces any `preexec_fn` by its own, so this happens right after the fork."""
    global _launching
    _ignore_in_children()
    _launching = True
    try:
        yield
    finally:
        _launching = False


@cache
def _ignore_in_children() -> None:
    os.register_at_fork(after_in_child=lambda: _launching and signal.signal(signal.SIGTERM, signal.SIG_IGN))


def _log_no_refused_queries() -> None:
    """Each of them raises an error, and that is enough."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


@cache
def _tell_its_end_once() -> None:
    from pyspark import accumulators

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)  # it uses the root logger, too
    real = accumulators.AccumulatorTCPServer.handle_error

    def handle_error(server: Any, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), EOFError):
            real(server, request, client_address)

    setattr(accumulators.AccumulatorTCPServer, "handle_error", handle_error)  # noqa: B010 (mypy knows another signature)
