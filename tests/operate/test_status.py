"""`forebay status`: one look, and whether a person must act."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.batch.plan import Plan, Plans
from forebay.capacity.waiting import NAME, Waiting
from forebay.cli.looking import status as cli_status
from forebay.lake.health import Health, HealthRecords
from forebay.lake.layout import ROLLBACK_PLAN, rollback_of
from forebay.lake.lease import hold
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.operate.looking import status
from forebay.operate.stack.deployment import Deployment
from forebay.upkeep.reconcile.last import LastReconcile, keep
from tests.operate.command import failed, ran
from tests.operate.ledger import entry, schema_of, write_ledger, write_tables


@pytest.fixture
def lake(tmp_path: Path) -> str:
    now = datetime.now(UTC)  # not of the import: the suite collects minutes before it runs this
    old, new = now - timedelta(days=2), now - timedelta(minutes=5)
    write_ledger(
        tmp_path,
        entry("in/old.json", at=old, batch=1, tables={"alpha": 5}),
        *(
            entry(f"in/{n}.json", at=new, day=now.date(), committed_at=new, batch=7, tables={"alpha": 3})
            for n in (1, 2)
        ),
        entry("in/torn.gz", at=new, day=now.date(), committed_at=new, batch=7, outcome="unreadable"),
    )
    health = HealthRecords(str(tmp_path))
    for name, at in (("alpha", new), ("beta", old), ("_forebay/ledger", new)):
        health.update(name, lambda was, at=at: Health(table=was.table, newest_at=at))  # type: ignore[misc]
    write_tables(tmp_path, "alpha", "beta")
    return str(tmp_path)


def test_one_look_tells_the_job_its_last_batch_today_and_the_age_of_tables(lake: str) -> None:
    lease = hold(f"{lake}/_forebay/checkpoints/ingest", wait_s=0)
    try:
        said = ran("status", "--lake", lake).splitlines()
    finally:
        lease.let_go()
    assert said[0].startswith("queue       unknown")
    assert said[1].startswith("job         process ")
    assert said[2:] == [
        "last batch  7 of games, 5 min ago: 3 files, 6 records",
        "today       2 loaded, 1 unreadable; 6 records",
        "ledger      4 files",
        "held        0 records quarantined, 0 parked, 0 messages not understood",
        "tables      2; newest rows 5 min ago (alpha), oldest 2 d ago (beta)",
    ]
    assert "job         not running" in ran("status", "--lake", lake)


def test_status_counts_the_tables_that_the_list_has(lake: str) -> None:
    """A state or a rollup has no rows in the ledger; the health of a table outlives a folder that somebody deleted."""
    write_tables(lake, "players")
    shutil.rmtree(f"{lake}/beta")
    listed = ran("tables", "list", "--lake", lake).splitlines()[1:]
    assert [line.split()[0] for line in listed] == ["alpha", "players"]
    assert ran("status", "--lake", lake).splitlines()[-1] == (
        "tables      2; newest rows 5 min ago (alpha), oldest 5 min ago (alpha)"
    )


@pytest.mark.parametrize(
    ("hours", "shown"), [(3, "budget      delayed runs, and files were late: warned 3 h ago"), (25, None)]
)
def test_a_budget_that_held_runs_back_within_a_day_is_shown(lake: str, hours: float, shown: str | None) -> None:
    warned_at = (datetime.now(UTC) - timedelta(hours=hours)).timestamp()
    open_objects(f"{lake}/_forebay/checkpoints/ingest").write(NAME, Waiting(warned_at - 60, warned_at).text())
    lines = [line for line in ran("status", "--lake", lake).splitlines() if line.startswith("budget")]
    assert lines == ([shown] if shown else [])


def test_what_a_person_must_look_at_is_named_with_the_way_out(lake: str, s3: str) -> None:
    kept = {
        **dict.fromkeys(schema_of(COLUMNS).names),
        "line": 1,
        "table": "alpha",
        "reason": "table-failed",
        "at": datetime.now(UTC),
    }
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist([kept], schema_of(COLUMNS)))
    refused = Path(lake, "_forebay/checkpoints/ingest/manifests/kept/m1.json")
    refused.parent.mkdir(parents=True)
    refused.write_text("{}")
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    dead = sqs.create_queue(QueueName="status-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
    url = sqs.create_queue(QueueName="status", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    for queue, count in ((url, 3), (dead, 2)):
        for _ in range(count):
            sqs.send_message(QueueUrl=queue, MessageBody="{}")
    said = failed(1, "status", "--lake", lake, "--queue-url", url)
    assert "queue       3 waiting; 0 in flight" in said
    assert "job         not running; its next start loads what waits" in said
    assert "look at: alpha: 1 row waits because the table could not be written; the job's log says why" in said
    assert "then `forebay quarantine retry --table alpha --service FOLDER`" in said
    assert "look at: 2 dead letters (`forebay queue dlq` says why)" in said
    assert (
        "look at: 1 message not understood (`forebay queue refused` shows why, and with --drop deletes the copies)"
        in said
    )


def test_files_that_s3_denies_are_a_problem_until_they_are_read(lake: str) -> None:
    """The job asks again for ever, and nobody else would notice."""
    write_ledger(lake, entry("in/secret.json", outcome="denied", reason="access-denied"))
    said = failed(1, "status", "--lake", lake)
    assert (
        "look at: the job may not read 1 file (`forebay files list --outcome denied` shows why). Once it may, it reads them"
        in said
    )


def test_files_that_will_be_read_again_are_counted_whatever_they_wait_for(lake: str) -> None:
    waits = {"superseded": "put-again", "unreadable": "wanted-again", "replay": None}
    rows = [entry(f"in/{outcome}.json", outcome=outcome, reason=reason) for outcome, reason in waits.items()]
    write_ledger(lake, *rows, entry("in/left.json", outcome="superseded", reason="overwritten"))
    assert "\nreplays     3 files to be read again\n" in ran("status", "--lake", lake)


def test_the_newest_cause_of_a_table_that_could_not_be_written_is_named_before_the_retry(lake: str) -> None:
    now = datetime.now(UTC)
    of_all = {**dict.fromkeys(schema_of(COLUMNS).names), "line": 1, "table": "alpha", "reason": "table-failed"}
    causes = [
        (now - timedelta(hours=1), "the disk was full"),
        (now, "column level: is long in the table"),
        (None, None),
    ]
    kept = [{**of_all, "at": at or now - timedelta(days=1), "detail": why} for at, why in causes]
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist(kept, schema_of(COLUMNS)))
    said = failed(1, "status", "--lake", lake)
    assert (
        "look at: alpha: 3 rows wait because the table could not be written: column level: is long in the table. Fix the "
        "cause (`forebay tables check` with --lake says how), then `forebay quarantine retry --table alpha --service FOLDER`"
    ) in said
    health = failed(1, "tables", "health", "--lake", lake)
    why = "3 rows wait in the quarantine, because it could not be written: column level: is long in the table"
    assert f"alpha: table-failed {why}" in health
    assert "column level: is long in the table" in ran("quarantine", "show", "--table", "alpha", "--lake", lake)


def test_whole_files_are_no_records(lake: str) -> None:
    """The accounts count records, and 456 torn files have none."""
    row = {**dict.fromkeys(schema_of(COLUMNS).names), "at": datetime.now(UTC)}
    kept = [{**row, "reason": "not-json", "line": 3}, *(456 * [{**row, "reason": "torn"}])]
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist(kept, schema_of(COLUMNS)))
    said = ran("status", "--lake", lake)
    assert "held        1 record and 456 whole files quarantined (`forebay quarantine list`), 0 parked, 0 " in said
    (told,) = ran("status", "--lake", lake, "--json").splitlines()
    assert (json.loads(told)["quarantined"], json.loads(told)["whole_files"]) == (1, 456)


def test_a_batch_that_has_not_ended_is_named_and_is_a_problem_where_no_job_runs(lake: str) -> None:
    began = datetime.now(UTC) - timedelta(minutes=3)
    files = (LandedFile("landing", "in/a.json"), LandedFile("landing", "in/b.json"))
    where = {"generation": "g1", "batch": 8, "began_at": began, "service": {}}
    plans = Plans(open_objects(f"{lake}/_forebay/plans"), "games")
    plans.pin(Plan(**where, files=files, ends=(), fates=()))  # type: ignore[arg-type]
    said = failed(1, "status", "--lake", lake)
    assert "open batch  8 of games, 3 min ago: 2 files; the next start of the job finishes it" in said
    assert f"look at: batch 8 of games began at {began:%Y-%m-%d %H:%M:%S} and has not ended: start the job" in said
    said = failed(1, "where", "s3://landing/in/a.json", "--lake", lake)
    assert "it is not in the ledger yet. It is in batch 8 of games, begun at" in said
    lease = hold(f"{lake}/_forebay/checkpoints/ingest", wait_s=0)
    try:
        assert "open batch  8 of games, 3 min ago: 2 files; the job is working on it" in ran("status", "--lake", lake)
    finally:
        lease.let_go()


def test_a_rollback_that_is_half_done_is_named_with_the_way_out(lake: str) -> None:
    for replay, options in ((False, ""), (True, " --and-replay")):
        plan = {"number": "n", "tables": [{"table": "alpha", "now": 3, "to": 1}], "replay": replay}
        open_objects(rollback_of(lake)).write(ROLLBACK_PLAN, json.dumps(plan).encode())
        finish = f"repeat `forebay rollback alpha --to 1{options}` to finish it"
        assert f"look at: a rollback of alpha is unfinished ({finish})" in failed(1, "status", "--lake", lake)


def test_the_same_for_machines(lake: str) -> None:
    told = json.loads(ran("status", "--lake", lake, "--json"))
    assert (told["batch"]["batch"], told["files"], told["today"], told["problems"]) == (
        7,
        4,
        {"loaded": 2, "unreadable": 1},
        [],
    )


def test_a_deployed_lake_has_a_state_before_its_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Deployment(lambda name: None, "games", "1", "eu-west-1", outputs={"LakeUri": str(tmp_path)})
    monkeypatch.setattr(cli_status, "deployment", lambda name: stack)
    real = status.status_of
    monkeypatch.setattr(status, "status_of", lambda view, **given: real(view, **{**given, "on": None}))
    assert "last batch  no batch has ended yet" in ran("status", "--stack", "games")
    assert "no job has written there" in failed(2, "status", "--stack", "games", "--lake", str(tmp_path / "other"))


def test_a_lake_whose_first_batch_is_still_to_come_has_no_last_one(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    assert "today       none; 0 records" in ran("status", "--lake", str(tmp_path))


def test_a_lost_ledger_is_told(lake: str) -> None:
    shutil.rmtree(f"{lake}/_forebay/ledger")
    app = CommitProperties(app_transactions=[Transaction("forebay/games/g", 7)])
    write_deltalake(f"{lake}/gamma", pa.table({"id": [1]}), commit_properties=app)
    said = "look at: the lake has no ledger, but table gamma has rows that a job loaded: the ledger was lost. The job refuses"
    assert said in failed(1, "status", "--lake", lake)


def test_a_first_batch_whose_plan_was_deleted_has_lost_no_ledger(tmp_path: Path) -> None:
    """The job goes on with it, and `status` writes nothing that the job would then read."""
    checkpoint = tmp_path / "_forebay" / "checkpoints" / "ingest"
    (checkpoint / "stream").mkdir(parents=True)
    (checkpoint / "service").write_text("games")
    (checkpoint / "stream" / "metadata").write_text(json.dumps({"id": "one"}))
    (checkpoint / "generation").write_text(json.dumps({"generation": "g", "stream": "one"}))
    app = CommitProperties(app_transactions=[Transaction("forebay/games/g", 0)])
    write_deltalake(str(tmp_path / "beta"), pa.table({"id": [1]}), commit_properties=app)
    assert "look at" not in ran("status", "--lake", str(tmp_path))
    (checkpoint / "generation").write_text(json.dumps({"generation": "g", "stream": "an earlier one"}))
    assert "the ledger was lost" in failed(1, "status", "--lake", str(tmp_path))
    assert json.loads((checkpoint / "generation").read_text())["stream"] == "an earlier one"


def test_tables_that_no_job_filled_have_lost_no_ledger(tmp_path: Path) -> None:
    """Maintenance has measured an adopted one, before the first file is loaded."""
    write_deltalake(str(tmp_path / "alpha"), pa.table({"id": [1]}))
    HealthRecords(str(tmp_path)).update("alpha", lambda was: Health(table=was.table, newest_at=datetime.now(UTC)))
    assert "look at" not in ran("status", "--lake", str(tmp_path))


def test_files_that_s3_had_not_announced_and_the_age_of_each_table_are_told(lake: str) -> None:
    keep(lake, LastReconcile(datetime.now(UTC) - timedelta(hours=3), 1200, 2, 0, "s3://landing/in/lost.json"))
    said = ran("status", "--lake", lake, "--tables").splitlines()
    assert "missed      2 of 1,200 files, 3 h ago; `forebay find-missed` announced them" in said
    assert [line.split()[:3] for line in said[-3:]] == [
        ["table", "newest", "rows"],
        ["beta", "2", "d"],
        ["alpha", "5", "min"],
    ]
    assert json.loads(ran("status", "--lake", lake, "--json"))["reconciled"]["missed"] == 2
    keep(lake, LastReconcile(datetime.now(UTC) - timedelta(hours=3), 1200, 0, 0, ""))
    assert "missed      0 of 1,200 files, 3 h ago" in ran("status", "--lake", lake).splitlines()


def test_a_status_that_is_watched_tells_the_rates_since_the_last_look(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [1, 2]

    def sleep(seconds: float) -> None:
        looks.pop()
        if not looks:
            raise KeyboardInterrupt
        now = datetime.now(UTC)
        write_ledger(Path(lake), *(entry(f"in/new-{n}.json", at=now, day=now.date(), batch=8) for n in range(30)))

    monkeypatch.setattr(cli_status, "sleep", sleep)
    said = failed(130, "status", "--watch", "--every-s", "7", "--lake", lake)
    ledger = [line for line in said.splitlines() if line.startswith("ledger")]
    assert ledger[0] == "ledger      4 files"
    assert re.fullmatch(r"ledger {6}34 files, [\d,.]+ .*", ledger[1])
