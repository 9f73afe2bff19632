"""The maintenance job of AWS Glue and EMR Serverless. `forebay maintain` runs the same code on a laptop."""

import sys
import threading

from forebay.counted import counted
from forebay.errors import Halt
from forebay.jobs.journal import journal
from forebay.settings import MaintainSettings
from forebay.upkeep.maintenance.job import maintain


def main(argv: list[str]) -> None:
    """Errors leave the script: Glue shows the error that ends a script as the run's reason. The other tables
    are complete by then. Work that the next run takes over is not a failure."""
    settings = MaintainSettings.from_argv(argv)
    with journal(settings) as emit:
        ran = maintain(settings, emit=emit, stop=threading.Event())
    if ran.for_a_person:
        named = "; ".join(f"{table.table}: {table.reason}" for table in ran.for_a_person)
        raise Halt(f"{counted(len(ran.for_a_person), 'table', 'was')} not maintained, or only in part: {named}")


if __name__ == "__main__":
    main(sys.argv[1:])
