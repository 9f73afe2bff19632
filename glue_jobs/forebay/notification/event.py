"""One event of S3, in either of its two forms -> a file, or the reason why it is ignored.

S3's own form (SQS, SNS and Lambda destinations) has a field `s3`; its keys are form-encoded and are decoded exactly once.
EventBridge's form has a field `detail-type`; its keys are plain. Any doubt about *which object* is meant raises
`NotUnderstood`. A wrong key would later read as "no such object", and the file would be lost silently. A file also needs a
version id or an etag. Without either, new content of a key would pass for a duplicate.

A deletion by a user is ignored, with the file that stands for it, for readers that want deletions. One by a lifecycle rule
never has such a file.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus

from forebay.landed_file import DELETED, LandedFile
from forebay.notification.outcome import Ignored, NotUnderstood, shown

JsonObject = dict[str, Any]

_S3_EVENTS = {
    "LifecycleExpiration": "lifecycle",
    "LifecycleTransition": "lifecycle",
    "IntelligentTiering": "tiering",
    "ObjectRestore": "restore",
    "ObjectTagging": "tagging",
    "ObjectAcl": "acl",
    "ObjectAnnotation": "annotation",
    "Replication": "replication",
    "ReducedRedundancyLostObject": "lost-object",
    "TestEvent": "test-event",
}
_EVENTBRIDGE_EVENTS = {
    "Object Deleted": "lifecycle",
    "Object Restore Initiated": "restore",
    "Object Restore Completed": "restore",
    "Object Restore Expired": "restore",
    "Object Storage Class Changed": "lifecycle",
    "Object Access Tier Changed": "tiering",
    "Object Tags Added": "tagging",
    "Object Tags Deleted": "tagging",
    "Object ACL Updated": "acl",
}
_S3_VERSION = re.compile(r"2\.[0-9]+")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")  # as wide as the oldest buckets were allowed to be
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LONGEST_KEY_BYTES = 1024
_LONGEST_ID = 1024
_LARGEST_SIZE = 2**63 - 1  # what a column of Spark's `long` holds
_LONGEST_SIZE_DIGITS = 20
_YEARS = range(1970, 9999)
"""Others mean that the sender had no time. Whoever adds a day to them, or takes one away, would fail."""


def read_s3_event(record: JsonObject) -> LandedFile | Ignored:
    """One member of `Records`, of any version 2.x; stores that speak S3's language name themselves in `eventSource`."""
    source, version, name = record.get("eventSource"), record.get("eventVersion"), record.get("eventName")
    if source is not None and not (isinstance(source, str) and source.endswith(":s3")):
        raise NotUnderstood(f"eventSource is {shown(source)}, not S3")
    if version is not None and not (isinstance(version, str) and _S3_VERSION.fullmatch(version)):
        raise NotUnderstood(f"eventVersion is {shown(version)}; only 2.x is known")
    kind = name.removeprefix("s3:").partition(":")[0] if isinstance(name, str) else ""
    if kind == "ObjectCreated":
        return _landed(_in_s3_event(record), etag="eTag", version_id="versionId", time=record.get("eventTime"))
    if kind == "ObjectRemoved":
        is_marker = str(name).endswith(":DeleteMarkerCreated")
        deleted = _deleted(record, _in_s3_event, "" if is_marker else "versionId", record.get("eventTime"))
        return Ignored("delete", _uri_or(kind, _in_s3_event, record), deleted)
    if kind in _S3_EVENTS:
        return Ignored(_S3_EVENTS[kind], _uri_or(kind, _in_s3_event, record))
    raise NotUnderstood(f"eventName is {shown(name)}, which is not known")


def read_eventbridge_event(event: JsonObject) -> LandedFile | Ignored:
    """One event that S3 itself gave to EventBridge; CloudTrail's `AWS API Call` events name no version and no etag."""
    source, version, kind = event.get("source"), event.get("version"), event.get("detail-type")
    if source != "aws.s3":
        raise NotUnderstood(f"source is {shown(source)}, not 'aws.s3'")
    if version not in (None, "0"):
        raise NotUnderstood(f"version is {shown(version)}; only '0' is known")
    if kind == "Object Created":
        return _landed(_in_eventbridge_event(event), etag="etag", version_id="version-id", time=event.get("time"))
    if kind == "Object Deleted" and not _deleted_by_lifecycle(event):
        version_id = "" if _makes_marker(event) else "version-id"
        deleted = _deleted(event, _in_eventbridge_event, version_id, event.get("time"))
        return Ignored("delete", _uri_or(kind, _in_eventbridge_event, event), deleted)
    if isinstance(kind, str) and kind in _EVENTBRIDGE_EVENTS:
        return Ignored(_EVENTBRIDGE_EVENTS[kind], _uri_or(kind, _in_eventbridge_event, event))
    raise NotUnderstood(f"detail-type is {shown(kind)}, which is not known")


Located = tuple[str, str, JsonObject]
"""Bucket, key as S3 knows it, and what the event says about the object."""


def _in_s3_event(record: JsonObject) -> Located:
    s3 = _part(record, "s3")
    about = _part(s3, "object")
    return _bucket(_part(s3, "bucket")), _key(_form_decoded(about.get("key"))), about


def _in_eventbridge_event(event: JsonObject) -> Located:
    detail = _part(event, "detail")
    if detail.get("version") not in (None, "0"):
        raise NotUnderstood(f"detail.version is {shown(detail['version'])}; only '0' is known")
    about = _part(detail, "object")
    return _bucket(_part(detail, "bucket")), _key(about.get("key")), about


def _deleted_by_lifecycle(event: JsonObject) -> bool:
    detail = event.get("detail")
    return isinstance(detail, dict) and detail.get("reason") == "Lifecycle Expiration"


def _makes_marker(event: JsonObject) -> bool:
    detail = event.get("detail")
    return isinstance(detail, dict) and detail.get("deletion-type") == "Delete Marker Created"


def _deleted(event: JsonObject, find: Callable[[JsonObject], Located], version_id: str, time: Any) -> LandedFile | str:
    """The file that stands for a deletion. The id of a delete marker names no version that had rows, so it is left out."""
    try:
        bucket, key, about = find(event)
        sequencer, at = _id(about, "sequencer"), _time(time)
        if not sequencer and at is None:
            return (
                f"{shown(key)} was deleted at an unknown time: its event has no sequencer, and no time that can be read"
            )
        return LandedFile(
            bucket=bucket,
            key=key,
            etag=f"{DELETED}{sequencer or f'{at:%Y%m%dT%H%M%S.%f}'}",
            version_id=(_id(about, version_id) or None) if version_id else None,
            sequencer=sequencer or None,
            event_time=at,
        )
    except NotUnderstood as problem:
        return str(problem)


def _uri_or(event_name: str, find: Callable[[JsonObject], Located], event: JsonObject) -> str:
    """The object of an event that is ignored anyway; the event's name if the object is unknown."""
    try:
        bucket, key, _ = find(event)
    except NotUnderstood:
        return event_name
    return f"s3://{bucket}/{key}"


def _landed(place: Located, *, etag: str, version_id: str, time: Any) -> LandedFile:
    bucket, key, about = place
    file = LandedFile(
        bucket=bucket,
        key=key,
        size=_size(about.get("size")),
        etag=_id(about, etag).strip('"'),
        version_id=_id(about, version_id) or None,
        sequencer=_id(about, "sequencer") or None,
        event_time=_time(time),
    )
    if not file.etag and not file.has_own_version:
        raise NotUnderstood(
            f"{shown(key)} has neither {etag} nor {version_id}: its contents could not be distinguished"
        )
    return file


def _part(parent: JsonObject, name: str) -> JsonObject:
    value = parent.get(name)
    if isinstance(value, dict):
        return value
    raise NotUnderstood(f"{name} is {shown(value)}, not an object")


def _bucket(part: JsonObject) -> str:
    name = part.get("name")
    if isinstance(name, str) and _BUCKET.fullmatch(name):
        return name
    raise NotUnderstood(f"bucket.name is {shown(name)}, which no bucket can have")


def _form_decoded(key: Any) -> Any:
    """S3 escapes every "%" of a key. S3 did not write a "%" without an escape, or escapes that are not valid UTF-8, and
    their object would be a guess."""
    if not isinstance(key, str) or ("%" not in key and "+" not in key):
        return key
    if _BROKEN_ESCAPE.search(key):
        raise NotUnderstood(f"key is {shown(key)}: it has a % that does not begin an escape")
    try:
        return unquote_plus(key, errors="strict")
    except UnicodeDecodeError:
        raise NotUnderstood(f"key is {shown(key)}: its escapes are not UTF-8") from None


def _key(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise NotUnderstood(f"key is {shown(key)}, which no object can have")
    if not _is_utf8(key):
        raise NotUnderstood(f"key is {shown(key)}, which is not Unicode text")
    if len(key.encode()) > _LONGEST_KEY_BYTES:
        raise NotUnderstood(f"key is {shown(key)}: {len(key.encode())} bytes, but S3 allows {_LONGEST_KEY_BYTES}")
    return key


def _is_utf8(text: str) -> bool:
    """JSON can spell half of a surrogate pair, which UTF-8 cannot encode."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _size(size: Any) -> int | None:
    if isinstance(size, str) and size.isascii() and size.isdigit() and len(size) < _LONGEST_SIZE_DIGITS:
        size = int(size)
    if size is None or (isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= _LARGEST_SIZE):
        return size
    raise NotUnderstood(f"size is {shown(size)}, which no object can have")


def _id(about: JsonObject, name: str) -> str:
    """An etag, version id or sequencer: opaque, but S3 promises that it fits into a URL."""
    value = about.get(name)
    if value is None:
        return ""
    if isinstance(value, str) and value.isascii() and value.isprintable() and len(value) <= _LONGEST_ID:
        return value
    raise NotUnderstood(f"{name} is {shown(value)}, not a short printable text")


def _time(text: Any) -> datetime | None:
    """When S3 finished the request. It names nothing, so a time that cannot be read costs nobody the file."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo in (None, UTC) else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time.year in _YEARS else None
