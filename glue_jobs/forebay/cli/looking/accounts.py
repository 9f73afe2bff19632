"""`forebay audit`: do the numbers add up?"""

from __future__ import annotations

import dataclasses

import typer

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import print_json, show_accounts


def accounts(lake: Lake, as_json: AsJson = False) -> None:
    """Compare the ledger with the rows in the tables.

    Files by outcome, records read, and the rows of each table are counted in the ledger and again in the tables. A batch that
    has not ended is named, and its files are left out. Exit status 1 if a sum does not hold.
    """
    from forebay.operate.looking.accounts import accounts as count
    from forebay.operate.named_lake import begun_view

    sums = count(begun_view(lake))
    if as_json:
        wrong = sums.differences()
        begun = [
            {"service": one.service, "batch": one.batch, "began_at": one.began_at, "files": one.files}
            for one in sums.open
        ]
        print_json([{**dataclasses.asdict(sums), "open": begun, "differences": wrong}])
    else:
        wrong = show_accounts(sums)
    raise typer.Exit(1 if wrong else 0)
