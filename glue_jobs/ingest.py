"""The ingest job of AWS Glue and EMR Serverless. `forebay ingest` runs the same code on a laptop."""

import sys
import threading

from forebay.errors import ForebayError, Misdeclared
from forebay.ingest import ingest, journal
from forebay.settings import IngestSettings


def main(argv: list[str]) -> int:
    try:
        settings = IngestSettings.from_argv(argv)
        with journal(settings) as emit:
            ingest(settings, emit=emit, stop=threading.Event())
    except ForebayError as problem:
        print(f"forebay: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, Misdeclared) else 1
    return 0


if __name__ == "__main__":
    # Glue takes any SystemExit for a failure, the one with 0 too.
    if status := main(sys.argv[1:]):
        sys.exit(status)
