"""From the bucket and the ledger to the table of periods and to EventBridge; beside batches, and by reconcile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import TryAgain
from forebay.events import Event
from forebay.lake.layout import skips_of
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.periods import FeedPeriod, Periods, opened
from forebay.ledger.skips import Skip, Skips
from forebay.settings import ReconcileSettings
from forebay.upkeep.complete.events import PeriodCompleted, PeriodReopened, PeriodsNotJudged, PeriodsNotTold
from forebay.upkeep.complete.look import MOST_OF_A_MANIFEST, NO_BUCKET, Landing, Looker, periods_of
from forebay.upkeep.complete.tell import sender, tell
from forebay.upkeep.complete.watch import TRY_AGAIN, Watch
from forebay.upkeep.reconcile import job
from tests.operate.ledger import entry, write_ledger

TEN = datetime(2026, 11, 24, 10, tzinfo=UTC)
NOW = TEN + timedelta(hours=3)
HOUR = "in/2026/11/24/10/"


class S3:
    """Keys, with what they hold."""

    def __init__(self, *keys: str, bucket: str = "landing", **contents: bytes) -> None:
        self.keys, self.bucket, self.contents, self.asked = [*keys], bucket, contents, list[str]()
        self.error: Exception | None = None
        self.refused: dict[str, str] = {}
        self.minutes: dict[str, int] = {}
        """When some of them came, in minutes after ten."""
        self.deleted: list[str] = []
        """Keys whose latest version is a delete marker."""

    def get_paginator(self, name: str) -> S3:
        assert name == "list_object_versions", "it also has the folders whose objects were deleted"
        return self

    def paginate(self, *, Bucket: str, Prefix: str, Delimiter: str = "") -> Iterator[dict[str, Any]]:  # noqa: N803
        if self.error:
            raise self.error
        self.asked.append(Prefix)
        keys = [key for key in self.keys if key.startswith(Prefix) and Bucket == self.bucket]
        rest = {key: key.removeprefix(Prefix) for key in keys}
        folders = sorted({Prefix + r.partition("/")[0] + "/" for r in rest.values() if Delimiter and "/" in r})
        at = TEN + timedelta(minutes=5)
        told = [
            {
                "Key": key,
                "ETag": '"e1"',
                "Size": 100,
                "VersionId": "null",
                "IsLatest": True,
                "LastModified": TEN + timedelta(minutes=self.minutes.get(key, 5)),
            }
            for key in keys
            if not (Delimiter and "/" in rest[key])
        ]
        markers = [{"Key": key, "LastModified": at, "IsLatest": True} for key in self.deleted]
        within = [{"Prefix": one} for one in folders]
        yield {"Versions": told, "DeleteMarkers": markers, "CommonPrefixes": within, "IsTruncated": False}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        if code := self.refused.get(Key):
            raise ClientError({"Error": {"Code": code}}, "GetObject")
        return {"Body": BytesIO(self.contents.get(Key.rpartition("/")[2], b""))}


def service(rule: str = 'folder = "in/%Y/%m/%d/%H/", marker = "_DONE"', name: str = "games") -> Service:
    text = f'name = "{name}"\nenvelope.complete = {{ {rule} }}\n[[tables]]\nname = "t"\n'
    return parse_service({"service.toml": text})


def row(name: str, **more: Any) -> dict[str, Any]:
    return entry(HOUR + name, at=TEN + timedelta(minutes=5), tables={"t": 2}, **more)


class Told(list[dict[str, Any]]):
    def __call__(self, entries: Any) -> None:
        self.extend(entries)

    @property
    def kinds(self) -> list[tuple[str, int]]:
        return [(one["DetailType"], json.loads(one["Detail"])["revision"]) for one in self]


class Story:
    """A watch, a bucket and a lake."""

    def __init__(
        self, lake: Path, s3: S3, declared: Service | None = None, buckets: tuple[str, ...] = ("landing",)
    ) -> None:
        self.lake, self.s3, self.now, self.events, self.told = str(lake), s3, NOW, list[Event](), Told()
        self.periods, self.service = periods_of(self.lake), declared or service()
        landing = Landing(lambda: s3, buckets)
        looker = Looker(self.lake, self.periods, landing, emit=self.events.append, clock=lambda: self.now)
        self.watch = self.watch_with(looker)

    def watch_with(self, looker: Looker) -> Watch:
        more: dict[str, Any] = {"emit": self.events.append, "clock": lambda: self.now}
        return Watch(self.lake, self.periods, looker, self.told, **more)

    def batch(self, *names: str, rows: tuple[dict[str, Any], ...] = ()) -> FeedPeriod:
        """The files of a batch, the end of it, and a look."""
        files = [LandedFile("landing", HOUR + name, 100, "e1", event_time=TEN + timedelta(minutes=5)) for name in names]
        self.watch.arriving(self.service, files, [one for one in files if not one.key.endswith("_DONE")])
        if rows:
            write_ledger(self.lake, *rows)
        self.watch.batch_ended()
        return self.look()

    def look(self) -> FeedPeriod:
        self.watch.look(at_once=True)
        (found,) = periods_of(self.lake).rows().values()
        return found


@pytest.mark.parametrize(("on_delete", "waits"), [("forget", False), ("ignore", True)])
def test_an_hour_waits_for_no_deleted_file_where_a_deletion_takes_rows_out(
    on_delete: str, waits: bool, tmp_path: Path
) -> None:
    """The ledger may know neither, where the lake was loaded again."""
    declared = service().model_copy(update={"on_delete": on_delete})
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "gone", HOUR + "_DONE"), declared)
    story.s3.deleted.append(HOUR + "gone")
    assert ("gone" in story.batch("a", "_DONE", rows=(row("a"),)).why) is waits


def test_an_hour_waits_for_a_deleted_version_also_if_its_folder_has_no_other_file(tmp_path: Path) -> None:
    """A star stands for folders, and one of them has no object any more, but a version."""
    declared = service('folder = "*/%Y/%m/%d/%H/", quiet_minutes = 5')
    story = Story(tmp_path, S3(HOUR + "a", "out/2026/11/24/10/unread"), declared)
    story.s3.deleted.append("out/2026/11/24/10/unread")
    assert "out/2026/11/24/10/unread" in story.batch("a", rows=(row("a"),)).why


@pytest.mark.parametrize("row_of", ["unreadable", ""])
def test_an_hour_waits_for_no_version_that_is_skipped_by_its_id_in_any_service_of_the_lake(
    row_of: str, tmp_path: Path
) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "old", HOUR + "_DONE"))
    old = LandedFile("landing", HOUR + "old", etag="e1", service="games")
    rows = (row("a"), *((row("old", outcome=row_of, file_id=old.file_id),) if row_of else ()))
    assert "in/2026/11/24/10/old" in story.batch("a", "_DONE", rows=rows).why
    Skips(open_objects(skips_of(story.lake))).add(Skip(old.file_id))
    story.watch.batch_ended()
    assert story.batch("a", "_DONE").complete_at == NOW


def test_an_hour_is_complete_once_its_marker_came_and_opens_again_for_a_late_file(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a"))
    found = story.batch("a", rows=(row("a"),))
    assert (found.complete_at, found.why) == (None, f"waits for s3://landing/{HOUR}_DONE")
    story.s3.keys.append(HOUR + "_DONE")
    found = story.batch("_DONE")
    assert (found.complete_at, found.revision, found.files, found.rows, found.why) == (NOW, 1, 1, 2, "")
    story.s3.keys.append(HOUR + "b")
    found = story.batch("b")
    assert (found.complete_at, found.revised_at, found.revision) == (None, NOW, 1)
    assert found.why == f"waits for 1 file that is not loaded yet, such as s3://landing/{HOUR}b"
    found = story.batch("b", rows=(row("b"),))
    assert (found.revision, found.files, found.rows) == (2, 2, 4)
    assert story.told.kinds == [("Period Complete", 1), ("Period Reopened", 1), ("Period Complete", 2)]
    kinds = [type(event) for event in story.events]
    assert kinds == [PeriodCompleted, PeriodReopened, PeriodCompleted]


def test_the_event_names_feed_period_and_counts(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    story.batch("a", rows=(row("a", records=5, quarantined=3),))
    (event,) = story.told
    detail = json.loads(event["Detail"])
    assert (event["Source"], detail["service"], detail["feed"]) == ("forebay", "games", "all")
    assert (detail["period"], detail["ends"]) == ("2026-11-24T10:00:00+00:00", "2026-11-24T11:00:00+00:00")
    assert (detail["revision"], detail["files"], detail["rows"], detail["refused"]) == (1, 1, 2, 3)


def test_a_batch_that_begins_meanwhile_is_not_passed_over(tmp_path: Path) -> None:
    """Its file came after the listing."""
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))

    class Late(Looker):
        def skipped(self, files: Any) -> Any:
            late = LandedFile("landing", HOUR + "late", 100, "e1")
            story.watch.arriving(story.service, [late], [late])
            return super().skipped(files)

    looker = Late(story.lake, story.periods, Landing(lambda: story.s3, ("landing",)), emit=story.events.append)
    story.watch = story.watch_with(looker)
    found = story.batch("a", rows=(row("a"),))
    assert (found.complete_at, found.revision) == (None, 0)
    assert story.told == []


def test_a_known_file_that_is_announced_again_takes_nothing_back(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    story.batch("a", rows=(row("a"),))
    known = LandedFile("landing", HOUR + "a", 100, "e1")
    story.watch.arriving(story.service, [known], [])
    story.watch.batch_ended()
    assert story.look().revision == 1
    assert story.told.kinds == [("Period Complete", 1)]


def test_an_unreadable_file_needs_an_operators_word(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    found = story.batch("a", rows=(row("a", outcome="unreadable"),))
    assert found.why == f"waits for 1 file that is unreadable in the ledger, such as s3://landing/{HOUR}a"
    Skips(open_objects(skips_of(story.lake))).add(Skip(bucket="landing", key=HOUR + "a"))
    assert story.batch("_DONE").complete_at == NOW


def test_a_manifest_is_read(tmp_path: Path) -> None:
    declared = service('folder = "in/%Y/%m/%d/%H/", manifest = "_COUNTS"')
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_COUNTS", _COUNTS=b'{"files": 2}'), declared)
    assert story.batch("a", rows=(row("a"),)).why == f"s3://landing/{HOUR}_COUNTS names 2 files, and there are 1"
    story.s3.keys.append(HOUR + "b")
    assert story.batch("b", rows=(row("b"),)).files == 2


def test_a_marker_that_was_deleted_says_nothing_though_its_versions_are_listed(tmp_path: Path) -> None:
    """A producer that writes a folder again deletes its marker first."""
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    story.s3.refused = {HOUR + "_DONE": "NoSuchKey"}
    found = story.batch("a", rows=(row("a"),))
    assert (found.complete_at, found.why) == (None, f"waits for s3://landing/{HOUR}_DONE")
    story.s3.refused = {}
    assert story.batch("_DONE").complete_at == NOW


def test_a_manifest_that_s3_does_not_give_delays_its_own_hour_alone(tmp_path: Path) -> None:
    other = HOUR.replace("/10/", "/11/")
    declared = service('folder = "in/%Y/%m/%d/%H/", manifest = "_COUNTS"')
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_COUNTS", other + "_COUNTS", _COUNTS=b'{"files": 0}'), declared)
    story.s3.refused = {HOUR + "_COUNTS": "AccessDenied"}
    files = [LandedFile("landing", one, 1, "e1") for one in (HOUR + "a", other + "_COUNTS")]
    story.watch.arriving(story.service, files, files[:1])
    write_ledger(story.lake, row("a"))
    story.watch.batch_ended()
    story.watch.look(at_once=True)
    ten, eleven = sorted(periods_of(story.lake).rows().values(), key=lambda one: one.period)
    assert (ten.complete_at, ten.why) == (
        None,
        f"waits for s3://landing/{HOUR}_COUNTS, which S3 does not give: AccessDenied",
    )
    assert eleven.complete_at == NOW


def test_an_open_hour_of_an_earlier_declaration_is_not_judged_by_the_rule_of_days(tmp_path: Path) -> None:
    midnight, key = TEN.replace(hour=0), "in/2026/11/24/00/a"
    hour = FeedPeriod(service="games", feed="all", period=midnight, ends=midnight + timedelta(hours=1), since=TEN)
    Periods(open_objects(f"{tmp_path}/_forebay/complete")).change(lambda rows: [hour])
    write_ledger(tmp_path, entry(key, at=TEN, tables={"t": 2}))
    days = service('folder = "in/%Y/%m/%d/", period = "day", quiet_minutes = 5')
    story = Story(tmp_path, S3(key, HOUR + "unread"), days)
    story.watch.begin(story.service)
    story.now += timedelta(days=9)
    assert (story.look().complete_at, story.told) == (None, [])


def test_silence_is_looked_for_when_its_time_has_come_and_not_before(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a"), service('folder = "in/%Y/%m/%d/%H/", quiet_minutes = 30'))
    story.now = TEN + timedelta(minutes=70)
    assert story.batch("a", rows=(row("a"),)).complete_at is None
    asked = len(story.s3.asked)
    story.now = TEN + timedelta(minutes=89)
    assert (story.look().complete_at, len(story.s3.asked)) == (None, asked)
    story.now = TEN + timedelta(minutes=90)
    assert story.look().complete_at == story.now


def test_without_a_folder_the_whole_prefix_is_listed_and_times_decide(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", "in/other"), service("quiet_minutes = 30"))
    assert "not loaded yet, such as s3://landing/in/other" in story.batch("a", rows=(row("a"),)).why
    other = entry("in/other", at=TEN + timedelta(minutes=6), tables={"t": 1})
    assert story.batch("a", rows=(other,)).files == 2
    assert set(story.s3.asked) == {"", "in/"}


def test_without_a_folder_a_file_of_another_hour_is_not_waited_for(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", "in/of_noon"), service("quiet_minutes = 5"))
    story.s3.minutes["in/of_noon"] = 120
    assert story.batch("a", rows=(row("a"),)).complete_at == NOW


def test_periods_of_other_services_and_of_feeds_that_are_gone_are_left_to_others(tmp_path: Path) -> None:
    """Services of one lake have one table of periods."""
    text = """name = "games"
[[tables]]
name = "t"
[[feeds]]
name = "clicks"
prefix = "in/"
complete = { folder = "in/%Y/%m/%d/%H/", marker = "_DONE" }
[[feeds]]
name = "rest"
"""
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"), parse_service({"service.toml": text}))
    names = [("games", "clicks"), ("games", "rest"), ("games", "gone"), ("shop", "clicks")]
    one = FeedPeriod(service="games", feed="clicks", period=TEN, ends=TEN + timedelta(hours=1), since=TEN)
    all_of_them = [replace(one, service=service, feed=feed) for service, feed in names]
    story.periods.change(lambda rows: all_of_them)
    write_ledger(tmp_path, row("a"))
    looker = of_batches(story, [])
    assert looker.look(story.service, {of.key for of in all_of_them}) == {}
    done = {key[:2]: of.complete_at for key, of in periods_of(story.lake).rows().items()}
    assert done == dict.fromkeys(names, None) | {("games", "clicks"): NOW}


def of_batches(story: Story, files: list[LandedFile]) -> Looker:
    """With these files of batches that have not ended."""

    class Busy(Looker):
        def on_their_way(self, service: Service) -> list[LandedFile]:
            return files

    landing = Landing(lambda: story.s3, ("landing",))
    return Busy(story.lake, story.periods, landing, emit=story.events.append, clock=lambda: story.now)


def test_without_a_folder_a_batch_with_files_of_other_hours_delays_nothing(tmp_path: Path) -> None:
    """A stream in which a batch follows another one has such a batch at most times."""
    story = Story(tmp_path, S3(HOUR + "a"), service("quiet_minutes = 5"))
    later = LandedFile("landing", "in/later", 100, "e2", event_time=TEN + timedelta(minutes=61, seconds=1))
    story.watch = story.watch_with(of_batches(story, [later]))
    assert story.batch("a", rows=(row("a"),)).complete_at == NOW
    between = replace(later, event_time=TEN + timedelta(minutes=60))  # S3 may list it with a time before eleven
    other = Story(tmp_path / "other", S3(HOUR + "a"), service("quiet_minutes = 5"))
    other.watch = other.watch_with(of_batches(other, [between]))
    assert "in an unfinished batch, such as in/later" in other.batch("a", rows=(row("a"),)).why


def test_an_hour_is_looked_at_again_after_a_batch_in_which_a_known_file_of_it_came_again(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    again = [LandedFile("landing", HOUR + "a", 100, "e1", event_time=TEN + timedelta(minutes=5))]
    story.watch = story.watch_with(of_batches(story, again))
    assert "in an unfinished batch" in story.batch("a", rows=(row("a"),)).why
    again.clear()
    story.now += TRY_AGAIN
    assert story.look().complete_at == story.now


def test_a_bucket_that_nobody_names_is_not_guessed(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"), buckets=())
    found = story.batch("a", rows=(row("a"),))
    assert (found.complete_at, found.why) == (None, NO_BUCKET)


def test_a_bucket_that_cannot_be_listed_ends_nothing_and_is_asked_again(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    story.s3.error = TryAgain("denied")
    assert story.batch("a", rows=(row("a"),)).complete_at is None
    assert [type(one) for one in story.events] == [PeriodsNotJudged]
    story.s3.error = None
    assert story.look().complete_at is None
    story.now += TRY_AGAIN
    assert story.look().complete_at == story.now


def test_a_feed_whose_bucket_cannot_be_listed_delays_no_hour_of_another_feed(tmp_path: Path) -> None:
    class Denied(S3):
        def paginate(self, *, Bucket: str, **more: Any) -> Iterator[dict[str, Any]]:  # noqa: N803
            if Bucket == "elsewhere":
                raise ClientError({"Error": {"Code": "AccessDenied"}}, "ListObjectVersions")
            yield from super().paginate(Bucket=Bucket, **more)

    text = """name = "games"
[[tables]]
name = "t"
[[feeds]]
name = "other"
bucket = "elsewhere"
complete = { folder = "in/%Y/%m/%d/%H/", quiet_minutes = 5 }
[[feeds]]
name = "clicks"
bucket = "landing"
complete = { folder = "in/%Y/%m/%d/%H/", marker = "_DONE" }
"""
    story = Story(tmp_path, Denied(HOUR + "a", HOUR + "_DONE"), parse_service({"service.toml": text}))
    files = [LandedFile(bucket, HOUR + "a", 100, "e1") for bucket in ("elsewhere", "landing")]
    story.watch.arriving(story.service, files, files)
    write_ledger(tmp_path, row("a"), row("a", bucket="elsewhere"))
    story.watch.batch_ended()
    story.watch.look(at_once=True)
    assert {one.feed: one.complete_at for one in story.periods.rows().values()} == {"clicks": NOW, "other": None}
    assert story.told.kinds == [("Period Complete", 1)]
    (failed,) = (one for one in story.events if isinstance(one, PeriodsNotJudged))
    assert (failed.feed, failed.periods) == ("other", 1)


def test_a_key_that_names_the_end_of_time_delays_no_other_hour(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    far = LandedFile("landing", "in/9999/12/31/22/x", 100, "e1")
    story.watch.arriving(story.service, [far], [far])
    files = [LandedFile("landing", HOUR + "a", 100, "e1")]
    story.watch.arriving(story.service, files, files)
    write_ledger(tmp_path, row("a"))
    story.watch.batch_ended()
    story.watch.look(at_once=True)
    assert [type(event) for event in story.events] == [PeriodCompleted]


def test_of_a_manifest_no_more_is_read_than_counts_need(tmp_path: Path) -> None:
    large = b'{"files": 1, "names": "' + b"x" * MOST_OF_A_MANIFEST + b'"}'
    declared = service('folder = "in/%Y/%m/%d/%H/", manifest = "_COUNTS"')
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_COUNTS", _COUNTS=large), declared)
    assert "must say" in story.batch("a", rows=(row("a"),)).why


def test_an_event_that_was_refused_is_sent_with_the_next_look(tmp_path: Path) -> None:
    class Bus:
        def __init__(self, *codes: str) -> None:
            self.codes = codes

        def put_events(self, Entries: Any) -> Any:  # noqa: N803
            return {"Entries": [{"ErrorCode": code} if code else {} for code in self.codes]}

    story = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    story.watch._send = sender(lambda: Bus("InternalFailure"))
    assert story.batch("a", rows=(row("a"),)).told is False
    assert isinstance(story.events[-1], PeriodsNotTold)
    assert tell(story.periods, "games", story.lake, sender(lambda: Bus(""))) == 1
    assert tell(story.periods, "games", story.lake, sender(lambda: Bus(""))) == 0


def test_the_next_job_looks_at_what_an_earlier_one_left_open(tmp_path: Path) -> None:
    first = Story(tmp_path, S3(HOUR + "a"))
    first.batch("a", rows=(row("a"),))
    next_one = Story(tmp_path, S3(HOUR + "a", HOUR + "_DONE"))
    next_one.watch.begin(next_one.service)
    assert next_one.look().complete_at == NOW


def test_a_service_that_declares_nothing_costs_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, S3(), parse_service({"service.toml": 'name = "s"\n[[tables]]\nname = "t"\n'}))
    one = LandedFile("landing", HOUR + "a", 100, "e1")
    story.watch.begin(story.service)
    story.watch.arriving(story.service, [one], [one])
    story.watch.batch_ended()
    story.watch.look(at_once=True)
    assert ([*tmp_path.iterdir()], story.s3.asked) == ([], [])


def test_reconcile_looks_at_all_that_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared, s3, told = service(), S3(HOUR + "a", HOUR + "_DONE"), Told()
    write_ledger(tmp_path, row("a"))
    one = FeedPeriod(service="games", feed="all", period=TEN, ends=TEN + timedelta(hours=1), since=TEN)
    Periods(open_objects(f"{tmp_path}/_forebay/complete")).change(lambda rows: opened(rows, [one], [], NOW))
    monkeypatch.setattr(job, "s3_client", lambda: s3)
    monkeypatch.setattr(job, "sender", lambda _: told)
    settings = ReconcileSettings(lake=str(tmp_path), landing="s3://landing/in/", queue_url="q")
    job.see_whether_complete(settings, declared, lambda event: None)
    assert told.kinds == [("Period Complete", 1)]
    assert periods_of(str(tmp_path)).rows()[one.key] == replace(
        periods_of(str(tmp_path)).rows()[one.key], files=1, rows=2, told=True, check=""
    )


@pytest.mark.parametrize("outcome", ["denied", "loaded"])
def test_without_a_folder_a_file_whose_notification_has_no_time_is_of_the_hour_in_which_s3_lists_it(
    outcome: str, tmp_path: Path
) -> None:
    story = Story(tmp_path, S3(HOUR + "a", HOUR + "timeless"), service("quiet_minutes = 5"))
    timeless = {**row("timeless", outcome=outcome), "event_time": None}
    found = story.batch("a", rows=(row("a"), timeless))
    assert (found.why == "", found.files) == ((True, 2) if outcome == "loaded" else (False, 1)), found.why
