"""The queue, as this room needs it: receive, delete, extend or end the visibility timeout, count; in batches of ten.

In: a boto3 SQS client. Out: `Message`s and plain counts. Errors of the queue become a `Trouble`, whose kind says what happens
next: `throttled` passes on its own, `gone` and `denied` need a person, `unreachable` may pass. A stale receipt is an ordinary
outcome: the message is somewhere else by now, or deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
)

from forebay.aws.announce import AGAIN
from forebay.errors import ForebayError, Halt, InvalidConfiguration

TEN = 10


@dataclass(frozen=True, slots=True)
class Receipt:
    """The handle with which one message is deleted or held."""

    message_id: str
    handle: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it came off the queue."""

    receipt: Receipt
    body: str
    sent_at: datetime
    receive_count: int
    again: bool = False

    @property
    def message_id(self) -> str:
        return self.receipt.message_id


@dataclass(frozen=True, slots=True)
class Depth:
    """The numbers of messages that the queue reports; they are approximate."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def messages(self) -> int:
        return self.visible + self.in_flight + self.delayed


@dataclass(frozen=True, slots=True)
class Batched:
    """The result of a request over many receipts."""

    done: int = 0
    stale: tuple[Receipt, ...] = ()
    failed: tuple[Receipt, ...] = ()
    trouble: Trouble | None = None

    def __add__(self, other: Batched) -> Batched:
        return Batched(
            self.done + other.done,
            self.stale + other.stale,
            self.failed + other.failed,
            self.trouble or other.trouble,
        )


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a request failed, told apart by what follows."""

    kind: Literal["throttled", "gone", "denied", "unreachable"]
    queue_url: str
    action: str
    detail: str

    def as_error(self) -> ForebayError:
        """The error that stops the query, in words for a person. Its receipts were not deleted."""
        if self.kind == "gone":
            return InvalidConfiguration.one(
                "queueUrl", f"{self.queue_url} does not exist ({self.detail})", "nothing was deleted"
            )
        if self.kind == "denied":
            return InvalidConfiguration.one(
                "queueUrl",
                f"{self.action} on {self.queue_url} is refused ({self.detail})",
                "allow the job's role sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and "
                "sqs:GetQueueAttributes, and kms:Decrypt where the queue is encrypted; nothing was deleted",
            )
        return Halt(f"{self.queue_url} cannot be reached ({self.detail}); nothing was deleted, start again")


class Queue:
    """One SQS queue. Safe to use from many threads, as its client is."""

    def __init__(self, client: Any, url: str, *, visibility_timeout_s: int) -> None:
        self._client, self.url, self._visibility_timeout_s = client, url, visibility_timeout_s

    def receive(self, most: int, wait_s: int) -> list[Message]:
        """Up to ten messages, held for the visibility timeout from now. Raises what the client raises."""
        answer = self._client.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=min(TEN, most),
            WaitTimeSeconds=wait_s,
            VisibilityTimeout=self._visibility_timeout_s,
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
            MessageAttributeNames=[AGAIN],
        )
        return [_message(raw) for raw in answer.get("Messages", ())]

    def delete(self, receipts: Iterable[Receipt], pool: Executor) -> Batched:
        """Takes messages off the queue for good. Harmless when run twice."""
        return self._in_tens(
            receipts,
            pool,
            "DeleteMessage",
            lambda entries: self._client.delete_message_batch(QueueUrl=self.url, Entries=entries),
        )

    def hold(self, receipts: Iterable[Receipt], pool: Executor | None, for_s: int | None = None) -> Batched:
        """Keeps messages out of others' sight for so long from now on; 0 lets go of them. Without a pool one request after
        the other."""
        timeout = {"VisibilityTimeout": self._visibility_timeout_s if for_s is None else for_s}
        return self._in_tens(
            receipts,
            pool,
            "ChangeMessageVisibility",
            lambda entries: self._client.change_message_visibility_batch(
                QueueUrl=self.url, Entries=[entry | timeout for entry in entries]
            ),
        )

    def depth(self) -> Depth:
        names = (
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        )
        found = self._client.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names))["Attributes"]
        return Depth(*(int(found.get(name, 0)) for name in names))

    def trouble(self, action: str, error: Exception) -> Trouble:
        return trouble_of(self.url, action, error)

    def _in_tens(
        self,
        receipts: Iterable[Receipt],
        pool: Executor | None,
        action: str,
        ask: Callable[[list[dict[str, Any]]], Any],
    ) -> Batched:
        total, over = Batched(), pool.map if pool else map
        for outcome in over(lambda ten: self._ten(ten, action, ask), list(_chunks(receipts, TEN))):
            total += outcome
        return total

    def _ten(self, receipts: Sequence[Receipt], action: str, ask: Callable[[list[dict[str, Any]]], Any]) -> Batched:
        entries = [{"Id": str(i), "ReceiptHandle": receipt.handle} for i, receipt in enumerate(receipts)]
        try:
            answer = ask(entries)
        except (ClientError, BotoCoreError) as error:
            return Batched(failed=tuple(receipts), trouble=self.trouble(action, error))
        # The answer is 200 even if some entries failed; for an expired handle it says SenderFault.
        refused = {int(entry["Id"]): _is_stale(entry) for entry in answer.get("Failed", ())}
        return Batched(
            done=len(receipts) - len(refused),
            stale=tuple(receipts[i] for i, stale in refused.items() if stale),
            failed=tuple(receipts[i] for i, stale in refused.items() if not stale),
        )


_STALE = ("ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue")


def _is_stale(entry: dict[str, Any]) -> bool:
    return _short(entry.get("Code", "")) in _STALE


def _message(raw: dict[str, Any]) -> Message:
    attributes = raw.get("Attributes", {})
    sent_ms = int(attributes.get("SentTimestamp", time.time() * 1000))
    return Message(
        Receipt(raw["MessageId"], raw["ReceiptHandle"]),
        raw.get("Body", ""),
        datetime.fromtimestamp(sent_ms / 1000, UTC),
        int(attributes.get("ApproximateReceiveCount", 1)),
        AGAIN in raw.get("MessageAttributes", {}),
    )


_GONE = ("QueueDoesNotExist", "NonExistentQueue", "InvalidAddress")
_DENIED = (
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "KmsAccessDenied",
    "KmsDisabled",
    "KmsInvalidState",
    "KmsNotFound",
    "KmsOptInRequired",
    "SignatureDoesNotMatch",
    "UnauthorizedOperation",
    "UnrecognizedClientException",
)
_THROTTLED = ("OverLimit", "RequestThrottled", "Throttling", "ThrottlingException", "KmsThrottled", "SlowDown")


def trouble_of(queue_url: str, action: str, error: Exception) -> Trouble:
    """Classifies `error`. OverLimit (120,000 messages in flight) is throttling, because messages leave that state on their
    own. Its status is 403 all the same, so the codes are compared first."""
    detail = str(error) or type(error).__name__
    if isinstance(error, ClientError):
        code = _short(error.response.get("Error", {}).get("Code", ""))
        if code in _THROTTLED or _status(error) == 429:
            return Trouble("throttled", queue_url, action, detail)
        if code in _GONE:
            return Trouble("gone", queue_url, action, detail)
        if code in _DENIED or _status(error) in (401, 403):
            return Trouble("denied", queue_url, action, detail)
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        return Trouble("denied", queue_url, action, detail)
    return Trouble("unreachable", queue_url, action, detail)


def _short(code: str) -> str:
    """SQS's JSON and query protocols name one error differently: `AWS.SimpleQueueService.NonExistentQueue`,
    `com.amazonaws.sqs#QueueDoesNotExist`."""
    return code.rpartition("#")[2].rpartition(".")[2]


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


_T = TypeVar("_T")


def _chunks(things: Iterable[_T], size: int) -> Iterator[list[_T]]:
    rest = iter(things)
    while chunk := list(islice(rest, size)):
        yield chunk
