"""The ingest job of AWS Glue and EMR Serverless. `forebay ingest` runs the same code on a laptop."""

import sys
import threading

from forebay.jobs.ingest import ingest
from forebay.jobs.journal import journal
from forebay.settings import IngestSettings


def main(argv: list[str]) -> None:
    """What goes wrong is let out: Glue shows the error that ends a script as the run's reason, and takes any SystemExit, the
    one with 0 too, for a failure without one."""
    settings = IngestSettings.from_argv(argv)
    with journal(settings) as emit:
        ingest(settings, emit=emit, stop=threading.Event())


if __name__ == "__main__":
    main(sys.argv[1:])
