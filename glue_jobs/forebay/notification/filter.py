"""Selects files by a list of buckets, a prefix, a suffix and a glob; a file must match all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from forebay.landed_file import LandedFile
from forebay.notification.debris import debris
from forebay.notification.glob import Glob
from forebay.notification.outcome import Ignored


@dataclass(frozen=True, slots=True)
class Filter:
    """The files to load; an empty field does not restrict. `with_debris` includes objects that frameworks leave beside data,
    `with_deletes` the deletions of files."""

    buckets: frozenset[str] = frozenset()
    prefix: str = ""
    suffix: str = ""
    glob: str = ""
    with_debris: bool = False
    with_deletes: bool = False

    def __post_init__(self) -> None:
        if self.glob:
            _made(self.glob)

    def refuses(self, file: LandedFile) -> Ignored | None:
        """Why this file is not wanted; None for one that is."""
        if not self.with_debris and (left_behind := debris(file)):
            return left_behind
        if self.buckets and file.bucket not in self.buckets:
            return Ignored("bucket-not-allowed", file.uri)
        if file.key.startswith(self.prefix) and file.key.endswith(self.suffix) and self._globs(file.key):
            return None
        return Ignored("filtered", file.uri)

    def _globs(self, key: str) -> bool:
        return not self.glob or _made(self.glob).fits(key)


EVERYTHING = Filter()


@lru_cache(maxsize=64)
def _made(glob: str) -> Glob:
    return Glob(glob)
