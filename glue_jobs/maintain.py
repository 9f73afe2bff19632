"""The maintenance job of AWS Glue and EMR Serverless. `forebay maintain` runs the same code on a laptop."""

import sys
import threading

from forebay.errors import Halt
from forebay.ingest import journal
from forebay.maintenance.job import maintain
from forebay.settings import MaintainSettings


def main(argv: list[str]) -> None:
    """What goes wrong is let out: Glue shows the error that ends a script as the run's reason. A run that left tables alone has
    done with the others by then."""
    settings = MaintainSettings.from_argv(argv)
    with journal(settings) as emit:
        ran = maintain(settings, emit=emit, stop=threading.Event())
    if ran.left:
        named = "; ".join(f"{table.table}: {table.reason}" for table in ran.left)
        raise Halt(f"{len(ran.left)} tables were not maintained, or not all of it: {named}")


if __name__ == "__main__":
    main(sys.argv[1:])
