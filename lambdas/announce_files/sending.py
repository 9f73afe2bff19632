"""Notices as S3 writes them, many to a message, into the queue. `ObjectCreated:Announced` says whose they are; they have no
sequencer, since only S3 can tell the order of a key's writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any
from urllib.parse import quote_plus

from lambdas.announce_files.listing import Found

__all__ = ["send"]

MESSAGE_BYTES = 20_000
"""So full is a message at least before the next one begins; ten of them fit into one request, of 256 KiB."""
TRIES = 3


def send(sqs: Any, url: str, bucket: str, files: Sequence[Found]) -> list[str]:
    """The keys that the queue refused, time and again."""
    refused: list[str] = []
    messages = list(_messages(bucket, files))
    for at in range(0, len(messages), 10):
        batch = dict(enumerate(messages[at : at + 10]))
        for _ in range(TRIES):
            entries = [{"Id": str(n), "MessageBody": body} for n, (body, _) in batch.items()]
            failed = sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed", ())
            batch = {int(one["Id"]): batch[int(one["Id"])] for one in failed}
            if not batch:
                break
        refused += [key for _, keys in batch.values() for key in keys]
    return refused


def _messages(bucket: str, files: Sequence[Found]) -> Iterator[tuple[str, list[str]]]:
    records: list[str] = []
    keys: list[str] = []
    for file in files:
        records.append(json.dumps(_record(bucket, file)))
        keys.append(file.key)
        if sum(map(len, records)) >= MESSAGE_BYTES or file is files[-1]:
            yield f'{{"Records":[{",".join(records)}]}}', keys
            records, keys = [], []


def _record(bucket: str, file: Found) -> dict[str, Any]:
    about = {"key": quote_plus(file.key, safe="/"), "size": file.size, "eTag": file.etag}
    if file.version_id:
        about["versionId"] = file.version_id
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Announced",
        "eventTime": file.written.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": bucket}, "object": about},
    }
