"""Landed files that were loaded are moved or deleted: only the version that the ledger has, once, and whatever dies between."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from deltalake import DeltaTable, write_deltalake

from forebay.batch.plan import Plan, Plans
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration
from forebay.events import Event
from forebay.lake.layout import DERIVED_FROM
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.objects import open_objects
from forebay.lake.rollback_plan import delete_plan, write_plan
from forebay.landed_file import DELETED, LandedFile
from forebay.ledger.cleared import deletions_of_ours
from forebay.ledger.entry import REPLAY
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import versions_of
from forebay.operate.looking.where import lives_of
from forebay.operate.people.landing import Landed, clear_again, clear_landing, landed_of, moved_away
from forebay.privacy.secret import make_secret
from forebay.upkeep.after_load import job
from forebay.upkeep.after_load import notes as taking_notes
from forebay.upkeep.after_load.events import LandedFilesCleared, LandedFilesLeft
from forebay.upkeep.after_load.job import Cleared, clear_landed, landed_due
from forebay.upkeep.after_load.lost import LostRows
from forebay.upkeep.after_load.notes import Notes
from forebay.upkeep.erase.plan import Done, ErasePlan, Erasures
from tests.operate.command import failed, ran
from tests.operate.ledger import AT, entry, write_ledger

NOW = AT + timedelta(days=8)
MOVE = 'after_load = { move = "s3://archive/landed/" }'
DELETE = "after_load = { delete = true }"
IN_ARCHIVE = "s3://archive/landed/landing/in/{}/{}"


@pytest.fixture(autouse=True)
def alpha(tmp_path: Path) -> None:
    """The table that has the rows of most files: those of a lost table would wait."""
    write_table(tmp_path / "alpha", AT, "another")


def write_table(place: Path, made_at: datetime, *file_ids: str, **properties: str) -> None:
    """A table with rows of these files, which was made then."""
    write_deltalake(place, pa.table({"_file_id": pa.array(file_ids, pa.string())}))
    commit = place / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"] |= {"createdTime": int(made_at.timestamp() * 1000), "configuration": properties}
    commit.write_text("\n".join(map(json.dumps, actions)))


@dataclass
class S3:
    """Objects of buckets, each with its etag and version id; conditions hold as in S3. `before` may interfere or fail."""

    objects: dict[tuple[str, str], tuple[str, str | None]] = field(default_factory=dict)
    before: Callable[[str, str], None] = lambda verb, key: None
    asked: list[tuple[str, str]] = field(default_factory=list)

    def put(self, *names: str, etag: str = "e1", version: str | None = None) -> S3:
        self.objects |= {("landing", f"in/{name}"): (etag, version) for name in names}
        return self

    @property
    def landed(self) -> list[str]:
        return sorted(key for bucket, key in self.objects if bucket == "landing")

    @property
    def archived(self) -> list[str]:
        return sorted(f"s3://{bucket}/{key}" for bucket, key in self.objects if bucket != "landing")

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket, "boto3 refuses an empty name"
        etag, version = self._there("head", Bucket, Key)
        return {"ETag": f'"{etag}"', "ContentLength": 100, **({"VersionId": version} if version else {})}

    def copy_object(self, *, CopySource: dict[str, str], CopySourceIfMatch: str, Bucket: str, Key: str) -> None:  # noqa: N803
        etag, version = self._there("copy", CopySource["Bucket"], CopySource["Key"])
        if f'"{etag}"' != CopySourceIfMatch or CopySource.get("VersionId", version) != version:
            raise refusal(412, "PreconditionFailed")
        self.objects[Bucket, Key] = (etag, None)

    def delete_object(self, *, Bucket: str, Key: str, IfMatch: str) -> None:  # noqa: N803
        etag, _ = self._there("delete", Bucket, Key)
        if f'"{etag}"' != IfMatch:
            raise refusal(412, "PreconditionFailed")
        del self.objects[Bucket, Key]

    def _there(self, verb: str, bucket: str, key: str) -> tuple[str, str | None]:
        self.asked.append((verb, key))
        self.before(verb, key)
        if (bucket, key) not in self.objects:
            raise refusal(404, "404" if verb == "head" else "NoSuchKey")
        return self.objects[bucket, key]


def refusal(status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "S3")  # type: ignore[typeddict-item]


def service(rule: str, more: str = "") -> Service:
    return parse_service({"service.toml": f'name = "games"\n{rule}\n[[tables]]\nname = "alpha"\n{more}'})


def row(name: str, **more: Any) -> dict[str, Any]:
    return entry(f"in/{name}", **{"tables": {"alpha": 1}, **more})


def clear(lake: Path, s3: S3, rule: str = MOVE, *, events: list[Event] | None = None, **more: Any) -> Cleared:
    emit = (events if events is not None else []).append
    asked = {"now": NOW, "stop": threading.Event(), "s3": s3, **more}
    done = clear_landed(str(lake), service(rule), emit=emit, **asked)
    assert done is not None
    return done


def notes(lake: Path) -> list[tuple[str, str, str | None]]:
    rows = DeltaTable(f"{lake}/_forebay/after_load").to_pyarrow_table().to_pylist()
    return sorted((row["key"], row["action"], row["place"]) for row in rows if row["action"] != "started")


def place_of(name: str, **more: Any) -> str:
    return IN_ARCHIVE.format(row(name, **more)["file_id"], name)


def test_loaded_files_move_and_are_never_asked_about_again(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"), row("b.json", outcome="duplicate", tables={}))
    s3, events = S3().put("a.json", "b.json"), list[Event]()
    done = clear(tmp_path, s3, events=events)
    assert (dict(done.actions), done.bytes, s3.landed) == ({"moved": 2}, 200, [])
    assert s3.archived == sorted([place_of("a.json"), place_of("b.json")])
    assert notes(tmp_path) == [(f"in/{name}", "moved", place_of(name)) for name in ("a.json", "b.json")]
    (told,) = [one for one in events if isinstance(one, LandedFilesCleared)]
    assert (told.moved, told.deleted, told.failed, told.bytes) == (2, 0, 0, 200)

    s3.asked.clear()
    assert clear(tmp_path, s3).files == 0
    assert s3.asked == []


@pytest.mark.parametrize(
    "stays",
    [
        {"outcome": "missing"},
        {"outcome": "denied"},
        {"outcome": "unavailable"},
        {"outcome": REPLAY},
        {"outcome": "forget"},
        {"outcome": "unreadable"},
        {"outcome": "ignored"},
        {"outcome": "skipped", "reason": "by-operator"},
        {"reason": "wanted-again"},
        {"reason": "rolled-back"},
        {"reason": "partly-replayed", "detail": "alpha"},
        {"quarantined": 1},
        {"parked": 1},
        {"service": "others"},
        {"bucket": ""},
        {"at": NOW - timedelta(days=6)},
        {"at": NOW - timedelta(days=7) + timedelta(hours=1)},
    ],
    ids=str,
)
def test_a_file_that_something_may_still_need_stays(tmp_path: Path, stays: dict[str, Any]) -> None:
    write_ledger(tmp_path, row("a.json", **stays))
    s3 = S3().put("a.json")
    assert clear(tmp_path, s3, 'after_load = { delete = true, only = ["loaded", "duplicate", "skipped"] }').files == 0
    assert s3.asked == []


def test_a_file_that_may_be_the_only_copy_of_rows_of_a_lost_table_is_not_deleted(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"), row("b.json", tables={"alpha": 1, "lost": 1}))
    s3 = S3().put("a.json", "b.json")
    done = clear(tmp_path, s3, DELETE)
    assert (dict(done.actions), done.waiting, s3.landed) == ({"deleted": 1}, 1, ["in/b.json"])
    assert dict(clear(tmp_path, s3, MOVE).actions) == {"moved": 1}


@pytest.mark.parametrize(
    "original",
    [
        {"reason": "rolled-back", "records": 1, "dropped": 1, "tables": {}},
        {"outcome": "replay"},
        {"quarantined": 1, "records": 2},
        {"tables": {"lost": 1}},
    ],
)
def test_a_duplicate_is_not_deleted_while_its_original_is_in_no_table(tmp_path: Path, original: dict[str, Any]) -> None:
    """A replay of the original reads it: without versions, the bucket has no other object of the key."""
    write_ledger(tmp_path, row("a.json", **original), row("b.json"), row("c.json"))
    write_ledger(tmp_path, *(duplicate_of(name) for name in ("a.json", "b.json")))
    s3 = S3().put("a.json", "b.json", etag="e2").put("c.json")
    clear(tmp_path, s3, DELETE)
    assert s3.landed == ["in/a.json"]


def duplicate_of(name: str) -> dict[str, Any]:
    """A multipart upload of the same bytes has another etag."""
    more = {"outcome": "duplicate", "reason": "same-key-same-bytes", "etag": "e2", "tables": {}}
    return row(name, at=AT + timedelta(minutes=5), **more)


@pytest.mark.parametrize(
    ("tables", "is_lost"), [(None, False), ({}, False), ({"gone": 0}, False), ({"gone": 0, "lost": 1}, True)]
)
def test_only_rows_that_the_ledger_counts_are_lost(tmp_path: Path, tables: Any, is_lost: bool) -> None:
    assert LostRows(str(tmp_path)).of({"file_id": "f", "committed_at": NOW, "tables": tables}) is is_lost


def test_a_table_that_does_not_say_when_it_was_made_has_lost_nothing(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "old", pa.table({"n": [1]}))
    log = tmp_path / "old" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    assert [action["metaData"].pop("createdTime") for action in actions if "metaData" in action]
    log.write_text("\n".join(map(json.dumps, actions)))
    assert not LostRows(str(tmp_path)).of({"file_id": "f", "committed_at": AT, "tables": {"old": 1}})


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_lost_table_that_the_job_made_anew_has_rows_of_the_files_that_came_since(
    tmp_path: Path, checkpoint: bool
) -> None:
    """And of those that were replayed, or whose held records a retry brought."""
    write_table(tmp_path / "anew", AT + timedelta(hours=1), "retried")
    if checkpoint:
        DeltaTable(tmp_path / "anew").create_checkpoint()
    anew = {"tables": {"anew": 1}}
    loaded = [row("later.json", **anew, at=AT + timedelta(hours=2)), row("retried.json", **anew, file_id="retried")]
    write_ledger(tmp_path, row("before.json", **anew), *loaded, row("elsewhere.json"))
    s3 = S3().put("before.json", "elsewhere.json", "later.json", "retried.json")
    done = clear(tmp_path, s3, DELETE)
    assert (dict(done.actions), done.waiting, s3.landed) == ({"deleted": 3}, 1, ["in/before.json"])
    assert dict(clear(tmp_path, s3, MOVE).actions) == {"moved": 1}


def test_a_young_table_whose_rows_cannot_be_counted_keeps_the_objects_of_earlier_files(tmp_path: Path) -> None:
    write_table(tmp_path / "anew", AT + timedelta(hours=1), "f1", **{DERIVED_FROM: "another"})
    write_ledger(tmp_path, row("a.json", file_id="f1", tables={"anew": 1}))
    assert clear(tmp_path, S3().put("a.json"), DELETE).waiting == 1


def test_a_file_that_may_be_the_only_copy_of_rows_of_another_services_lost_table_is_not_deleted(tmp_path: Path) -> None:
    of_others = {"service": "others", "file_id": "f2"}
    write_ledger(tmp_path, *map(row, ("a.json", "b.json")), row("b.json", tables={"lost": 1}, **of_others))
    s3 = S3().put("a.json", "b.json")
    assert landed_due(str(tmp_path), service(DELETE), now=NOW).waiting == 1
    done = clear(tmp_path, s3, DELETE)
    assert (dict(done.actions), done.waiting, s3.landed) == ({"deleted": 1}, 1, ["in/b.json"])
    assert clear(tmp_path, s3, MOVE).waiting == 1, "it looks for no copy under the id of this service"


def test_a_file_of_a_batch_that_has_not_ended_and_one_that_another_service_needs_stay(tmp_path: Path) -> None:
    of_others = {"service": "others", "outcome": "denied", "file_id": "f2"}
    write_ledger(tmp_path, row("a.json"), row("b.json"), row("b.json", **of_others), row("c.json"))
    files = (LandedFile("landing", "in/a.json", 100, "e2"),)
    plan = Plan(generation="g", batch=1, began_at=AT, service={}, files=files, ends=(), fates=())
    Plans(open_objects(f"{tmp_path}/_forebay/plans"), "games").pin(plan)
    s3 = S3().put("a.json", "b.json", "c.json")
    done = clear(tmp_path, s3, DELETE)
    assert (dict(done.actions), done.waiting, s3.landed) == ({"deleted": 1}, 2, ["in/a.json", "in/b.json"])


def beside(lake: Path, rule: str = "", *, name: str = "others") -> None:
    """Another service of the lake, whose job has started."""
    keep_in_force(str(lake), service(rule).model_copy(update={"name": name}))


@pytest.mark.parametrize(
    ("of_others", "stays"),
    [
        ([row("b.json", file_id="f2")], True),
        ([row("a.json", file_id="f2")], False),
        ([row("b.json", file_id="f2", bucket="elsewhere")], False),
        ([], False),
    ],
    ids=["it loads from the bucket and lacks the file", "it has the file", "it loads from another bucket", "it is new"],
)
def test_a_file_waits_until_every_service_that_loads_from_its_bucket_has_it(
    tmp_path: Path, of_others: list[dict[str, Any]], stays: bool
) -> None:
    beside(tmp_path)
    write_ledger(tmp_path, row("a.json"), *({**one, "service": "others"} for one in of_others))
    s3 = S3().put("a.json")
    done = clear(tmp_path, s3, DELETE)
    assert (done.waiting, s3.landed) == ((1, ["in/a.json"]) if stays else (0, []))
    assert landed_due(str(tmp_path), service(DELETE), now=NOW).waiting == int(stays)


@pytest.mark.parametrize(
    "of_others",
    [{"outcome": "unreadable"}, {"quarantined": 1}, {"parked": 1}, {"reason": "rolled-back"}, {"outcome": REPLAY}],
    ids=str,
)
def test_a_file_that_another_service_may_read_again_stays(tmp_path: Path, of_others: dict[str, Any]) -> None:
    write_ledger(tmp_path, row("a.json"), row("a.json", file_id="f2", service="others", **of_others))
    s3 = S3().put("a.json")
    done = clear(tmp_path, s3, DELETE)
    assert (done.waiting, s3.landed) == (1, ["in/a.json"])


@pytest.mark.parametrize(
    ("theirs", "ours", "waits"),
    [
        ({"etag": "e0"}, {}, True),
        ({"etag": "e0", "version_id": "null"}, {"version_id": "null"}, True),
        ({"version_id": "null"}, {}, False),
        ({"version_id": "v0"}, {"version_id": "v1"}, True),
        ({"version_id": "v1", "etag": "e0"}, {"version_id": "v1"}, False),
    ],
    ids=str,
)
def test_a_file_waits_where_another_service_has_only_another_version(
    tmp_path: Path, theirs: dict[str, Any], ours: dict[str, Any], waits: bool
) -> None:
    beside(tmp_path)
    write_ledger(tmp_path, row("a.json", **ours), row("a.json", file_id="f2", service="others", **theirs))
    s3 = S3().put("a.json", version=ours.get("version_id"))
    assert clear(tmp_path, s3, DELETE).waiting == waits
    assert s3.landed == (["in/a.json"] if waits else [])


def test_a_file_waits_for_another_service_no_longer_than_its_queue_could_name_it(tmp_path: Path) -> None:
    beside(tmp_path)
    write_ledger(tmp_path, row("a.json"), row("b.json", file_id="f2", service="others"))
    s3 = S3().put("a.json")
    clear(tmp_path, s3, DELETE, now=AT + timedelta(days=29))
    assert s3.landed == ["in/a.json"]
    clear(tmp_path, s3, DELETE, now=AT + timedelta(days=31))
    assert s3.landed == []


def test_a_file_does_not_wait_for_the_earlier_name_of_its_service(tmp_path: Path) -> None:
    beside(tmp_path, name="earlier")
    write_ledger(tmp_path, row("a.json"), row("b.json", file_id="f2", service="earlier"))
    s3 = S3().put("a.json")
    clear(tmp_path, s3, f'shares_files_with = ["earlier"]\n{DELETE}')
    assert s3.landed == []


def test_a_file_whose_deletion_another_service_would_carry_out_stays(tmp_path: Path) -> None:
    beside(tmp_path, 'on_delete = "forget"')
    write_ledger(tmp_path, row("a.json"), row("a.json", file_id="f2", service="others"))
    s3 = S3().put("a.json")
    done = clear(tmp_path, s3)
    assert (list(done.left), s3.landed, s3.archived) == (["forgotten-by-others"], ["in/a.json"], [])
    assert done.left["forgotten-by-others"][1].detail.startswith("the service others has on_delete")
    seen = landed_due(str(tmp_path), service(MOVE), now=NOW)
    assert (seen.files, seen.due, [*seen.left]) == (0, [], ["forgotten-by-others"])


@pytest.mark.parametrize("of_others", [{}, {"service": "others"}], ids=["its own", "another service's"])
def test_no_copy_is_made_in_another_landing_bucket(tmp_path: Path, of_others: dict[str, Any]) -> None:
    beside(tmp_path)
    write_ledger(tmp_path, row("a.json"), row("b.json", bucket="archive", quarantined=1, file_id="f2", **of_others))
    s3 = S3().put("a.json")
    done = clear(tmp_path, s3)
    assert (list(done.left), s3.landed, s3.archived) == (["archive-is-landing"], ["in/a.json"], [])


@pytest.mark.parametrize(
    ("of_row", "etag", "version"),
    [(None, "e2", None), ("v1", "e1", "v2"), ("null", "e2", "null")],
    ids=["other bytes", "another version", "other bytes where no versions are kept any more"],
)
def test_an_object_that_was_overwritten_stays(
    tmp_path: Path, of_row: str | None, etag: str, version: str | None
) -> None:
    write_ledger(tmp_path, row("a.json", version_id=of_row))
    s3 = S3().put("a.json", etag=etag, version=version)
    assert dict(clear(tmp_path, s3).actions) == {"replaced": 1}
    assert (s3.landed, s3.archived) == (["in/a.json"], [])


@pytest.mark.parametrize("verb", ["copy", "delete"])
def test_an_object_that_is_overwritten_meanwhile_stays(tmp_path: Path, verb: str) -> None:
    write_ledger(tmp_path, row("a.json"))
    s3 = S3().put("a.json")
    s3.before = lambda asked, key: s3.put("a.json", etag="e2") and None if asked == verb else None
    assert dict(clear(tmp_path, s3).actions) == {"replaced": 1}
    assert s3.objects["landing", "in/a.json"] == ("e2", None)
    assert [place for _, _, place in notes(tmp_path)] == (s3.archived or [None])
    assert moved_away(LakeView(str(tmp_path))) == ({("landing", "in/a.json")} if s3.archived else set())


def test_each_version_of_an_object_has_a_place_of_its_own(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json", version_id="v1"))
    s3 = S3().put("a.json", version="v1")
    clear(tmp_path, s3)
    write_ledger(tmp_path, row("a.json", version_id="v2", etag="e2"))
    clear(tmp_path, s3.put("a.json", version="v2", etag="e2"))
    assert s3.archived == sorted([place_of("a.json", version_id="v1"), place_of("a.json", version_id="v2", etag="e2")])


@pytest.mark.parametrize("rule", [MOVE, DELETE], ids=["move", "delete"])
def test_a_run_reads_none_of_its_own_notes_again(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of a million files has hundreds of chunks, each with two commits of notes."""
    names = [f"{n}.json" for n in range(5)]
    write_ledger(tmp_path, *map(row, names))
    read, real = list[str](), taking_notes.opened
    monkeypatch.setattr(job, "CHUNK", 1)
    monkeypatch.setattr(taking_notes, "opened", lambda table, file: (read.append(file.path), real(table, file))[1])
    s3 = S3().put(*names)
    assert clear(tmp_path, s3, rule).files == 5
    assert (s3.landed, read, len(notes(tmp_path))) == ([], [], 5)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("verb", ["head", "copy", "delete"])
@pytest.mark.parametrize("rule", [MOVE, DELETE], ids=["move", "delete"])
def test_a_run_that_dies_anywhere_is_finished_by_the_next(tmp_path: Path, verb: str, rule: str) -> None:
    write_ledger(tmp_path, row("a.json"))
    s3 = S3().put("a.json")

    def die(asked: str, key: str) -> None:
        if asked == verb:
            raise Killed

    s3.before = die
    try:
        clear(tmp_path, s3, rule)
    except Killed:
        pass
    s3.before = lambda asked, key: None
    clear(tmp_path, s3, rule)
    assert (s3.landed, s3.archived) == ([], [place_of("a.json")] if rule == MOVE else [])
    assert [action for _, action, _ in notes(tmp_path)] == ["moved" if rule == MOVE else "deleted"]


@pytest.mark.parametrize(
    ("rule", "noted"), [(MOVE, ("moved", place_of("a.json"))), (DELETE, ("deleted", None))], ids=["move", "delete"]
)
def test_a_run_that_died_before_its_note_is_done(
    tmp_path: Path, rule: str, noted: tuple[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ledger(tmp_path, row("a.json"))
    s3 = S3().put("a.json")

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as once:
        once.setattr("forebay.upkeep.after_load.job._count", die)
        added = Notes.add
        once.setattr(Notes, "add", lambda self, done: added(self, (one for one in done if one.action == "started")))
        with pytest.raises(Killed):
            clear(tmp_path, s3, rule)
    assert s3.landed == []
    deletion = LandedFile("landing", "in/a.json", None, f"{DELETED}1", sequencer="05", event_time=datetime.now(UTC))
    for _ in range(2):  # its notice may come before the next run, or after it
        assert deletions_of_ours([deletion], open_objects(f"{tmp_path}/_forebay/after_load"), {}) == {deletion.file_id}
        clear(tmp_path, s3, rule)
    assert notes(tmp_path) == [("in/a.json", *noted)]


def test_a_run_that_died_long_after_s3_refused_an_earlier_one_is_known_by_its_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ledger(tmp_path, row("a.json"))
    s3, added, earlier = S3().put("a.json"), Notes.add, timedelta(days=3)

    def refuse(verb: str, key: str) -> None:
        if verb == "delete":
            raise refusal(403, "AccessDenied")

    s3.before = refuse
    with monkeypatch.context() as once:
        once.setattr(Notes, "add", lambda self, done: added(self, (replace(one, at=one.at - earlier) for one in done)))
        clear(tmp_path, s3, DELETE)
    s3.before = lambda verb, key: None
    with monkeypatch.context() as once:
        once.setattr(Notes, "add", lambda self, done: added(self, (one for one in done if one.action == "started")))
        clear(tmp_path, s3, DELETE)
    assert s3.landed == []
    deletion = LandedFile("landing", "in/a.json", None, f"{DELETED}1", sequencer="05", event_time=datetime.now(UTC))
    assert deletions_of_ours([deletion], open_objects(f"{tmp_path}/_forebay/after_load"), {}) == {deletion.file_id}


def test_a_file_that_a_producer_deleted_is_gone(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"))
    clear(tmp_path, S3(), DELETE)
    assert [action for _, action, _ in notes(tmp_path)] == ["gone"]


@pytest.mark.parametrize("verb", ["copy", "delete"])
def test_an_erasure_names_a_copy_of_a_run_that_died_and_had_no_other_after_it(tmp_path: Path, verb: str) -> None:
    write_ledger(tmp_path, row("a.json"))
    s3 = S3().put("a.json")

    def die_after(asked: str, key: str) -> None:
        if (asked, verb) == ("delete", "copy"):
            raise Killed

    s3.before = die_after
    with pytest.MonkeyPatch.context() as once:
        added = Notes.add
        once.setattr(Notes, "add", lambda self, done: added(self, (one for one in done if one.action == "started")))
        for _ in range(2):
            with suppress(Killed):
                clear(tmp_path, s3)
    view, found = LakeView(str(tmp_path)), [Done("alpha", 1, 1, {row("a.json")["file_id"]: 1}, 1, "", "")]
    assert [f"s3://{one.bucket}/{one.key}" for one in landed_of(view, found) if one.why] == s3.archived
    assert s3.archived == [place_of("a.json")]
    assert lives_of(view, "landing", "in/a.json")[0].away is None
    assert len(DeltaTable(f"{tmp_path}/_forebay/after_load").to_pyarrow_table()) == 1  # the second run adds no other


def test_two_services_of_a_lake_move_their_files_at_the_same_time_and_two_runs_of_one_do_not(tmp_path: Path) -> None:
    """Both may begin at the same hour of each day. The longer one must not keep the other one out for ever."""
    write_ledger(tmp_path, row("a.json"), row("b.json", service="others", bucket="more"))
    s3, ends, others = S3().put("a.json"), list[object](), service(MOVE).model_copy(update={"name": "others"})
    s3.objects["more", "in/b.json"] = ("e1", None)

    def meanwhile(verb: str, key: str) -> None:
        if not ends:
            ends.append("begun")
            told: dict[str, Any] = {"emit": lambda event: None, "stop": threading.Event(), "now": NOW, "s3": s3}
            ends.append(clear_landed(str(tmp_path), others, **told))
            with pytest.raises(LeaseHeld):
                clear_landed(str(tmp_path), service(MOVE), **told)

    s3.before = meanwhile
    assert clear(tmp_path, s3).files == 1
    assert isinstance(ends[1], Cleared)
    assert [key for key, _, _ in notes(tmp_path)] == ["in/a.json", "in/b.json"]
    assert [bucket for bucket, _ in s3.objects] == ["archive", "archive"]


def test_no_file_goes_while_a_rollback_is_half_done(tmp_path: Path) -> None:
    """Its rows may have left already, and the ledger does not say so yet."""
    write_ledger(tmp_path, row("a.json"))
    s3, place = S3().put("a.json"), str(tmp_path)
    write_plan(place, {"number": "n", "tables": [{"table": "alpha", "to": 0}]}, lambda: None)
    with pytest.raises(Halt, match=r"a rollback of .* is unfinished"):
        clear(tmp_path, s3, DELETE)
    assert s3.landed == ["in/a.json"]
    delete_plan(place)
    assert clear(tmp_path, s3, DELETE).files == 1, "its lease was let go"


def test_a_denied_delete_is_told_and_stops_no_other(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"), row("b.json"), row("c.json"))
    s3, events = S3().put("a.json", "b.json", "c.json"), list[Event]()

    def deny(verb: str, key: str) -> None:
        if verb == "delete" and key != "in/b.json":
            raise refusal(403, "AccessDenied")

    s3.before = deny
    done = clear(tmp_path, s3, events=events)
    assert (dict(done.actions), done.failed) == ({"moved": 1}, 2)
    (left,) = [one for one in events if isinstance(one, LandedFilesLeft)]
    assert (left.reason, left.files, left.such_as) == ("denied", 2, "s3://landing/in/a.json")

    s3.before, s3.asked = lambda verb, key: None, []
    assert dict(clear(tmp_path, s3).actions) == {"moved": 2}
    assert "copy" not in {verb for verb, _ in s3.asked}  # the copies are there


def test_copies_that_the_service_would_load_again_are_not_made(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"))
    s3 = S3().put("a.json")
    done = clear(tmp_path, s3, 'after_load = { move = "s3://landing/old/" }')
    assert (list(done.left), s3.landed) == (["archive-is-landing"], ["in/a.json"])
    with_feeds = 'after_load = { move = "s3://landing/old/" }\nfeeds = [{ name = "in", prefix = "in/" }]'
    assert dict(clear(tmp_path, s3, with_feeds).actions) == {"moved": 1}


def test_a_place_in_the_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="is in the lake"):
        clear_landed(
            "s3://lake/games", service('after_load = { move = "s3://lake/games/old/" }'), emit=[].append, **NOTHING
        )


NOTHING: dict[str, Any] = {"now": NOW, "stop": threading.Event(), "s3": S3()}


def test_a_preview_says_what_would_go_where_and_asks_s3_nothing(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"), row("b.json", parked=1))
    found = landed_due(str(tmp_path), service(MOVE), now=NOW)
    assert (found.files, found.bytes, found.waiting) == (1, 100, 1)
    assert found.due == [("s3://landing/in/a.json", place_of("a.json"))]
    assert not (tmp_path / "_forebay" / "after_load").exists()


@pytest.mark.parametrize(("rule", "told", "after"), [(MOVE, "moved to {}", True), (DELETE, "deleted", False)])
def test_the_life_of_a_file_says_where_it_is_also_after_it_was_read_from_the_archive(
    rule: str, told: str, after: bool, tmp_path: Path
) -> None:
    """A deleted file can only be loaded again once it was put back."""
    write_ledger(tmp_path, row("a.json"))
    clear(tmp_path, S3().put("a.json"), rule)
    view = LakeView(str(tmp_path))
    (life,) = lives_of(view, "landing", "in/a.json")
    assert str(life.away) == told.format(place_of("a.json"))
    ledger = DeltaTable(f"{tmp_path}/_forebay/ledger")
    ledger.update(updates={"committed_at": "timestamp '2100-01-01T00:00:00Z'"})
    assert [one.committed_at.year for one in versions_of(view, "landing", "in/a.json")] == [2100]
    (life,) = lives_of(view, "landing", "in/a.json")
    assert (life.away is not None) is after


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (MOVE, "Such a file is read from there"),
        (MOVE.replace("landed", "elsewhere"), "Such a file is read again once former_archives names its archive"),
        (f'{DELETE}\nformer_archives = ["s3://archive/landed"]', "Such a file is read from there"),
        (DELETE, "Such a file is read again once former_archives names its archive"),
        ("", "Such a file is read again once former_archives names its archive"),
    ],
)
def test_a_replay_says_whether_it_can_read_a_moved_file(rule: str, says: str, tmp_path: Path) -> None:
    """By the declarations that are in force now."""
    write_ledger(tmp_path, row("a.json"))
    clear(tmp_path, S3().put("a.json"))
    keep_in_force(str(tmp_path), service(rule))
    said = failed(0, "replay", "--file", "s3://landing/in/a.json", "--dry-run", "--lake", str(tmp_path))
    assert f"s3://landing/in/a.json was moved to {place_of('a.json')}. {says}" in said


def test_a_replay_says_that_it_cannot_read_a_deleted_file(tmp_path: Path) -> None:
    write_ledger(tmp_path, row("a.json"))
    clear(tmp_path, S3().put("a.json"), DELETE)
    keep_in_force(str(tmp_path), service(DELETE))
    said = failed(0, "replay", "--file", "s3://landing/in/a.json", "--dry-run", "--lake", str(tmp_path))
    assert "s3://landing/in/a.json was deleted. Such a file is read again only if you put it back" in said


def test_an_erasure_names_the_copies_of_moved_files_and_never_calls_them_cleared(tmp_path: Path) -> None:
    """The subject was declared after they were moved."""
    write_ledger(tmp_path, row("a.json"))
    clear(tmp_path, S3().put("a.json"))
    view, files = LakeView(str(tmp_path)), {row("a.json")["file_id"]: 1}
    copy, landed = landed_of(view, [Done("alpha", 1, 1, files, 1, "", "")])
    assert (f"s3://{copy.bucket}/{copy.key}", copy.cleared) == (place_of("a.json"), False)
    assert "was moved there by after_load" in copy.why
    assert landed == Landed("landing", "in/a.json")
    assert moved_away(view) == {("landing", "in/a.json")}
    listed = service('privacy = { subject = "user_id", secret = "s3://secrets/t" }')
    plan = ErasePlan(1, AT.isoformat(), "games", ("t",), False)
    archive = Mock()
    archive.get_paginator.side_effect = refusal(403, "AccessDenied")
    assert clear_landing(view, listed, plan, [copy, landed], s3=archive) == [copy, landed]
    assert clear_landing(view, listed, plan, [landed]) == [landed]
    deleted = service('privacy = { subject = "user_id", secret = "s3://secrets/t", landing = "delete" }')
    archive = Mock()
    archive.get_paginator.return_value.paginate.return_value = [
        {"Versions": [{"Key": copy.key, "VersionId": "null", "IsLatest": True}]}
    ]
    assert clear_landing(view, deleted, plan, [copy], s3=archive) == [copy]
    archive.get_paginator.return_value.paginate.return_value = [{}]
    assert [one.cleared for one in clear_landing(view, deleted, plan, [copy], s3=archive)] == [True]


@pytest.mark.parametrize(
    "other",
    [
        {"version_id": "v2", "outcome": "duplicate", "tables": {}},
        {"version_id": "v1", "service": "games", "file_id": "f2"},
    ],
    ids=["a duplicate has the same records", "another service moved it"],
)
def test_an_erasure_names_the_copies_of_every_version_whoever_moved_them(tmp_path: Path, other: dict[str, Any]) -> None:
    theirs = row("a.json", version_id="v1", service="people" if "service" in other else "games")
    write_ledger(tmp_path, theirs, row("a.json", **other))
    s3 = S3().put("a.json", version=other["version_id"])
    assert clear(tmp_path, s3).actions["moved"] == 1
    view, found = LakeView(str(tmp_path)), [Done("alpha", 1, 1, {theirs["file_id"]: 1}, 1, "", "")]
    assert {*s3.archived} <= {f"s3://{one.bucket}/{one.key}" for one in landed_of(view, found) if one.why}
    assert moved_away(view) == {("landing", "in/a.json")}


def test_an_erasure_that_looks_again_finds_what_another_service_moved_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_secret(f"{tmp_path}/secret")
    people = service(f'privacy = {{ subject = "user_id", secret = "{tmp_path}/secret" }}')
    people = people.model_copy(update={"name": "people"})
    write_ledger(tmp_path, row("a.json", service="people"), row("a.json", file_id="f2"))
    view, erasures = LakeView(str(tmp_path)), Erasures(str(tmp_path), "people")
    plan = erasures.begin(ErasePlan(0, AT.isoformat(), "people", ("t",), False, subject="user_id", ended=True))
    erasures.note_landing(plan, [Landed("landing", "in/a.json")])
    s3 = S3().put("a.json")
    clear(tmp_path, s3)
    bucket = Mock()
    bucket.get_paginator.return_value.paginate = lambda Bucket, Prefix: [  # noqa: N803
        {"Versions": [{"Key": key, "VersionId": "null", "IsLatest": True} for at, key in s3.objects if at == Bucket]}
    ]
    monkeypatch.setattr("forebay.operate.people.landing.s3_client", lambda: bucket)
    assert clear_again(view, people, search=True) == 1
    assert [(one["bucket"], one["cleared"]) for one in erasures.landing(plan) or ()] == [
        ("landing", True),
        ("archive", False),
    ]
    report = erasures.report(plan.number)
    assert report is not None
    assert not report["is_gone"]


def test_the_command_shows_what_would_move_and_what_waits(tmp_path: Path) -> None:
    lake, declared = tmp_path / "lake", tmp_path / "service.toml"
    declared.write_text(f'name = "games"\n{MOVE}\n[[tables]]\nname = "alpha"\n')
    long_ago = datetime.now(UTC) - timedelta(days=30)
    write_ledger(lake, row("a.json", at=long_ago), row("b.json", at=long_ago, quarantined=1))
    said = ran("maintain", "--lake", str(lake), "--service", str(declared), "--dry-run")
    assert said.splitlines()[:2] == [
        f"s3://landing/in/a.json → {place_of('a.json')}",
        "1 landed file to move to s3://archive/landed/, 100 B",
    ]
    assert "1 file waits for records in the quarantine or parked" in said
    told = ran("maintain", "--lake", str(lake), "--service", str(declared), "--dry-run", "--json")
    assert (json.loads(told)["files"], json.loads(told)["waiting"]) == (1, 1)


def test_a_key_that_was_written_twice_is_one_object_to_delete(tmp_path: Path) -> None:
    lake, declared = tmp_path, tmp_path / "service.toml"
    declared.write_text('name = "games"\nafter_load = { delete = true }\n[[tables]]\nname = "alpha"\n')
    write_ledger(lake, row("a.json", etag="e1"), row("a.json", etag="e2"))
    said = ran("maintain", "--lake", str(lake), "--service", str(declared), "--dry-run")
    assert said.splitlines() == ["s3://landing/in/a.json", "1 landed file to delete, 100 B"]


def test_the_command_says_when_files_are_due_if_none_is(tmp_path: Path) -> None:
    lake, declared = tmp_path / "lake", tmp_path / "service.toml"
    write_ledger(lake, row("a.json", at=datetime.now(UTC)))
    for days, told in {7: "7 days after it was loaded", 1: "1 day after it was loaded", 0: "once it is loaded"}.items():
        rule = MOVE.replace(" }", f", after_days = {days} }}")
        declared.write_text(f'name = "games"\n{rule}\n[[tables]]\nname = "alpha"\n')
        said = ran("maintain", "--lake", str(lake), "--service", str(declared), "--dry-run")
        assert said == f"0 landed files to move to s3://archive/landed/; a file is due {told}\n"


REFUSED = {
    "move and delete": ('after_load = { move = "s3://a/b/", delete = true }', "needs either move"),
    "a day to come": ("after_load = { delete = true, after_days = -1 }", "must be at least 0"),
    "neither": ("after_load = { after_days = 3 }", "needs either move"),
    "no place": ('after_load = { move = "archive" }', "is not a place in S3"),
    "people": (
        f'{MOVE}\nprivacy = {{ subject = "user_id", secret = "s3://secrets/t" }}',
        "privacy erase` would not find",
    ),
    "a manifest": (
        f'{DELETE}\nenvelope.complete = {{ folder = "in/%Y/%m/%d/%H/", manifest = "_M" }}',
        "counts the files in the landing bucket",
    ),
    "a feed": (
        'after_load = { move = "s3://landing/in/old/" }\n'
        'feeds = [{ name = "clicks", prefix = "in/", bucket = "landing" }]',
        "feed clicks would load the moved files again",
    ),
}


@pytest.mark.parametrize(("declared", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_hold_together_is_refused(declared: str, why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=why):
        service(declared)


def test_people_can_be_erased_where_loaded_files_are_deleted() -> None:
    assert service(f'{DELETE}\nprivacy = {{ subject = "user_id", secret = "s3://secrets/t" }}').after_load is not None
