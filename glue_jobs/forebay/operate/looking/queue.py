"""The queue and its dead-letter queue, for an operator: how many messages wait, with which files, and why messages died.

In: the URL of a queue. Out: `Depth`, `Letter`s, and the number of letters sent back. Reading a message counts as a receive. So
inspecting the main queue brings its messages nearer to the dead-letter queue, and the command says so. A letter is sent back
before it is deleted: a crash in between announces its files twice, which the ledger knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.announce import MARK
from forebay.counted import counted
from forebay.lake.layout import LEDGER
from forebay.landed_file import LandedFile
from forebay.ledger.entry import is_final
from forebay.ledger.services import as_services_know
from forebay.notification.reading import read_message
from forebay.operate.lake_view import LakeView

One = TypeVar("One")

AT_ONCE = 10
REQUEST_BYTES = 256 << 10
"""The bytes of the messages that one request sends. SQS allows 1 MiB by now, and once allowed this much."""
OF_MARK = 64
"""The bytes of the mark, at most: SQS counts names, types and values of attributes."""
WAIT_S = 1
"""A request that waits asks all servers of SQS; one that does not may miss messages that are there."""
HIDDEN_S = 60
"""Letters that were read are hidden from others for so long, unless they are given back before."""


@dataclass(frozen=True)
class Depth:
    """`oldest_s` is None where CloudWatch does not tell it."""

    url: str
    waiting: int
    in_flight: int
    oldest_s: float | None = None


@dataclass(frozen=True)
class Letter:
    """A message: the file that it announces, or why nobody understands it. `outcomes`: of its files that the ledger has.
    The files `waiting`, by their ids, would be read again, such as denied ones. `deletes`: it announces a deletion, which a
    service with `on_delete = "forget"` carries out."""

    message_id: str
    receipt: str
    body: str
    sent_at: datetime
    received: int
    files: tuple[LandedFile, ...]
    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    outcomes: Mapping[str, str] | None = None
    waiting: frozenset[str] = frozenset()
    deletes: bool = False

    @property
    def is_useless(self) -> bool:
        """Whether no service would do anything with it."""
        return not (self.files or self.deletes)

    @property
    def unknown(self) -> tuple[LandedFile, ...]:
        """Its files that the ledger does not have, or not for good."""
        done = (self.outcomes or {}).keys() - self.waiting
        return tuple(file for file in self.files if file.file_id not in done)

    @property
    def why(self) -> str:
        """Why it died, and what to do."""
        if self.refused:
            return f"not understood: {self.refused[0]}"
        if not self.files:
            return f"nothing to load: {', '.join(self.ignored) or 'it names no file'}"
        if self.outcomes is None:
            return f"received {counted(self.received, 'time')} but never finished"
        if not self.unknown:
            outcomes = ", ".join(sorted(set(self.outcomes.values())))
            back = f"`forebay queue redrive --message {self.message_id}`"
            return f"already in the ledger ({outcomes}). To clear it, send it back: {back}"
        known = sorted({self.outcomes[one] for one in self.waiting})
        so_far = f", in the ledger as {', '.join(known)}" if known else ""
        return (
            f"received {counted(self.received, 'time')} but never finished{so_far}: redrive it once the cause is fixed"
        )


def depth_of(url: str, *, sqs: Any, cloudwatch: Any = None) -> Depth:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    oldest = _oldest_s(url.rpartition("/")[2], cloudwatch) if cloudwatch is not None else None
    return Depth(url, int(attributes[names[0]]), int(attributes[names[1]]), oldest)


def dead_letter_url(url: str, *, sqs: Any) -> str | None:
    """The URL of this queue's dead-letter queue; None if it has none."""
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"]).get("Attributes", {})
    if "RedrivePolicy" not in attributes:
        return None
    arn = json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"].split(":")
    return str(sqs.get_queue_url(QueueName=arn[5], QueueOwnerAWSAccountId=arn[4])["QueueUrl"])


def peek(url: str, *, sqs: Any, limit: int) -> list[Letter]:
    """At most this many messages, hidden from others until `give_back`, or for a minute. Reading many takes longer than that:
    it ends where the first ones come again."""
    found: dict[str, Letter] = {}
    while len(found) < limit:
        before = len(found)
        got = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=min(AT_ONCE, limit - len(found)),
            WaitTimeSeconds=WAIT_S,
            VisibilityTimeout=HIDDEN_S,
            AttributeNames=["All"],
        ).get("Messages", [])
        found |= {message["MessageId"]: _letter(message) for message in got}
        if len(found) == before:
            break
    return list(found.values())


def explain(letters: Sequence[Letter], view: LakeView, service: str) -> list[Letter]:
    """With what the ledger has of their files, as files of this service."""
    files = {file for letter in letters for file in letter.files}
    ids = {one.file_id: file.file_id for file in files for one in as_services_know(file, [service])}
    rows = view.rows_with(LEDGER, "file_id, outcome, reason, service", "file_id", ids)
    of_it = [{**row, "file_id": ids[row["file_id"]]} for row in rows if row["service"] in (None, service)]
    known = {row["file_id"]: row["outcome"] for row in of_it}
    waiting = {row["file_id"] for row in of_it if not is_final(row["outcome"], row["reason"])}
    return [_explained(one, known, waiting) for one in letters]


def _explained(letter: Letter, known: Mapping[str, str], waiting: Set[str]) -> Letter:
    of_it = {file.file_id for file in letter.files}
    outcomes = {one: outcome for one, outcome in known.items() if one in of_it}
    return replace(letter, outcomes=outcomes, waiting=frozenset(of_it & waiting))


def give_back(url: str, letters: Iterable[Letter], *, sqs: Any) -> None:
    """Others see them again at once."""
    for some in _batches(letters, AT_ONCE):
        entries = [{"Id": str(n), "ReceiptHandle": one.receipt, "VisibilityTimeout": 0} for n, one in enumerate(some)]
        sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)


def delete(url: str, letters: Iterable[Letter], *, sqs: Any) -> list[Letter]:
    """For good; those that were deleted."""
    gone: list[Letter] = []
    for some in _batches(letters, AT_ONCE):
        entries = [{"Id": str(n), "ReceiptHandle": one.receipt} for n, one in enumerate(some)]
        done = sqs.delete_message_batch(QueueUrl=url, Entries=entries).get("Successful", [])
        gone += [some[int(one["Id"])] for one in done]
    return gone


def redrive(letters: Sequence[Letter], *, dead: str, to: str, sqs: Any) -> int:
    """Sends the letters back, and deletes those that arrived; how many. Run again, it sends the rest. They are marked as
    sent on purpose: the ledger alone decides whether a file is read, even where a recent batch had it."""
    moved = 0
    for some in _requests(letters):
        entries = [{"Id": str(n), "MessageBody": one.body, "MessageAttributes": MARK} for n, one in enumerate(some)]
        sent = sqs.send_message_batch(QueueUrl=to, Entries=entries).get("Successful", [])
        gone = [{"Id": one["Id"], "ReceiptHandle": some[int(one["Id"])].receipt} for one in sent]
        if gone:
            sqs.delete_message_batch(QueueUrl=dead, Entries=gone)
        moved += len(gone)
    return moved


def _letter(message: Mapping[str, Any]) -> Letter:
    about, reading = message.get("Attributes", {}), read_message(message["Body"])
    return Letter(
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        datetime.fromtimestamp(int(about.get("SentTimestamp", 0)) / 1000, UTC),
        int(about.get("ApproximateReceiveCount", 0)),
        reading.files,
        reading.refused,
        tuple(f"{one.reason} {one.what}" for one in reading.ignored),
        deletes=any(one.deleted is not None for one in reading.ignored),
    )


def _oldest_s(queue: str, cloudwatch: Any) -> float | None:
    now = datetime.now(UTC)
    try:
        points = cloudwatch.get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": queue}],
            StartTime=now - timedelta(minutes=10),
            EndTime=now,
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
    except (ClientError, BotoCoreError):
        return None  # it is one number among many, and may need a permission of its own
    newest = max(points, key=lambda point: point["Timestamp"], default=None)
    return float(newest["Maximum"]) if newest else None


def _requests(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    """The letters of one request. One that is larger than that goes alone."""
    some, size = list[Letter](), 0
    for one in letters:
        its_size = len(one.body.encode()) + OF_MARK
        if some and (len(some) == AT_ONCE or size + its_size > REQUEST_BYTES):
            yield some
            some, size = [], 0
        some.append(one)
        size += its_size
    if some:
        yield some


def _batches(things: Iterable[One], size: int) -> Iterator[list[One]]:
    left = iter(things)
    while some := list(islice(left, size)):
        yield some
