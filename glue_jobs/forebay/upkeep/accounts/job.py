"""The nightly check of the accounts: it runs after reconcile, in the same job.

In: the place of a lake. Out: events, one metric, and the differences. A batch in flight has rows that the ledger does not have
yet. So where something differs, the check waits, looks again, and tells only what differed both times, file by file.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from forebay.events import Emit
from forebay.upkeep.accounts.accounts import accounts, lasting
from forebay.upkeep.accounts.events import AccountDiffers, AccountsChecked

__all__ = ["check_accounts"]

WAIT_S = 600
"""Longer than a batch takes."""
TOLD = 20


def check_accounts(
    lake: str, service: str, *, emit: Emit, sleep: Callable[[float], None] = time.sleep
) -> tuple[str, ...]:
    """The differences that last. Changes nothing, so it may run at any time."""
    began, first = time.monotonic(), accounts(lake)
    found: list[str] = []
    last = first
    if first.differences():
        sleep(WAIT_S)
        last = accounts(lake, sample=first.sampled)
        found = lasting(first, last)
    for difference in found[:TOLD]:
        emit(AccountDiffers(service=service, difference=difference))
    seconds, rows = round(time.monotonic() - began, 3), sum(last.rows.values())
    emit(AccountsChecked(service=service, files=last.all_files, rows=rows, differences=len(found), seconds=seconds))
    return tuple(found)
