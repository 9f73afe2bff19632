"""moto's SQS, made linear in the backlog and safe for several consumers.

Fixed in moto 5.2.5: each send and receive counts the whole backlog, with a slow clock. A receive goes through
everything in flight for each message, so it is quadratic in the backlog. Any number of messages may be in flight;
`delete_message` builds a new list without the lock, so that a message sent meanwhile is lost. Two receives at once can hand
out the same message. A long poll holds on to nothing and looks only once a second. Setting any attribute of a queue forgets
its policy.

With the patches, receive, delete and change of visibility run under the queue's own lock. Messages are looked at lazily,
and those known to be in flight not at all. The three counts are taken in one pass, for a caller that asked for them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from moto.sqs import models
from moto.sqs.exceptions import ReceiptHandleIsInvalid, SQSException

from forebay_local.twin.patch import Patch, apply

MOST_IN_FLIGHT = 120_000
"""The most messages of a standard queue that are received and not deleted."""

_receive = models.SQSBackend.receive_message
_send = models.SQSBackend.send_message
_attributes = models.SQSBackend.get_queue_attributes
_change_visibility = models.SQSBackend.change_message_visibility
_set_attributes = models.Queue._set_attributes
_groups: Any = vars(models.Queue)["pending_message_groups"].fget


def install() -> None:
    """Applies the patches; raises `InvalidConfiguration` when moto is not the one they were written for."""
    apply(PATCHES, relied_on)


def now_ms(dt: Any = None) -> float:
    """The queue's clock; moto's own goes through two datetimes on each look at each message."""
    return time.time() * 1000


# --- receive, delete, change: one at a time ---


def receive_message(
    self: Any,
    queue_name: str,
    count: int,
    wait_seconds_timeout: int,
    visibility_timeout: int,
    message_attribute_names: list[str] | None = None,
) -> Any:
    queue = self.get_queue(queue_name)
    until = time.monotonic() + (wait_seconds_timeout or 0)
    while True:
        with queue._messages_lock:  # over an RLock, so what is called inside may take it again
            if too_many_in_flight(queue):
                got = _none_or_refused(wait_seconds_timeout)
            else:
                got = _receive(self, queue_name, count, 0, visibility_timeout, message_attribute_names)
        left = until - time.monotonic()
        if got or left <= 0:
            return got
        # In slices: a message whose visibility ran out wakes nobody.
        queue.wait_for_messages(min(0.5, left))


def too_many_in_flight(queue: Any) -> bool:
    """Counted only if the queue has at least this number of messages."""
    return len(queue._messages) >= MOST_IN_FLIGHT and _count(queue)[2] >= MOST_IN_FLIGHT


def _none_or_refused(wait_s: int) -> list[Any]:
    """A short poll is refused; a long one gets nothing.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html"""
    if wait_s:
        return []
    raise SQSException("OverLimit", f"{MOST_IN_FLIGHT} messages are in flight")


def delete_message(self: Any, receipt_handle: str) -> None:
    with self._messages_lock:
        if receipt_handle in self.deleted_messages:
            return
        for at, message in enumerate(self._messages):
            if receipt_handle == message.receipt_handle or receipt_handle in message._old_receipt_handles:
                del self._messages[at]
                _hidden(self).one_is_gone(at)
                self.pending_messages.discard(message)
                self.deleted_messages.update(message.all_receipt_handles)
                return
        raise ReceiptHandleIsInvalid


def change_message_visibility(self: Any, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    # Without the lock a delete elsewhere shifts the list under its feet, and it misses the message.
    queue = self.get_queue(queue_name)
    with queue._messages_lock:
        _hidden(queue).forget()
        _change_visibility(self, queue_name, receipt_handle, visibility_timeout)


def purge_queue(self: Any, queue_name: str) -> None:
    queue = self.get_queue(queue_name)
    with queue._messages_lock:
        _hidden(queue).forget()
        queue._messages.clear()
        queue._pending_messages.clear()


def set_attributes(self: Any, attributes: dict[str, Any], now: float | None = None) -> None:
    _set_attributes(self, {"Policy": getattr(self, "policy", None), **attributes}, now)


def wait_for_messages(self: Any, timeout: float) -> None:
    with self._messages_lock:
        self._messages_lock.wait_for(lambda: next(self.messages, None), timeout=timeout)


@dataclass
class Hidden:
    """The first `count` messages of a queue: they are all in flight or delayed `until` then, and need no look."""

    count: int = 0
    until: float = math.inf

    def forget(self) -> None:
        self.count, self.until = 0, math.inf

    def one_is_gone(self, at: int) -> None:
        if at < self.count:
            self.count -= 1


def _hidden(queue: Any) -> Hidden:
    known: Hidden = queue.__dict__.setdefault("_hidden", Hidden())
    return known


def messages(self: Any) -> Iterator[Any]:
    """The visible ones, oldest first, looked at only as far as the reader goes; the reader holds the lock."""
    now, hidden = now_ms(), _hidden(self)
    if hidden.until < now:
        hidden.forget()
    unbroken = True
    for message in islice(self._messages, hidden.count, None):
        if message.visible_at < now and message.delayed_until <= now:
            yield message  # which hides it, as a rule
        until = max(message.visible_at, message.delayed_until - 1)
        unbroken = unbroken and until >= now
        if unbroken:
            hidden.count, hidden.until = hidden.count + 1, min(hidden.until, until)


def pending_message_groups(self: Any) -> set[str]:
    """moto goes through all messages in flight for it, and copies it, for each receive of a queue without groups, too."""
    return _groups(self) if self.fifo_queue else set()


def is_retained(self: Any, queue_name: str, message: Any) -> bool:
    keep_s = self.get_queue(queue_name).message_retention_period
    return bool(keep_s + message.sent_timestamp / 1000 > time.time())


# --- counts: only when somebody asked ---

_call = threading.local()


@contextmanager
def _counts(of_this_call: dict[str, tuple[int, int, int]] | None) -> Iterator[None]:
    before = getattr(_call, "counts", None)
    _call.counts = of_this_call
    try:
        yield
    finally:
        _call.counts = before


def send_message(self: Any, queue_name: str, *args: Any, **kwargs: Any) -> Any:
    # It builds all attributes of the queue to read one flag of a FIFO queue: the counts may be anything.
    with _counts({queue_name: (0, 0, 0)}):
        return _send(self, queue_name, *args, **kwargs)


def get_queue_attributes(self: Any, queue_name: str, attribute_names: list[str]) -> dict[str, Any]:
    # It builds all attributes twice for each name asked for: count once for the call.
    with _counts({}):
        return _attributes(self, queue_name, attribute_names)


def _count(queue: Any) -> tuple[int, int, int]:
    """Visible, delayed, in flight, in one pass."""
    known: dict[str, tuple[int, int, int]] | None = getattr(_call, "counts", None)
    if known is not None and queue.name in known:
        return known[queue.name]
    now = now_ms()
    with queue._messages_lock:
        in_flight = sum(1 for message in queue._messages if message.visible_at >= now)
        delayed = sum(1 for message in queue._messages if message.delayed_until > now)
        neither = len(queue._messages) - in_flight - delayed
    counts = (neither, delayed, in_flight)
    if known is not None:
        known[queue.name] = counts
    return counts


_QUEUE, _BACKEND = models.Queue, models.SQSBackend

PATCHES = (
    Patch(models, "unix_time_millis", ("dt",), now_ms),
    Patch(models.Queue, "_set_attributes", ("self", "attributes", "now"), set_attributes),
    Patch(
        _BACKEND,
        "receive_message",
        (
            "self",
            "queue_name",
            "count",
            "wait_seconds_timeout",
            "visibility_timeout",
            "message_attribute_names",
        ),
        receive_message,
    ),
    Patch(
        _BACKEND,
        "send_message",
        (
            "self",
            "queue_name",
            "message_body",
            "message_attributes",
            "delay_seconds",
            "deduplication_id",
            "group_id",
            "system_attributes",
            "validate_group_id",
        ),
        send_message,
    ),
    Patch(_BACKEND, "get_queue_attributes", ("self", "queue_name", "attribute_names"), get_queue_attributes),
    Patch(
        _BACKEND,
        "change_message_visibility",
        ("self", "queue_name", "receipt_handle", "visibility_timeout"),
        change_message_visibility,
    ),
    Patch(_BACKEND, "purge_queue", ("self", "queue_name"), purge_queue),
    Patch(_BACKEND, "is_message_valid_based_on_retention_period", ("self", "queue_name", "message"), is_retained),
    Patch(_QUEUE, "delete_message", ("self", "receipt_handle"), delete_message),
    Patch(_QUEUE, "wait_for_messages", ("self", "timeout"), wait_for_messages),
    Patch(_QUEUE, "messages", None, property(messages)),
    Patch(_QUEUE, "pending_message_groups", None, property(pending_message_groups)),
    Patch(_QUEUE, "approximate_number_of_messages", None, property(lambda self: _count(self)[0])),
    Patch(_QUEUE, "approximate_number_of_messages_delayed", None, property(lambda self: _count(self)[1])),
    Patch(_QUEUE, "approximate_number_of_messages_not_visible", None, property(lambda self: _count(self)[2])),
)


def relied_on() -> list[tuple[Any, str]]:
    """The attributes that the patches read of moto's queues and messages."""
    make_queue: Any = models.Queue
    queue = make_queue("probe", "us-east-1", "123456789012")
    message = models.Message("probe", "")
    of_queue = ("_messages", "_pending_messages", "_messages_lock", "deleted_messages", "message_retention_period")
    of_message = ("visible_at", "delayed_until", "receipt_handle", "_old_receipt_handles", "sent_timestamp")
    return [(queue, name) for name in of_queue] + [(message, name) for name in of_message]
