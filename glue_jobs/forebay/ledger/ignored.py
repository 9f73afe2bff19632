"""Files that the declarations leave out: objects that frameworks leave beside data, and files that belong to no feed.

Pure. In: a service and a file. Out: the rule by which it is ignored. The ledger records the rule for each such file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.landed_file import LandedFile
from forebay.notification import REASONS
from forebay.notification.debris import debris

if TYPE_CHECKING:
    from forebay.declaration.service import Service

__all__ = ["NO_FEED", "RULES", "why_ignored"]

NO_FEED = "no-feed"

RULES = {**REASONS, NO_FEED: "no declared feed has a prefix and a bucket that fit"}
"""The meaning of each rule."""


def why_ignored(service: Service, file: LandedFile) -> str:
    """The name of the rule; empty for a file to read."""
    found = debris(file)
    if found is not None and found.reason in service.ignored:
        return found.reason
    if service.feeds and service.feed_of(file.bucket, file.key) is None:
        return NO_FEED
    return ""
