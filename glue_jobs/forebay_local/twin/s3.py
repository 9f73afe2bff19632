"""moto's S3, nearer to AWS's in what forebay stands on: conditional writes and the notifications of new objects.

Fixed in moto 5.2.5: `If-None-Match` and `If-Match` are checked first and the object written later, so two writers
can both win. A multipart upload announces itself twice, as a put and as a completed upload. The notification has no
sequencer, no version id and no outer fields, and "/" in its key is escaped. It leaves before the object's metadata are set.
The event for EventBridge has `eTag` for `etag`, one sequencer for all, and a version id where there are no versions. Whether
a bucket sends such events is not told. On a bucket with versions, most deletions are not announced.

With the patches, writes run one at a time, from the check to the metadata. Their announcements get a sequencer
within the lock, so that sequencers of a key are in the order of its writes. It is delivered after the lock, since a
subscriber may call back into S3.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

from botocore.utils import parse_to_aware_datetime
from moto.core import serialize
from moto.events.models import events_backends
from moto.s3 import models, notifications, responses

from forebay_local.twin.patch import Patch, apply

_send_event = notifications.send_event
_stock_record = notifications._get_s3_event
_get_notification = responses.S3Response.get_bucket_notification
_put_object = models.S3Backend.put_object
_delete_object = models.S3Backend.delete_object


def install() -> None:
    """Applies the patches; raises `InvalidConfiguration` when moto is not the one they were written for."""
    apply(PATCHES, relied_on)


# --- writes, one at a time ---

_writing = threading.RLock()
_held = threading.local()


def one_at_a_time(write: Callable[..., Any]) -> Callable[..., Any]:
    """The write under the lock, what it announces after it."""

    @wraps(write)
    def alone(*args: Any, **kwargs: Any) -> Any:
        announcements: list[tuple[Any, ...]] = []
        _held.announcements = announcements
        try:
            with _writing:
                return write(*args, **kwargs)
        finally:
            _held.announcements = None
            for announcement in announcements:
                _send_event(*announcement)

    return alone


def put_object(self: Any, bucket_name: str, key_name: str, value: Any, **kwargs: Any) -> Any:
    # The end of a multipart upload writes its object with a put, and announces itself afterwards.
    if kwargs.get("multipart") is not None:
        kwargs["disable_notification"] = True
    elif kwargs.get("etag") is None and "kms" in _encryption(self.get_bucket(bucket_name), kwargs):
        # With a key, S3's etag is not a hash of the content: each put of the same bytes has another one.
        kwargs["etag"] = uuid4().hex
    return _put_object(self, bucket_name, key_name, value, **kwargs)


def _encryption(bucket: Any, asked: dict[str, Any]) -> str:
    """The encryption of the put, or else the bucket's default."""
    rule = (bucket.encryption or {}).get("Rule", {})
    default = rule.get("ApplyServerSideEncryptionByDefault", {}).get("SSEAlgorithm")
    return str(asked.get("encryption") or default or "")


def delete_object(
    self: Any, bucket_name: str, key_name: str, version_id: str | None = None, bypass: bool = False
) -> tuple[bool, dict[str, Any]]:
    """moto announces the deletion of the last version only, and no delete marker."""
    bucket = self.get_bucket(bucket_name)
    there = (
        {str(version.version_id) for version in bucket.keys.getlist(key_name) or ()} if bucket.is_versioned else set()
    )
    done: tuple[bool, dict[str, Any]] = _delete_object(self, bucket_name, key_name, version_id, bypass)
    if not bucket.is_versioned or not done[0]:
        return done
    events = notifications.S3NotificationEvent
    if version_id is None:
        marker = SimpleNamespace(name=key_name, version_id=done[1]["version-id"], etag=_OF_NOTHING)
        send_event(self.account_id, events.OBJECT_REMOVED_DELETE_MARKER_CREATED_EVENT, bucket, marker)
    elif str(version_id) in there and key_name in bucket.keys:
        version = SimpleNamespace(name=key_name, version_id=version_id)
        send_event(self.account_id, events.OBJECT_REMOVED_DELETE_EVENT, bucket, version)
    return done


# --- notifications ---

# One number more each write; it starts at the clock so that a later twin continues after an earlier one.
_sequencers = itertools.count(int(time.time() * 1e6) << 4)

_OF_NOTHING = "d41d8cd98f00b204e9800998ecf8427e"
"""S3 gives a delete marker the etag of an empty object."""


@dataclass(frozen=True)
class _Written:
    """The announced object; its original may be deleted before the notification leaves."""

    name: str
    size: int | None
    etag: str
    version_id: str | None
    sequencer: str


def send_event(account_id: str, event_name: Any, bucket: Any, key: Any) -> None:
    if bucket.notification_configuration is None:
        return
    size, etag, version = getattr(key, "size", None), getattr(key, "etag", ""), getattr(key, "version_id", None)
    written = _Written(key.name, size, etag, version, f"{next(_sequencers):018X}")
    announcements = getattr(_held, "announcements", None)
    if announcements is None:
        _send_event(account_id, event_name, bucket, written)
    else:
        announcements.append((account_id, event_name, bucket, written))


def s3_event(event_name: str, bucket: Any, key: _Written, notification_id: str) -> dict[str, Any]:
    """A notification with all the fields that S3's has; a removed object has no size, and only a delete marker an etag."""
    event: dict[str, Any] = _stock_record(event_name, bucket, key, notification_id)
    record = event["Records"][0]
    record["userIdentity"] = {"principalId": "AWS:LOCALTWIN"}
    record["requestParameters"] = {"sourceIPAddress": "127.0.0.1"}
    record["responseElements"] = {"x-amz-request-id": key.sequencer, "x-amz-id-2": key.sequencer}
    record["s3"]["bucket"]["ownerIdentity"] = {"principalId": "LOCALTWIN"}
    about = record["s3"]["object"]
    about["key"] = quote_plus(key.name, safe="/")
    about["sequencer"] = key.sequencer
    if bucket.is_versioned:
        about["versionId"] = key.version_id
    if "ObjectRemoved" in event_name:
        about.pop("size", None)
        if not event_name.endswith("DeleteMarkerCreated"):
            about.pop("eTag", None)
    return event


def send_to_eventbridge(account_id: str, bucket: Any, event_name: str, key: _Written) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html"""
    about: dict[str, Any] = {"key": key.name, "sequencer": key.sequencer}
    deletion = _DELETIONS.get(event_name, "")
    if not deletion:
        about["size"] = key.size
    if deletion != _PERMANENT:
        about["etag"] = key.etag.strip('"')
    if bucket.is_versioned:
        about["version-id"] = key.version_id
    detail: dict[str, Any] = {
        "version": "0",
        "bucket": {"name": bucket.name},
        "object": about,
        "request-id": key.sequencer,
        "requester": account_id,
        "source-ip-address": "127.0.0.1",
        "reason": "DeleteObject" if deletion else _REASONS.get(event_name, "PutObject"),
        **({"deletion-type": deletion} if deletion else {}),
    }
    event: Any = {
        "version": "0",
        "id": str(uuid4()),
        "detail-type": notifications._detail_type(event_name),
        "source": "aws.s3",
        "account": account_id,
        "time": time.time(),
        "region": bucket.region_name,
        "resources": [bucket.arn],
        "detail": detail,
    }
    for rule in list(events_backends[account_id][bucket.region_name].event_buses["default"].rules.values()):
        rule.send_to_targets(event, transform_input=False)


_REASONS = {
    "s3:ObjectCreated:Copy": "CopyObject",
    "s3:ObjectCreated:CompleteMultipartUpload": "CompleteMultipartUpload",
}
_PERMANENT = "Permanently Deleted"
_DELETIONS = {
    "s3:ObjectRemoved:Delete": _PERMANENT,
    "s3:ObjectRemoved:DeleteMarkerCreated": "Delete Marker Created",
}


def get_bucket_notification(self: Any) -> Any:
    """With EventBridge, if the bucket sends its events there."""
    status, headers, body = _get_notification(self)
    configuration = self.backend.get_bucket_notification_configuration(self.bucket_name)
    if configuration and configuration.event_bridge is not None:
        text = body.decode() if isinstance(body, bytes) else body
        begins = re.sub(r"(/>|</NotificationConfiguration>)\s*$", "", text)
        begins += ">" if text.rstrip().endswith("/>") else ""
        body = f"{begins}<EventBridgeConfiguration/></NotificationConfiguration>".encode()
    return status, headers, body


_RESPONSE = responses.S3Response

PATCHES = (
    Patch(_RESPONSE, "put_object", ("self",), one_at_a_time(_RESPONSE.put_object)),
    Patch(_RESPONSE, "copy_object", ("self",), one_at_a_time(_RESPONSE.copy_object)),
    Patch(_RESPONSE, "delete_object", ("self",), one_at_a_time(_RESPONSE.delete_object)),
    Patch(
        _RESPONSE,
        "_key_response_post",
        ("self", "request", "body", "bucket_name", "query", "key_name"),
        one_at_a_time(_RESPONSE._key_response_post),
    ),
    Patch(
        models.S3Backend,
        "put_object",
        (
            "self",
            "bucket_name",
            "key_name",
            "value",
            "storage",
            "etag",
            "multipart",
            "encryption",
            "kms_key_id",
            "bucket_key_enabled",
            "lock_mode",
            "lock_legal_status",
            "lock_until",
            "checksum_value",
            "request_method",
            "disable_notification",
        ),
        put_object,
    ),
    # A LIST parses the text of each key's time, which took a third of its time. Few keys have times of their own.
    Patch(serialize, "parse_to_aware_datetime", ("value",), lru_cache(parse_to_aware_datetime)),
    Patch(
        models.S3Backend,
        "delete_object",
        ("self", "bucket_name", "key_name", "version_id", "bypass"),
        delete_object,
    ),
    Patch(notifications, "send_event", ("account_id", "event_name", "bucket", "key"), send_event),
    Patch(
        notifications,
        "_send_event_bridge_message",
        ("account_id", "bucket", "event_name", "key"),
        send_to_eventbridge,
    ),
    Patch(_RESPONSE, "get_bucket_notification", ("self",), get_bucket_notification),
    Patch(notifications, "_get_s3_event", ("event_name", "bucket", "key", "notification_id"), s3_event),
)


def relied_on() -> list[tuple[Any, str]]:
    """The attributes that the patches read of moto's buckets and objects."""
    make_key: Any = models.FakeKey
    make_bucket: Any = models.FakeBucket
    key = make_key(
        name="probe", bucket_name="probe", value=b"", account_id="123456789012", region_name="us-east-1", etag="probe"
    )
    key.dispose()  # it warns when it is only forgotten
    bucket = make_bucket("probe", "123456789012", "us-east-1")
    wanted = [(key, name) for name in ("name", "size", "etag", "version_id")]
    return wanted + [(bucket, name) for name in ("notification_configuration", "is_versioned", "encryption")]
