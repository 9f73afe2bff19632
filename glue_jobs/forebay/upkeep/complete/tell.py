"""Sends one event to EventBridge's default bus for each period that became complete, and for each that was reopened.

In: the table of periods. Out: events, and rows that say that they were sent. An event may be sent twice, with the same
revision: it is sent before its row says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from forebay.errors import TryAgain
from forebay.ledger.periods import FeedPeriod, Periods

SOURCE = "forebay"
COMPLETE, REOPENED = "Period Complete", "Period Reopened"
AT_ONCE = 10
NAMES = ("service", "feed", "period", "ends", "revision", "files", "rows", "refused", "complete_at", "revised_at")

Send = Callable[[Sequence[dict[str, Any]]], None]


def sender(client: Callable[[], Any]) -> Send:
    """`client` makes boto3's of EventBridge, for the first event."""

    def send(entries: Sequence[dict[str, Any]]) -> None:
        answer = client().put_events(Entries=list(entries))
        if refused := [one for one in answer["Entries"] if one.get("ErrorCode")]:
            raise TryAgain(f"EventBridge refused {len(refused)} events: {refused[0].get('ErrorMessage')}")

    return send


def tell(periods: Periods, service: str, lake: str, send: Send) -> int:
    """How many events were sent."""
    untold = [one for one in periods.rows().values() if one.service == service and not one.told]
    for at in range(0, len(untold), AT_ONCE):
        some = untold[at : at + AT_ONCE]
        send([_entry(one, lake) for one in some])
        periods.change(lambda rows, some=some: [replace(one, told=True) for one in some if rows[one.key] == one])  # type: ignore[misc]
    return len(untold)


def _entry(one: FeedPeriod, lake: str) -> dict[str, Any]:
    detail = {name: _plain(getattr(one, name)) for name in NAMES}
    kind = COMPLETE if one.complete_at else REOPENED
    return {"Source": SOURCE, "DetailType": kind, "Detail": json.dumps({**detail, "lake": lake})}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
