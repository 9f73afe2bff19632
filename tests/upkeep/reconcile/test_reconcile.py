"""Which files the ledger does not know, hours after they were written; no Spark, and no announcement of what is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.aws.announce import AGAIN, announce
from forebay.batch.plan import Plan, Plans
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import services_of
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.entry import file_hash
from forebay.notification.order import written_later
from forebay.notification.reading import read_message
from forebay.settings import ReconcileSettings
from forebay.upkeep.reconcile import job
from forebay.upkeep.reconcile.job import find_missed
from forebay.upkeep.reconcile.landed import in_span, landed_files, of_whole_keys, prefixes_of
from forebay.upkeep.reconcile.last import LastReconcile, last_reconcile
from tests.files_alive import files_alive

NOW = datetime.now(UTC).replace(microsecond=0)
"""The data files of a ledger are as old as their writing, so the story is told backwards from now."""


GONE = {"Key": "in/gone", "VersionId": "d", "LastModified": NOW, "IsLatest": True}


class S3:
    """Keys with hours of age; two versions of a key if it is there twice."""

    def __init__(self, *objects: tuple[str, float], size: int = 7) -> None:
        self.objects, self.size, self.asked = objects, size, list[str]()

    def get_paginator(self, name: str) -> S3:
        assert name == "list_object_versions"
        return self

    def paginate(self, *, Bucket: str, Prefix: str, Delimiter: str = "") -> Iterator[dict[str, Any]]:  # noqa: N803
        assert Bucket in ("drops", "more")
        self.asked.append(Prefix)
        inside = [(n, key, hours) for n, (key, hours) in enumerate(self.objects) if key.startswith(Prefix)]
        rest = {key: key.removeprefix(Prefix) for _, key, _ in inside}
        folders = sorted({Prefix + r.partition("/")[0] + "/" for r in rest.values() if Delimiter and "/" in r})
        direct = [self.said(*one) for one in inside if not (Delimiter and "/" in rest[one[1]])]
        yield {"Versions": direct[:1], "DeleteMarkers": [GONE], "IsTruncated": len(direct) > 1}
        yield {"Versions": direct[1:], "CommonPrefixes": [{"Prefix": folder} for folder in folders]}

    def said(self, n: int, key: str, hours: float) -> dict[str, Any]:
        at = NOW - timedelta(hours=hours)
        told = {"Key": key, "ETag": f'"e{n}"', "Size": self.size, "LastModified": at, "VersionId": f"v{n}"}
        return {**told, "IsLatest": key not in [before for before, _ in self.objects[:n]]}


def file(n: int, key: str) -> LandedFile:
    return LandedFile("drops", key, 7, f"e{n}", f"v{n}")


def with_entries(lake: Path, *files: LandedFile, day: datetime = NOW, outcome: str = "loaded") -> None:
    """Rows of the ledger, of which only these columns are looked at."""
    told = [
        {
            "day": day.date(),
            "file_hash": file_hash(one),
            "file_id": one.file_id,
            "outcome": outcome,
            **{name: getattr(one, name) for name in ("bucket", "key", "size", "etag", "version_id")},
        }
        for one in files
    ]
    schema = pa.schema(
        {"day": pa.date32(), "file_hash": pa.int64(), "outcome": pa.string(), "size": pa.int64()}
        | dict.fromkeys(("file_id", "bucket", "key", "etag", "version_id"), pa.string())
        | {"event_time": pa.timestamp("us", "UTC")}
    )
    table = pa.Table.from_pylist(told, schema)
    write_deltalake(lake / "_forebay" / "ledger", table, mode="append", partition_by=["day"])


def settings(lake: Path, landing: str = "s3://drops/in/") -> ReconcileSettings:
    return ReconcileSettings(lake=str(lake), landing=landing, queue_url="q", look_back_hours=72)


class Queue:
    def __init__(self, *, waiting: int = 0, in_flight: int = 0) -> None:
        self.counts = {"": waiting, "NotVisible": in_flight, "Delayed": 0}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {f"ApproximateNumberOfMessages{n}": str(count) for n, count in self.counts.items()}}


def missed(lake: Path, s3: S3, **more: Any) -> list[str]:
    return [found.key for found in find_missed(settings(lake, **more), s3=s3, sqs=Queue(), now=NOW).missed]


def test_what_the_ledger_does_not_know_was_missed_if_it_had_its_time_to_arrive(tmp_path: Path) -> None:
    s3 = S3(("in/loaded", 24), ("in/a/lost", 24), ("in/on-its-way", 1), ("in/long-ago", 100), ("in/a/b/lost", 7))
    with_entries(tmp_path, file(0, "in/loaded"), day=NOW - timedelta(days=1))
    with_entries(tmp_path, file(0, "in/other"))
    with_entries(tmp_path, file(1, "in/a/lost"), day=NOW - timedelta(days=9))  # such days are not read
    DeltaTable(tmp_path / "_forebay" / "ledger").optimize.compact()
    found = find_missed(settings(tmp_path), s3=s3, sqs=Queue(), now=NOW)
    assert sorted(one.key for one in found.missed) == ["in/a/b/lost", "in/a/lost"]
    assert (found.looked_at, found.too_new) == (3, 1)


@pytest.mark.parametrize("outcome", ["denied", "unavailable"])
def test_files_that_s3_withheld_are_announced_again_however_old(tmp_path: Path, outcome: str) -> None:
    with_entries(tmp_path, file(0, "in/withheld"), outcome=outcome, day=NOW - timedelta(days=400))
    with_entries(tmp_path, file(1, "in/broken"), outcome="unreadable")
    found = find_missed(settings(tmp_path), s3=S3(("in/another", 10), ("in/broken", 10)), sqs=Queue(), now=NOW)
    assert [one.identity for one in found.withheld] == [file(0, "in/withheld").identity]
    assert [one.key for one in found.missed] == ["in/another"]


def test_a_forgotten_file_was_not_missed_and_one_whose_rows_still_stand_is_announced_again(tmp_path: Path) -> None:
    with_entries(tmp_path, file(0, "in/gone"), outcome="forgotten")
    with_entries(tmp_path, file(1, "in/going"), outcome="forget")
    found = find_missed(settings(tmp_path), s3=S3(("in/gone", 10), ("in/going", 10)), sqs=Queue(), now=NOW)
    assert (found.missed, [one.key for one in found.withheld]) == ((), ["in/going"])


def test_what_the_last_run_found_is_kept_for_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert last_reconcile(str(tmp_path)) is None
    sent: list[LandedFile] = []
    for name, answer in (
        ("check_queue", lambda _: None),
        ("s3_client", lambda: S3(("in/lost", 24), ("in/loaded", 24))),
        ("queue_client", lambda _: Queue()),
        ("announce", lambda sqs, url, files: sent.extend(files) or ()),
    ):
        monkeypatch.setattr(job, name, answer)
    with_entries(tmp_path, file(1, "in/loaded"))
    for missed_then in (1, 0):
        job.reconcile(settings(tmp_path), emit=lambda _: None, now=NOW)
        found = last_reconcile(str(tmp_path))
        assert found == LastReconcile(NOW, 2, missed_then, 0, "s3://drops/in/lost" if missed_then else "")
        with_entries(tmp_path, *sent)
    assert [one.key for one in sent] == ["in/lost"]


@pytest.mark.parametrize(("waiting", "in_flight", "surely"), [(0, 0, 3), (1, 1, 1), (2, 5, 0)])
def test_files_whose_messages_may_be_in_the_queue_are_announced_and_not_called_missed(
    tmp_path: Path, waiting: int, in_flight: int, surely: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[LandedFile] = []
    events: list[Any] = []
    for name, answer in (
        ("check_queue", lambda _: None),
        ("s3_client", lambda: S3(*((f"in/{n}", 24) for n in range(3)))),
        ("queue_client", lambda _: Queue(waiting=waiting, in_flight=in_flight)),
        ("announce", lambda sqs, url, files: sent.extend(files) or ()),
    ):
        monkeypatch.setattr(job, name, answer)
    done = job.reconcile(settings(tmp_path), emit=events.append, now=NOW)
    assert (len(sent), done.surely_missed) == (3, surely)
    assert (events[0].missed, events[0].may_wait) == (surely, 3 - surely)
    found = last_reconcile(str(tmp_path))
    assert found is not None
    assert (found.missed, bool(found.such_as)) == (surely, surely > 0)


def test_files_of_a_batch_that_has_not_ended_are_on_their_way(tmp_path: Path) -> None:
    plan = Plan(generation="g", batch=1, began_at=NOW, service={}, files=(file(0, "in/begun"),), ends=(), fates=())
    Plans(open_objects(f"{tmp_path}/_forebay/plans"), "games").pin(plan)
    assert missed(tmp_path, S3(("in/begun", 10), ("in/lost", 10))) == ["in/lost"]


@pytest.mark.parametrize(("first", "service"), [("games", ""), ("shop", "games")])
def test_a_missed_file_has_the_id_by_which_its_service_will_know_it(first: str, service: str, tmp_path: Path) -> None:
    """So `files skip` takes it, and a batch of a later service that has begun with it is recognised."""
    (open_objects(services_of(str(tmp_path)))).write_once("first", first.encode())
    plan = Plan(generation="g", batch=1, began_at=NOW, service={}, files=(), ends=(), fates=())
    begun = replace(file(0, "in/begun"), service=service)
    Plans(open_objects(f"{tmp_path}/_forebay/plans"), "games").pin(replace(plan, files=(begun,)))
    found = find_missed(settings(tmp_path), s3=S3(("in/begun", 10), ("in/lost", 10)), sqs=Queue(), now=NOW).missed
    assert [one.file_id for one in found] == [replace(file(1, "in/lost"), service=service).file_id]


def test_a_file_that_was_missing_and_is_there_again_was_missed(tmp_path: Path) -> None:
    with_entries(tmp_path, file(0, "in/back"), outcome="missing")
    assert missed(tmp_path, S3(("in/back", 10))) == ["in/back"]


class PlainS3(S3):
    """A bucket without versions."""

    def said(self, n: int, key: str, hours: float) -> dict[str, Any]:
        return {**super().said(n, key, hours), "VersionId": "null"}


@pytest.mark.parametrize(("outcome", "is_missed"), [("superseded", True), ("loaded", False), ("duplicate", False)])
def test_a_key_that_got_its_first_bytes_back_was_missed_where_they_left_the_tables(
    tmp_path: Path, outcome: str, is_missed: bool
) -> None:
    """It was overwritten or deleted in between. Without versions it is the same file; the batch decides by its time."""
    with_entries(tmp_path, replace(file(0, "in/back"), version_id=None), outcome=outcome)
    assert missed(tmp_path, PlainS3(("in/back", 10))) == ["in/back"] * is_missed
    with_entries(tmp_path, file(0, "in/versioned"), outcome="superseded")
    assert missed(tmp_path, S3(("in/versioned", 10))) == []


def test_before_the_first_batch_all_that_landed_was_missed(tmp_path: Path) -> None:
    assert missed(tmp_path, S3(("in/first", 10))) == ["in/first"]


def test_files_whose_messages_sqs_has_dropped_after_fourteen_days_are_found(tmp_path: Path) -> None:
    usual = ReconcileSettings(lake=str(tmp_path), landing="s3://drops/in/", queue_url="q")
    found = find_missed(usual, s3=S3(("in/waited-and-dropped", 14 * 24 + 1)), sqs=Queue(), now=NOW).missed
    assert [one.key for one in found] == ["in/waited-and-dropped"]


def test_each_version_of_a_key_is_a_file(tmp_path: Path) -> None:
    with_entries(tmp_path, file(1, "in/twice"))
    found = find_missed(settings(tmp_path), s3=S3(("in/twice", 20), ("in/twice", 19)), sqs=Queue(), now=NOW).missed
    assert [(one.key, one.version_id, one.etag, one.size) for one in found] == [("in/twice", "v0", "e0", 7)]


def test_of_versions_that_were_written_in_one_second_the_latest_is_announced_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bodies go the way of a queue. S3 lists the newest version first, here on two pages."""
    newest_first = [("in/b", 20.0), ("in/a", 9.0), ("in/a", 9.0), ("in/a", 9.0), ("in/a", 30.0)]
    bodies: list[str] = []

    class Announcing(Queue):
        def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
            bodies.extend(one["MessageBody"] for one in Entries)
            return {}

    for name, answer in (
        ("check_queue", lambda _: None),
        ("s3_client", lambda: S3(*newest_first)),
        ("queue_client", lambda _: Announcing()),
    ):
        monkeypatch.setattr(job, name, answer)
    job.reconcile(settings(tmp_path), emit=lambda _: None, now=NOW)
    announced = [file for body in bodies for file in read_message(body).files]
    assert [file.version_id for file in announced] == ["v4", "v0", "v3", "v2", "v1"]
    oldest, _, *of_one_second = announced
    assert oldest.event_time == NOW - timedelta(hours=30)
    for earlier, later in pairwise(of_one_second):
        assert (written_later(later, earlier), written_later(earlier, later)) == (True, False)
    live = LandedFile("drops", "in/a", event_time=NOW - timedelta(hours=9) + timedelta(milliseconds=300))
    assert [written_later(live, file) for file in of_one_second] == [True, True, False]


def test_what_frameworks_leave_beside_the_data_is_found_too_so_that_the_ledger_says_of_it_that_it_is_ignored(
    tmp_path: Path,
) -> None:
    assert missed(tmp_path, S3(("in/_SUCCESS", 10), ("in/.part.crc", 10))) == ["in/_SUCCESS", "in/.part.crc"]


def test_where_keys_name_their_day_only_the_last_days_are_listed(tmp_path: Path) -> None:
    days = prefixes_of("in/%Y-%m-%d/", NOW - timedelta(hours=72), NOW)
    assert days[0] == f"in/{NOW - timedelta(hours=72):%Y-%m-%d}/"
    assert days[-1] == f"in/{NOW:%Y-%m-%d}/"
    at = NOW - timedelta(hours=30)
    s3 = S3((f"in/{at:%Y-%m-%d}/lost", 30), ("in/1999-01-01/old", 30))
    assert missed(tmp_path, s3, landing="s3://drops/in/%Y-%m-%d/") == [f"in/{at:%Y-%m-%d}/lost"]
    assert set(s3.asked) == set(days)


@pytest.mark.parametrize(
    ("landing", "keys"),
    [
        ("s3://drops/in/%Y-%m-%d/", [f"in/{NOW - timedelta(hours=h):%Y-%m-%d}/lost" for h in (30, 54)]),
        ("s3://drops/in/", ["in/alpha/lost", "in/beta/lost"]),
    ],
)
def test_days_and_folders_are_listed_at_the_same_time(tmp_path: Path, landing: str, keys: list[str]) -> None:
    """A million objects are a thousand requests, one after the other within a prefix."""
    together = Barrier(2, timeout=20)

    class Slow(S3):
        def paginate(self, *, Bucket: str, Prefix: str, Delimiter: str = "") -> Iterator[dict[str, Any]]:  # noqa: N803
            if any(key.rpartition("/")[0] + "/" == Prefix for key in keys):
                together.wait()
            return super().paginate(Bucket=Bucket, Prefix=Prefix, Delimiter=Delimiter)

    assert set(missed(tmp_path, Slow(*((key, 30) for key in keys)), landing=landing)) == set(keys)


def test_files_that_the_ledger_knows_are_not_held_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifteen days of a million files would be six gigabytes."""
    known, held = [f"in/{n:04}" for n in range(2000)], list[int]()
    alive = files_alive(monkeypatch, "forebay.upkeep.reconcile.landed")
    with_entries(tmp_path, *(file(n, key) for n, key in enumerate(known) if n % 100))

    class Long(S3):
        def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
            for at in range(0, 2000, 200):
                held.append(len(alive))
                yield {"Versions": [self.said(n, known[n], 20) for n in range(at, at + 200)]}

    found = find_missed(settings(tmp_path), s3=Long(), sqs=Queue(), now=NOW)
    assert (found.looked_at, len(found.missed)) == (2000, 20)
    assert 0 < max(held) <= 220, held


def test_what_is_loaded_while_the_bucket_is_listed_was_not_missed(tmp_path: Path) -> None:
    with_entries(tmp_path, file(7, "in/other"))

    class Meanwhile(S3):
        def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
            yield from super().paginate(**asked)
            with_entries(tmp_path, file(0, "in/late"))

    assert missed(tmp_path, Meanwhile(("in/late", 20), ("in/lost", 20))) == ["in/lost"]


def test_where_files_land_in_several_places_all_are_listed(tmp_path: Path) -> None:
    s3 = S3(("in/lost", 20), ("from/lost", 20), ("elsewhere/lost", 20))
    found = find_missed(settings(tmp_path, "s3://drops/in/,s3://more/from/"), s3=s3, sqs=Queue(), now=NOW).missed
    assert [(one.bucket, one.key) for one in found] == [("drops", "in/lost"), ("more", "from/lost")]


def test_what_was_missed_is_announced_as_the_source_reads_it(tmp_path: Path) -> None:
    class Sqs:
        bodies: list[str] = []  # noqa: RUF012

        def send_message_batch(self, **asked: Any) -> dict[str, Any]:
            self.bodies += [entry["MessageBody"] for entry in asked["Entries"]]
            assert all(AGAIN in entry["MessageAttributes"] for entry in asked["Entries"])
            return {}

    found = find_missed(settings(tmp_path), s3=S3(("in/a b+\u00fc.json", 10)), sqs=Queue(), now=NOW).missed
    assert announce(Sqs(), "q", found) == []
    (read,) = [one for body in Sqs.bodies for one in read_message(body).files]
    assert read.identity == found[0].identity
    assert read.event_time == NOW - timedelta(hours=10)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ({"landing": "drops/in"}, "landing: must be s3://bucket"),
        ({"settle_hours": "80", "look_back_hours": "72"}, "settle_hours, 80, must be less than look_back_hours"),
    ],
)
def test_settings_that_make_no_sense_are_refused(argv: dict[str, str], says: str) -> None:
    given = {"lake": "s3://lake", "landing": "s3://drops/", "queue_url": "q", **argv}
    with pytest.raises(InvalidConfiguration, match=says):
        ReconcileSettings.from_argv([word for name, value in given.items() for word in (f"--{name}", value)])


def test_a_span_of_time_has_its_first_moment_and_not_its_last() -> None:
    """So of two spans, one after the other, each file is in one."""
    s3, edge, hour = S3(("in/a", 3), ("in/b", 2), ("in/c", 1)), NOW - timedelta(hours=2), timedelta(hours=1)
    spans = [(edge - hour, edge), (edge, edge + hour)]
    found = [landed_files(s3, "drops", ["in/"], since=since, until=until, say=list) for since, until in spans]
    assert [[one.key for page in pages for one in page] for pages in found] == [["in/a"], ["in/b"]]


class Pages:
    """One listing, in pages."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = pages

    def get_paginator(self, name: str) -> Pages:
        return self

    def paginate(self, **asked: str) -> tuple[dict[str, Any], ...]:
        return self.pages


def listed(key: str, hours: float, version: str, *, is_latest: bool = False) -> dict[str, Any]:
    at = NOW - timedelta(hours=hours)
    told = {"Key": key, "VersionId": version, "LastModified": at, "IsLatest": is_latest}
    return {**told, "ETag": f'"{version}"', "Size": 7}


DELETED = Pages(
    {
        "Versions": [
            listed("in/a", 20, "a1"),
            listed("in/back", 10, "b3", is_latest=True),
            listed("in/back", 20, "b1"),
        ],
        "DeleteMarkers": [
            listed("in/a", 20, "a2", is_latest=True),
            listed("in/back", 15, "b2"),
            listed("in/back", 25, "b0"),
            listed("in/late", 9, "l3", is_latest=True),
        ],
        "IsTruncated": True,
    },
    {
        "Versions": [
            listed("in/late", 10, "l2"),
            listed("in/late", 20, "l1"),
            listed("in/stays", 9, "s", is_latest=True),
        ]
    },
)


def test_of_a_key_with_any_number_of_versions_only_those_of_the_span_are_held() -> None:
    pages = [
        {"Versions": [listed("in/a", hours, f"v{hours}")], "DeleteMarkers": [listed("in/a", hours, f"d{hours}")]}
        | {"IsTruncated": hours < 10}
        for hours in range(1, 11)
    ]
    span = NOW - timedelta(hours=2), NOW
    sizes = [(len(page["Versions"]), len(page["DeleteMarkers"])) for page in of_whole_keys(in_span(pages, *span))]
    assert sizes == [(0, 0)] * 9 + [(2, 10)]


@pytest.mark.parametrize(
    ("on_delete", "found"),
    [("forget", ["b3", "s"]), ("ignore", ["a1", "b3", "b1", "l2", "l1", "s"])],
)
def test_a_version_that_a_deletion_followed_was_missed_only_if_deletions_are_ignored(
    on_delete: str, found: list[str], tmp_path: Path
) -> None:
    """A new ledger does not know the deletion, and its rows would come back for good."""
    (tmp_path / "shop").mkdir()
    declared = f'name = "shop"\non_delete = "{on_delete}"\n[[tables]]\nname = "{{game}}"\n'
    (tmp_path / "shop" / "service.toml").write_text(declared)
    with_entries(tmp_path, file(0, "in/other"))
    of_shop = settings(tmp_path).model_copy(update={"service": str(tmp_path / "shop")})
    assert [one.version_id for one in find_missed(of_shop, s3=DELETED, sqs=Queue(), now=NOW).missed] == found
