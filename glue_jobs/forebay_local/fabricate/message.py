"""One notification made to order: the message of S3, SNS or EventBridge about given files.

In go files and a shape, out comes the body of a message, the same every time. Nothing is checked: a file that S3 could
not have announced makes a message that S3 would not have sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote_plus

from forebay.landed_file import LandedFile

_NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


class Wrapping(StrEnum):
    """The shapes of a notification. SNS with raw delivery is S3's own shape."""

    S3 = "s3"
    SNS = "sns"
    EVENTBRIDGE = "eventbridge"
    EVENTBRIDGE_IN_SNS = "eventbridge-in-sns"
    SNS_IN_LAMBDA = "sns-in-lambda"
    SQS_IN_LAMBDA = "sqs-in-lambda"


def body(
    files: Sequence[LandedFile],
    shape: Wrapping = Wrapping.S3,
    *,
    event: str = "ObjectCreated:Put",
    also: Sequence[Any] = (),
) -> str:
    """One message that says `event` of each file, then the raw events `also`. EventBridge sends one event a message;
    for any other number this is the array of events that Pipes makes."""
    if shape in (Wrapping.EVENTBRIDGE, Wrapping.EVENTBRIDGE_IN_SNS):
        events = [*(_eventbridge_event(file, event) for file in files), *also]
        return _wrapped(_json(events[0] if len(events) == 1 else events), shape)
    return _wrapped(_json({"Records": [*(_s3_event(file, event) for file in files), *also]}), shape)


def setup_event(bucket: str, shape: Wrapping = Wrapping.S3) -> str:
    """S3's `s3:TestEvent`, which it sends once when a notification is set up."""
    event = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": _iso(_NEW_YEAR, "milliseconds"), "Bucket": bucket}
    return _wrapped(
        _json({**event, "RequestId": "5582815E1AEA5ADF", "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3e"}), shape
    )


def _s3_event(file: LandedFile, event: str) -> dict[str, Any]:
    facts = {"size": file.size, "eTag": file.etag or None, "versionId": file.version_id, "sequencer": file.sequencer}
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-west-1",
        "eventTime": _iso(file.event_time or _NEW_YEAR, "milliseconds"),
        "eventName": event,
        "userIdentity": {"principalId": "AWS:AROAEXAMPLEROLEID:game-server"},
        "requestParameters": {"sourceIPAddress": "203.0.113.17"},
        "responseElements": {"x-amz-request-id": file.file_id[:16].upper(), "x-amz-id-2": file.file_id * 2},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "arrivals",
            "bucket": {
                "name": file.bucket,
                "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
                "arn": f"arn:aws:s3:::{file.bucket}",
            },
            "object": {"key": quote_plus(file.key, safe="/"), **_stated(facts)},
        },
    }


_IN_EVENTBRIDGE = {
    "ObjectCreated": ("Object Created", "PutObject"),
    "ObjectRemoved": ("Object Deleted", "DeleteObject"),
    "LifecycleExpiration": ("Object Deleted", "Lifecycle Expiration"),
    "LifecycleTransition": ("Object Storage Class Changed", None),
    "ObjectRestore": ("Object Restore Completed", None),
    "ObjectTagging": ("Object Tags Added", None),
    "ObjectAcl": ("Object ACL Updated", None),
}


def _eventbridge_event(file: LandedFile, event: str) -> dict[str, Any]:
    kind, reason = _IN_EVENTBRIDGE[event.partition(":")[0]]
    facts = {"size": file.size, "etag": file.etag or None, "version-id": file.version_id, "sequencer": file.sequencer}
    detail = {
        "version": "0",
        "bucket": {"name": file.bucket},
        "object": {"key": file.key, **_stated(facts)},
        "request-id": file.file_id[:16].upper(),
        "requester": "111122223333",
        "source-ip-address": "203.0.113.17",
        "reason": reason,
    }
    return {
        "version": "0",
        "id": file.file_id,
        "detail-type": kind,
        "source": "aws.s3",
        "account": "111122223333",
        "time": _iso(file.event_time or _NEW_YEAR, "seconds"),
        "region": "eu-west-1",
        "resources": [f"arn:aws:s3:::{file.bucket}"],
        "detail": _stated(detail),
    }


def _wrapped(message: str, shape: Wrapping) -> str:
    if shape in (Wrapping.SNS, Wrapping.EVENTBRIDGE_IN_SNS):
        return _json(_sns_envelope(message))
    if shape is Wrapping.SNS_IN_LAMBDA:
        return _json({"Records": [{"EventSource": "aws:sns", "EventVersion": "1.0", "Sns": _sns_envelope(message)}]})
    if shape is Wrapping.SQS_IN_LAMBDA:
        record = {"messageId": "059f36b4-87a3-44ab-83d2-661975830a7d", "body": message, "eventSource": "aws:sqs"}
        return _json({"Records": [record]})
    return message


def _sns_envelope(message: str) -> dict[str, Any]:
    return {
        "Type": "Notification",
        "MessageId": "da41e39f-ea4d-435a-b922-c6aae3915ebe",
        "TopicArn": "arn:aws:sns:eu-west-1:111122223333:arrivals",
        "Subject": "Amazon S3 Notification",
        "Message": message,
        "Timestamp": _iso(_NEW_YEAR, "milliseconds"),
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-EXAMPLE.pem",
        "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
    }


def _stated(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _iso(time: datetime, precision: str) -> str:
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
