"""The reconcile job of AWS Glue and EMR Serverless. `forebay reconcile` runs the same code on a laptop. It needs no Spark."""

import sys

from forebay.errors import Halt
from forebay.jobs.journal import journal
from forebay.settings import ReconcileSettings
from forebay.upkeep.reconcile.job import reconcile


def main(argv: list[str]) -> None:
    """What goes wrong is let out: Glue shows the error that ends a script as the run's reason."""
    settings = ReconcileSettings.from_argv(argv)
    with journal(settings) as emit:
        done = reconcile(settings, emit=emit)
    if done.refused:
        raise Halt(f"the queue refused notices of {len(done.refused)} files, such as {done.refused[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
