"""Moves or deletes one landed file, and only the version that the ledger has.

In: a `DueFile`. Out: `Done`, or `Left` with the reason. Nothing is raised for one file, so one that S3 refuses stops no other.
The copy is made on condition that the object is still this version, and so is the delete. The place of the copy contains the
file's id, so a copy that is there is whole, and of this version. A second run finishes a run that died between the two.

The delete names no version id. In a bucket with versions it leaves a delete marker, so no earlier version becomes the object;
the bucket's lifecycle rule deletes the old versions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from forebay.declaration.feed import AfterLoad
from forebay.upkeep.after_load.copying import copy
from forebay.upkeep.after_load.due import DueFile

Action = Literal[
    "moved",  # it is in the archive, and no longer in the landing bucket
    "deleted",  # it was deleted
    "gone",  # somebody else had deleted it before
    "replaced",  # the object is another version by now: it was not touched
    "started",  # its copy may be there, and it may be deleted; another action follows
]

ARCHIVE_IS_LANDING, NO_VERSION = "archive-is-landing", "no-version"
FORGOTTEN_BY_OTHERS = "forgotten-by-others"


@dataclass(frozen=True, slots=True)
class Done:
    """`place` is the address of its copy; empty if it has none. `at` is when that was done: a deletion is recognised by it."""

    file: DueFile
    action: Action
    place: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)


@dataclass(frozen=True, slots=True)
class Left:
    """The next run tries the file again."""

    file: DueFile
    reason: str
    detail: str


class Settling:
    """`s3` is boto3's client. `loads` names the service that would load a copy, by its bucket and key, and `forgets` the one
    that would take out its rows of a deleted file; empty if there is none."""

    def __init__(
        self, s3: Any, rule: AfterLoad, loads: Callable[[str, str], str], forgets: Callable[[str, str], str]
    ) -> None:
        self._s3, self._rule, self._loads, self._forgets = s3, rule, loads, forgets

    def settle(self, file: DueFile, started: Collection[str] = ()) -> Done | Left:
        """`started` are the ids of the files that an earlier run began with, and did not end."""
        try:
            return self._settle(file, file.file_id in started)
        except ClientError as refused:
            return Left(file, _reason(refused), self._tried(refused))
        except BotoCoreError as failed:
            return Left(file, "unreachable", self._tried(failed))

    def refusal(self, file: DueFile) -> Left | None:
        """Why the declarations of the lake's services do not allow it."""
        bucket, key = self._rule.place_of(file.bucket, file.key, file.file_id)
        if bucket and (name := self._loads(bucket, key)):
            return Left(file, ARCHIVE_IS_LANDING, f"the service {name} would load s3://{bucket}/{key} as a new file")
        if name := self._forgets(file.bucket, file.key):
            why = f'the service {name} has on_delete = "forget" and would remove its rows: remove one of the two declarations'
            return Left(file, FORGOTTEN_BY_OTHERS, why)
        return None

    def _tried(self, problem: Exception) -> str:
        """S3 does not say which of the two buckets it means."""
        return f"{problem} ({f'it would move to {self._rule.move}' if self._rule.move else 'it would be deleted'})"

    def _settle(self, file: DueFile, started: bool) -> Done | Left:
        if (refused := self.refusal(file)) is not None:
            return refused
        bucket, key = self._rule.place_of(file.bucket, file.key, file.file_id)
        place = f"s3://{bucket}/{key}" if bucket else ""
        now = self._head(file.bucket, file.key)
        if now is None:
            moved = bool(place) and self._head(bucket, key) is not None
            gone: Action = "deleted" if started and not place else "gone"
            return Done(file, "moved" if moved else gone, place if moved else "")
        if not (file.is_versioned or file.etag):
            return Left(file, NO_VERSION, "its notification had neither a version id nor an etag")
        if not _is_still(file, now):
            copied = bool(place) and self._head(bucket, key) is not None
            return Done(file, "replaced", place if copied else "")
        if place and self._head(bucket, key) is None and not self._copied(file, now, bucket, key):
            return Done(file, "replaced")
        if not self._deleted(file, now["ETag"]):
            return Done(file, "replaced", place)
        return Done(file, "moved" if place else "deleted", place)

    def _head(self, bucket: str, key: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._s3.head_object(Bucket=bucket, Key=key)
        except ClientError as refused:
            if _status(refused) == 404:
                return None
            raise
        return found

    def _copied(self, file: DueFile, now: Mapping[str, Any], bucket: str, key: str) -> bool:
        """False where the object is another one by now, or gone."""
        source = {"Bucket": file.bucket, "Key": file.key}
        if file.is_versioned:
            source["VersionId"] = file.version_id or ""
        return self._if_unchanged(lambda: copy(self._s3, source, now, bucket, key))

    def _deleted(self, file: DueFile, etag: str) -> bool:
        """False where the object is another one by now. One that is gone counts as deleted."""
        return self._if_unchanged(
            lambda: self._s3.delete_object(Bucket=file.bucket, Key=file.key, IfMatch=etag), gone=True
        )

    def _if_unchanged(self, ask: Callable[[], Any], *, gone: bool = False) -> bool:
        try:
            ask()
        except ClientError as refused:
            if _status(refused) == 412:
                return False
            if _status(refused) == 404 and refused.response["Error"].get("Code") in ("NoSuchKey", "NoSuchVersion"):
                return gone
            raise
        return True


def _is_still(file: DueFile, now: Mapping[str, Any]) -> bool:
    if file.is_versioned:
        return bool(now.get("VersionId") == file.version_id)
    return bool(now["ETag"].strip('"') == file.etag.strip('"'))


def _reason(refused: ClientError) -> str:
    """Denied, or the code of S3."""
    return "denied" if _status(refused) == 403 else str(refused.response["Error"].get("Code", "unknown"))


def _status(refused: ClientError) -> int:
    return int(refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
