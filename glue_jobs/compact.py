"""The compaction job of AWS Glue and EMR Serverless. `forebay compact` runs the same code on a laptop."""

import sys
import threading

from forebay.jobs.journal import journal
from forebay.settings import CompactSettings
from forebay.upkeep.compaction.job import compact


def main(argv: list[str]) -> None:
    """Errors leave the script: Glue shows the error that ends a script as the run's reason. The other tables
    are complete by then."""
    settings = CompactSettings.from_argv(argv)
    with journal(settings) as emit:
        ran = compact(settings, emit=emit, stop=threading.Event())
    ran.must_leave_none("compacted")


if __name__ == "__main__":
    main(sys.argv[1:])
