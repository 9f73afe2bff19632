"""Ctrl-C at an awkward moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from forebay.spark.signals import interrupts_wait, leaving_at_once, stopping_on_signals


def test_an_interrupt_while_spark_starts_waits_until_it_has_started(capfd: pytest.CaptureFixture[str]) -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def start() -> None:
        with interrupts_wait():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr().err == "forebay: stops as soon as Spark has started; press Ctrl-C again to stop at once\n"


@pytest.mark.parametrize("block", ["leaving_at_once()", "interrupts_wait()", "leaving_at_once(), interrupts_wait()"])
def test_a_process_that_leaves_at_once_says_one_line_whoever_swallows_the_interrupt(block: str) -> None:
    code = f"""
import os, signal
from forebay.spark.signals import interrupts_wait, leaving_at_once
def swallowing():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        pass
with {block}:
    swallowing()
    swallowing()
print("went on")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout, said[-1]) == (130, "", "forebay: stopped")
    assert len(said) == (2 if block == "interrupts_wait()" else 1)


@pytest.mark.parametrize("guard", [interrupts_wait, leaving_at_once])
def test_the_handler_that_spark_puts_there_goes(guard: type) -> None:
    before = signal.getsignal(signal.SIGINT)
    with guard():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_failure_to_start_is_told_as_it_is() -> None:
    with pytest.raises(OSError, match="no java"), interrupts_wait():
        raise OSError("no java")


@pytest.mark.parametrize("guard", [interrupts_wait, leaving_at_once])
def test_another_thread_leaves_signals_alone(guard: type) -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def start() -> None:
        with guard():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_job_that_has_begun_something_says_that_it_stops_and_finishes_it(capfd: pytest.CaptureFixture[str]) -> None:
    before, stop = signal.getsignal(signal.SIGINT), threading.Event()
    with stopping_on_signals(stop):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
    assert stop.is_set()
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr().err == "forebay: finishes the work that it has begun, then stops\n"
