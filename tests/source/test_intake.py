"""The source without Spark: batches, redeliveries, crashes and bad days, against a queue in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from forebay.errors import Halt, InvalidConfiguration
from forebay.events import Event
from forebay.lake.folder_objects import FolderObjects
from forebay.lake.objects import open_objects
from forebay.source.drain import Drain
from forebay.source.events import ManifestsNotCleaned, QueuePolled
from forebay.source.intake import Intake
from forebay.source.options import SourceOptions
from forebay.source.queue import Queue
from tests.source.fake_sqs import URL, FakeSqs, refusal
from tests.source.notices import body, both, record


class Stream:
    """One stream on one checkpoint, as Spark would drive it, with as many runs as a test needs."""

    def __init__(self, sqs: FakeSqs, folder: Path, **options: str) -> None:
        self.sqs, self.folder, self.options = sqs, folder, {"waitS": "0", "fetchParallelism": "2"} | options
        self.events: list[Event] = []
        self.slept: list[float] = []
        self.checkpoint: int | None = None  # the newest entry of Spark's offset log
        self.driver_lives = True
        self._open = ExitStack()
        self.intake = self.start()

    def start(self) -> Intake:
        """A new run, whatever became of the last."""
        parsed = SourceOptions.parse({"queueUrl": URL, "manifestPath": str(self.folder), **self.options})
        queue = Queue(self.sqs, URL, visibility_timeout_s=parsed.visibility_timeout_s)
        self.intake = Intake(
            parsed,
            queue,
            open_objects(str(self.folder)),
            emit=self.events.append,
            driver_lives=lambda: self.driver_lives,
            clock=lambda: self.sqs.now,
            sleep=self.slept.append,
            chance=lambda: 1.0,
        )
        self._open.callback(self.intake.close)
        if self.checkpoint is not None:
            self.intake.resume(self.checkpoint)
        return self.intake

    def ask(self) -> list[str]:
        """Spark asks for the next batch, writes it to its offset log, and runs it; the keys that arrived."""
        before = self.checkpoint or 0
        self.checkpoint = self.intake.next_batch()
        return self.keys(before, self.checkpoint)

    def keys(self, after: int, upto: int) -> list[str]:
        return [row.file.key for rows in self.intake.rows(after, upto) for row in rows]

    def until_ahead(self) -> None:
        """Waits for what is gathered in the background."""
        self.intake._gatherer._thread.submit(lambda: None).result()

    def flush(self) -> None:
        assert self.intake.flush(5)

    @property
    def polls(self) -> list[QueuePolled]:
        return [event for event in self.events if isinstance(event, QueuePolled)]

    @property
    def kept(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted((self.folder / "kept").glob("*.json"))]

    def close(self) -> None:
        self._open.close()


MakeStream = Callable[..., Stream]


@pytest.fixture
def sqs() -> FakeSqs:
    return FakeSqs()


@pytest.fixture
def make(sqs: FakeSqs, tmp_path: Path) -> Iterator[MakeStream]:
    with ExitStack() as streams:

        def make(**options: str) -> Stream:
            stream = Stream(sqs, tmp_path / "manifests", **options)
            streams.callback(stream.close)
            return stream

        yield make


def test_a_message_is_deleted_only_after_its_batch_is_committed(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    assert stream.ask() == ["in/a.json"]
    stream.flush()
    assert len(sqs.messages) == 1
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}


def test_a_queue_with_nothing_new_gives_the_same_batch_again(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    assert stream.intake.next_batch() == 0
    sqs.send(body("in/a.json"))
    assert [stream.intake.next_batch() for _ in range(3)] == [1, 1, 1]


def test_a_quiet_queue_is_told_of_once_a_minute_and_a_busy_one_each_time(make: MakeStream, sqs: FakeSqs) -> None:
    stream, told = make(), list[int]()
    for seconds, messages in [(0, 0), (59, 0), (1, 0), (0, 1), (1, 2), (59, 0), (61, 0)]:
        sqs.now += seconds
        for n in range(messages):
            sqs.send(body(f"in/{sqs.now}-{n}.json"))
        stream.ask()
        told.append(len(stream.polls))
    assert told == [1, 1, 2, 3, 4, 4, 5]
    assert [poll.files for poll in stream.polls] == [0, 0, 1, 2, 0]
    assert {poll.ignored_by_reason for poll in stream.polls} == {None}


def test_batches_are_bounded_by_files(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10", fetchParallelism="8")
    for i in range(35):
        sqs.send(body(f"in/{i}.json"))
    sizes = [len(stream.ask()) for _ in range(5)]
    assert sizes == [10, 10, 10, 5, 0]


def test_batches_are_bounded_by_bytes_and_what_does_not_fit_comes_next(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="1000")
    for i in range(5):
        sqs.send(body(f"in/{i}.json", size=400))
    assert [len(stream.ask()) for _ in range(4)] == [2, 2, 1, 0]
    assert stream.polls[0].held == 3


def test_a_file_larger_than_the_limit_makes_a_batch_alone(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="1000")
    sqs.send(body("in/small.json", size=10))
    sqs.send(body("in/huge.json", size=5000))
    assert [stream.ask(), stream.ask()] == [["in/small.json"], ["in/huge.json"]]


def test_a_message_of_many_files_is_never_split(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="4")
    sqs.send(body("in/a.json", "in/b.json", "in/c.json"))
    sqs.send(body("in/d.json", "in/e.json", "in/f.json"))
    sqs.send(body(*(f"in/many{i}.json" for i in range(9))))
    assert [len(stream.ask()) for _ in range(4)] == [3, 3, 9, 0]


def test_a_file_announced_twice_in_a_batch_is_one_row_and_both_messages_go(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    sqs.send(body("in/a.json", "in/a.json"))
    assert stream.ask() == ["in/a.json"]
    assert stream.ask() == []
    stream.flush()
    assert (sqs.messages, stream.polls[0].duplicates) == ({}, 2)


def test_a_file_announced_again_in_a_later_batch_is_dropped_and_its_message_goes(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.send(body("in/a.json"))
    sqs.send(body("in/a.json", "in/b.json"))
    assert stream.ask() == ["in/b.json"]
    stream.ask()
    stream.flush()
    assert sqs.messages == {}


def test_two_versions_of_one_key_are_two_rows_the_later_one_second(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json", version="v2", sequencer="0B"))
    sqs.send(body("in/other.json"))
    sqs.send(body("in/a.json", version="v1", sequencer="0A"))
    stream.ask()
    [rows] = stream.intake.rows(0, 1)
    assert [row.file.version_id for row in rows if row.file.key == "in/a.json"] == ["v1", "v2"]


def test_oldest_first_orders_a_batch_by_when_s3_wrote_its_files(make: MakeStream, sqs: FakeSqs) -> None:
    def announced(key: str, hour: int) -> str:
        return body(key).replace("2026-01-02T03:", f"2026-01-02T{hour:02}:")

    hours = {"in/b.json": 5, "in/a.json": 9, "in/c.json": 4}
    stream = make(order="oldest-first")
    for key, hour in hours.items():
        sqs.send(announced(key, hour))
    stream.ask()
    assert stream.keys(0, 1) == ["in/c.json", "in/b.json", "in/a.json"]


def test_a_file_that_is_announced_again_on_purpose_arrives_again_and_once(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    replay = sqs.send(body("in/a.json"), message_id="replay", forebay_again="replay")
    assert stream.ask() == ["in/a.json"]
    sqs.lose = lambda message_id: "InternalError" if message_id == replay else None
    sqs.pass_s(400)
    assert stream.ask() == [], "a redelivery of the replay itself"


def test_messages_that_announce_nothing_to_load_go_at_once_and_are_counted(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(bucketAllowList="landing", pathFilter="in/*.json")
    sqs.send(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "landing"}))
    sqs.send(both(record("in/a.json", name="ObjectRemoved:Delete"), record("in/a.txt"), record("in/_SUCCESS")))
    sqs.send(body("in/a.json", bucket="another"))
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}
    assert stream.polls[0].ignored_by_reason == {
        "test-event": 1,
        "delete": 1,
        "filtered": 1,
        "success-marker": 1,
        "bucket-not-allowed": 1,
    }


def test_a_message_that_nobody_understands_is_kept_once_and_ends_in_the_dead_letter_queue(
    make: MakeStream, sqs: FakeSqs
) -> None:
    sqs._max_receive_count = 3
    stream = make()
    sqs.send("{not json", message_id="odd/1")
    for _ in range(8):
        stream.ask()
        sqs.pass_s(2)
    assert [message.message_id for message in sqs.dead] == ["odd/1"]
    [kept] = stream.kept
    assert (kept["body"], kept["message_id"], len(kept["reasons"])) == ("{not json", "odd/1", 1)
    assert sum(poll.kept for poll in stream.polls) == 1


def test_a_message_that_nobody_understands_neither_blocks_nor_spins(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send("{not json")
    for i in range(50):
        sqs.send(body(f"in/{i}.json"))
        sqs.pass_s(1)
        assert stream.ask() == [f"in/{i}.json"]
    assert 4 <= sqs.messages["m00001"].receive_count <= 8


def test_of_a_message_half_understood_the_files_arrive_and_the_rest_is_kept(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(both(record("in/a.json"), {"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": "?"}))
    assert stream.ask() == ["in/a.json"]
    stream.ask()
    stream.flush()
    assert (len(stream.kept), sqs.messages) == (1, {})


def test_a_batch_that_spark_never_learnt_of_is_the_next_batch_at_once(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.send(body("in/b.json"))
    stream.intake.next_batch()  # the driver dies before the offset log is written
    stream.start()
    assert stream.ask() == ["in/b.json"], "without waiting for the message to become visible"
    sqs.pass_s(400)
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}


def test_a_first_batch_that_spark_never_learnt_of_arrives_once(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.intake.next_batch()
    stream.start()
    sqs.send(body("in/b.json"))
    sqs.pass_s(400)
    assert sorted(stream.ask()) == ["in/a.json", "in/b.json"]
    stream.ask()
    stream.flush()
    assert (stream.ask(), sqs.messages) == ([], {})


def test_a_batch_that_runs_again_has_the_same_files_whatever_the_queue_has(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json", version="v1", sequencer="0A"))
    stream.ask()
    before = stream.intake.rows(0, 1)
    sqs.send(body("in/b.json"))
    stream.start()
    assert stream.intake.rows(0, 1) == before


def test_messages_of_a_batch_that_was_committed_before_the_crash_are_deleted_after_it(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    stream.start()
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}


def test_messages_of_the_batch_before_the_last_are_deleted_after_a_crash_too(make: MakeStream, sqs: FakeSqs) -> None:
    """Their deletion was under way in the background when the driver died."""
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.send(body("in/b.json"))
    sqs.lose = lambda message_id: "InternalError"
    assert stream.ask() == ["in/b.json"]
    stream.flush()
    assert len(sqs.messages) == 2
    sqs.lose = lambda message_id: None
    stream.start()
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}


def test_redeliveries_after_a_crash_do_not_arrive_again_even_when_the_receipts_are_stale(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.pass_s(400)
    sqs.receive_message(MaxNumberOfMessages=10, VisibilityTimeout=0, WaitTimeSeconds=0)  # the receipt is stale now
    stream.start()
    assert stream.ask() == []
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}


def test_a_trigger_that_asks_before_it_says_where_it_was_loses_and_deletes_nothing(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    last, stream.checkpoint = stream.checkpoint, None
    sqs.send(body("in/b.json"))
    intake = stream.start()
    upto = intake.next_batch()
    stream.flush()
    assert set(sqs.messages) == {"m00001", "m00002"}, "whether in/a.json is committed is not known yet"
    assert last is not None
    intake.resume(last)
    assert stream.keys(last, upto) == ["in/b.json"]
    intake.committed(last)
    stream.flush()
    assert set(sqs.messages) == {"m00002"}


def test_two_drivers_of_one_stream_are_noticed_before_anything_arrives_twice(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    stream.ask()
    other = stream.intake
    stream.start().next_batch()
    sqs.send(body("in/a.json"))
    other.next_batch()
    sqs.send(body("in/b.json"))
    with pytest.raises(Halt, match="written by another run"):
        stream.intake.next_batch()


def test_a_planner_whose_driver_is_gone_writes_no_batch_and_gives_the_messages_back(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    stream.ask()
    sqs.send(body("in/a.json"))
    stream.driver_lives = False
    with pytest.raises(Halt, match="driver of this stream has ended"):
        stream.intake.next_batch()
    assert sqs.in_flight == []
    stream.driver_lives = True
    stream.start()
    assert stream.ask() == ["in/a.json"]


def test_whatever_was_received_goes_back_where_the_driver_is_gone(make: MakeStream, sqs: FakeSqs) -> None:
    """What is in the batch, what is held for the next, what nobody understands, and what announces nothing."""
    stream = make(maxBytesPerBatch="100")
    for name in "ab":
        sqs.send(body(f"in/{name}.json"))
    sqs.send("{not json")
    sqs.send(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}))
    stream.driver_lives = False
    with pytest.raises(Halt, match="has ended"):
        stream.ask()
    assert {message.receive_count for message in sqs.messages.values()} == {1}
    assert (len(sqs.messages), sqs.in_flight) == (4, [])


def test_a_batch_that_has_files_already_waits_for_no_more(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="100", waitS="20")
    for name in "ab":
        sqs.send(body(f"in/{name}.json"))
    assert stream.ask() == ["in/a.json"]
    before = sqs.now
    assert stream.ask() == ["in/b.json"]
    assert sqs.now == before


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_a_new_checkpoint_on_the_manifests_of_an_old_one_is_refused(names: str, make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    for name in names:
        sqs.send(body(f"in/{name}.json"))
        stream.ask()
    stream.checkpoint = None
    stream.start()
    with pytest.raises(InvalidConfiguration, match=r"manifestPath.*earlier checkpoint"):
        stream.ask()


def test_a_manifest_that_is_gone_halts_instead_of_losing_a_batch(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    for path in (stream.folder / "batches").iterdir():
        path.unlink()
    stream.start()
    with pytest.raises(Halt, match=r"000000000001\.jsonl\.gz no longer exists"):
        stream.intake.rows(0, 1)


def test_manifests_of_the_last_hundred_committed_batches_are_kept(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    for i in range(105):
        sqs.send(body(f"in/{i}.json"))
        stream.ask()
    stream.intake._cleaning.submit(lambda: None).result()
    names = sorted(path.name for path in (stream.folder / "batches").iterdir())
    assert (len(names), names[0]) == (101, "000000000005.jsonl.gz")


def test_a_store_that_cannot_be_cleaned_is_told_of_and_stops_nothing(
    make: MakeStream, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(FolderObjects, "delete", refuse)
    stream = make()
    for i in range(103):
        sqs.send(body(f"in/{i}.json"))
        assert stream.ask() == [f"in/{i}.json"]
    stream.intake._cleaning.submit(lambda: None).result()
    assert any(isinstance(event, ManifestsNotCleaned) for event in stream.events)


@pytest.mark.parametrize("code", ["OverLimit", "RequestThrottled", "ThrottlingException"])
def test_throttling_ends_the_poll_and_keeps_what_was_received(code: str, make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    for i in range(40):
        sqs.send(body(f"in/{i}.json"))
    sqs.fail = lambda action: refusal(code, 403 if code == "OverLimit" else 400) if sqs.count("receive") > 2 else None
    assert len(stream.ask()) == 20
    assert stream.ask() == [], "throttled all along: no batch, no error"
    sqs.fail = lambda action: None
    assert len(stream.ask()) == 20


def test_attempts_on_a_failing_queue_are_spread(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.fail = lambda action: refusal("RequestThrottled")
    stream.ask()
    assert stream.slept == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (refusal("AWS.SimpleQueueService.NonExistentQueue"), InvalidConfiguration, "queueUrl: .*does not exist"),
        (refusal("QueueDoesNotExist"), InvalidConfiguration, "queueUrl: .*does not exist"),
        (
            refusal("AccessDeniedException"),
            InvalidConfiguration,
            "queueUrl: ReceiveMessage on .* is refused.*sqs:ReceiveMessage",
        ),
        (refusal("KmsAccessDenied"), InvalidConfiguration, "kms:Decrypt"),
        (refusal("Whatever", 403), InvalidConfiguration, "is refused"),
        (EndpointConnectionError(endpoint_url=URL), Halt, "cannot be reached"),
        (refusal("InternalError", 500), Halt, "cannot be reached"),
    ],
)
def test_a_queue_that_is_gone_or_refuses_stops_the_query_with_one_cause_and_deletes_nothing(
    error: Exception, kind: type[Exception], words: str, make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.intake.next_batch()
    stream.flush()
    before = dict(sqs.messages)
    sqs.fail = lambda action: error if action == "receive" else None
    sqs.lose = lambda message_id: "InternalError"
    with pytest.raises(kind, match=words):
        stream.intake.next_batch()
    assert sqs.count("receive") <= 4 + 5
    assert sqs.messages == before


def test_a_failure_that_passes_is_not_seen(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    sqs.fail = lambda action: refusal("InternalError", 500) if sqs.count("receive") <= 3 else None
    assert stream.ask() == ["in/a.json"]


def test_entries_whose_deletion_fails_are_tried_again(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    for i in range(10):
        sqs.send(body(f"in/{i}.json"))
    stream.ask()
    sqs.lose = lambda message_id: "InternalError" if message_id == "m00003" and sqs.count("delete") < 3 else None
    stream.ask()
    stream.flush()
    assert (sqs.messages, sqs.count("delete")) == ({}, 3)


def test_entries_that_will_not_go_are_counted_and_go_when_they_come_back(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.lose = lambda message_id: "InternalError"
    stream.ask()
    stream.flush()
    sqs.lose = lambda message_id: None
    sqs.pass_s(400)
    assert stream.ask() == []
    stream.flush()
    assert (sqs.messages, sum(poll.deletions_failed for poll in stream.polls)) == ({}, 1)


def test_a_queue_that_refuses_deletion_stops_the_query(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.fail = lambda action: refusal("AccessDenied") if action == "delete" else None
    stream.ask()
    stream.flush()
    with pytest.raises(InvalidConfiguration, match=r"DeleteMessage on .* is refused"):
        stream.ask()


def test_messages_in_hand_stay_out_of_sight_for_as_long_as_the_batch_takes(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="100", visibilityTimeoutS="30")
    for name in "ab":  # one in the batch, one held for the next
        sqs.send(body(f"in/{name}.json"))
    stream.ask()
    for _ in range(10):
        sqs.pass_s(20)
        assert stream.intake._visibility.renew() == 0
        assert len(sqs.in_flight) == 2
    assert {message.receive_count for message in sqs.messages.values()} == {1}


def test_a_receipt_that_has_gone_stale_is_let_go(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json"))
    stream.ask()
    del sqs.messages["m00001"]
    assert [stream.intake._visibility.renew(), stream.intake._visibility.renew()] == [1, 0]
    assert stream.ask() == []


def test_a_message_held_for_the_next_batch_is_let_go_when_the_query_stops(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="100")
    for name in "ab":
        sqs.send(body(f"in/{name}.json"))
    stream.ask()
    stream.close()
    assert sqs.in_flight == ["m00001"]


def test_a_steady_trickle_does_not_hold_back_its_first_files(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(fetchParallelism="1")

    def one_more(action: str) -> None:
        if action == "receive":
            sqs.send(body(f"in/{len(sqs.calls)}.json"))
            sqs.pass_s(1)

    sqs.fail = one_more
    assert 5 <= len(stream.ask()) <= 15


def test_the_wait_of_an_empty_poll_is_that_of_one_request(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(waitS="5", fetchParallelism="8")
    before = sqs.now
    stream.ask()
    assert (sqs.now - before, sqs.count("receive")) == (5, 1)


def test_a_stream_that_keeps_up_looks_every_so_often_and_waits_in_parts(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(everyS="60", waitS="10")
    sqs.send(body("in/a.json"))
    assert stream.ask() == ["in/a.json"]
    sqs.send(body("in/b.json"))
    assert (stream.ask(), stream.slept) == ([], [10])
    sqs.pass_s(55)
    assert (stream.ask(), stream.slept) == ([], [10, 5])
    sqs.pass_s(5)
    assert stream.ask() == ["in/b.json"]


def test_a_full_batch_is_followed_at_once_whatever_the_pace(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(everyS="60", maxFilesPerBatch="2")
    for name in "abcde":
        sqs.send(body(f"in/{name}.json"))
    arrived = []
    for _ in range(3):
        arrived.append(len(stream.ask()))
        stream.until_ahead()
    assert (arrived, stream.slept) == ([2, 2, 1], [])
    stream.ask()
    assert stream.slept == [1]


def test_a_batch_that_its_bytes_filled_is_followed_at_once_too(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(everyS="60", maxBytesPerBatch="1")
    for name in "ab":
        sqs.send(body(f"in/{name}.json"))
    first = stream.ask()
    stream.until_ahead()
    assert (len(first), len(stream.ask()), stream.slept) == (1, 1, [])


def test_many_messages_that_came_during_a_batch_are_looked_for_at_once(make: MakeStream, sqs: FakeSqs) -> None:
    """A poll of SQS asks some of its servers, and may find few of many messages."""
    stream = make(everyS="60", maxFilesPerBatch="3")
    sqs.send(body("in/a.json"))

    def more(action: str) -> None:
        if action == "attributes":
            for name in "bcd":
                sqs.send(body(f"in/{name}.json"))
            sqs.fail = lambda _: None

    sqs.fail = more
    assert stream.ask() == ["in/a.json"]
    assert len(stream.ask()) == 3
    assert stream.slept == []


def test_a_drained_queue_is_told_of_after_two_empty_polls_and_not_before_all_is_deleted(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make(drain="true")
    drain = Drain(open_objects(str(stream.folder)))
    sqs.send(body("in/a.json"))
    told = []
    for _ in range(4):
        stream.ask()
        stream.flush()
        told.append(drain.over())
    assert told == [None, None, "empty", "empty"]
    assert sqs.messages == {}


def test_polls_that_were_throttled_do_not_count_as_empty(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(drain="true")
    sqs.fail = lambda action: refusal("RequestThrottled") if action == "receive" else None
    for _ in range(4):
        stream.ask()
    assert Drain(open_objects(str(stream.folder))).over() is None


@pytest.mark.parametrize("code", ["AccessDenied", "QueueDoesNotExist"])
def test_a_drain_that_may_not_count_the_queue_stops_instead_of_looking_for_ever(
    code: str, make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make(drain="true")
    sqs.fail = lambda action: refusal(code) if action == "attributes" else None
    stream.ask()
    with pytest.raises(InvalidConfiguration, match="queueUrl"):
        stream.ask()


def test_a_queue_that_cannot_be_counted_now_is_not_called_empty(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(drain="true")
    drain = Drain(open_objects(str(stream.folder)))
    sqs.fail = lambda action: EndpointConnectionError(endpoint_url=URL) if action == "attributes" else None
    for _ in range(4):
        stream.ask()
    assert drain.over() is None
    sqs.fail = lambda action: None
    stream.ask()
    assert drain.over() == "empty"


def test_a_stream_that_is_drained_takes_nothing_more(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(drain="true")
    drain = Drain(open_objects(str(stream.folder)))
    while drain.over() is None:
        stream.ask()
    sqs.send(body("in/late.json"))
    assert stream.ask() == []
    assert sqs.messages["m00001"].receive_count == 0


def test_a_poll_that_brought_a_message_of_which_no_copy_was_kept_has_seen_no_empty_queue(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make(drain="true")
    drain = Drain(open_objects(str(stream.folder)))
    sqs.send("{not json")
    told = []
    for _ in range(3):
        stream.ask()
        told.append(drain.over())
    assert told == [None, None, "empty"]


def test_a_drain_waits_for_messages_in_flight_elsewhere(make: MakeStream, sqs: FakeSqs) -> None:
    sqs.send(body("in/a.json"))
    sqs.receive_message(MaxNumberOfMessages=1, VisibilityTimeout=30, WaitTimeSeconds=0)
    stream = make(drain="true")
    drain = Drain(open_objects(str(stream.folder)))
    for _ in range(5):
        stream.ask()
    assert drain.over() is None
    sqs.pass_s(30)
    assert stream.ask() == ["in/a.json"]
    for _ in range(3):
        stream.ask()
        stream.flush()
    assert drain.over() == "empty"


def test_a_drain_ends_when_only_messages_are_left_that_nobody_understands_and_copies_are_kept(
    make: MakeStream, sqs: FakeSqs
) -> None:
    sqs.send("{not json", message_id="odd/1")
    sqs.send(body("in/a.json"))
    for _ in range(2):
        stream = make(drain="true")
        drain = Drain(open_objects(str(stream.folder)))
        drain.begin()
        began = sqs.now
        for _ in range(20):
            if drain.over() is None:
                stream.ask()
                stream.flush()
        assert drain.over() == "empty"
        assert sqs.now - began < 60
        assert ([*sqs.messages], sqs.in_flight) == (["odd/1"], []), "the next run sees it at once"
        assert len(stream.kept) == 1
        stream.close()


def test_a_drain_does_not_end_while_another_message_is_in_flight_beside_one_that_nobody_understands(
    make: MakeStream, sqs: FakeSqs
) -> None:
    sqs.send("{not json")
    sqs.send(body("in/a.json"), message_id="elsewhere")
    sqs.messages["elsewhere"].visible_at = sqs.now + 10_000
    stream = make(drain="true", drainCapS="5000")
    drain = Drain(open_objects(str(stream.folder)))
    while sqs.now < 1_700_000_000 + 4000:
        stream.ask()
        sqs.pass_s(20)
    assert drain.over() is None


def test_a_drain_whose_time_is_up_takes_nothing_more_and_leaves_nothing_half_done(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make(drain="true", drainCapS="60", maxFilesPerBatch="1")
    drain = Drain(open_objects(str(stream.folder)))
    stream.ask()
    for name in "abc":
        sqs.send(body(f"in/{name}.json"))
    assert stream.ask() == ["in/a.json"]
    stream.until_ahead()  # in/b.json
    sqs.pass_s(61)
    assert [stream.ask(), drain.over()] == [["in/b.json"], None]
    assert [stream.ask(), drain.over()] == [[], "time cap"]
    assert set(sqs.messages) == {"m00003"}
    assert stream.ask() == []


def test_while_a_full_batch_runs_the_next_one_is_made_ready(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    for i in range(25):
        sqs.send(body(f"in/{i:02d}.json"))
    first = stream.ask()
    stream.until_ahead()
    assert len(list((stream.folder / "batches").iterdir())) == 2
    asked = sqs.count("receive")
    second = stream.ask()
    assert (len(first), len(second), sqs.count("receive") - asked <= 4) == (10, 10, True)
    assert sorted([*first, *second, *stream.ask()]) == [f"in/{i:02d}.json" for i in range(25)]


def test_a_batch_made_ready_ahead_survives_a_crash_and_arrives_once(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    keys = [f"in/{i:02d}.json" for i in range(20)]
    for key in keys:
        sqs.send(body(key))
    first = stream.ask()
    stream.until_ahead()
    stream.start()
    assert sorted(first + stream.ask()) == keys, "at once, without waiting for messages to come back"
    assert stream.ask() == []
    stream.flush()
    assert sqs.messages == {}


def test_messages_of_a_batch_made_ready_ahead_stay_out_of_sight_when_the_query_stops(
    make: MakeStream, sqs: FakeSqs
) -> None:
    """Its manifest promises that they are loaded: shown again, each would be received once more for nothing."""
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    for i in range(20):
        sqs.send(body(f"in/{i:02d}.json"))
    stream.ask()
    stream.until_ahead()
    stream.close()
    assert len(sqs.in_flight) == 20


def test_what_was_taken_ahead_and_is_in_no_batch_is_let_go_when_the_query_stops(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    for i in range(10):
        sqs.send(body(f"in/{i:02d}.json"))
    sqs.send("{not json", message_id="odd")
    assert len(stream.ask()) == 10
    stream.until_ahead()
    assert sqs.messages["odd"].receive_count == 1
    stream.close()
    assert "odd" not in sqs.in_flight


def test_part_of_a_batch_made_ready_ahead_arrives_at_once_after_a_crash(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    keys = [f"in/{i:02d}.json" for i in range(15)]
    for key in keys:
        sqs.send(body(key))
    first = stream.ask()
    stream.until_ahead()
    stream.start()
    assert sorted(first + stream.ask()) == keys


def test_nothing_is_taken_ahead_while_the_stream_keeps_up(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    sqs.send(body("in/a.json"))
    stream.ask()
    sqs.send(body("in/b.json"))
    assert sqs.in_flight == ["m00001"]


def test_a_failure_while_taking_ahead_is_met_at_the_next_batch(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    for i in range(10):
        sqs.send(body(f"in/{i:02d}.json"))
    sqs.fail = lambda action: refusal("AccessDenied") if action == "receive" and sqs.count("receive") > 2 else None
    assert len(stream.ask()) == 10
    stream.until_ahead()
    sqs.fail = lambda action: refusal("AccessDenied") if action == "receive" else None
    with pytest.raises(InvalidConfiguration, match=r"ReceiveMessage on .* is refused"):
        stream.ask()


def test_what_a_poll_brought_is_told(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    sqs.send(body("in/a.json", "in/a.json", "in/b.json"))
    sqs.send("?")
    stream.ask()
    [poll] = stream.polls
    assert (poll.batch, poll.received, poll.files, poll.duplicates, poll.kept, poll.held) == (1, 2, 2, 1, 1, 0)
    assert poll.oldest_age_s is not None


def test_polls_that_see_nothing_are_told_of_once_a_minute(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make()
    for _ in range(130):
        sqs.pass_s(1)
        stream.ask()
    assert len(stream.polls) == 3


def test_a_drain_has_not_ended_while_deletions_are_under_way(
    make: MakeStream, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = make(drain="true")
    drain, flushes = Drain(open_objects(str(stream.folder))), [False, True]
    monkeypatch.setattr(stream.intake, "flush", lambda: flushes.pop(0))
    told = []
    for _ in range(3):
        stream.ask()
        told.append(drain.over())
    assert (told, flushes) == ([None, None, "empty"], [])


@pytest.mark.parametrize(("drain", "wait_s", "waits"), [("true", "0", 1), ("true", "5", 5), ("false", "0", 0)])
def test_only_a_drain_always_asks_with_a_long_poll(
    drain: str, wait_s: str, waits: int, make: MakeStream, sqs: FakeSqs
) -> None:
    stream, before = make(drain=drain, waitS=wait_s), sqs.now
    stream.ask()
    assert sqs.now - before == waits


def test_the_next_batch_comes_behind_those_that_spark_remembers_although_their_manifests_are_gone(
    make: MakeStream, sqs: FakeSqs
) -> None:
    stream = make()
    stream.checkpoint = 7
    stream.start()
    sqs.send(body("in/a.json"))
    assert stream.ask() == ["in/a.json"]
    assert stream.checkpoint == 8
    assert [path.name.partition(".")[0].lstrip("0") for path in (stream.folder / "batches").iterdir()] == ["8"]


def test_a_batch_that_has_files_already_meets_no_trouble_of_the_queue(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="100")
    for name in "ab":
        sqs.send(body(f"in/{name}.json"))
    assert stream.ask() == ["in/a.json"]
    sqs.fail = lambda action: refusal("AccessDenied") if action == "receive" else None
    assert stream.ask() == ["in/b.json"]
    assert stream.slept == []


def test_a_held_message_whose_file_came_with_another_one_meanwhile_goes(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxBytesPerBatch="1000")
    sqs.send(body("in/a.json", size=700))
    sqs.send(body("in/b.json", size=700), message_id="held")
    sqs.send(body("in/b.json", size=0))
    assert stream.ask() == ["in/a.json", "in/b.json"]
    assert "held" in sqs.in_flight
    assert stream.ask() == []
    stream.ask()
    stream.flush()
    assert sqs.messages == {}


def test_a_query_stops_in_order_although_what_was_made_ready_ahead_failed(make: MakeStream, sqs: FakeSqs) -> None:
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    for i in range(20):
        sqs.send(body(f"in/{i:02d}.json"))
    assert len(stream.ask()) == 10
    stream.until_ahead()
    ahead = stream.intake._gatherer._ahead = Future()
    ahead.set_exception(OSError("the disk is full"))
    stream.close()


def test_a_queue_that_answers_after_a_failure_gives_its_files_after_one_pause(make: MakeStream, sqs: FakeSqs) -> None:
    """What the first attempt received goes into the batch: asking again would only delay it."""
    stream = make()
    sqs.send("{not json", message_id="odd")
    sqs.fail = lambda action: refusal("InternalError", 500) if sqs.count("receive") == 2 else None
    assert stream.ask() == []
    assert (stream.slept, len(stream.kept)) == ([], 1)
    sqs.send(body("in/a.json"))
    failing = iter([refusal("InternalError", 500)])
    sqs.fail = lambda action: next(failing, None) if action == "receive" else None
    assert stream.ask() == ["in/a.json"]
    assert stream.slept == [1.0]


@pytest.mark.parametrize(("first", "messages", "blocks_at"), [(10, 15, 15), (40, 80, 50)], ids=["last", "more"])
def test_what_is_received_ahead_while_the_query_stops_goes_back_and_makes_no_batch(
    first: int, messages: int, blocks_at: int, make: MakeStream, sqs: FakeSqs
) -> None:
    """It would be out of sight for as long as a batch may take."""
    stream = make(maxFilesPerBatch=str(first))
    stream.ask()
    for i in range(messages):
        sqs.send(body(f"in/{i:02d}.json"))
    received, closed = threading.Event(), threading.Event()

    def slow(action: str) -> None:
        if action == "receive" and len(sqs.in_flight) >= blocks_at:
            received.set()
            closed.wait(60)

    sqs.fail = slow  # type: ignore[assignment]
    assert len(stream.ask()) == first
    assert received.wait(60)
    ahead = stream.intake._gatherer._ahead
    assert ahead is not None
    stream.close()
    closed.set()
    assert isinstance(ahead.exception(60), Halt)
    assert len(list((stream.folder / "batches").iterdir())) == 1
    assert len(sqs.in_flight) == first


def test_a_batch_that_was_made_ready_ahead_takes_nothing_more(make: MakeStream, sqs: FakeSqs) -> None:
    """Its manifest is written: what came now would be in no batch, and out of sight."""
    stream = make(maxFilesPerBatch="10")
    stream.ask()
    for i in range(15):
        sqs.send(body(f"in/{i:02d}.json"))
    assert len(stream.ask()) == 10
    stream.until_ahead()
    asked, late = sqs.count("receive"), sqs.send(body("in/late.json"))
    assert len(stream.ask()) == 5
    assert (sqs.count("receive"), late in sqs.in_flight) == (asked, False)
    assert stream.ask() == ["in/late.json"]
