"""Which of two versions of one key S3 wrote later, where its sequencers can tell."""

from __future__ import annotations

import re

from forebay.landed_file import LandedFile

__all__ = ["newer"]

_HEX = re.compile(r"[0-9A-Fa-f]+")


def newer(a: LandedFile, b: LandedFile) -> bool | None:
    """Whether `a` was written after `b`; None where that cannot be told.

    Sequencers compare only within one key. AWS's advice for unequal lengths has been to pad on the right, and to pad on
    the left; we take it that such a pair does not compare.
    """
    if (a.bucket, a.key) != (b.bucket, b.key) or not a.sequencer or not b.sequencer:
        return None
    if len(a.sequencer) != len(b.sequencer) or not _HEX.fullmatch(a.sequencer) or not _HEX.fullmatch(b.sequencer):
        return None
    return a.sequencer.upper() > b.sequencer.upper()
