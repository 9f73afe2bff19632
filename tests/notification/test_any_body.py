"""Properties of the parser over bodies that nobody thought of: it never raises, and no event goes missing.

The budgets below add up to more than 10,000 bodies a run.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from forebay.landed_file import LandedFile
from forebay.notification import REASONS, Filter, Reading, read_message
from forebay_local.fabricate import Wrapping, body, file_named

EVENTS = {path.stem: path.read_text() for path in sorted((Path(__file__).parents[1] / "events").glob("*.json"))}
DOCUMENTS = {name: json.loads(text) for name, text in EVENTS.items()}

BYTES, TEXTS, JSONS, MUTANTS, MUTANTS_EACH, OUTER, ROUND_TRIPS = 1500, 750, 300, 500, 14, 500, 500
TOTAL = BYTES + TEXTS + JSONS + MUTANTS * MUTANTS_EACH + OUTER + ROUND_TRIPS


def budget(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


def test_the_budgets_add_up() -> None:
    assert TOTAL >= 10_000


def must_be_sound(reading: Reading) -> None:
    """What holds of every reading, whatever was read."""
    assert reading.files or reading.ignored or reading.refused, "a body that said nothing would be deleted unread"
    for file in reading.files:
        assert file.bucket
        assert 1 <= len(file.key.encode()) <= 1024
        assert file.size is None or (type(file.size) is int and 0 <= file.size < 2**63)
        assert file.event_time is None or (
            isinstance(file.event_time, datetime) and file.event_time.utcoffset() == timedelta(0)
        )
        assert file.etag or file.version_id
        json.dumps([file.uri, file.etag, file.version_id, file.sequencer], ensure_ascii=False).encode()
        assert len(file.file_id) == 32
    for thing in reading.ignored:
        assert thing.reason in REASONS
        thing.what.encode()
    for reason in reading.refused:
        assert 0 < len(reason) < 1000
        reason.encode()


@given(st.binary(max_size=300))
@budget(BYTES)
def test_no_bytes_raise(sent: bytes) -> None:
    must_be_sound(read_message(sent))


def names_in(document: Any) -> Iterator[str]:
    """Every field name of a document, of what it wraps too."""
    if isinstance(document, str) and document.startswith("{"):
        document = json.loads(document)
    if isinstance(document, dict):
        yield from document
    for value in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from names_in(value)


FRAGMENTS = st.sampled_from(
    ['{"Records":', "[", "]", "{", "}", '"', ",", ":", "null", "-1", "1e999", "NaN", "\\ud800", '"s3":']
)


@given(st.lists(st.text(st.characters(), max_size=20) | FRAGMENTS, max_size=20).map("".join))
@budget(TEXTS)
def test_no_text_raises(sent: str) -> None:
    must_be_sound(read_message(sent))


NAMES = st.sampled_from(sorted({name for document in DOCUMENTS.values() for name in names_in(document)}))
WORDS = st.sampled_from(
    [
        "aws:s3",
        "aws.s3",
        "aws:sqs",
        "2.1",
        "0",
        "ObjectCreated:Put",
        "s3:TestEvent",
        "Object Created",
        "Notification",
        "%FF",
    ]
)
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12) | WORDS
DOCUMENT = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)


@given(st.dictionaries(NAMES, DOCUMENT, max_size=6) | DOCUMENT)
@budget(JSONS)
def test_no_json_raises(document: Any) -> None:
    must_be_sound(read_message(json.dumps(document)))


STRANGE: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        7,
        2**63,
        2**200,
        0.5,
        -0.0,
        float("nan"),
        float("inf"),
        "2.99",
        "0001-01-01T00:00:00+23:59",
    ),
    *("", " ", "0", "12", "-1", "١٢", "\0", "\ud800", "x" * 2000, "%", "%FF", "%ED%A0%80", "+", "/", "null", "{}", "["),
    *([], [[]], {}, {"": None}, {"Records": []}),
]


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every container within a document with every index or name in it."""
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for at, value in list(entries):
        yield document, at
        yield from places(value)


def mutated(rng: random.Random) -> str:
    """A recorded message, or what it wraps, with subtrees removed, replaced, repeated or swapped; then wrapped anew."""
    document = copy.deepcopy(rng.choice(list(DOCUMENTS.values())))
    if isinstance(document, dict) and rng.random() < 0.5 and document.get("Message", "").startswith("{"):
        return json.dumps({**document, "Message": json.dumps(with_faults(json.loads(document["Message"]), rng))})
    text = json.dumps(with_faults(document, rng))
    return text[: rng.randrange(len(text))] if rng.random() < 0.05 else text


def with_faults(document: Any, rng: random.Random) -> Any:
    for _ in range(rng.randint(1, 3)):
        found = list(places(document))
        if not found:
            break
        container, at = rng.choice(found)
        kind = rng.randrange(4)
        if kind == 0:
            del container[at]
        elif kind == 1:
            container[at] = copy.deepcopy(rng.choice(STRANGE))
        elif kind == 2:
            other, there = rng.choice(found)
            container[at] = copy.deepcopy(other[there])
        elif isinstance(container, list):
            container.append(copy.deepcopy(container[at]))
        else:
            container[f"{at}2"] = container.pop(at)
    return document


@given(st.integers(0, 2**64))
@budget(MUTANTS)
def test_no_mutated_notification_raises(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(MUTANTS_EACH):
        sent = mutated(rng)
        note(sent)
        must_be_sound(read_message(sent))


# one event each -> what becomes of it
GOOD = DOCUMENTS["s3_put"]["Records"][0]
BRIDGED = DOCUMENTS["eventbridge_object_created"]
POOL: list[tuple[Any, str]] = [
    (GOOD, "file"),
    (BRIDGED, "file"),
    (json.loads(json.dumps(GOOD).replace("in/game", "in/_temporary/game")), "ignored"),
    (json.loads(json.dumps(GOOD).replace("studio-landing", "elsewhere")), "ignored"),
    (DOCUMENTS["s3_delete"]["Records"][0], "ignored"),
    (DOCUMENTS["eventbridge_object_expired"], "ignored"),
    (DOCUMENTS["s3_test_event"], "ignored"),
    ({"Records": []}, "ignored"),
    (DOCUMENTS["sns_s3_put"], "file"),
    (DOCUMENTS["sns_subscription_confirmation"], "refused"),
    (DOCUMENTS["s3_major_version_3"]["Records"][0], "refused"),
    (DOCUMENTS["eventbridge_cloudtrail_api_call"], "refused"),
    ({**GOOD, "s3": {}}, "refused"),
    ({}, "refused"),
    (None, "refused"),
    ("Records", "refused"),
    (3.5, "refused"),
]
WRAPPINGS: dict[str, Callable[[list[Any]], str]] = {
    "Records": lambda events: json.dumps({"Records": events}),
    "an array": json.dumps,
    "SNS": lambda events: json.dumps({"Type": "Notification", "Message": json.dumps({"Records": events})}),
    "one SQS message each": lambda events: json.dumps(
        {"Records": [{"eventSource": "aws:sqs", "body": json.dumps(event)} for event in events]}
    ),
    "one SNS message each": lambda events: json.dumps(
        {
            "Records": [
                {"EventSource": "aws:sns", "Sns": {"Type": "Notification", "Message": json.dumps(e)}} for e in events
            ]
        }
    ),
}


@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=12), st.sampled_from(sorted(WRAPPINGS)))
@budget(OUTER)
def test_every_event_ends_as_exactly_one_of_file_ignored_and_refused(events: list[tuple[Any, str]], how: str) -> None:
    reading = read_message(
        WRAPPINGS[how]([event for event, _ in events]), Filter(buckets=frozenset({"studio-landing"}))
    )
    must_be_sound(reading)
    became = {"file": len(reading.files), "ignored": len(reading.ignored), "refused": len(reading.refused)}
    assert Counter(became) == Counter(outcome for _, outcome in events)


KEYS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60).filter(
    lambda key: len(key.encode()) <= 1024
)


@given(st.lists(KEYS, min_size=1, max_size=4), st.sampled_from(Wrapping))
@budget(ROUND_TRIPS)
def test_any_key_comes_back_out_of_any_shape(keys: list[str], shape: Wrapping) -> None:
    # a folder in front and an ending behind, so that no key is debris
    sent = [file_named(f"in/k{key.replace('/', '/k')}.json") for key in keys]
    assert [identified(file) for file in read_message(body(sent, shape)).files] == [identified(file) for file in sent]


def identified(file: LandedFile) -> LandedFile:
    return replace(file, event_time=None)  # EventBridge knows no fractions of a second
