"""Files that the declarations leave out: objects that frameworks leave beside data, and files that belong to no feed.

Pure. In: a service and a file. Out: the rule by which it is ignored. The ledger records the rule for each such file.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from forebay.landed_file import LandedFile
from forebay.notification import REASONS
from forebay.notification.debris import debris

if TYPE_CHECKING:
    from forebay.declaration.service import Service

NO_FEED = "no-feed"
PERIOD_MARKER = "period-marker"
CLEARED = "after-load"

RULES = {
    **REASONS,
    NO_FEED: "no declared feed has a matching prefix and bucket",
    PERIOD_MARKER: "it marks a period of its feed as complete, as declared",
    CLEARED: "`after_load` deleted the object after it was loaded; its rows stay",
}
"""The meaning of each rule."""


def why_ignored(service: Service, file: LandedFile, cleared: Collection[str] = ()) -> str:
    """The name of the rule; empty for a file to read, or a deletion to carry out. `cleared` are ids of deletions by forebay."""
    if file.is_deletion and service.on_delete == "ignore":
        return "delete"
    if file.file_id in cleared:
        return CLEARED
    found = debris(file)
    if found is not None and found.reason in service.ignored:
        return found.reason
    feed = service.feed_of(file.bucket, file.key)
    if feed is None:
        return NO_FEED
    return PERIOD_MARKER if feed.complete is not None and feed.complete.is_said_by(file) else ""
