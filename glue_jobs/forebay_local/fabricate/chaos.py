"""A feed of notifications that misbehaves in every possible way, and the correct result.

The same seed gives the same feed. `Announcement` holds the messages in the order of sending, and the result of a correct
reader: the files it finds, the messages it keeps, and how many events it ignores and why. Do not announce files with keys that
a reader ignores (dot-files and the like): they would make the result wrong.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from forebay.landed_file import LandedFile
from forebay_local.fabricate.files import file_named
from forebay_local.fabricate.message import Wrapping, body, setup_event

GARBAGE = (
    "hello",
    "null",
    "42",
    '"a text"',
    "{}",
    "[[]",
    "<html><body>503 Service Unavailable</body></html>",
    "eyJSZWNvcmRzIjpbXX0=",
    '{"Records": [{"eventVersion": "2.1", "eventSource": "aws:s3", "eventNa',
    '{"Records": {}}',
    '{"Type": "Notification", "TopicArn": "arn:aws:sns:eu-west-1:111122223333:arrivals", "Message": "deploy finished"}',
    '{"version": "0", "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2", "detail": {}}',
    "[" * 20_000,
)
"""Bodies that mean nothing to a reader of S3's notifications; each fits into SQS, and each must be kept."""


@dataclass(frozen=True, slots=True)
class Message:
    """The body of one message, and how long after the others it is sent (SQS's DelaySeconds)."""

    body: str
    delay_s: int = 0


@dataclass(frozen=True, slots=True)
class Announcement:
    """A planned feed, in the order of sending, and what must come of it."""

    messages: tuple[Message, ...]
    expected: tuple[LandedFile, ...]
    """Each announced at least once, and to be loaded exactly once."""
    dropped: tuple[LandedFile, ...] = ()
    """There, but never announced: only a listing of the bucket finds them."""
    vanished: tuple[LandedFile, ...] = ()
    """Announced, but the object is deleted."""
    mentions: int = 0
    """How often a file is announced in all, every repetition and every vanished one counted."""
    kept: tuple[str, ...] = ()
    """The bodies that cannot be understood, in part or at all."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """How many events are ignored, by reason."""


@dataclass(frozen=True, kw_only=True)
class Chaos:
    """The faults and their chances, between 0 and 1; by default the feed has no faults."""

    seed: int = 0
    shapes: tuple[Wrapping, ...] = (Wrapping.S3,)
    """Each message takes one of these."""
    records: int = 1
    """How many files share a message at most."""
    drop: float = 0.0
    """The chance of a file never to be announced."""
    duplicate: float = 0.0
    """The chance of a file to be announced once more, and then again."""
    vanish: float = 0.0
    """The chance, per file, that another object is announced that is gone."""
    reorder: float = 0.0
    """The chance of a message to be sent at any other place in the feed."""
    delay: float = 0.0
    """The chance of a message to be sent late, by up to `longest_delay_s`."""
    longest_delay_s: int = 5
    spoil: float = 0.0
    """The chance of a message to hold a broken event beside its good ones."""
    noise: float = 0.0
    """The chance, per message, of an additional event without a file."""
    garbage: float = 0.0
    """The chance, per message, of a body in between that means nothing."""

    @classmethod
    def of_every_kind(cls, seed: int = 0) -> Chaos:
        """All of it at once, at rates that leave most of a feed intact."""
        return cls(
            seed=seed, shapes=tuple(Wrapping), records=4, drop=0.05, duplicate=0.2, vanish=0.05, reorder=0.3, delay=0.1,
            spoil=0.05, noise=0.2, garbage=0.1,
        )  # fmt: skip

    def announce(self, files: Sequence[LandedFile]) -> Announcement:
        """The feed for these files; files of one identity are one file. The same files give the same feed."""
        rng = random.Random(self.seed)
        there = {file.identity: file for file in files}.values()
        dropped = {file.identity: file for file in there if rng.random() < self.drop}
        expected = [file for file in there if file.identity not in dropped]
        vanished = [_gone(file) for file in expected if rng.random() < self.vanish]
        mentions = [file for file in (*expected, *vanished) for _ in range(self._times(rng))]
        things = list(self._things(mentions, rng))
        return Announcement(
            messages=tuple(self._planned([thing.body for thing in things], rng)),
            expected=tuple(expected),
            dropped=tuple(dropped.values()),
            vanished=tuple(vanished),
            mentions=len(mentions),
            kept=tuple(thing.body for thing in things if thing.kept),
            ignored=Counter(thing.ignored for thing in things if thing.ignored),
        )

    def _times(self, rng: random.Random) -> int:
        times = 1
        while times < _MOST_TIMES and rng.random() < self.duplicate:
            times += 1
        return times

    def _things(self, mentions: Sequence[LandedFile], rng: random.Random) -> Iterator[_Thing]:
        at = 0
        while at < len(mentions):
            group = mentions[at : at + rng.randint(1, self.records)]
            at += len(group)
            shape = rng.choice(self.shapes)
            broken = [rng.choice(_BROKEN_EVENTS)] if rng.random() < self.spoil else []
            yield _Thing(body(group, shape, also=broken), kept=bool(broken))
            if rng.random() < self.noise:
                yield _noise(group[0], shape, rng)
            if rng.random() < self.garbage:
                yield _Thing(rng.choice(GARBAGE), kept=True)

    def _planned(self, bodies: Sequence[str], rng: random.Random) -> list[Message]:
        order = [rng.uniform(0, len(bodies)) if rng.random() < self.reorder else at for at in range(len(bodies))]
        shuffled = [bodies[at] for at in sorted(range(len(bodies)), key=order.__getitem__)]
        return sorted((Message(text, self._delay_s(rng)) for text in shuffled), key=lambda message: message.delay_s)

    def _delay_s(self, rng: random.Random) -> int:
        return rng.randint(1, self.longest_delay_s) if rng.random() < self.delay else 0


@dataclass(frozen=True, slots=True)
class _Thing:
    body: str
    kept: bool = False
    ignored: str = ""


_MOST_TIMES = 5
_BROKEN_EVENTS: tuple[Any, ...] = (
    None,
    7,
    {},
    {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put"},
    {"eventVersion": "3.0", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": {}},
    {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "landing"}, "object": {"key": "%FF", "eTag": "1"}}},
    {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "landing"}, "object": {"key": "", "eTag": "1"}}},
)
_NOT_CREATED = {
    "delete": "ObjectRemoved:Delete",
    "lifecycle": "LifecycleExpiration:Delete",
    "restore": "ObjectRestore:Completed",
    "tagging": "ObjectTagging:Put",
    "acl": "ObjectAcl:Put",
}
_NOT_DATA = {
    "success-marker": "out/_SUCCESS",
    "commit-marker": "out/_committed_4711",
    "temporary": "out/_temporary/0/part-0001.json",
    "hidden": "out/.spark-staging-4711/part-0001.json",
}


def _noise(file: LandedFile, shape: Wrapping, rng: random.Random) -> _Thing:
    """One event that is understood and announces no file, about `file` or near it."""
    reason = rng.choice([*_NOT_CREATED, *_NOT_DATA, "folder-marker", "test-event", "empty-records"])
    if reason in _NOT_CREATED:
        text = body([file], shape, event=_NOT_CREATED[reason])
    elif reason in _NOT_DATA:
        text = body([file_named(_NOT_DATA[reason], file.bucket)], shape)
    elif reason == "folder-marker":
        text = body([replace(file_named("out/", file.bucket), size=0)], shape)
    elif reason == "test-event":
        text = setup_event(file.bucket, shape)
    else:
        text = body([], shape)
    return _Thing(text, ignored=reason)


def _gone(file: LandedFile) -> LandedFile:
    return file_named(f"gone/{file.file_id}.json", file.bucket)
