"""The events of landed files that are moved or deleted after they were loaded."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, ServiceEvent, metric


@dataclass(frozen=True, kw_only=True)
class LandedFilesCleared(ServiceEvent):
    """Maintenance moved or deleted landed files that were loaded, as `after_load` declares. `gone` files were deleted by
    somebody else, and `replaced` ones are another version by now. `waiting` files have records in the quarantine or parked, or
    are in use."""

    moved: int = metric()
    deleted: int = metric()
    gone: int
    replaced: int
    waiting: int
    failed: int = metric()
    bytes: int = metric("Bytes")
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class LandedFilesLeft(ErrorEvent, ServiceEvent):
    """Landed files could not be moved or deleted, all for the same `reason`; the others were. The next run tries them again."""

    reason: str
    detail: str
    files: int
    such_as: str
