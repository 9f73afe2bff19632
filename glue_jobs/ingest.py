"""The ingest job of AWS Glue and EMR Serverless. `forebay ingest` runs the same code on a laptop."""

import sys
import threading

from forebay.jobs.ingest import ingest
from forebay.jobs.journal import journal
from forebay.settings import IngestSettings


def main(argv: list[str]) -> None:
    """Errors leave the script: Glue shows the error that ends a script as the run's reason. It treats any SystemExit, even
    with status 0, as a failure without a reason."""
    settings = IngestSettings.from_argv(argv)
    with journal(settings) as emit:
        ingest(settings, emit=emit, stop=threading.Event())


if __name__ == "__main__":
    main(sys.argv[1:])
