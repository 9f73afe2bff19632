"""Puts notices of files into a queue, as S3 writes them, many in each message.

In: files. Out: messages, and the keys that the queue refused repeatedly. `ObjectCreated:Announced` marks these notices. They
have a sequencer only if S3 reported it before. Announcing a loaded file is harmless, because the ledger knows it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import quote_plus

from forebay.counted import counted
from forebay.errors import Halt
from forebay.landed_file import LandedFile

AGAIN = "forebay-again"
"""A message attribute. A message that carries it announces its files again on purpose: a replay, or a file that was put back.
So it is compared only with its own redeliveries, and not with other recent batches."""

MOST_AT_ONCE = 1000
MESSAGE_BYTES = 20_000
"""The least size of a message before the next one begins; ten of them fit into one request, of 256 KiB."""
TRIES = 3
MARK = {AGAIN: {"DataType": "String", "StringValue": "true"}}
"""`AGAIN`, as SQS is given it."""


def announce(sqs: Any, url: str, files: Sequence[LandedFile]) -> list[str]:
    refused: list[str] = []
    messages = _messages(files)
    while batch := dict(enumerate(islice(messages, 10))):
        for _ in range(TRIES):
            entries = [{"Id": str(n), "MessageBody": body, "MessageAttributes": MARK} for n, (body, _) in batch.items()]
            failed = sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed", ())
            batch = {int(one["Id"]): batch[int(one["Id"])] for one in failed}
            if not batch:
                break
        refused += [key for _, keys in batch.values() for key in keys]
    return refused


def announce_paced(
    sqs: Any,
    url: str,
    files: Iterable[LandedFile],
    *,
    most_waiting: int,
    repeat: str,
    rate: float = 0,
    tell: Callable[[int], None] = lambda waiting: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[int]:
    """Yields how many are announced so far. While more than `most_waiting` messages are in the queue, it lets live files
    pass first and reports the number. `rate` is the maximum of files a second; 0 means unlimited. `repeat` is the advice
    for an error of the queue."""
    left, most, announced = iter(files), _at_once(rate), 0
    while page := list(islice(left, most)):
        _wait_while_full(sqs, url, most_waiting, tell=tell, sleep=sleep)
        if refused := announce(sqs, url, page):
            raise Halt(f"the queue refused {counted(len(refused), 'file')}, such as {refused[0]}; {repeat}")
        if rate:
            sleep(len(page) / rate)
        announced += len(page)
        yield announced


def _at_once(rate: float) -> int:
    """How many files to announce before the next look at the queue."""
    return min(MOST_AT_ONCE, max(1, int(rate))) if rate else MOST_AT_ONCE


def _wait_while_full(
    sqs: Any,
    url: str,
    most: int,
    *,
    tell: Callable[[int], None] = lambda waiting: None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until no more messages than this wait, so that live files pass; `tell` is given how many do."""
    name = "ApproximateNumberOfMessages"
    while (waiting := int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])) > most:
        tell(waiting)
        sleep(5)


def messages_in(sqs: Any, url: str) -> int:
    """How many the queue holds: those that wait, those in flight, and those that are delayed. SQS counts about."""
    names = [f"ApproximateNumberOfMessages{which}" for which in ("", "NotVisible", "Delayed")]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(attributes.get(name, 0)) for name in names)


def _messages(files: Sequence[LandedFile]) -> Iterator[tuple[str, list[str]]]:
    records: list[str] = []
    keys: list[str] = []
    for file in files:
        records.append(json.dumps(_record(file)))
        keys.append(file.key)
        if sum(map(len, records)) >= MESSAGE_BYTES or file is files[-1]:
            yield f'{{"Records":[{",".join(records)}]}}', keys
            records, keys = [], []


def _record(file: LandedFile) -> dict[str, Any]:
    about = {"key": quote_plus(file.key, safe="/"), "size": file.size, "eTag": file.etag}
    if file.version_id:
        about["versionId"] = file.version_id
    if file.sequencer:
        about["sequencer"] = file.sequencer
    written = (file.event_time or datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None)
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Announced",
        "eventTime": written.isoformat(timespec="microseconds" if written.microsecond % 1000 else "milliseconds") + "Z",
        "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": file.bucket}, "object": about},
    }
