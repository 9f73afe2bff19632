"""Do the numbers add up? The audit of a lake, for an operator.

In: a view of the lake. Out: `Accounts`. The same check runs each night beside reconcile; `forebay.upkeep.accounts` makes it.
"""

from __future__ import annotations

from forebay.operate.lake_view import LakeView
from forebay.upkeep.accounts.accounts import Accounts
from forebay.upkeep.accounts.accounts import accounts as count


def accounts(view: LakeView) -> Accounts:
    return count(view.lake, ended=view.has_batch)
