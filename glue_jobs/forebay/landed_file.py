"""A file: one version of one object in S3, as a notification named it.

Made once, by `forebay.notification`, and never changed afterwards. Two notifications of the same object version make
equal identities, however they were wrapped.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

DELETED = "deleted-"
"""The etag of a deletion begins with it; S3's sequencer of the deletion follows. No etag of S3 has such letters."""

Identity = tuple[str, ...]
"""Bucket, key, and the version: `v:<version id>` where the bucket is versioned, else `e:<etag>`. The service follows, where a
lake has several and this one is not its first (see `ledger.services`)."""


class _WithId:
    """Has room for the id of a file, which is asked for dozens of times a batch."""

    __slots__ = ("_id",)
    _id: str


@dataclass(frozen=True, slots=True)
class LandedFile(_WithId):
    """One version of one object. `event_time` is when S3 says it was written, in UTC; None when it did not say. `service` is
    part of the identity in a lake that has several services.

    A deletion of the key is a version without records. It deletes every earlier version, or only that of its `version_id`."""

    bucket: str
    key: str
    size: int | None = None
    etag: str = ""
    version_id: str | None = None
    sequencer: str | None = None
    event_time: datetime | None = None
    service: str = ""

    @property
    def has_own_version(self) -> bool:
        """S3 writes version id "null" for objects put before versioning was switched on. Several contents share it."""
        return self.version_id not in (None, "", "null")

    @property
    def identity(self) -> Identity:
        """Equal for two announcements of the same file. Without a version of its own, the etag decides."""
        versioned = self.has_own_version and not self.is_deletion
        version = f"v:{self.version_id}" if versioned else f"e:{self.etag}"
        return (self.bucket, self.key, version, *([f"s:{self.service}"] if self.service else []))

    @property
    def file_id(self) -> str:
        """32 hex digits that stand for the identity in every row of every table."""
        try:
            return self._id
        except AttributeError:
            text = "\0".join(self.identity).encode("utf-8", "surrogatepass")
            object.__setattr__(self, "_id", hashlib.blake2b(text, digest_size=16).hexdigest())
            return self._id

    @property
    def is_deletion(self) -> bool:
        return self.etag.startswith(DELETED)

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def is_address(pattern: str) -> bool:
    """Whether it names a bucket as well as a key."""
    return pattern.startswith("s3://")


def is_meant(pattern: str, bucket: str, key: str) -> bool:
    """`pattern` is a key, or an address; in it * stands for any text, and nothing else for another."""
    text = f"s3://{bucket}/{key}" if is_address(pattern) else key
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))
