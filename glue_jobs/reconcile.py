"""The reconcile job of AWS Glue and EMR Serverless: files that S3 never announced, and then the accounts. It needs no Spark.

`forebay find-missed` and `forebay audit` run the same code on a laptop.
"""

import sys

from forebay.counted import counted
from forebay.errors import Halt
from forebay.settings import ReconcileSettings
from forebay.spark.stock import stock_of_modules


def main(argv: list[str]) -> None:
    """Errors leave the script: Glue shows the error that ends a script as the run's reason. Modules that need numpy and
    pyarrow are imported after a check for both, so that a job without them ends with a clear message."""
    settings, stock = ReconcileSettings.from_argv(argv), stock_of_modules()
    from forebay.declaration.kept.in_force import service_for
    from forebay.jobs.journal import journal
    from forebay.upkeep.accounts.job import check_accounts
    from forebay.upkeep.reconcile.job import reconcile

    with journal(settings) as emit:
        emit(stock)
        done = reconcile(settings, emit=emit)
        check_accounts(
            settings.lake, service_for(settings.service, settings.lake, settings.deployed_service).name, emit=emit
        )
    if done.refused:
        raise Halt(f"the queue refused the notices of {counted(len(done.refused), 'file')}, such as {done.refused[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
