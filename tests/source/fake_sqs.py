"""An SQS queue in memory, in the shape of boto3's client: as much of SQS as the source can meet, and its bad days on order.

Time stands still until `pass_s`. A long poll that finds nothing lets its time pass at once.
"""

# ruff: noqa: N803 (the arguments are named as AWS names them)

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/landed"


@dataclass
class Stored:
    message_id: str
    body: str
    sent_at: float
    attributes: dict[str, Any]
    visible_at: float = 0.0
    receive_count: int = 0
    handles: list[str] = field(default_factory=list)


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Ask"
    )


class FakeSqs:
    """`fail(action, error)` is asked before every request and may return an error to raise; `lose(message_id)` makes the
    deletion or renewal of that entry fail inside an answer of 200."""

    def __init__(self, *, max_receive_count: int | None = None) -> None:
        self.now = 1_700_000_000.0
        self.messages: dict[str, Stored] = {}
        self.dead: list[Stored] = []
        self.calls: list[str] = []
        self.fail: Callable[[str], Exception | None] = lambda action: None
        self.lose: Callable[[str], str | None] = lambda message_id: None
        self._max_receive_count = max_receive_count
        self._ids, self._handles, self._lock = itertools.count(1), itertools.count(1), threading.RLock()

    def send(self, body: str, *, message_id: str | None = None, **attributes: str) -> str:
        with self._lock:
            name = message_id or f"m{next(self._ids):05d}"
            values = {k.replace("_", "-"): {"DataType": "String", "StringValue": v} for k, v in attributes.items()}
            self.messages[name] = Stored(name, body, self.now, values)
            return name

    def pass_s(self, seconds: float) -> None:
        self.now += seconds

    @property
    def in_flight(self) -> list[str]:
        return [m.message_id for m in self.messages.values() if m.visible_at > self.now]

    def count(self, action: str) -> int:
        return self.calls.count(action)

    def receive_message(
        self,
        *,
        MaxNumberOfMessages: int,
        VisibilityTimeout: int,
        WaitTimeSeconds: int,
        **_: Any,
    ) -> dict[str, Any]:
        with self._lock:
            self._ask("receive")
            assert 1 <= MaxNumberOfMessages <= 10
            got: list[dict[str, Any]] = []
            for stored in list(self.messages.values()):
                if stored.visible_at > self.now or len(got) == MaxNumberOfMessages:
                    continue
                if self._max_receive_count and stored.receive_count >= self._max_receive_count:
                    self.dead.append(self.messages.pop(stored.message_id))
                    continue
                got.append(self._hand_out(stored, VisibilityTimeout))
            if not got:
                self.now += WaitTimeSeconds
            return {"Messages": got} if got else {}

    def _hand_out(self, stored: Stored, visibility_timeout: int) -> dict[str, Any]:
        stored.receive_count += 1
        stored.visible_at = self.now + visibility_timeout
        stored.handles.append(f"r{next(self._handles)}")
        return {
            "MessageId": stored.message_id,
            "ReceiptHandle": stored.handles[-1],
            "Body": stored.body,
            "Attributes": {
                "SentTimestamp": str(int(stored.sent_at * 1000)),
                "ApproximateReceiveCount": str(stored.receive_count),
            },
            "MessageAttributes": stored.attributes,
        }

    def delete_message_batch(self, *, Entries: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        """Of a receipt that is not the latest, SQS takes the request and may not delete: this one does not."""
        with self._lock:
            self._ask("delete")
            return self._each(Entries, lambda stored, entry: self.messages.pop(stored.message_id))

    def change_message_visibility_batch(
        self,
        *,
        Entries: list[dict[str, Any]],
        **_: Any,
    ) -> dict[str, Any]:
        def change(stored: Stored, entry: dict[str, Any]) -> None:
            stored.visible_at = self.now + entry["VisibilityTimeout"]

        with self._lock:
            self._ask("change")
            return self._each(Entries, change, unknown="ReceiptHandleIsInvalid")

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        with self._lock:
            self._ask("attributes")
            in_flight = len(self.in_flight)
            return {
                "Attributes": {
                    "ApproximateNumberOfMessages": str(len(self.messages) - in_flight),
                    "ApproximateNumberOfMessagesNotVisible": str(in_flight),
                    "ApproximateNumberOfMessagesDelayed": "0",
                }
            }

    def _ask(self, action: str) -> None:
        self.calls.append(action)
        error = self.fail(action)
        if error is not None:
            raise error

    def _each(
        self, entries: list[dict[str, Any]], act: Callable[[Stored, dict[str, Any]], Any], unknown: str | None = None
    ) -> dict[str, Any]:
        assert len({entry["Id"] for entry in entries}) == len(entries) <= 10
        done, failed = [], []
        for entry in entries:
            stored = next((m for m in self.messages.values() if m.handles[-1:] == [entry["ReceiptHandle"]]), None)
            code = self.lose(stored.message_id) if stored else unknown
            if code:
                failed.append({"Id": entry["Id"], "Code": code, "SenderFault": True})
                continue
            if stored:
                act(stored, entry)
            done.append({"Id": entry["Id"]})
        return {"Successful": done, "Failed": failed}
