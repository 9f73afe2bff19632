"""Decides which of two versions of one key S3 wrote later: by its sequencers, else by its clock; and which versions a deletion
takes out.

S3 announces objects with milliseconds, and lists them with whole seconds, the newest version of a key first. So the
microseconds, which S3 does not use, order a listed version among those of the same second.
"""

from __future__ import annotations

import re
from datetime import datetime

from forebay.landed_file import LandedFile

_HEX = re.compile(r"[0-9A-Fa-f]+")
_NEWEST = 999
"""The microsecond of the latest version of a key; those before it in its second count down to 1."""


def newer(a: LandedFile, b: LandedFile) -> bool | None:
    """Whether `a` was written after `b`; None if that is unknown.

    Sequencers compare only within one key. AWS has advised both right padding and left padding for unequal lengths, so
    such a pair does not compare.
    """
    if (a.bucket, a.key) != (b.bucket, b.key) or not a.sequencer or not b.sequencer:
        return None
    if len(a.sequencer) != len(b.sequencer) or not _HEX.fullmatch(a.sequencer) or not _HEX.fullmatch(b.sequencer):
        return None
    return a.sequencer.upper() > b.sequencer.upper()


def written_later(a: LandedFile, b: LandedFile) -> bool:
    """Whether `a` was written after `b`; if that is unknown, the one that came first is the older one."""
    known = newer(a, b)
    if known is not None:
        return known
    if a.event_time is None or b.event_time is None:
        return False
    at, than = a.event_time, b.event_time
    if at.replace(microsecond=0) != than.replace(microsecond=0):
        return at > than
    if not (at.microsecond and than.microsecond):
        return False
    if _is_listed(at) == _is_listed(than):
        return at > than
    # The newest of a listing is later than what was announced in its second, and all others are earlier.
    return at.microsecond == _NEWEST if _is_listed(at) else than.microsecond != _NEWEST


def takes_out(deletion: LandedFile, file: LandedFile) -> bool:
    """Whether a deletion of its key takes this version out. A deletion of one version takes out no other one. Several contents
    share the version id "null", so there the order decides, too."""
    if deletion.has_own_version:
        return file.version_id == deletion.version_id
    meant = deletion.version_id is None or not file.has_own_version
    return meant and written_later(deletion, file)


def is_same_put(listed: LandedFile, announced: LandedFile) -> bool:
    """Whether a listing shows the object of an earlier notice: it has whole seconds only."""
    at, than = listed.event_time, announced.event_time
    if at is None or than is None or not _is_listed(at) or _is_listed(than):
        return False
    return at.replace(microsecond=0) == than.replace(microsecond=0)


def listed_at(at: datetime, newer_ones: int, *, is_latest: bool) -> datetime:
    """The time of a version that shares its second with others of its key; `newer_ones` of them were listed before it."""
    if at.microsecond:
        return at
    return at.replace(microsecond=_NEWEST if is_latest else max(1, _NEWEST - 1 - newer_ones))


def _is_listed(at: datetime) -> bool:
    return bool(at.microsecond % 1000)
