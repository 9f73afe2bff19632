"""The first module of a command. An interrupt while the others are imported is one line, and ends the process at once.

It imports almost nothing. Python itself handles an interrupt before that. A process that was started to ignore interrupts
still does.
"""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext

from forebay.spark.signals import leaving_at_once


def main() -> None:
    with nullcontext() if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else leaving_at_once():
        from forebay.cli.main import main as command
    try:
        command()
    except KeyboardInterrupt:  # before a command runs, or after it
        print("forebay: stopped", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
