"""The body of one message -> the events in it. Its wrapping is detected, not configured.

A body may be S3's `Records`, an EventBridge event, S3's test event, or a list of these. Each may sit in an SNS envelope, or in
the `Records` with which SNS and SQS call Lambda, to a bounded depth. Every event ends as exactly one of three: a file,
`Ignored`, or a sentence in `refused`. No body raises, and none yields an empty `Reading`, so everything that is deleted from
the queue is accounted for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from forebay.landed_file import LandedFile
from forebay.notification.event import read_eventbridge_event, read_s3_event
from forebay.notification.filter import EVERYTHING, Filter
from forebay.notification.outcome import Ignored, NotUnderstood, shown

_DEEPEST = 8
"""AWS itself can go five deep: SQS calling Lambda, SNS, an array of EventBridge's events. No honest body goes deeper, and a
list within a list counts too."""

Found = LandedFile | Ignored | str
"""The outcome of one event; a text is the reason why it was not understood."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of one message. All three may be present at once: a bad event does not affect the others. If `refused` is
    not empty, the message must be kept, with its body."""

    files: tuple[LandedFile, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    refused: tuple[str, ...] = ()


def read_message(body: str | bytes, only: Filter = EVERYTHING) -> Reading:
    """The files that `body` announces and `only` selects. The same body always gives the same result."""
    files: list[LandedFile] = []
    ignored: list[Ignored] = []
    refused: list[str] = []
    for event in _in_text(body, "", 0):
        outcome = event.deleted or event if isinstance(event, Ignored) and only.with_deletes else event
        if isinstance(outcome, LandedFile):
            unwanted = only.refuses(outcome)
            if unwanted:
                ignored.append(unwanted)
            else:
                files.append(outcome)
        elif isinstance(outcome, Ignored):
            ignored.append(outcome)
        else:
            refused.append(outcome)
    return Reading(tuple(files), tuple(ignored), tuple(refused))


def _in_text(text: str | bytes, place: str, depth: int) -> Iterator[Found]:
    try:
        document = _parse(text)
    except NotUnderstood as problem:
        yield _refusal(place, str(problem))
    else:
        yield from _in_document(document, place, depth)


def _parse(text: str | bytes) -> Any:
    try:
        decoded = text if isinstance(text, str) else text.decode()
        return json.loads(decoded.removeprefix("\ufeff"))
    except UnicodeDecodeError as problem:
        raise NotUnderstood(f"not UTF-8: {problem.reason} at byte {problem.start}") from None
    except json.JSONDecodeError as problem:
        raise NotUnderstood(f"not JSON: {problem.msg} at character {problem.pos} of {shown(problem.doc)}") from None
    except ValueError:
        raise NotUnderstood("not JSON that can be read: a number with thousands of digits") from None
    except RecursionError:
        raise NotUnderstood("not JSON that can be read: nested too deeply") from None


def _in_document(document: Any, place: str, depth: int) -> Iterator[Found]:
    if depth > _DEEPEST:
        yield _refusal(place, f"wrapped more than {_DEEPEST} deep")
    elif isinstance(document, list):
        yield from _in_list(document, place, depth)
    elif not isinstance(document, dict):
        yield _refusal(place, f"{shown(document)} is not an event")
    elif "Records" in document:
        yield from _in_list(document["Records"], _inside(place, "Records"), depth)
    elif isinstance(document.get("Sns"), dict):
        yield from _in_document(document["Sns"], _inside(place, "Sns"), depth + 1)
    elif "Message" in document and ("TopicArn" in document or "Type" in document):
        yield from _in_envelope(document, place, depth)
    elif "body" in document and document.get("eventSource") == "aws:sqs":
        yield from _in_payload(document["body"], _inside(place, "body"), depth)
    elif document.get("Event") == "s3:TestEvent":
        yield Ignored("test-event", "s3:TestEvent")
    elif "detail-type" in document:
        yield _read(read_eventbridge_event, document, place)
    elif "s3" in document or "eventName" in document:
        yield _read(read_s3_event, document, place)
    else:
        yield _refusal(place, f"an object with the fields {shown(', '.join(sorted(document)))} is not an event of S3")


def _in_list(events: Any, place: str, depth: int) -> Iterator[Found]:
    if not isinstance(events, list):
        yield _refusal(place, f"{shown(events)} is not an array of events")
    elif not events:
        yield Ignored("empty-records", place or "[]")
    else:
        for number, event in enumerate(events):
            yield from _in_document(event, f"{place}[{number}]", depth + 1)


def _in_envelope(envelope: dict[str, Any], place: str, depth: int) -> Iterator[Found]:
    """SNS wraps what was published; its own mail about subscriptions looks the same and asks a person to act."""
    kind = envelope.get("Type", "Notification")
    if kind == "Notification":
        yield from _in_payload(envelope["Message"], _inside(place, "Message"), depth)
    else:
        yield _refusal(
            place, f"SNS sent {shown(kind)} of topic {shown(envelope.get('TopicArn'))}; a person must handle it"
        )


def _in_payload(payload: Any, place: str, depth: int) -> Iterator[Found]:
    if isinstance(payload, str):
        yield from _in_text(payload, place, depth + 1)
    else:
        yield from _in_document(payload, place, depth + 1)


def _read(read: Callable[[dict[str, Any]], LandedFile | Ignored], event: dict[str, Any], place: str) -> Found:
    try:
        return read(event)
    except NotUnderstood as problem:
        return _refusal(place, str(problem))


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _refusal(place: str, reason: str) -> str:
    return f"{place}: {reason}" if place else reason
