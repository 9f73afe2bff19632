"""`forebay files forget`: what would leave is shown first; then the ledger says so. And what brings the files back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.batch.plan import Plan, Plans
from forebay.cli.changing import forget
from forebay.lake.layout import PLANS
from forebay.lake.objects import open_objects
from forebay.lake.paused import pause
from forebay.ledger.withheld import withheld_in
from forebay.operate import lake_view
from forebay.operate.changing import replay as replaying
from forebay.operate.changing.replay import Replay, mark
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import FileChoice
from tests.operate.command import failed, given, ran
from tests.operate.ledger import AT, entry, write_ledger, write_tables

A, TEST_1, TEST_2 = "s3://landing/in/a.json", "s3://landing/in/test-1.json", "s3://landing/in/test-2.json"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(
        tmp_path,
        entry("in/a.json", tables={"alpha": 3}),
        entry("in/test-1.json", tables={"alpha": 3, "beta_log": 2}, quarantined=1, parked=2, records=8),
        entry("in/test-2.json", tables={"alpha": 1}),
        entry("in/torn.json", outcome="unreadable"),
    )
    write_tables(tmp_path, "alpha", "beta_log")
    return str(tmp_path)


@pytest.fixture
def queue(s3: str) -> str:
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    return str(sqs.create_queue(QueueName=f"forget-{uuid.uuid4()}")["QueueUrl"])


def rows(lake: str) -> dict[str, tuple[str, str | None]]:
    found = DeltaTable(f"{lake}/_forebay/ledger").to_pyarrow_table().to_pylist()
    return {row["key"].removeprefix("in/").removesuffix(".json"): (row["outcome"], row["reason"]) for row in found}


def says(lake: str, key: str, **updates: str) -> None:
    """What a batch, or an operator, makes of it."""
    quoted = {name: f"'{value}'" for name, value in updates.items()}
    DeltaTable(f"{lake}/_forebay/ledger").update(predicate=f"key = 'in/{key}.json'", updates=quoted)


def announced(queue: str) -> list[str]:
    found = boto3.client("sqs", region_name="eu-west-1").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    told = [json.loads(message["Body"])["Records"] for message in found.get("Messages", ())]
    return sorted(record["s3"]["object"]["key"] for records in told for record in records)


def test_what_would_leave_is_shown_and_nothing_is_changed(lake: str) -> None:
    for name, origin in (("beta", "beta_log"), ("daily", "alpha,gamma"), ("weekly", "gamma")):
        write_deltalake(f"{lake}/{name}", pa.table({"n": [1]}), configuration={"delta.checkpointInterval": "9"})
        first, known = Path(lake, name, "_delta_log", f"{0:020}.json"), '"delta.checkpointInterval":"9"'
        first.write_text(first.read_text().replace(known, f'{known},"forebay.derivedFrom":"{origin}"'))
    told = json.loads(ran("files", "forget", "s3://landing/in/test-*", "--lake", lake, "--dry-run", "--json"))
    assert told == {
        "files": 2,
        "records": 9,
        "rows": {"alpha": 4, "beta_log": 2},
        "quarantined": 1,
        "parked": 2,
        "computed_from": ["beta", "daily"],
        "left_out": {},
        "dry_run": True,
    }
    said = ran("files", "forget", TEST_1, "s3://landing/in/torn.json", "--lake", lake, "--dry-run")
    assert "1 file of 8 records to forget. These rows leave" in said
    assert "the next merge also removes them from beta and daily" in said
    assert "1 unreadable" in said
    assert "forget" not in {outcome for outcome, _ in rows(lake).values()}


def test_chosen_files_are_marked_then_announced_and_said_again_they_are_once_more(lake: str, queue: str) -> None:
    command = ("files", "forget", TEST_1, TEST_2, "--lake", lake, "--queue-url", queue, "--yes")
    status, _, said = given(command, "")
    assert (status, "announced: 1 of 2 files" in said or "announced: 2 of 2 files" in said) == (0, True)
    assert {key for key, (outcome, _) in rows(lake).items() if outcome == "forget"} == {"test-1", "test-2"}
    assert announced(queue) == ["in/test-1.json", "in/test-2.json"]
    assert "forgets     2 files to be forgotten" in ran("status", "--lake", lake)
    assert len(list(withheld_in(open_objects(f"{lake}/_forebay/ledger"), "games"))) == 2, "a job that starts goes on"
    (told,) = [json.loads(line) for line in ran("history", "--lake", lake, "--json").splitlines()]
    assert told["what"] == "files forget: 2 files, 9 records in alpha, beta_log"
    undo = "forebay files retry --forgotten --key s3://landing/in/test-"
    assert told["undo"] == f"{undo}1.json; {undo}2.json"
    says(lake, "test-2", outcome="forgotten")
    assert given(command, "")[0] == 0
    assert announced(queue) == ["in/test-1.json"], "the interrupted one goes on, and the other is done"


def test_what_was_forgotten_comes_back_by_its_undo_alone(lake: str, queue: str) -> None:
    says(lake, "test-1", outcome="forgotten", detail="its rows left at 2026-11-22 12:00 UTC")
    says(lake, "test-2", outcome="forget")
    to = ("--lake", lake, "--queue-url", queue)
    assert "1 file of 3 records" in ran("replay", "--table", "alpha", "--lake", lake, "--dry-run")
    assert "0 files announced again" in given(("files", "retry", "--key", "in/test-1.json", *to), "")[1]
    dry = ran("files", "retry", "--forgotten", "--key", "in/test-*", *to, "--dry-run")
    assert dry.splitlines() == [TEST_1, TEST_2, "2 forgotten files would be read again"]
    assert given(("files", "retry", "--forgotten", "--key", "in/test-*", *to), "")[0] == 0
    assert (rows(lake)["test-1"], rows(lake)["test-2"]) == (("forgotten", "wanted-again"), ("replay", None))
    assert announced(queue) == ["in/test-1.json", "in/test-2.json"]
    assert "replays     2 files to be read again" in ran("status", "--lake", lake)
    assert "2 files announced again" in given(("files", "retry", *to), "")[1], "an announcement may be lost"
    assert "1 wanted-again" in ran("files", "forget", TEST_1, "--lake", lake, "--dry-run")
    by_id = next(file.file_id for file in lake_view_files(lake) if file.uri == TEST_1)
    assert ran("files", "retry", "--forgotten", "--file-id", by_id, *to, "--dry-run").splitlines()[0] == TEST_1
    none = ("files", "retry", "--forgotten", "--key", "in/a.json", *to, "--dry-run")
    assert ran(*none) == "0 forgotten files would be read again\n"
    assert "--of gamse: never loaded files here" in failed(2, *none, "--of", "gamse")


def test_the_undo_of_a_pattern_brings_back_no_file_of_another_bucket(lake: str, queue: str) -> None:
    write_ledger(lake, entry("in/test-1.json", bucket="other", outcome="forgotten"))
    to = ("--lake", lake, "--queue-url", queue)
    given(("files", "forget", "s3://landing/in/test-*", *to, "--yes"), "")
    (told,) = [json.loads(line) for line in ran("history", "--lake", lake, "--json").splitlines()]
    assert told["undo"] == "forebay files retry --forgotten --key 's3://landing/in/test-*'"
    dry = ran("files", "retry", "--forgotten", "--key", "s3://landing/in/test-*", *to, "--dry-run")
    assert dry.splitlines() == [TEST_1, TEST_2, "2 forgotten files would be read again"]
    assert "3 forgotten files" in ran("files", "retry", "--forgotten", "--key", "in/test-*", *to, "--dry-run")


def test_a_version_that_came_while_its_earlier_one_waited_to_be_forgotten_is_named(lake: str, queue: str) -> None:
    says(lake, "test-1", outcome="forget")
    says(lake, "test-2", outcome="forget")
    later = entry("in/test-1.json", etag="e2", tables={"alpha": 1}, at=AT + timedelta(hours=1))
    write_ledger(lake, later, entry("in/test-2.json", etag="e0", tables={"alpha": 1}, at=AT - timedelta(hours=1)))
    retry = ("files", "retry", "--forgotten", "--key", "in/test-*", "--lake", lake, "--queue-url", queue)
    said = given(retry, "")[2]
    assert (
        f"{TEST_1}: a later version was loaded as well. To keep only one of them, remove the later one: `forebay files forget"
        in said
    )
    assert f"--file-id {later['file_id']}`" in said
    assert TEST_2 not in said


def test_a_version_that_is_half_forgotten_for_a_later_one_comes_back_once_all_of_it_is(lake: str, queue: str) -> None:
    """Its rows could not leave a table. Brought back now, they would stay there beside those of the later version."""
    half = {"outcome": "forget", "reason": "table-failed", "tables": {"beta_log": 2}, "records": 3, "dropped": 1}
    first = entry("in/b.json", etag="e1", **half)
    write_ledger(Path(lake), first)
    retry = ("files", "retry", "--forgotten", "--key", "in/b.json", "--lake", lake, "--queue-url", queue)
    assert "1 forgotten file would be read again" in ran(*retry, "--dry-run")
    write_ledger(Path(lake), entry("in/b.json", etag="e2", at=AT + timedelta(hours=1)))
    to = ("--lake", lake, "--queue-url", queue)
    for command in (retry, ("replay", "--file-id", first["file_id"], *to, "--yes")):
        assert "its rows could not leave beta_log yet (table-failed)" in failed(1, *command)
    assert {(one.etag, one.outcome) for one in lake_view_files(lake) if one.key == "in/b.json"} == {
        ("e1", "forget"),
        ("e2", "loaded"),
    }


@pytest.mark.parametrize("first", [{"outcome": "loaded"}, {"outcome": "forget", "quarantined": 1, "dropped": 0}])
def test_a_version_beside_a_later_one_is_read_again_unless_it_is_half_forgotten(
    first: dict[str, Any], lake: str
) -> None:
    """A service may keep both versions. And where rows wait in the quarantine, the reason is that of the file's load."""
    half = {"reason": "table-failed", "tables": {"beta_log": 2}, "records": 3, "dropped": 1, **first}
    write_ledger(Path(lake), entry("in/b.json", **half), entry("in/b.json", etag="e2", at=AT + timedelta(hours=1)))
    view = LakeView(lake)
    (chosen,) = [one for one in lake_view_files(lake) if (one.key, one.etag) == ("in/b.json", "e1")]
    assert mark(view, Replay((chosen,), {})) == 1


def test_a_replay_brings_back_only_what_is_named(lake: str) -> None:
    says(lake, "test-1", outcome="forgotten")
    assert json.loads(ran("replay", "--key", "*", "--lake", lake, "--dry-run", "--json"))["left_out"]["forgotten"] == 1
    assert json.loads(ran("replay", "--file", TEST_1, "--lake", lake, "--dry-run", "--json"))["files"] == 1


def test_wrong_use_is_told_before_anything_is_marked(lake: str, queue: str) -> None:
    to = ("--lake", lake, "--queue-url", queue, "--yes")
    assert "names no file" in failed(2, "files", "forget", *to)
    assert "is not the address of an object" in failed(2, "files", "forget", "in/a.json", *to)
    assert "is not the id of a file" in failed(2, "files", "forget", "--file-id", "abc", *to)
    said = failed(2, "files", "forget", A, "s3://landing/in/b.json", "s3://landing/tset-*", *to)
    assert said.count("it is not in the ledger") == 2
    assert "--queue-url" in failed(2, "files", "forget", A, "--lake", lake)
    assert "--of gamse: never loaded files here" in failed(2, "files", "forget", A, "--of", "gamse", *to)
    assert "cannot be combined with" in failed(2, "files", "retry", "--skipped", "--forgotten", *to[:-1])
    assert "nothing was done" in failed(1, "files", "forget", A, *to[:-1], typed="n\n")
    pause(lake, ["beta_log"])
    assert "table beta_log: is paused" in failed(2, "files", "forget", TEST_1, *to)
    write_ledger(Path(lake), entry("in/c.json", tables={"alpha": 1}, service="casual"))
    assert "are of the services casual, games" in failed(
        2, "files", "forget", "s3://landing/in/*.json", "--of", "", *to
    )
    assert {outcome for outcome, _ in rows(lake).values()} == {"loaded", "unreadable"}


def test_a_version_is_named_by_its_id_and_an_underscore_stands_for_itself(lake: str) -> None:
    write_ledger(Path(lake), entry("in/a_b.json", etag="e1"), entry("in/a_b.json", etag="e2"), entry("in/axb.json"))
    ids = [row["file_id"] for row in LakeView(lake).query("_forebay/ledger", "select file_id from t where etag = 'e2'")]
    assert "1 file of" in ran("files", "forget", "--file-id", ids[0], "--lake", lake, "--dry-run")
    assert "2 files of" in ran("files", "forget", "s3://landing/in/a_*", "--lake", lake, "--dry-run")


def test_a_mark_over_a_mark_that_a_batch_goes_by_is_to_be_repeated(lake: str, queue: str) -> None:
    """The batch ends the file by the earlier mark, and the later one would be lost without a word."""
    says(lake, "test-1", outcome="replay")
    file = next(f.landed for f in lake_view_files(lake) if f.uri == TEST_1)
    nothing = {"began_at": AT, "service": {}, "ends": (), "fates": ()}
    Plans(open_objects(f"{lake}/{PLANS}"), "games").pin(Plan(generation="g1", batch=7, files=(file,), **nothing))  # type: ignore[arg-type]
    said = failed(1, "files", "forget", TEST_1, "--lake", lake, "--queue-url", queue, "--yes")
    assert f"batch 7 of games is working on 1 of these files, such as {TEST_1}" in said
    assert given(("files", "forget", TEST_2, "--lake", lake, "--queue-url", queue, "--yes"), "")[0] == 0


def test_a_file_that_a_batch_may_replace_is_to_be_forgotten_once_it_ended(lake: str, queue: str) -> None:
    """The ledger's row of the earlier version is the batch's: the mark would be lost."""
    later = replace(next(f.landed for f in lake_view_files(lake) if f.uri == TEST_1), etag="e9")
    nothing = {"began_at": AT, "service": {}, "ends": (), "fates": ()}
    Plans(open_objects(f"{lake}/{PLANS}"), "games").pin(Plan(generation="g1", batch=7, files=(later,), **nothing))  # type: ignore[arg-type]
    said = failed(1, "files", "forget", TEST_1, "--lake", lake, "--queue-url", queue, "--yes")
    assert f"batch 7 of games is working on 1 of these files, such as {TEST_1}" in said


@pytest.mark.parametrize("shown", ["replay", "loaded"])
def test_a_mark_over_a_mark_that_a_batch_ended_meanwhile_is_to_be_repeated(
    shown: str, lake: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit came after the mark, and its plan is gone when somebody looks for plans. Another operator may have made the
    earlier mark after the files were shown."""
    says(lake, "test-1", outcome=shown)
    says(lake, "test-2", outcome="forget")
    real = replaying.commit

    def then_the_batch_ends(attempt: Callable[[], int], *, refused: str) -> int:
        done = real(attempt, refused=refused)
        says(lake, "test-1", outcome="loaded")
        says(lake, "test-2", outcome="forgotten")
        return done

    monkeypatch.setattr(replaying, "commit", then_the_batch_ends)
    to = ("--lake", lake, "--queue-url", queue)
    assert "ended 1 of these files" in failed(1, "files", "forget", TEST_1, *to, "--yes")
    says(lake, "test-2", outcome="forget")
    assert "ended 1 of these files" in failed(1, "files", "retry", "--forgotten", "--key", "*", *to)


def lake_view_files(lake: str) -> list:  # type: ignore[type-arg]
    from forebay.operate.looking.files import list_files

    return list_files(LakeView(lake), FileChoice(), limit=99)


def test_where_says_when_the_rows_left(lake: str) -> None:
    nothing = {"written": 0, "quarantined": 0, "parked": 0, "dropped": 8, "records": 8, "tables": {}}
    said = {"outcome": "forgotten", "detail": "its rows left at 2026-11-22 12:00 UTC"}
    write_ledger(Path(lake), entry("in/gone.json", **{**nothing, **said}))
    told = ran("where", "s3://landing/in/gone.json", "--lake", lake).splitlines()
    assert [line.split()[0] for line in told[1:]] == ["landed", "claimed", "loaded", "forgotten"]
    assert told[-1].endswith("forgotten   its rows left at 2026-11-22 12:00 UTC")
    assert "in/gone.json" in ran("files", "list", "--outcome", "forgotten", "--lake", lake)


def test_files_of_another_service_than_the_named_one_are_not_known(lake: str) -> None:
    write_ledger(Path(lake), entry("in/c.json", tables={"alpha": 1}, service="casual"))
    (id_,) = [file.file_id for file in lake_view_files(lake) if file.uri == A]
    for named in (("s3://landing/in/a.json",), ("s3://landing/in/test-*",), ("--file-id", id_)):
        said = failed(2, "files", "forget", *named, "--of", "casual", "--lake", lake, "--dry-run")
        assert "it is not in the ledger" in said, named
    assert "1 file of" in ran("files", "forget", "s3://landing/in/*", "--of", "casual", "--lake", lake, "--dry-run")


def test_all_that_was_ever_forgotten_comes_back_only_by_name(lake: str, queue: str) -> None:
    says(lake, "test-1", outcome="forgotten")
    assert "--key" in failed(2, "files", "retry", "--forgotten", "--lake", lake, "--queue-url", queue)
    assert rows(lake)["test-1"] == ("forgotten", None)


def test_the_undo_of_bringing_back_forgets_no_other_version(lake: str, queue: str) -> None:
    write_ledger(Path(lake), entry("in/b.json", etag="e1", tables={"alpha": 1}), entry("in/b.json", etag="e2"))
    first = next(file for file in lake_view_files(lake) if (file.key, file.etag) == ("in/b.json", "e1"))
    says(lake, "b", outcome="forgotten")
    DeltaTable(f"{lake}/_forebay/ledger").update(predicate="etag = 'e2'", updates={"outcome": "'loaded'"})
    given(("files", "retry", "--forgotten", "--key", "in/b.json", "--lake", lake, "--queue-url", queue), "")
    (told,) = [json.loads(line) for line in ran("history", "--lake", lake, "--json").splitlines()]
    assert told["undo"] == f"forebay files forget --file-id {first.file_id}"


def test_files_that_became_something_else_since_the_plan_are_told(
    lake: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "confirm", lambda question: says(lake, "test-1", outcome="superseded"))
    command = ("files", "forget", TEST_1, TEST_2, "--lake", lake, "--queue-url", queue)
    status, _, said = given(command, "")
    assert (status, "1 of 2 files changed since this was shown" in said) == (1, True)
    assert (rows(lake)["test-1"][0], rows(lake)["test-2"][0]) == ("superseded", "forget")
    (told,) = [json.loads(line) for line in ran("history", "--lake", lake, "--json").splitlines()]
    assert told["what"].startswith("files forget: 1 file,")


def test_questions_about_many_files_are_asked_in_portions(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_view, "ASKED_AT_ONCE", 2)
    asked: list[str] = []
    real = lake_view.rows_of
    monkeypatch.setattr(lake_view, "rows_of", lambda table, sql: asked.append(sql) or real(table, sql))
    keys = ["in/a.json", "in/test-1.json", "in/test-2.json", "it's"]
    found = LakeView(lake).rows_with("_forebay/ledger", "key", "key", [*keys, *keys])
    assert (sorted(row["key"] for row in found), len(asked)) == (keys[:3], 2)
    assert LakeView(lake).rows_with("nowhere", "key", "key", keys) == []
