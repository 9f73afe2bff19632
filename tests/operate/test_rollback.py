"""`forebay rollback`: tables go back, and the ledger says what became of each row, whatever stops it in between."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, TableFeatures, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.lake.folder_lease import FolderLease
from forebay.lake.layout import LEDGER, SERVICES, tombstones_of
from forebay.lake.lease import Lease, hold
from forebay.lake.log.listing import committed_at
from forebay.lake.objects import open_objects
from forebay.lake.rollback_plan import rollback_plan, write_plan
from forebay.landed_file import LandedFile
from forebay.ledger.periods import FeedPeriod
from forebay.ledger.withheld import withheld_in
from forebay.operate.changing import rollback, rollback_ledger
from forebay.operate.changing.reopen import WHY
from forebay.operate.changing.rollback import finish_earlier, plan_rollback, roll_back
from forebay.operate.changing.rollback_ledger import Rollback
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.operate.named_lake import checkpoint_of
from forebay.upkeep.complete.look import periods_of
from forebay.upkeep.run import TableResult, over_tables
from tests.operate.command import failed, given, ran
from tests.operate.ledger import AT, entry, write_ledger

READ = AT + timedelta(seconds=50)
"""When the batch began that read a file, as `entry` says."""
READ_AGAIN = READ + timedelta(hours=1)


def file_id(key: str) -> str:
    return LandedFile("landing", key, 100, "e1").file_id


def append(lake: Path | str, table: str, key: str, rows: int, at: datetime = READ) -> None:
    times = pa.array([at] * rows, pa.timestamp("us", tz="UTC"))
    found = pa.table({"_file_id": [file_id(key)] * rows, "n": list(range(rows)), "_ingested_at": times})
    write_deltalake(f"{lake}/{table}", found, mode="append")


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Three files: the first before a bad release, the others after it; alpha was compacted since."""
    tables: dict[str, dict[str, int]] = {
        "in/a.json": {"alpha": 3, "beta": 1},
        "in/b.json": {"alpha": 2},
        "in/c.json": {"beta": 4},
    }
    for key, counts in tables.items():
        for table, rows in counts.items():
            append(tmp_path, table, key, rows)
        time.sleep(0.05)  # Delta's clock has milliseconds
    DeltaTable(tmp_path / "alpha").optimize.compact()
    write_ledger(tmp_path, *(entry(key, tables=counts) for key, counts in tables.items()))
    return str(tmp_path)


def rows(lake: str, table: str) -> int:
    return int(DeltaTable(f"{lake}/{table}").to_pyarrow_table().num_rows)


def ledger(lake: str) -> dict[str, tuple[Any, ...]]:
    found = DeltaTable(f"{lake}/_forebay/ledger").to_pyarrow_table().to_pylist()
    names = ("outcome", "reason", "written", "dropped")
    return {row["key"]: (*(row[name] for name in names), dict(row["tables"])) for row in found}


def test_a_rollback_is_shown_then_done_then_taken_back_and_every_sum_holds(lake: str) -> None:
    before = ledger(lake)
    (told,) = map(json.loads, ran("rollback", "alpha", "--to", "0", "--lake", lake, "--dry-run", "--json").splitlines())
    assert (told["now"], told["to"], told["leaving"], told["coming"]) == (2, 0, 2, 0)
    assert (rows(lake, "alpha"), ledger(lake)) == (5, before)

    said = ran("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert "alpha: is as in version 0; 2 rows left, 0 came" in said
    assert rows(lake, "alpha") == 3
    assert ledger(lake)["in/b.json"] == ("loaded", "rolled-back", 0, 2, {})
    assert ledger(lake)["in/a.json"] == before["in/a.json"]
    assert accounts(LakeView(lake)).differences() == []

    (verb,) = [one for one in history(lake) if one["kind"] == "verb"]
    assert verb["undo"] == "forebay rollback alpha --to 2"
    assert "0 rows left, 2 came" in ran(*verb["undo"].split()[1:], "--lake", lake, "--yes")
    assert (rows(lake, "alpha"), ledger(lake)) == (5, before)
    assert accounts(LakeView(lake)).differences() == []


def test_a_file_counts_as_rolled_back_until_the_rows_of_all_its_tables_are_back(lake: str) -> None:
    """Until then `after_load` leaves its object, which may be their only copy."""
    append(lake, "alpha", "in/d.json", 2)
    append(lake, "beta", "in/d.json", 1)
    write_ledger(lake, entry("in/d.json", tables={"alpha": 2, "beta": 1}))
    found = []
    for table, to in (("alpha", 2), ("beta", 1), ("beta", 2), ("alpha", 3)):
        ran("rollback", table, "--to", f"{to}", "--lake", lake, "--yes")
        found.append(ledger(lake)["in/d.json"])
    assert found == [
        ("loaded", "rolled-back", 1, 2, {"beta": 1}),
        ("loaded", "rolled-back", 0, 3, {}),
        ("loaded", "rolled-back", 1, 2, {"beta": 1}),
        ("loaded", None, 3, 0, {"alpha": 2, "beta": 1}),
    ]


def test_an_hour_that_loses_rows_is_complete_no_longer(lake: str) -> None:
    """Not for a moment: it is taken back before the rows leave, and again once the ledger knows."""
    rule = "envelope.complete = { quiet_minutes = 5 }"
    keep_in_force(lake, parse_service({"service.toml": f'name = "games"\n{rule}\n[[tables]]\nname = "{{game}}"\n'}))
    hours = [
        FeedPeriod(
            service=of, feed="all", period=at, ends=at + timedelta(hours=1), since=at, complete_at=at, revision=1
        )
        for of, at in (("games", AT), ("games", AT - timedelta(hours=1)), ("other", AT))
    ]
    periods = periods_of(lake)
    periods.change(lambda _: hours)
    ran("rollback", "alpha", "--to", "2", "--lake", lake, "--yes")
    assert all(one.complete_at for one in periods.rows().values()), "nothing was to be done"

    def look_and_die(*_: object) -> None:
        periods.change(lambda rows: [replace(one, complete_at=AT) for one in rows.values()])
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollback, "_change_ledger", lambda *_: is_open(lake) and look_and_die())
        failed(130, "rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert not is_open(lake), "somebody looked between the tables and the ledger"
    ran("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert is_open(lake)
    assert [key for key, one in periods.rows().items() if one.complete_at] == [hours[1].key, hours[2].key]
    open_objects(lake).delete([f"{SERVICES}/games.json"])
    ran("rollback", "alpha", "--to", "2", "--lake", lake, "--yes")
    assert [key for key, one in periods.rows().items() if one.complete_at] == [hours[2].key], (
        "nobody knows whose they are"
    )


def is_open(lake: str) -> bool:
    one = periods_of(lake).rows()["games", "all", AT]
    return (one.complete_at, one.told, one.why) == (None, False, WHY)


def history(lake: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran("history", "--lake", lake, "--json").splitlines()]


def test_several_tables_go_back_to_one_moment_and_their_files_are_announced_again(lake: str, s3: str) -> None:
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    queue = sqs.create_queue(QueueName="rollback")["QueueUrl"]
    first = max(DeltaTable(f"{lake}/{table}").history()[-1]["timestamp"] for table in ("alpha", "beta"))
    moment = datetime.fromtimestamp(first / 1000, UTC) + timedelta(milliseconds=20)
    command = ("rollback", "alpha", "beta", "--to", moment.isoformat(), "--lake", lake, "--and-replay", "--yes")
    assert "rollback: --queue-url is missing (or set FOREBAY_QUEUE_URL, or name it in forebay.toml)" in failed(
        2, *command
    )
    status, _, said = given((*command, "--queue-url", queue), "")
    assert (status, "announced: 2 of 2 files" in said) == (0, True)
    assert "start the ingest job again" in said
    assert (rows(lake, "alpha"), rows(lake, "beta")) == (3, 1)
    assert {key: row[0] for key, row in ledger(lake).items()} == {
        "in/a.json": "loaded",
        "in/b.json": "replay",
        "in/c.json": "replay",
    }
    assert accounts(LakeView(lake)).differences() == []


@pytest.mark.parametrize("before", [True, False])
def test_the_same_command_announces_the_files_of_a_rollback_that_was_killed(
    lake: str, s3: str, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """Before the ledger changed, or after all but the announcements."""
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    queue = sqs.create_queue(QueueName=f"killed-{before}")["QueueUrl"]
    command = ("rollback", "alpha", "--to", "0", "--lake", lake, "--and-replay", "--yes", "--queue-url", queue)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_change_ledger", dies(rollback._change_ledger, before=before))
        with pytest.raises(Killed):
            given(command, "")
    status, _, said = given(command, "")
    assert (status, "announced: 1 of 1 file" in said) == (0, True)
    assert ledger(lake)["in/b.json"][0] == "replay"


STEPS = [("_restore", True), ("_restore", False), ("_change_ledger", True), ("_change_ledger", False)]
KILLED_AGAIN = [None, "write_plan_again", "_change_ledger", "_mark", "ids_as_then", "delete_plan"]


def killed_twice() -> Iterator[Any]:
    """Each step is the first one, and each the second one, in every run; all pairs of them in the whole suite."""
    for step, again in product([*STEPS[1:], ("delete_plan", True)], KILLED_AGAIN):
        often = again is None or step == STEPS[1]
        yield pytest.param(*step, again, "version", marks=[] if often else pytest.mark.deep)


@pytest.mark.parametrize(
    ("step", "before", "again", "asked"),
    [
        *killed_twice(),
        ("_restore", True, None, "time"),
        ("_change_ledger", False, None, "time"),
        ("_change_ledger", False, None, "version, whose ledger is gone"),
    ],
)
def test_the_same_command_with_a_replay_replays_what_a_rollback_takes_away_that_began_without_one(
    lake: str, s3: str, monkeypatch: pytest.MonkeyPatch, step: str, before: bool, again: str | None, asked: str
) -> None:
    """Wherever either of them is killed."""
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="union")["QueueUrl"]
    first = DeltaTable(f"{lake}/alpha").history()[-1]["timestamp"]
    moment = datetime.fromtimestamp(first / 1000, UTC) + timedelta(milliseconds=20)
    to = moment.isoformat() if asked == "time" else "0"
    command = ("rollback", "alpha", "--to", to, "--lake", lake, "--yes")
    with_replay = (*command, "--and-replay", "--queue-url", queue)
    killed(monkeypatch, command, step, before=before)
    if again is not None:
        killed(monkeypatch, with_replay, again, before=False)
    if "gone" in asked:
        gone = DeltaTable(f"{lake}/_forebay/ledger").vacuum(0, enforce_retention_duration=False, dry_run=False)
        assert gone
    status, _, said = given(with_replay, "")
    assert (status, "announced: 1 of 1 file" in said) == (0, True)
    assert {key: row[:2] for key, row in ledger(lake).items()} == {
        "in/a.json": ("loaded", None),
        "in/b.json": ("replay", "rolled-back"),
        "in/c.json": ("loaded", None),
    }
    assert (rows(lake, "alpha"), rollback_plan(lake)) == (3, None)
    assert accounts(LakeView(lake)).differences() == []


def test_a_rollback_with_a_replay_that_is_repeated_without_one_says_how_its_files_are_announced(lake: str) -> None:
    write_plan(lake, asdict(plan_rollback(LakeView(lake), ["alpha"], 0, replay=True)), lambda: None)
    status, _, said = given(("rollback", "alpha", "--to", "0", "--lake", lake, "--yes"), "")
    assert (status, "`forebay replay --resume` announces the files" in said) == (0, True)
    assert ledger(lake)["in/b.json"][0] == "replay"


def killed(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], step: str, *, before: bool) -> None:
    """Where it comes to that step."""
    with monkeypatch.context() as patched:
        patched.setattr(rollback, step, dies(getattr(rollback, step), before=before))
        with suppress(Killed):
            given(command, "")


def test_a_replay_of_one_table_is_refused_where_the_unfinished_rollback_takes_others_back_without_one(
    lake: str, s3: str
) -> None:
    view = LakeView(lake)
    write_plan(lake, plan := json.loads(json.dumps(asdict(both_tables(view)))), lambda: None)
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="part")["QueueUrl"]
    command = ("rollback", "alpha", "--to", "0", "--lake", lake, "--yes", "--and-replay", "--queue-url", queue)
    said = failed(1, *command)
    assert "takes beta back, too, and without --and-replay" in said
    assert "Repeat `forebay rollback alpha --to 0` to finish it" in said
    assert (rows(lake, "alpha"), rollback_plan(lake)) == (5, plan)
    earlier = finish_earlier(view, ["alpha"], 1, replay=True)
    assert earlier is not None, "another rollback is finished as it was asked for"
    assert (earlier.replay, "replay" in {row[0] for row in ledger(lake).values()}) == (False, False)


def test_a_rollback_that_can_no_longer_go_there_is_finished_before_it_is_refused(lake: str) -> None:
    """Otherwise it would keep every job and every erasure from starting, and the command that they name would not help."""
    view = LakeView(lake)
    write_plan(lake, asdict(plan_rollback(view, ["alpha"], 0, replay=False)), lambda: None)
    open_objects(lake).write("_forebay/erased/games/plans/none", b"")
    erased = CommitProperties(app_transactions=[Transaction("forebay/games/erase", 1)])
    DeltaTable(f"{lake}/alpha").delete("n = 2", commit_properties=erased)
    said = failed(2, "rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert "alpha: stays unchanged: somebody changed it since the plan" in said
    assert "has rows in version 0 of people who have been erased since (name a later version)" in said
    assert rollback_plan(lake) is None


def test_json_is_all_that_a_rollback_prints_to_programs(lake: str) -> None:
    """Also of an earlier one, which it finishes."""
    plan = plan_rollback(LakeView(lake), ["alpha"], 0, replay=False)
    write_plan(lake, asdict(plan), lambda: None)
    status, out, err = given(("rollback", "alpha", "--to", "0", "--lake", lake, "--yes", "--json"), "")
    first, then = map(json.loads, out.splitlines())
    assert (status, first["leaving"], first["earlier"], then["unchanged"]) == (0, 2, True, True)
    assert "alpha: is as in version 0; 2 rows left, 0 came" in err
    status, out, err = given(("rollback", "alpha", "--to", "2", "--lake", lake, "--yes", "--json"), "")
    assert (status, [json.loads(line)["coming"] for line in out.splitlines()]) == (0, [2])
    assert "alpha: is as in version 2" in err


@pytest.mark.parametrize("gone", ["table", "version"])
def test_a_table_that_is_gone_or_has_lost_that_version_stays_and_the_rollback_ends(lake: str, gone: str) -> None:
    """Nothing else could start before."""
    view, log = LakeView(lake), Path(lake, "alpha", "_delta_log")
    write_plan(lake, asdict(plan_rollback(view, ["alpha"], 0, replay=False)), lambda: None)
    if gone == "table":
        shutil.rmtree(log.parent)
    else:
        DeltaTable(log.parent).create_checkpoint()
        (log / f"{0:020}.json").unlink()
    earlier = finish_earlier(LakeView(lake))
    assert earlier is not None
    assert [*earlier.stay] == ["alpha"]
    assert rollback_plan(lake) is None


def test_records_whose_rows_left_are_no_duplicates_when_they_come_again(lake: str) -> None:
    known: dict[str, Any] = {"day": [date(2026, 11, 21)] * 2, "id": [b"1" * 16, b"2" * 16]}
    known["file_id"] = [file_id("in/a.json"), file_id("in/b.json")]
    write_deltalake(f"{lake}/_forebay/ids", pa.table(known), partition_by=["day"])
    ran("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert DeltaTable(f"{lake}/_forebay/ids").to_pyarrow_table()["file_id"].to_pylist() == [file_id("in/a.json")]


def test_a_rollback_of_one_table_forgets_no_records_of_the_others(lake: str) -> None:
    known: dict[str, Any] = {"day": [date(2026, 11, 21)] * 3, "id": [b"1" * 16, b"2" * 16, b"3" * 16]}
    known |= {"file_id": [file_id("in/b.json")] * 3, "table": ["alpha", "beta", None]}
    write_deltalake(f"{lake}/_forebay/ids", pa.table(known), partition_by=["day"])
    ran("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert DeltaTable(f"{lake}/_forebay/ids").to_pyarrow_table()["table"].to_pylist() == ["beta"]


def test_records_whose_rows_come_back_are_known_again(lake: str) -> None:
    """Also where the rollback that took them away is taken back."""
    known: dict[str, Any] = {"day": [date(2026, 11, 21)] * 3, "id": [b"1" * 16, b"2" * 16, b"3" * 16]}
    known |= {"file_id": [file_id("in/b.json")] * 3, "table": ["alpha", "beta", None]}
    write_deltalake(f"{lake}/_forebay/ids", pa.table(known), partition_by=["day"])
    time.sleep(0.05)
    append(lake, "alpha", "in/d.json", 1)
    write_ledger(lake, entry("in/d.json", tables={"alpha": 1}))
    ran("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"2" * 16]
    ran("rollback", "alpha", "--to", "2", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16, b"2" * 16, b"3" * 16]
    assert accounts(LakeView(lake)).differences() == []


def test_records_are_unknown_where_maintenance_deleted_the_ids_of_that_time(lake: str) -> None:
    known: dict[str, Any] = {"day": [date(2026, 11, 21)], "id": [b"1" * 16], "file_id": [file_id("in/b.json")]}
    write_deltalake(f"{lake}/_forebay/ids", pa.table({**known, "table": ["alpha"]}), partition_by=["day"])
    time.sleep(0.05)
    append(lake, "alpha", "in/d.json", 1)
    write_ledger(lake, entry("in/d.json", tables={"alpha": 1}))
    ran("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    DeltaTable(f"{lake}/_forebay/ids").vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    ran("rollback", "alpha", "--to", "2", "--lake", lake, "--yes")
    assert ids_of(lake) == []


def test_a_table_that_is_there_already_is_said_to_stay(lake: str) -> None:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    time.sleep(0.05)
    append(lake, "alpha", "in/d.json", 1)
    write_ledger(lake, entry("in/d.json", tables={"alpha": 1}))
    typed = ("rollback", "alpha", "beta", "--to", now, "--lake", lake, "--dry-run")
    assert ran(*typed).splitlines()[-1] == "beta: stays: nothing changed in it since then"
    told = [json.loads(line) for line in ran(*typed, "--json").splitlines()]
    assert [(one["table"], one.get("unchanged", False)) for one in told] == [("alpha", False), ("beta", True)]


def test_records_of_a_file_that_loses_some_of_its_rows_stay_known(lake: str) -> None:
    """A retry had added to them."""
    for rows in ([b"1" * 16, b"2" * 16], [b"3" * 16]):
        append(lake, "gamma", "in/e.json", len(rows))
        known: dict[str, Any] = {"day": [date(2026, 11, 21)] * len(rows), "id": rows}
        known |= {"file_id": [file_id("in/e.json")] * len(rows), "table": ["gamma"] * len(rows)}
        write_deltalake(f"{lake}/_forebay/ids", pa.table(known), partition_by=["day"], mode="append")
        time.sleep(0.05)
    write_ledger(lake, entry("in/e.json", tables={"gamma": 3}))
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16, b"2" * 16]


def test_records_of_a_retry_that_is_rolled_back_are_no_duplicates_when_they_come_again(lake: str) -> None:
    """It wrote their ids before their rows, so they were there at the time to which the table goes back."""
    texts = [(name, pa.string()) for name in ("service", "generation", "file_id", "table")]
    schema = pa.schema([("day", pa.date32()), ("id", pa.binary()), ("batch", pa.int64()), *texts])
    for batch, generation, ids in ((4, None, [b"1" * 16, b"2" * 16]), (1, "retry", [b"3" * 16])):
        shared = {"day": date(2026, 11, 21), "service": "games", "generation": generation, "batch": batch}
        known = [{**shared, "id": one, "file_id": file_id("in/e.json"), "table": "gamma"} for one in ids]
        found = pa.table({"_file_id": [file_id("in/e.json")] * len(ids), "n": list(range(len(ids)))})
        txn = CommitProperties(app_transactions=[Transaction(f"forebay/games/{generation}", batch)])
        write_deltalake(
            f"{lake}/_forebay/ids", pa.Table.from_pylist(known, schema), partition_by=["day"], mode="append"
        )
        time.sleep(0.05)
        write_deltalake(f"{lake}/gamma", found, mode="append", commit_properties=txn)
    write_ledger(lake, entry("in/e.json", tables={"gamma": 3}))
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16, b"2" * 16]
    ran("rollback", "gamma", "--to", "1", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16, b"2" * 16, b"3" * 16]


def ids_of(lake: str) -> list[bytes]:
    return sorted(DeltaTable(f"{lake}/_forebay/ids").to_pyarrow_table()["id"].to_pylist())


class Killed(BaseException):
    """What no handler takes for an error."""


def dies(real: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    def died(*arguments: Any, **more: Any) -> Any:
        if not before:
            real(*arguments, **more)
        raise Killed

    return died


@pytest.mark.parametrize(("step", "before"), STEPS)
def test_killed_between_any_two_commits_it_is_finished_first(
    lake: str, monkeypatch: pytest.MonkeyPatch, step: str, before: bool
) -> None:
    view = LakeView(lake)
    plan = plan_rollback(view, ["alpha", "beta"], datetime.now(UTC) - timedelta(microseconds=1), replay=False)
    assert plan.tables == (), "both are there already"
    plan = plan_rollback(view, ["alpha"], 0, replay=False)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, step, dies(getattr(rollback, step), before=before))
        with pytest.raises(Killed):
            roll_back(view, plan)
    done = finish_earlier(view)
    assert done is not None
    assert (rows(lake, "alpha"), ledger(lake)["in/b.json"]) == (3, ("loaded", "rolled-back", 0, 2, {}))
    assert accounts(view).differences() == []
    assert finish_earlier(view) is None


def test_a_table_that_somebody_changed_since_the_plan_stays(lake: str) -> None:
    view = LakeView(lake)
    plan = plan_rollback(view, ["alpha"], 0, replay=False)
    append(lake, "alpha", "in/a.json", 0)
    DeltaTable(f"{lake}/alpha").alter.set_table_properties({"delta.appendOnly": "false"})
    before = view.facts(LEDGER)
    done = roll_back(view, plan)
    assert (done.tables, done.stay) == ((), {"alpha": "somebody changed it since the plan"})
    assert (rows(lake, "alpha"), view.facts(LEDGER)) == (5, before)


def test_a_table_whose_version_was_deleted_since_the_plan_stays(lake: str) -> None:
    view = LakeView(lake)
    plan = plan_rollback(view, ["alpha"], 0, replay=False)
    DeltaTable(f"{lake}/alpha").create_checkpoint()
    Path(lake, "alpha/_delta_log", f"{0:020}.json").unlink()
    before = rows(lake, "alpha")
    done = roll_back(view, plan)
    assert (done.tables, [*done.stay], rows(lake, "alpha")) == ((), ["alpha"], before)
    assert done.stay["alpha"]


def both_tables(view: LakeView) -> Rollback:
    """Each to its first version."""
    found = [plan_rollback(view, [table], 0, replay=False) for table in ("alpha", "beta")]
    return replace(found[0], tables=tuple(one for plan in found for one in plan.tables))


def beta_has_no_room(patch: pytest.MonkeyPatch) -> None:
    real = DeltaTable.restore

    def restore(table: DeltaTable, *arguments: Any, **more: Any) -> Any:
        if table.table_uri.rstrip("/").endswith("beta"):
            raise DeltaError("no room")
        return real(table, *arguments, **more)

    patch.setattr(DeltaTable, "restore", restore)


def test_one_table_that_cannot_go_back_keeps_no_other_and_its_counts_stay(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = LakeView(lake)
    both = both_tables(view)
    beta_has_no_room(monkeypatch)
    done = roll_back(view, both)
    assert ([one.table for one in done.tables], done.stay) == (["alpha"], {"beta": "no room"})
    assert (rows(lake, "alpha"), rows(lake, "beta")) == (3, 5)
    assert accounts(view).differences() == []


@pytest.mark.parametrize("step", ["ids_as_then", "delete_plan"])
def test_a_table_that_could_not_go_back_stays_once_the_ledger_has_counted_the_others(
    lake: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It could go back when the rollback is finished, but its rows would be counted nowhere."""
    view = LakeView(lake)
    both = both_tables(view)
    with monkeypatch.context() as patched:
        beta_has_no_room(patched)
        patched.setattr(rollback, step, dies(getattr(rollback, step), before=True))
        with pytest.raises(Killed):
            roll_back(view, both)
    done = finish_earlier(view)
    assert done is not None
    assert ([one.table for one in done.tables], [*done.stay]) == (["alpha"], ["beta"])
    assert (rows(lake, "alpha"), rows(lake, "beta")) == (3, 5)
    assert accounts(view).differences() == []


def test_a_table_that_another_spark_compacted_has_the_same_readings(lake: str) -> None:
    """Where it is not told otherwise, it writes moments that have no time zone for Arrow."""
    append(lake, "gamma", "in/d.json", 2)
    moments = pa.array([READ.replace(tzinfo=None)] * 2, pa.timestamp("us"))
    compacted = pa.table({"_file_id": [file_id("in/d.json")] * 2, "n": [0, 1], "_ingested_at": moments})
    path, table = Path(lake, "gamma", "compacted.parquet"), DeltaTable(f"{lake}/gamma")
    pq.write_table(compacted, path, use_deprecated_int96_timestamps=True)
    file = AddAction(path.name, path.stat().st_size, {}, int(time.time() * 1000), False, '{"numRecords":2}')
    table.create_write_transaction([file], "overwrite", pa.schema(table.schema()))
    append(lake, "gamma", "in/d.json", 1)
    write_ledger(lake, entry("in/d.json", tables={"gamma": 3}, claimed_at=READ_AGAIN))
    view = LakeView(lake)
    (back,) = plan_rollback(view, ["gamma"], 0, replay=True).tables
    assert (back.coming, back.leaving) == (0, 1)
    roll_back(view, plan_rollback(view, ["gamma"], 0, replay=False))
    (back,) = plan_rollback(view, ["gamma"], 2, replay=True).tables
    assert (back.coming, back.leaving) == (1, 0)


def test_rows_that_another_tool_wrote_leave_and_no_file_of_ours_counts_them(lake: str) -> None:
    foreign = pa.table({"_file_id": pa.array([None, ""], pa.string()), "n": [7, 8]})
    write_deltalake(f"{lake}/alpha", foreign, mode="append", schema_mode="merge")
    (back,) = plan_rollback(LakeView(lake), ["alpha"], 0, replay=False).tables
    assert back.changes == {file_id("in/b.json"): -2}


def test_a_table_goes_back_to_the_moment_of_a_commit(lake: str) -> None:
    at = committed_at(open_objects(f"{lake}/alpha"), 1)
    assert at is not None
    (back,) = plan_rollback(LakeView(lake), ["alpha"], at, replay=False).tables
    assert back.to == 1


def test_a_moment_whose_commit_was_cleaned_up_is_refused(lake: str) -> None:
    DeltaTable(f"{lake}/alpha").create_checkpoint()
    moment = datetime.now(UTC).isoformat()
    time.sleep(0.05)
    append(lake, "alpha", "in/b.json", 0)
    for version in range(3):
        Path(lake, "alpha", "_delta_log", f"{version:020}.json").unlink()
    said = failed(2, "rollback", "alpha", "--to", moment, "--lake", lake, "--dry-run")
    assert "table alpha: has no version of 2" in said


def test_a_table_with_a_feature_that_is_not_understood_is_refused(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "UNDERSTOOD", set())
    DeltaTable(f"{lake}/alpha").alter.add_feature(TableFeatures.AppendOnly, allow_protocol_versions_increase=True)
    assert "has the feature" in failed(2, "rollback", "alpha", "--to", "0", "--lake", lake, "--dry-run")


AFTER_LOAD = "_forebay/maintenance/_forebay/after_load/games"
"""The lease of a run that may delete the files whose rows leave."""


ROLLBACK, DROP = ("rollback", "alpha", "--to", "0"), ("tables", "drop", "alpha")


@pytest.mark.parametrize(
    ("command", "place", "does"),
    [
        (ROLLBACK, AFTER_LOAD, "is moving or deleting landed files of games"),
        (DROP, AFTER_LOAD, "is moving or deleting landed files of games"),
        (DROP, f"_forebay/maintenance/{tombstones_of('alpha')}", "is compacting, merging or maintaining"),
    ],
)
def test_no_job_is_stopped_where_the_command_would_be_refused_afterwards(
    lake: str, command: tuple[str, ...], place: str, does: str
) -> None:
    job, cleaning = hold(checkpoint_of(lake, ""), wait_s=0), hold(f"{lake}/{place}", wait_s=0)
    assert does in failed(1, *command, "--lake", lake, "--yes")
    job.check()
    request = Path(f"{checkpoint_of(lake, '')}/stop")
    assert not request.exists()
    cleaning.let_go()
    assert "is still working on its batch after 0 s" in failed(1, *command, "--lake", lake, "--yes", "--wait-s", "0")
    assert request.exists()
    job.let_go()


def test_nobody_writes_meanwhile_and_nothing_half_done_is_forgotten(lake: str) -> None:
    view = LakeView(lake)
    plan = plan_rollback(view, ["alpha"], 0, replay=False)
    for place, does in (
        (f"{lake}/_forebay/writers/games", "is ingesting for games: `forebay stop`"),
        (f"{lake}/_forebay/maintenance/alpha", "is compacting, merging or maintaining alpha"),
        (f"{lake}/{AFTER_LOAD}", "is moving or deleting landed files of games .*the next run continues it"),
    ):
        lease = hold(place, wait_s=0)
        with pytest.raises(Halt, match=f"process .* {does}.*Nothing was changed. Wait .* repeat this command"):
            roll_back(view, plan)
        lease.let_go()
    left = Path(lake, "_forebay/plans/games/g1-7.json.gz")
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    with pytest.raises(Halt, match="a batch of games is unfinished"):
        roll_back(view, plan)
    assert rows(lake, "alpha") == 5


def test_a_lease_that_was_lost_before_the_plan_was_durable_stops_it(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has it now may not have seen the plan."""

    def lost(lease: FolderLease) -> None:
        raise Halt("the lease was lost")

    plan = plan_rollback(LakeView(lake), ["alpha"], 0, replay=False)
    monkeypatch.setattr(FolderLease, "check", lost)
    with pytest.raises(Halt, match=r"was lost\. Nothing was done"):
        roll_back(LakeView(lake), plan)
    assert (rows(lake, "alpha"), rollback_plan(lake)) == (5, None)


def test_no_upkeep_touches_a_table_whose_rollback_is_half_done(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_rollback(LakeView(lake), ["alpha"], 0, replay=False)
    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_restore", dies(rollback._restore, before=True))
        with pytest.raises(Killed):
            roll_back(LakeView(lake), plan)
    worked: list[str] = []

    def work(table: str, lease: Lease) -> TableResult:
        worked.append(table)
        return TableResult(table=table)

    done = over_tables(["alpha", "beta"], lake, work, unfinished=TableResult, at_once=1, stop=threading.Event())
    assert (worked, [one.reason for one in done]) == (["beta"], ["busy", ""])
    assert finish_earlier(LakeView(lake)) is not None, "its lease was let go"


def test_an_earlier_version_of_an_object_is_in_force_again_when_its_rows_come_back(lake: str) -> None:
    append(lake, "gamma", "in/old.json", 2)
    DeltaTable(f"{lake}/gamma").delete()
    append(lake, "gamma", "in/new.json", 1)
    old = entry("in/old.json", outcome="superseded", superseded_by="new", records=2, dropped=2, reason="overwritten")
    write_ledger(lake, old, entry("in/new.json", tables={"gamma": 1}))
    assert accounts(LakeView(lake)).differences() == []
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    assert ledger(lake)["in/old.json"] == ("loaded", None, 2, 0, {"gamma": 2})
    assert ledger(lake)["in/new.json"] == ("loaded", "rolled-back", 0, 1, {})
    assert accounts(LakeView(lake)).differences() == []


def test_with_a_replay_the_later_version_takes_the_place_of_one_that_came_back_although_it_lost_nothing(
    lake: str,
) -> None:
    append(lake, "gamma", "in/old.json", 2)
    DeltaTable(f"{lake}/gamma").delete()
    append(lake, "delta", "in/new.json", 1)
    dropped = {"outcome": "superseded", "reason": "overwritten", "records": 2, "dropped": 2}
    newest = entry("in/new.json", tables={"delta": 1})
    between = entry("in/between.json", superseded_by=newest["file_id"], **dropped)
    write_ledger(lake, entry("in/old.json", superseded_by=between["file_id"], **dropped), between, newest)
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    assert ledger(lake)["in/new.json"][0] == "loaded", "both stand, as they are asked to"
    ran("rollback", "gamma", "--to", "1", "--lake", lake, "--yes")
    roll_back(LakeView(lake), plan_rollback(LakeView(lake), ["gamma"], 0, replay=True))
    assert ledger(lake)["in/old.json"] == ("loaded", None, 2, 0, {"gamma": 2})
    assert ledger(lake)["in/new.json"] == ("replay", None, 1, 0, {"delta": 1})
    assert accounts(LakeView(lake)).differences() == []


def replayed(lake: str, *, rows: int, parked: int) -> None:
    """Of five records all were written; when the file was replayed some were parked, and it may be empty now."""
    append(lake, "gamma", "in/r.json", 5)
    DeltaTable(f"{lake}/gamma").delete()
    append(lake, "gamma", "in/r.json", rows, READ_AGAIN)
    held = pa.table({"file_id": [file_id("in/r.json")] * parked, "line": [1] * parked})
    write_deltalake(f"{lake}/_forebay/parked", held)
    outcome, tables = ("loaded", {"gamma": rows}) if rows else ("empty", {})
    counts = {"parked": parked, "records": rows + parked, "claimed_at": READ_AGAIN}
    write_ledger(lake, entry("in/r.json", outcome=outcome, tables=tables, **counts))


@pytest.mark.parametrize(("rows_now", "parked"), [(3, 2), (3, 0), (0, 0)])
def test_the_rows_that_a_replay_took_away_come_back_and_the_sums_hold(lake: str, rows_now: int, parked: int) -> None:
    replayed(lake, rows=rows_now, parked=parked)
    assert accounts(LakeView(lake)).differences() == []
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    reason = "partly-replayed" if parked else "rolled-back"
    assert ledger(lake)["in/r.json"] == ("loaded", reason, 5, 0, {"gamma": 5})
    assert accounts(LakeView(lake)).differences() == []
    ran("rollback", "gamma", "--to", "2", "--lake", lake, "--yes")
    assert ledger(lake)["in/r.json"][2:4] == (rows_now, 5 - rows_now)
    assert accounts(LakeView(lake)).differences() == []


@pytest.mark.parametrize(("rows_now", "parked"), [(3, 2), (5, 0)], ids=["some were parked", "as many as before"])
def test_a_file_whose_earlier_reading_comes_back_is_read_again_where_that_is_wanted(
    lake: str, rows_now: int, parked: int
) -> None:
    replayed(lake, rows=rows_now, parked=parked)
    plan = plan_rollback(LakeView(lake), ["gamma"], 0, replay=True)
    roll_back(LakeView(lake), plan)
    assert (plan.files, ledger(lake)["in/r.json"][0]) == ({file_id("in/r.json")}, "replay")


def test_a_table_that_was_only_compacted_has_the_same_readings(lake: str) -> None:
    DeltaTable(f"{lake}/alpha").optimize.compact()
    (back,) = plan_rollback(LakeView(lake), ["alpha"], 1, replay=True).tables
    assert back.files == set()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("alpah", "--to", "0"), "did you mean alpha?"),
        (("alpha", "--to", "99"), "has no version 99"),
        (("alpha", "--to", "2001-01-01"), "did not exist at 2001"),
        (("alpha", "beta", "--to", "0"), "each table has its own"),
        (("alpha", "--to", "yesterday"), "is neither a version nor a time"),
    ],
)
def test_wrong_use_is_told_before_anything_is_done(lake: str, arguments: tuple[str, ...], says: str) -> None:
    assert says in failed(2, "rollback", *arguments, "--lake", lake, "--dry-run")


def test_a_forgotten_file_whose_rows_come_back_is_forgotten_again_and_the_sums_hold(lake: str) -> None:
    DeltaTable(f"{lake}/beta").delete(f"_file_id = '{file_id('in/a.json')}'")
    DeltaTable(f"{lake}/alpha").delete(f"_file_id = '{file_id('in/a.json')}'")
    DeltaTable(f"{lake}/_forebay/ledger").delete("key = 'in/a.json'")
    write_ledger(lake, entry("in/a.json", outcome="forgotten", detail="its rows left", records=4, dropped=4))
    assert accounts(LakeView(lake)).differences() == []
    said = ran("rollback", "beta", "--to", "1", "--lake", lake, "--yes")
    assert "1 forgotten file gets rows back, and stays forgotten" in said
    assert ledger(lake)["in/a.json"] == ("forget", None, 1, 3, {"beta": 1})
    assert accounts(LakeView(lake)).differences() == []
    assert ran("files", "list", "--outcome", "forget", "--lake", lake, "--json").count('"detail": null') == 1
    (waits,) = withheld_in(open_objects(f"{lake}/_forebay/ledger"), "games")
    assert waits.file.key == "in/a.json", "a job that starts takes them out"


def test_a_file_that_is_to_come_back_is_still_read_again_after_a_rollback_of_one_of_its_tables(lake: str) -> None:
    for table in ("alpha", "beta"):
        DeltaTable(f"{lake}/{table}").delete(f"_file_id = '{file_id('in/a.json')}'")
    DeltaTable(f"{lake}/_forebay/ledger").delete("key = 'in/a.json'")
    write_ledger(lake, entry("in/a.json", outcome="forgotten", reason="wanted-again", records=4, dropped=4))
    ran("rollback", "beta", "--to", "1", "--lake", lake, "--yes")
    assert ledger(lake)["in/a.json"] == ("replay", None, 1, 3, {"beta": 1})
    assert accounts(LakeView(lake)).differences() == []


@pytest.mark.parametrize("outcome", ["denied", "unavailable", "missing"])
def test_a_file_that_was_wanted_again_and_not_read_yet_is_read_in_the_place_of_its_rows(
    lake: str, outcome: str
) -> None:
    DeltaTable(f"{lake}/beta").delete(f"_file_id = '{file_id('in/c.json')}'")
    DeltaTable(f"{lake}/_forebay/ledger").delete("key = 'in/c.json'")
    write_ledger(lake, entry("in/c.json", outcome=outcome, reason="said the test", records=0))
    ran("rollback", "beta", "--to", "1", "--lake", lake, "--yes")
    assert ledger(lake)["in/c.json"] == ("replay", "rolled-back", 4, 0, {"beta": 4})
    assert accounts(LakeView(lake)).differences() == []


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_a_stream_that_skips_commits_with_removals_does_not_get_rows_again_that_only_come_back(
    lake: str, monkeypatch: pytest.MonkeyPatch, partitioned: bool, dies: bool
) -> None:
    if partitioned:
        (Path(lake) / "beta").rename(Path(lake) / "before")
        for key, count in (("in/a.json", 1), ("in/c.json", 4)):
            found = pa.table({"_file_id": [file_id(key)] * count, "n": list(range(count)), "day": ["1"] * count})
            write_deltalake(f"{lake}/beta", found, mode="append", partition_by=["day"])
    DeltaTable(f"{lake}/beta").delete(f"_file_id = '{file_id('in/c.json')}'")
    DeltaTable(f"{lake}/_forebay/ledger").delete("key = 'in/c.json'")
    write_ledger(lake, entry("in/c.json", outcome="forgotten", records=4, dropped=4))
    view, real = LakeView(lake), DeltaTable.restore
    plan = plan_rollback(view, ["beta"], 1, replay=False)
    if dies:
        monkeypatch.setattr(DeltaTable, "restore", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            roll_back(view, plan)
        monkeypatch.setattr(DeltaTable, "restore", real)
        assert finish_earlier(view) is not None
    else:
        roll_back(view, plan)
    assert rows(lake, "beta") == 5
    newest = DeltaTable(f"{lake}/beta").version()
    text = (Path(lake) / "beta" / "_delta_log" / f"{newest:020}.json").read_text()
    actions = [json.loads(line) for line in text.splitlines()]
    assert [one["add"]["dataChange"] for one in actions if "add" in one] == [True]
    (removed,) = [one["remove"] for one in actions if "remove" in one]
    assert removed["dataChange"]
    empty = pq.read_schema(Path(lake) / "beta" / removed["path"])
    assert not {"day"} & {*empty.names}, "partition columns are in the log alone"
    assert not plan_rollback(view, ["beta"], 1, replay=False).tables, "it is there"


def test_a_version_whose_files_maintenance_deleted_is_refused(lake: str) -> None:
    DeltaTable(f"{lake}/alpha").vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert "is gone (maintenance deleted it" in failed(2, "rollback", "alpha", "--to", "0", "--lake", lake, "--dry-run")


def test_a_ledger_that_does_not_fit_is_told_and_nothing_is_done(lake: str) -> None:
    append(lake, "alpha", "in/c.json", 1)
    with pytest.raises(Halt, match="Nothing was done"):
        plan_rollback(LakeView(lake), ["alpha"], 0, replay=False)


def test_a_ledger_that_fits_no_more_when_it_begins_stops_it_before_anything_is_done(lake: str) -> None:
    view = LakeView(lake)
    plan = plan_rollback(view, ["alpha"], 0, replay=False)
    ledger_table = DeltaTable(f"{lake}/_forebay/ledger")
    ledger_table.delete("key = 'in/b.json'")
    with pytest.raises(Halt, match=r"the ledger has 0 of them. An unfinished batch wrote the others"):
        roll_back(view, plan)
    assert rows(lake, "alpha") == 5
    assert finish_earlier(view) is None, "no job is kept from starting"


def test_a_change_of_the_ledger_meanwhile_is_not_lost(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    view, real, changes = LakeView(lake), rollback.entries_after, [2, 1]
    plan = plan_rollback(view, ["alpha"], 0, replay=False)

    def somebody_changes_it(*of: Any) -> list[dict[str, Any]]:
        found = real(*of)
        if changes:
            update = {"parked": "parked + 1", "records": "records + 1"}
            DeltaTable(f"{lake}/_forebay/ledger").update(predicate="key = 'in/b.json'", updates=update)
            changes.pop()
        return found

    monkeypatch.setattr(rollback, "entries_after", somebody_changes_it)
    roll_back(view, plan)
    (row,) = [row for row in view.query("_forebay/ledger", "select * from t") if row["key"] == "in/b.json"]
    assert (row["records"], row["parked"], row["dropped"], row["written"]) == (4, 2, 2, 0)


def test_the_ledger_is_read_once_for_a_plan(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, reads = rollback_ledger.rows_with, list[object]()

    def rows_with(*asked: Any) -> list[dict[str, Any]]:
        reads.append(asked[-1])
        return real(*asked)

    monkeypatch.setattr(rollback_ledger, "rows_with", rows_with)
    plan = plan_rollback(LakeView(lake), ["alpha"], 0, replay=False)
    assert reads == [plan.files]


def test_a_rollback_announces_its_own_files_beside_a_file_that_another_service_replayed_in_part(
    lake: str, s3: str
) -> None:
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="own")["QueueUrl"]
    told = {"service": "'casual'", "reason": "'partly-replayed'", "detail": "'beta'"}
    DeltaTable(f"{lake}/_forebay/ledger").update(predicate="key = 'in/c.json'", updates=told)
    command = ("rollback", "alpha", "--to", "0", "--lake", lake, "--and-replay", "--yes", "--queue-url", queue)
    status, _, said = given(command, "")
    assert (status, "announced: 1 of 1 file" in said) == (0, True)


def test_files_of_two_services_are_marked_but_not_announced_into_one_queue(lake: str, s3: str) -> None:
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="two")["QueueUrl"]
    DeltaTable(f"{lake}/_forebay/ledger").update(predicate="key = 'in/c.json'", updates={"service": "'casual'"})
    (alpha,) = plan_rollback(LakeView(lake), ["alpha"], 0, replay=True).tables
    roll_back(LakeView(lake), Rollback("first", (alpha,), replay=True))
    command = ("rollback", "beta", "--to", "0", "--lake", lake, "--and-replay", "--yes", "--queue-url", queue)
    said = failed(1, *command)
    assert "the tables were rolled back, but no file was announced" in said
    assert "choose one with --of" in said
    assert [row[0] for row in ledger(lake).values()].count("replay") == 2
