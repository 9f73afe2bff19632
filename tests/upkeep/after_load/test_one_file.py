"""What becomes of one landed file: whether it moves, and what the note of it says."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from forebay.upkeep.after_load.due import DueFile
from forebay.upkeep.after_load.effect import Done, Left, Settling
from tests.operate.ledger import write_ledger
from tests.upkeep.after_load.test_after_load import AT, DELETE, MOVE, NOW, S3, beside, clear, refusal, row, service

FILE = DueFile("f1", "landing", "in/a.json", None, "e1", 100, "2026-11-21")
PLACE = "s3://archive/landed/landing/in/f1/a.json"
COPY = ("archive", "landed/landing/in/f1/a.json")


def settled(s3: S3, rule: str, file: DueFile = FILE, started: Collection[str] = ()) -> tuple[str, str]:
    """The action and the place of the copy, or why it was left."""
    after_load = service(rule).after_load
    assert after_load is not None
    found = Settling(s3, after_load, lambda bucket, key: "", lambda bucket, key: "").settle(file, started)
    return (found.action, found.place) if isinstance(found, Done) else ("left", found.reason)


@pytest.mark.parametrize("started", [(), ("f1",)], ids=["before", "after a run that died"])
def test_a_file_that_a_producer_deleted_is_gone_where_it_has_no_copy(started: Collection[str]) -> None:
    """Else its deletion would be taken for ours, and its rows would stay."""
    assert settled(S3(), MOVE, started=started) == ("gone", "")
    assert settled(S3(), DELETE, started=started) == ("deleted" if started else "gone", "")
    moved = S3()
    moved.objects[COPY] = ("e1", None)
    assert settled(moved, MOVE, started=started) == ("moved", PLACE)


@pytest.mark.parametrize("copied", [True, False])
def test_the_note_of_a_replaced_file_has_a_place_only_if_a_copy_is_there(copied: bool) -> None:
    s3 = S3().put("a.json", etag="e2")
    s3.objects |= {COPY: ("e1", None)} if copied else {}
    assert settled(s3, MOVE) == ("replaced", PLACE if copied else "")
    assert settled(s3, DELETE) == ("replaced", "")


def test_a_version_whose_etag_is_not_known_moves_and_an_object_without_both_stays() -> None:
    versioned = DueFile("f1", "landing", "in/a.json", "v1", "", 100, "2026-11-21")
    assert settled(S3().put("a.json", version="v1"), DELETE, versioned) == ("deleted", "")
    unknown = DueFile("f1", "landing", "in/a.json", "null", "", 100, "2026-11-21")
    s3 = S3().put("a.json", version="null")
    assert settled(s3, DELETE, unknown) == ("left", "no-version")
    assert s3.landed == ["in/a.json"]


@pytest.mark.parametrize(
    ("verb", "code", "ends"),
    [
        ("copy", "NoSuchKey", ("replaced", "")),
        ("copy", "NoSuchVersion", ("replaced", "")),
        ("copy", "NoSuchBucket", ("left", "NoSuchBucket")),
        ("delete", "NoSuchKey", ("moved", PLACE)),
        ("delete", "NoSuchBucket", ("left", "NoSuchBucket")),
    ],
)
def test_an_object_that_is_gone_meanwhile_is_done_and_a_bucket_that_is_not_there_is_told(
    verb: str, code: str, ends: tuple[str, str]
) -> None:
    def refuse(asked: str, key: str) -> None:
        if asked == verb:
            raise refusal(404, code)

    assert settled(S3(before=refuse).put("a.json"), MOVE) == ends


@pytest.mark.parametrize(
    ("rule", "ends"), [(MOVE, "it would move to s3://archive/landed/)"), (DELETE, "it would be deleted)")]
)
def test_a_refusal_says_what_was_tried(rule: str, ends: str) -> None:
    """S3 says which bucket does not exist in neither case."""

    def refuse(asked: str, key: str) -> None:
        if asked == ("copy" if rule == MOVE else "delete"):
            raise refusal(404, "NoSuchBucket")

    after_load = service(rule).after_load
    assert after_load is not None
    found = Settling(S3(before=refuse).put("a.json"), after_load, lambda *_: "", lambda *_: "").settle(FILE)
    assert isinstance(found, Left)
    assert found.detail.endswith(ends)


def test_a_file_that_is_refused_is_not_noted_as_started(tmp_path: Path) -> None:
    """Or a producer's deletion of it would be taken for ours."""
    beside(tmp_path, 'on_delete = "forget"')
    write_ledger(tmp_path, row("a.json", tables={}), row("a.json", file_id="f2", service="others", tables={}))
    assert [*clear(tmp_path, S3().put("a.json")).left] == ["forgotten-by-others"]
    assert not DeltaTable.is_deltatable(f"{tmp_path}/_forebay/after_load")


def test_a_file_may_be_due_with_the_next_maintenance(tmp_path: Path) -> None:
    """Its batch ended a minute after it landed."""
    s3, at_once = S3().put("a.json"), "after_load = { delete = true, after_days = 0 }"
    write_ledger(tmp_path, row("a.json", tables={}))
    assert clear(tmp_path, s3, at_once, now=AT + timedelta(seconds=59)).files == 0
    assert clear(tmp_path, s3, at_once, now=AT + timedelta(seconds=60)).actions["deleted"] == 1
    assert clear(tmp_path, s3, at_once, now=AT + timedelta(seconds=61)).files == 0


@pytest.mark.parametrize(("hours", "files"), [(-1, 1), (1, 0)])
def test_a_file_is_due_by_the_hour_and_not_by_the_day(tmp_path: Path, hours: int, files: int) -> None:
    made: dict[str, Any] = {"at": NOW.replace(day=AT.day + 1, hour=AT.hour + hours)}
    write_ledger(tmp_path, row("a.json", tables={}, **made))
    assert clear(tmp_path, S3().put("a.json"), DELETE).files == files
