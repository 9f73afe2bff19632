"""What befalls a job's processes is one sentence; what nobody foresaw stays as it is, with its traceback."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from forebay.errors import Halt
from forebay.jobs.failures import plainly

PYTHON = "org.apache.spark.SparkException: Python worker "


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"{PYTHON}failed to connect back.\n\tat org.apache.spark.api",
            "A Python worker did not connect to Spark",
        ),
        (f"{PYTHON}exited unexpectedly (crashed)\n\tat org", "A Python worker ended: was it killed, or out of memory?"),
        (
            "Traceback ...\nforebay.errors.Halt: the lease was lost: it was\n\tat org.apache",
            "the lease was lost: it was",
        ),
    ],
)
def test_what_spark_wraps_in_many_lines_is_one_sentence(said: str, told: str) -> None:
    plain = plainly(RuntimeError(f"[STREAM_FAILED] Query terminated\n{said}"))
    assert isinstance(plain, Halt)
    assert str(plain).startswith(told)
    assert "\n" not in str(plain)


def test_our_own_errors_and_bugs_stay_as_they_are() -> None:
    for failure in (Halt("a Python worker exited unexpectedly"), KeyError("x")):
        assert plainly(failure) is failure


def test_a_jvm_that_is_gone_is_named_whatever_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) as jvm:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=jvm))
        told = str(plainly(ConnectionRefusedError(111, "Connection refused")))
    assert told.startswith(
        "Spark's JVM ended (exit status -9): was it killed, or out of memory? Nothing was marked as done"
    )
