"""EventBridge delivers an event at least once, and perhaps late: the twin can be told to."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from forebay_local.twin import events

EVENT = {"time": "1780000000.0", "source": "aws.s3"}


class Rule:
    """With a queue as its target."""

    targets = ({"Arn": "arn:aws:sqs:eu-west-1:123456789012:q"},)
    event_pattern = SimpleNamespace(matches_event=lambda event: True)


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(events, "_send", lambda rule, event, transform: found.append(dict(event)))
    return found


def test_an_event_comes_just_once_unless_somebody_asks_for_more(delivered: list[dict[str, Any]]) -> None:
    events.send_to_targets(Rule(), EVENT)
    assert delivered == [EVENT]
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_an_event_comes_twice_the_second_time_late(
    delivered: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(events.AGAIN_AFTER, "0.2")
    events.send_to_targets(Rule(), EVENT)
    assert delivered == [EVENT]
    (late,) = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    late.join()
    assert delivered == [EVENT, EVENT]
