"""The twin's queue: quick with a long backlog, and right with several consumers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from moto.sqs import models
from moto.sqs.exceptions import SQSException
from moto.sqs.models import SQSBackend

from forebay_local.twin import sqs as mended
from forebay_local.twin.twin import Twin


def send(sqs: Any, url: str, bodies: list[str]) -> None:
    for at in range(0, len(bodies), 10):
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies[at : at + 10])]
        assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")


def receive(sqs: Any, url: str, **how: Any) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, **how).get("Messages", [])
    return got


def delete(sqs: Any, url: str, messages: list[dict[str, Any]]) -> None:
    entries = [{"Id": str(at), "ReceiptHandle": message["ReceiptHandle"]} for at, message in enumerate(messages)]
    assert not sqs.delete_message_batch(QueueUrl=url, Entries=entries).get("Failed")


def counts(sqs: Any, url: str) -> tuple[int, int, int]:
    names = [f"ApproximateNumberOfMessages{which}" for which in ("", "NotVisible", "Delayed")]
    said = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    visible, in_flight, delayed = (int(said[name]) for name in names)
    return visible, in_flight, delayed


def test_four_consumers_get_each_message_once_while_more_are_sent(twin: Twin) -> None:
    wanted = [f"message {number}" for number in range(800)]
    seen: list[str] = []
    sending_ended = threading.Event()

    def consume(_: int) -> None:
        sqs = twin.client("sqs")
        while True:
            last_look = sending_ended.is_set()
            got = receive(sqs, twin.queue_url)
            if got:
                seen.extend(message["Body"] for message in got)
                delete(sqs, twin.queue_url, got)
            elif last_look:
                return

    with ThreadPoolExecutor(5) as pool:
        consumers = [pool.submit(consume, number) for number in range(4)]
        send(twin.client("sqs"), twin.queue_url, wanted)
        sending_ended.set()
        for consumer in consumers:
            consumer.result()
    assert Counter(seen) == Counter(wanted)
    assert counts(twin.client("sqs"), twin.queue_url) == (0, 0, 0)


def test_a_backlog_of_thousands_is_taken(twin: Twin) -> None:
    sqs = twin.client("sqs")
    send(sqs, twin.queue_url, ["x"] * 2000)
    taken = 0
    while got := receive(sqs, twin.queue_url):
        delete(sqs, twin.queue_url, got)
        taken += len(got)
    assert taken == 2000


def test_counts_tell_visible_in_flight_and_delayed_apart(twin: Twin) -> None:
    sqs = twin.client("sqs")
    send(sqs, twin.queue_url, ["x"] * 15)
    sqs.send_message(QueueUrl=twin.queue_url, MessageBody="later", DelaySeconds=60)
    receive(sqs, twin.queue_url)
    assert counts(sqs, twin.queue_url) == (5, 10, 1)


def test_a_long_poll_ends_when_a_message_comes(twin: Twin) -> None:
    sqs = twin.client("sqs")
    later = threading.Timer(0.5, send, (twin.client("sqs"), twin.queue_url, ["here"]))
    later.start()
    began = time.monotonic()
    got = receive(sqs, twin.queue_url, WaitTimeSeconds=20)
    took = time.monotonic() - began
    later.join()
    assert [message["Body"] for message in got] == ["here"]
    assert 0.4 < took < 20


def test_a_long_poll_of_an_empty_queue_waits_as_long_as_it_was_told(twin: Twin) -> None:
    began = time.monotonic()
    assert receive(twin.client("sqs"), twin.queue_url, WaitTimeSeconds=1) == []
    assert time.monotonic() - began > 0.9


def test_a_message_comes_back_when_its_visibility_ran_out_or_was_given_up(twin: Twin) -> None:
    sqs = twin.client("sqs")
    send(sqs, twin.queue_url, ["x"])
    (first,) = receive(sqs, twin.queue_url, VisibilityTimeout=1)
    assert receive(sqs, twin.queue_url) == []
    (second,) = receive(sqs, twin.queue_url, WaitTimeSeconds=5)
    sqs.change_message_visibility(QueueUrl=twin.queue_url, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=0)
    (third,) = receive(sqs, twin.queue_url, WaitTimeSeconds=5)
    assert {first["MessageId"], second["MessageId"], third["MessageId"]} == {first["MessageId"]}


def test_a_message_received_five_times_goes_to_the_dead_letters(twin: Twin) -> None:
    sqs = twin.client("sqs")
    send(sqs, twin.queue_url, ["poison", "good"])
    for _ in range(5):
        for message in receive(sqs, twin.queue_url, WaitTimeSeconds=1, VisibilityTimeout=0):
            if message["Body"] == "good":
                delete(sqs, twin.queue_url, [message])
        time.sleep(0.01)
    assert receive(sqs, twin.queue_url) == []
    assert [message["Body"] for message in receive(sqs, twin.dlq_url)] == ["poison"]
    assert counts(sqs, twin.queue_url) == (0, 0, 0)


def test_a_message_is_deleted_once_and_a_wrong_handle_is_refused(twin: Twin) -> None:
    sqs = twin.client("sqs")
    send(sqs, twin.queue_url, ["x"])
    got = receive(sqs, twin.queue_url)
    delete(sqs, twin.queue_url, got)
    delete(sqs, twin.queue_url, got)
    with pytest.raises(ClientError, match="ReceiptHandleIsInvalid"):
        sqs.delete_message(QueueUrl=twin.queue_url, ReceiptHandle="no such handle")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 3)),
        st.tuples(st.just("receive"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 20)),
        st.tuples(st.just("change"), st.integers(0, 20)),
        st.tuples(st.just("dead letter"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.integers(0, 2000)),
    ),
    min_size=5,
    max_size=60,
)


@given(steps=STEPS)
def test_what_is_visible_is_seen_though_what_is_in_flight_is_not_looked_at(steps: list[tuple[str, int]]) -> None:
    make: Any = models.Queue
    backend: Any = SQSBackend("eu-west-1", "123456789012")
    queue = backend.queues["queue"] = make("queue", "eu-west-1", "123456789012")
    clock = [1_000_000.0]

    with patch.object(mended, "now_ms", lambda: clock[0]), patch.object(models, "unix_time_millis", lambda: clock[0]):
        for step, number in steps:
            clock[0] += 1
            some = queue._messages[number % len(queue._messages)] if queue._messages else None
            if step == "send":
                message = models.Message(f"{len(queue._messages)}", "x")
                message.mark_sent(delay_seconds=number)
                queue._messages.append(message)
            elif step == "receive":
                for message in islice(mended.messages(queue), 2):
                    message.mark_received(visibility_timeout=number)
            elif step == "dead letter":
                for message in list(islice(mended.messages(queue), number)):
                    queue._messages.remove(message)
            elif step == "wait":
                clock[0] += number
            elif some is not None and step == "delete":
                mended.delete_message(queue, some.receipt_handle)
            elif some is not None and step == "change":
                mended.change_message_visibility(backend, "queue", some.receipt_handle, number % 3)
            visible = [m for m in queue._messages if m.visible and not m.delayed]
            assert list(mended.messages(queue)) == visible


@pytest.mark.parametrize("step", ["receive", "delete", "change"])
def test_each_step_waits_for_the_one_before_it(step: str) -> None:
    backend: Any = SQSBackend("eu-west-1", "123456789012")
    queue = backend.create_queue("queue")
    sent = backend.send_message("queue", "x")
    (received,) = SQSBackend.receive_message(backend, "queue", 1, 0, 0)
    steps: dict[str, Callable[[], Any]] = {
        "receive": lambda: mended.receive_message(backend, "queue", 1, 0, 0),
        "delete": lambda: mended.delete_message(queue, received.receipt_handle),
        "change": lambda: mended.change_message_visibility(backend, "queue", received.receipt_handle, 9),
    }
    with ThreadPoolExecutor(1) as pool:
        with queue._messages_lock:
            taken = pool.submit(steps[step])
            with pytest.raises(TimeoutError):
                taken.result(timeout=0.1)
        taken.result(timeout=60)
    assert (sent in queue._messages) == (step != "delete")


def test_with_too_many_messages_in_flight_a_short_poll_is_refused_and_a_long_one_gets_nothing() -> None:
    backend: Any = SQSBackend("eu-west-1", "123456789012")
    queue = backend.create_queue("queue")
    for number in range(4):
        backend.send_message("queue", str(number))
    with patch.object(mended, "MOST_IN_FLIGHT", 3):
        taken = mended.receive_message(backend, "queue", 3, 0, 60)
        assert len(taken) == 3
        assert mended.receive_message(backend, "queue", 1, 1, 60) == []
        with pytest.raises(SQSException, match="3 messages are in flight"):
            mended.receive_message(backend, "queue", 1, 0, 60)
        mended.delete_message(queue, taken[0].receipt_handle)
        assert len(mended.receive_message(backend, "queue", 1, 0, 60)) == 1
