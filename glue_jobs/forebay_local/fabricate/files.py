"""Files made to order: plausible ones, and the versions of one key.

Nothing is random: the same arguments give the same files. The objects themselves are for the caller to put, or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from forebay.landed_file import LandedFile

_NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
_SEQUENCER_DIGITS = (18, 16)


def file_named(key: str, bucket: str = "landing", *, version: int = 0) -> LandedFile:
    """The file that a put of this key would have announced: with an etag, a version id and a sequencer of their own."""
    name = f"{bucket}/{key}#{version}".encode()
    return LandedFile(
        bucket=bucket,
        key=key,
        size=1 + int.from_bytes(_digest(name, "size")[:2]),
        etag=_digest(name, "etag").hex(),
        version_id=_digest(name, "version").hex(),
        sequencer=f"{0x65920080_00000000 + version:018X}",
        event_time=_NEW_YEAR + timedelta(seconds=version),
    )


def versions(
    key: str, count: int, bucket: str = "landing", *, digits: Sequence[int] = _SEQUENCER_DIGITS
) -> list[LandedFile]:
    """Versions of one key from the oldest to the newest. Their sequencers grow, but by turns they are of unequal
    length, as S3's may be; `digits=(18,)` makes them all comparable."""
    files = [file_named(key, bucket, version=number) for number in range(count)]
    return [replace(file, sequencer=_with_digits(file, digits[i % len(digits)])) for i, file in enumerate(files)]


def _with_digits(file: LandedFile, digits: int) -> str:
    return (file.sequencer or "").lstrip("0").rjust(digits, "0")


def _digest(name: bytes, purpose: str) -> bytes:
    return hashlib.blake2b(name, digest_size=16, person=purpose.encode()).digest()
