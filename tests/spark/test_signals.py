"""Ctrl-C at an awkward moment."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from forebay.spark.signals import interrupts_wait


@pytest.mark.parametrize(("times", "reached"), [(1, ["started"]), (2, [])])
def test_an_interrupt_while_spark_starts_waits_until_it_has_started_and_a_second_one_does_not(
    times: int, reached: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def start() -> None:
        with interrupts_wait():
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == reached
    assert signal.getsignal(signal.SIGINT) is before
    assert capsys.readouterr().err == "forebay: stops as soon as Spark has started; once more: at once\n"


def test_the_handler_that_spark_puts_there_goes() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts_wait():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_failure_to_start_is_told_as_it_is() -> None:
    with pytest.raises(OSError, match="no java"), interrupts_wait():
        raise OSError("no java")


def test_another_thread_leaves_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def start() -> None:
        with interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert seen == [before]
