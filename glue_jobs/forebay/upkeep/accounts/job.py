"""The nightly check of the accounts: it runs after reconcile, in the same job.

In: the place of a lake. Out: events, one metric, and the differences. A batch in flight has rows that the ledger does not have
yet. So the audit waits and checks the differing places again. A place that differs for the third time, with the same files and
the same rows, is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from forebay.events import Emit
from forebay.upkeep.accounts.accounts import accounts, lasting
from forebay.upkeep.accounts.events import AccountDiffers, AccountsChecked

WAIT_S = 600
"""Longer than a batch takes."""
TOLD = 20


def check_accounts(
    lake: str, service: str, *, emit: Emit, sleep: Callable[[float], None] = time.sleep
) -> tuple[str, ...]:
    """The differences that last. Changes nothing, so it may run at any time."""
    began, last = time.monotonic(), accounts(lake, among=frozenset())
    found: list[str] = []
    if last.differences():
        sleep(WAIT_S)
        again = accounts(lake, among=last.pairs)
        last, stays = again, again.apart or set(last.differences()) & set(again.differences())
        if stays:
            sleep(WAIT_S)
            last = accounts(lake, among=again.sampled)
            found = lasting(again, last)
    for difference in found[:TOLD]:
        emit(AccountDiffers(service=service, difference=difference))
    seconds, rows = round(time.monotonic() - began, 3), sum(last.rows.values())
    emit(AccountsChecked(service=service, files=last.all_files, rows=rows, differences=len(found), seconds=seconds))
    return tuple(found)
