"""The queue and its dead letters: seen, explained and sent back, with nothing lost on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from forebay.lake.objects import open_objects
from forebay.operate.looking import queue
from forebay.operate.looking.queue import delete, peek, redrive
from forebay.source.kept import KeptMessages
from forebay.source.queue import Message, Receipt
from tests.operate.command import failed, ran
from tests.operate.ledger import AT, entry, write_ledger


@dataclass
class Queues:
    sqs: Any
    url: str
    dead: str

    def bodies(self, url: str) -> list[str]:
        got = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages", [])
        return sorted(message["Body"] for message in got)


@pytest.fixture
def queues(s3: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Queues:
    """This SQS tells all that it has at once: no request needs to wait."""
    monkeypatch.setattr(queue, "WAIT_S", 0)
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    name = f"q{abs(hash(request.node.name))}"
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "5"})
    return Queues(sqs, sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})["QueueUrl"], dead)


def announcement(key: str, etag: str = "e1", name: str = "ObjectCreated:Put") -> str:
    event = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-west-1",
        "eventTime": "2026-11-21T10:00:00.000Z",
        "eventName": name,
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": "landing", "arn": "arn:aws:s3:::landing"},
            "object": {"key": key, "size": 100, "eTag": etag, "sequencer": "0A"},
        },
    }
    return json.dumps({"Records": [event]})


def test_what_waits_is_shown_and_stays_in_the_queue(queues: Queues) -> None:
    queues.sqs.send_message(QueueUrl=queues.url, MessageBody=announcement("in/a.json"))
    said = ran("queue", "peek", "--queue-url", queues.url)
    assert said.splitlines()[1:] == ["  s3://landing/in/a.json", "  waits"]
    assert queues.bodies(queues.url) == [announcement("in/a.json")]


def test_a_dead_letter_is_explained_by_the_ledger_and_by_what_it_says(queues: Queues, tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/done.json"))
    for body in (announcement("in/done.json"), announcement("in/lost.json"), "not json"):
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=body)
    asked = ("queue", "dlq", "--queue-url", queues.url, "--lake", str(tmp_path))
    said = failed(1, *asked)
    assert "already in the ledger (loaded). To clear it, send it back: `forebay queue redrive --message " in said
    assert "never finished: redrive it once the cause is fixed" in said
    (refused,) = [line for line in said.splitlines() if "not understood: not JSON" in line]
    assert refused.endswith("; `forebay queue dlq --drop` deletes it")
    told = [json.loads(line) for line in failed(1, *asked, "--json").splitlines()]
    assert sorted(file for one in told for file in one["files"]) == [
        "s3://landing/in/done.json",
        "s3://landing/in/lost.json",
    ]
    assert len(queues.bodies(queues.dead)) == 3


def test_letters_that_announce_no_file_can_be_deleted_and_the_others_stay(queues: Queues, tmp_path: Path) -> None:
    """A redrive would bring them back: nobody understands them the next time, either."""
    write_ledger(tmp_path, entry("in/done.json"))
    for body in (announcement("in/lost.json"), "not json"):
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=body)
    asked = ("queue", "dlq", "--queue-url", queues.url, "--lake", str(tmp_path), "--drop")
    assert "no letter was deleted" in failed(1, *asked, typed="n\n")
    assert len(queues.bodies(queues.dead)) == 2
    said = failed(1, *asked, "--yes")
    assert "not json" in said
    assert "deleted: 1 of 2 dead letters" in said
    assert queues.bodies(queues.dead) == [announcement("in/lost.json")]
    assert "queue dlq: deleted 1 dead letter" in ran("history", "--lake", str(tmp_path))


def test_a_letter_that_announces_a_deletion_stays_for_a_service_that_forgets_deleted_files(queues: Queues) -> None:
    """Without it, the rows of that file would stay in the tables for ever."""
    deletion = announcement("in/gone.json", name="ObjectRemoved:Delete")
    queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=deletion)
    failed(1, "queue", "dlq", "--queue-url", queues.url, "--drop", "--yes")
    assert queues.bodies(queues.dead) == [deletion]


def test_a_letter_that_sqs_does_not_delete_is_not_counted_as_deleted(queues: Queues) -> None:
    for body in ("not json", "nor this"):
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=body)
    letters = peek(queues.dead, sqs=queues.sqs, limit=10)
    wrong = replace(letters[0], receipt="another")
    assert delete(queues.dead, [wrong, letters[1]], sqs=queues.sqs) == [letters[1]]


def test_in_a_lake_of_two_services_a_dead_letter_is_explained_by_the_one_whose_queue_it_is(
    queues: Queues, tmp_path: Path
) -> None:
    write_ledger(tmp_path, entry("in/done.json"), entry("in/other.json", service="more"))
    queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=announcement("in/done.json"))
    asked = ("queue", "dlq", "--queue-url", queues.url, "--lake", str(tmp_path))
    assert "has the services games, more" in failed(2, *asked)
    assert "already in the ledger (loaded)" in failed(1, *asked, "--of", "games")
    assert "never finished" in failed(1, *asked, "--of", "more")
    assert "never began" in failed(2, *asked, "--of", "mroe")


@pytest.mark.parametrize(("outcome", "reason"), [("denied", None), ("replay", None), ("unreadable", "poison")])
def test_a_letter_whose_files_would_be_read_again_is_sent_back_on_purpose(
    queues: Queues, tmp_path: Path, outcome: str, reason: str | None
) -> None:
    """Without the mark a job that had the file in a recent batch would take it for a redelivery."""
    write_ledger(tmp_path, entry("in/waits.json", outcome=outcome, reason=reason), entry("in/done.json"))
    for key in ("in/waits.json", "in/done.json"):
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=announcement(key))
    said = failed(1, "queue", "dlq", "--queue-url", queues.url, "--lake", str(tmp_path))
    assert f"never finished, in the ledger as {outcome}: redrive it" in said
    ran("queue", "redrive", "--queue-url", queues.url, "--unknown", "--lake", str(tmp_path), "--yes")
    (back,) = queues.sqs.receive_message(QueueUrl=queues.url, MessageAttributeNames=["All"])["Messages"]
    assert back["Body"] == announcement("in/waits.json")
    assert back["MessageAttributes"]["forebay-again"]["StringValue"] == "true"


def test_before_the_first_batch_a_dead_letter_is_shown_without_a_ledger(queues: Queues, tmp_path: Path) -> None:
    queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=announcement("in/a.json"))
    said = failed(1, "queue", "dlq", "--queue-url", queues.url, "--lake", str(tmp_path))
    assert "has no ledger yet" in said
    assert "never finished" in said


def test_chosen_letters_go_back_and_the_others_stay(queues: Queues, tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/done.json"))
    bodies = [announcement(f"in/{name}.json") for name in ("a", "b", "done")]
    for body in bodies:
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=body)
    asked = ("queue", "redrive", "--queue-url", queues.url)
    assert "would be sent back: 1 of 3 dead letters" in ran(*asked, "--key", "in/a*", "--dry-run")
    assert "no letter was sent" in failed(1, *asked, "--all", typed="n\n")
    assert queues.bodies(queues.url) == []
    assert "in/a.json" not in ran(*asked, "--key", "in/[ab].json", "--dry-run")
    assert "in/a.json" in ran(*asked, "--key", "s3://landing/in/a*", "--dry-run")
    assert "\nsent back: 1 of 3 dead letters" in ran(*asked, "--key", "s3://landing/in/a*", "--yes")
    assert "1 of 2" in ran(*asked, "--unknown", "--lake", str(tmp_path), "--yes")
    assert queues.bodies(queues.url) == sorted(bodies[:2])
    assert queues.bodies(queues.dead) == bodies[2:]


def test_a_letter_that_was_not_sent_is_not_deleted(queues: Queues) -> None:
    class HalfSending:
        """SQS that takes the first message of each request."""

        def __getattr__(self, name: str) -> Any:
            return getattr(queues.sqs, name)

        def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> Any:  # noqa: N803
            return queues.sqs.send_message_batch(QueueUrl=QueueUrl, Entries=Entries[:1])

    for name in ("a", "b"):
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=announcement(name))
    letters = peek(queues.dead, sqs=queues.sqs, limit=10)
    assert redrive(letters, dead=queues.dead, to=queues.url, sqs=HalfSending()) == 1
    assert len(queues.bodies(queues.url)) == 1
    left = queues.sqs.get_queue_attributes(QueueUrl=queues.dead, AttributeNames=["All"])["Attributes"]
    assert int(left["ApproximateNumberOfMessages"]) + int(left["ApproximateNumberOfMessagesNotVisible"]) == 1


def test_large_letters_are_sent_back_in_requests_that_sqs_takes(queues: Queues) -> None:
    bodies = [json.dumps({"Records": [], "of": n, "padding": "x" * 120_000}) for n in range(12)]
    for body in bodies:
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=body)
    letters = peek(queues.dead, sqs=queues.sqs, limit=20)
    assert redrive(letters, dead=queues.dead, to=queues.url, sqs=queues.sqs) == 12
    assert sorted(one.body for one in peek(queues.url, sqs=queues.sqs, limit=20)) == sorted(bodies)


def test_reading_asks_all_servers_of_sqs(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    asked: list[int] = []

    class Waiting:
        def receive_message(self, **how: Any) -> Any:
            asked.append(how["WaitTimeSeconds"])
            return queues.sqs.receive_message(**{**how, "WaitTimeSeconds": 0})

    peek(queues.dead, sqs=Waiting(), limit=10)
    assert asked
    assert min(asked) >= 1


def test_reading_ends_where_the_first_messages_are_visible_again(queues: Queues) -> None:
    """A hundred thousand of them take longer than they are hidden."""

    class Hiding:
        """SQS whose messages are never hidden for long enough."""

        asked = 0

        def receive_message(self, **asked: Any) -> Any:
            self.asked += 1
            assert self.asked < 9, "it does not end"
            return queues.sqs.receive_message(**{**asked, "VisibilityTimeout": 0})

    for name in ("a", "b"):
        queues.sqs.send_message(QueueUrl=queues.dead, MessageBody=announcement(name))
    assert len(peek(queues.dead, sqs=Hiding(), limit=10)) == 2


def test_wrong_use_is_told_before_anything_is_received(queues: Queues) -> None:
    assert "does not say which" in failed(2, "queue", "redrive", "--queue-url", queues.url)
    assert "--unknown: needs --lake" in failed(2, "queue", "redrive", "--queue-url", queues.url, "--unknown")
    assert "has no dead-letter queue" in failed(2, "queue", "dlq", "--queue-url", queues.dead)
    assert "there is no such queue" in failed(2, "queue", "peek", "--queue-url", queues.url + "-not")


def keep_message(lake: Path | str, message_id: str, *, why: str = "it is no JSON") -> None:
    """As the source does with one that it does not understand."""
    message = Message(Receipt(message_id, "receipt"), "junk \x1b[31m", sent_at=AT, receive_count=1)
    KeptMessages(open_objects(f"{lake}/_forebay/checkpoints/ingest/manifests"), "q").keep(message, [why])


def test_messages_that_nobody_understood_are_shown_with_the_reason(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    of_lake = ("queue", "refused", "--lake", str(tmp_path))
    assert ran(*of_lake) == "no messages\n"
    keep_message(tmp_path, "m1")
    keep_message(tmp_path, "m2", why="it names no bucket")
    shown = failed(1, *of_lake).splitlines()
    assert shown[:3] == ["m1  sent 2026-11-21 10:00:00", "  it is no JSON", "  junk \\x1b[31m"]
    told = [json.loads(line) for line in failed(1, *of_lake, "--json").splitlines()]
    assert [(one["message_id"], one["reasons"], one["body"]) for one in told] == [
        ("m1", ["it is no JSON"], "junk \x1b[31m"),
        ("m2", ["it names no bucket"], "junk \x1b[31m"),
    ]


def test_copies_of_messages_are_dropped_once_somebody_said_so(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    of_lake = ("--lake", str(tmp_path))
    for name in ("m1", "m2"):
        keep_message(tmp_path, name)
    assert "no copy was dropped" in failed(1, "queue", "refused", "--drop", *of_lake, typed="n\n")
    assert "2 messages not understood" in failed(1, "status", *of_lake)
    assert "1 copy was dropped" in ran("queue", "refused", "--limit", "1", "--drop", "--yes", *of_lake)
    assert "1 message not understood" in failed(1, "status", *of_lake)
    assert "1 copy was dropped" in ran("queue", "refused", "--drop", "--yes", *of_lake)
    assert "0 messages not understood" in ran("status", *of_lake)
    assert "no messages" in ran("queue", "refused", "--drop", "--yes", *of_lake)
