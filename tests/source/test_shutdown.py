"""A planner that is told to end: real processes and a real signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PLANNER = """
import sys, time
from forebay.source.shutdown import Shutdown, is_planner
assert is_planner()
def last_words():
    print("last", end="", flush=True)
    time.sleep(float(sys.argv[2]))
    print(" words", flush=True)
shutdown = Shutdown(last_words)
shutdown.expect()
if sys.argv[1] == "asked":
    with shutdown.question():
        print("asked", flush=True)
        until = time.monotonic() + 60
        while not shutdown.requested and time.monotonic() < until:
            time.sleep(0.01)
        print("given back", flush=True)
elif sys.argv[1] == "left":
    sys.exit(255)
else:
    print("idle", flush=True)
time.sleep(60)
print("still here", flush=True)
"""


@pytest.mark.parametrize(("at", "said"), [("asked", "asked\ngiven back\nlast words\n"), ("idle", "idle\nlast words\n")])
def test_a_question_under_way_is_ended_in_order_and_then_the_last_words_are_said(at: str, said: str) -> None:
    env = {**os.environ, "PYTHON_WORKER_FACTORY_PORT": "1"}
    command = [sys.executable, "-c", PLANNER, at, "0"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as planner:
        assert planner.stdout
        first = planner.stdout.readline()
        planner.send_signal(signal.SIGTERM)
        rest = planner.stdout.read()
    assert (first + rest, planner.returncode) == (said, 0)


def test_a_planner_whose_line_to_spark_is_cut_says_its_last_words_too() -> None:
    env = {**os.environ, "PYTHON_WORKER_FACTORY_PORT": "1"}
    left = subprocess.run(
        [sys.executable, "-c", PLANNER, "left", "0"], env=env, capture_output=True, text=True, timeout=60
    )
    assert (left.stdout, left.returncode) == ("last words\n", 255)


def test_last_words_that_are_being_said_are_not_cut_short_by_the_signal() -> None:
    """The line is cut and the signal comes, one right after the other: so Spark ends a query."""
    env = {**os.environ, "PYTHON_WORKER_FACTORY_PORT": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", PLANNER, "left", "1"], env=env, stdout=subprocess.PIPE, text=True
    ) as planner:
        assert planner.stdout
        assert planner.stdout.read(4) == "last"
        planner.send_signal(signal.SIGTERM)
        assert planner.stdout.read() == " words\n"


def test_only_a_process_of_sparks_answers_signals_in_this_way() -> None:
    from forebay.source.shutdown import is_planner

    assert not is_planner()
