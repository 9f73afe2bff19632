"""The JVM's output beside our own."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.spark.jvm import GREETINGS, launch

SAYS = f"""
import sys
print("Deleted 0 files and directories in a total of 1 directories.", flush=True)
sys.stderr.write("{GREETINGS[1].decode()} WARN\\n")
sys.stderr.write("WARN what a logger says\\n")
"""


def test_lines_that_the_jvm_prints_are_not_among_our_own_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Which `--json` makes the input of another program."""
    processes = []

    def launch_gateway(conf: Any, options: dict[str, Any]) -> Any:
        processes.append(subprocess.Popen([sys.executable, "-c", SAYS], **options))
        return SimpleNamespace(proc=processes[0])

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch_gateway)
    before = {*threading.enumerate()}
    launch(None)
    processes[0].wait()
    for thread in {*threading.enumerate()} - before:
        thread.join()  # it ends with the process, and a look at the output while it writes would lose lines
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "Deleted 0 files and directories in a total of 1 directories.",
        "WARN what a logger says",
    ]
