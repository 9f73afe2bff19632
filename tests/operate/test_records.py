"""Every command that changes something leaves a record: who, what, when, and how to undo it. A new command has a scenario here,
or is named among those that change nothing in a lake; otherwise a test fails."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.batch.retrying.moving import Retried
from forebay.cli.changing.rollback import _target
from forebay.lake.layout import skips_of
from forebay.lake.lease_holder import Holder
from forebay.lake.objects import open_objects
from forebay.lake.paused import pause
from forebay.landed_file import LandedFile
from forebay.ledger.entry import POISON
from forebay.ledger.skips import Skips
from forebay.operate.declaring.settle import Settled
from forebay.upkeep.after_load.job import Cleared
from forebay.upkeep.maintenance.care import Cared
from forebay.upkeep.maintenance.job import MaintenanceResult, TableMaintenance
from forebay.upkeep.reconcile.backfill import Progress
from forebay.upkeep.reconcile.job import Reconciled
from tests.operate.command import given, ran
from tests.operate.ledger import AT, entry, schema_of, write_ledger
from tests.operate.test_command_line import ALL
from tests.operate.test_queue import keep_message

LOOKS = """status doctor report plan-capacity where files files~list files~show tail history lineage query queue
queue~peek lease lease~show audit tables tables~list tables~health tables~check tables~show tables~diff
tables~editor-schema try schema schema~show schema~history schema~diff privacy privacy~scan privacy~report
privacy~show quality quarantine quarantine~list quarantine~show parked parked~list parked~show wait"""
ELSEWHERE = """tables~init tables~add demo local local~up local~env local~status local~down local~feed local~put local~fire
local~alarms local~runs export privacy~secret privacy~rotate"""
"""They write files of a folder, objects outside of a lake, or the twin's."""
TELLS_BY_ITS_BATCHES = "ingest"
WITHOUT_RECORD = {name.replace("~", " ") for name in f"{LOOKS} {ELSEWHERE} {TELLS_BY_ITS_BATCHES}".split()}

Patch = Callable[[str, Any], None]
Scenario = Callable[[Path, str, Patch], list[str]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Prepares a lake and what a command calls, and gives what is typed."""
    return lambda prepared: SCENARIOS.setdefault(name, prepared)


@scenario("stop")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    patch("forebay.operate.changing.stop.stop", lambda *_, **__: SimpleNamespace(who="process 7"))
    return ["stop"]


@scenario("files skip")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    return ["files", "skip", "s3://landing/in/a.json"]


@scenario("files forget")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    return ["files", "forget", "s3://landing/in/*", "--yes", "--queue-url", queue]


@scenario("files retry")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    write_ledger(lake, entry("in/poison.json", outcome="unreadable", reason=POISON))
    return ["files", "retry", "--queue-url", queue]


@scenario("queue refused")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    keep_message(lake, "m1")
    return ["queue", "refused", "--drop", "--yes"]


def _dead_letter(queue: str) -> None:
    sqs = boto3.client("sqs", region_name="eu-west-1")
    dead = sqs.create_queue(QueueName="dead-of-records")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": policy})
    sqs.send_message(QueueUrl=dead, MessageBody="{}")


@scenario("queue redrive")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    _dead_letter(queue)
    return ["queue", "redrive", "--all", "--yes", "--queue-url", queue]


@scenario("queue dlq")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    _dead_letter(queue)
    return ["queue", "dlq", "--drop", "--yes", "--queue-url", queue]


@scenario("lease break")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    held = [(f"{lake}/_forebay/checkpoints/ingest", Holder("process 7", datetime.now(UTC), "t"))]
    patch("forebay.cli.changing.lease._held", lambda *_: held)
    patch("forebay.lake.lease.break_lease", lambda *_: None)
    return ["lease", "break", "--yes"]


@scenario("pause")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    return ["pause", "alpha"]


@scenario("resume")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    pause(str(lake), ["alpha"])
    return ["resume", "alpha"]


@scenario("replay-into")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    without_spark(patch)
    patch("forebay.declared_sql.check.check_expressions", lambda *_: None)
    patch("forebay.operate.changing.aside.load_aside", lambda *_, **__: iter([1]))
    return ["replay-into", f"{lake}-of-tests", "--table", "alpha", "--yes"]


@scenario("replay")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    return ["replay", "--table", "alpha", "--yes", "--queue-url", queue]


@scenario("rollback")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    return ["rollback", "alpha", "--to", "0", "--yes"]


@scenario("tables drop")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    return ["tables", "drop", "alpha", "--yes"]


@scenario("tables push")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    folder = lake / "_service"
    folder.mkdir()
    (folder / "service.toml").write_text('name = "games"\n[[tables]]\nname = "alpha"\n')
    return ["tables", "push", str(folder), str(lake / "_in_force"), "--no-sql"]


@scenario("backfill")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="drops-of-records")
    done = Progress(announced=3, looked_at=3)
    patch("forebay.upkeep.reconcile.backfill.backfill", lambda *_, **__: done)
    return ["backfill", "s3://drops-of-records/in/", "--queue-url", queue]


@scenario("find-missed")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    patch(
        "forebay.upkeep.reconcile.job.reconcile",
        lambda *_, **__: Reconciled(9, (LandedFile("files-of-records", "in/x"),)),
    )
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="files-of-records")
    return ["find-missed", "--landing", "s3://files-of-records/in/", "--queue-url", queue]


def settles(lake: Path, patch: Patch) -> None:
    without_spark(patch)
    patch("forebay.table.kernel.TableLogs", lambda *_, **__: SimpleNamespace(close=lambda: None))
    patch("forebay.operate.declaring.settle.settle", lambda *_: Settled(("v: long",), 3, 1, 0, 2))


def retries(patch: Patch, done: Retried, finished: Retried | None = None) -> None:
    without_spark(patch)
    patch("forebay.declared_sql.check.check_expressions", lambda *_: None)
    tries = SimpleNamespace(
        run=lambda _: done, finished=finished or Retried(), logs=SimpleNamespace(close=lambda: None)
    )
    patch("forebay.batch.retrying.retry.Retry", lambda *_, **__: tries)


def without_spark(patch: Patch) -> None:
    patch("forebay.lake.safety.session_for", lambda *_, **__: None)


@scenario("schema settle")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    settles(lake, patch)
    return ["schema", "settle", "alpha"]


@scenario("schema promote")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    settles(lake, patch)
    return ["schema", "promote", "alpha", "price", "--type", "double"]


@scenario("quarantine retry")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    retries(patch, Retried(3, {"alpha": 3}))
    return ["quarantine", "retry"]


@scenario("quarantine drop")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    retries(patch, Retried(3, {}, 3))
    return ["quarantine", "drop", "--reason", "not-json", "--yes"]


@scenario("parked adopt")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    retries(patch, Retried(3, {"alpha": 3}))
    return ["parked", "adopt", "alpha"]


@scenario("parked drop")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    retries(patch, Retried(3, {}, 3))
    return ["parked", "drop", "--yes"]


@scenario("privacy erase")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    outlook = SimpleNamespace(tokens={"ann": "t1"}, unknown=(), known_before=(), common={}, unseen=())
    patch("forebay.cli.people.privacy._show", lambda *_, **__: None)
    found = {"outlook.look": outlook, "outlook.last_version": None, "erase.unfinished": (), "erase.erase_now": 0}
    found |= {
        "erase.begin": SimpleNamespace(tokens=("t1",), number=1),
        "erase.carry_out": {"tables": [{"rows": 2, "refused": ""}]},
    }
    for name, answer in found.items():
        patch(f"forebay.operate.people.{name}", lambda *_, answer=answer, **__: answer)
    return ["privacy", "erase", "ann", "--yes", "--json"]


@scenario("compact")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    effect = SimpleNamespace(files_removed=9, files_added=1)
    table = SimpleNamespace(table="alpha", commits=[SimpleNamespace(effect=effect)], reason="", detail="")
    patch("forebay.upkeep.compaction.job.compact", lambda *_, **__: SimpleNamespace(tables=[table], status=0))
    return ["compact"]


@scenario("merge")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    table = SimpleNamespace(table="alpha", steps=[SimpleNamespace()], reason="", detail="")
    patch("forebay.merge.job.merge", lambda *_, **__: SimpleNamespace(tables=[table], status=0))
    patch("forebay.cli.changing.upkeep._show_merged", lambda _: None)
    return ["merge"]


@scenario("maintain")
def _(lake: Path, queue: str, patch: Patch) -> list[str]:
    cared = Cared(files_deleted=9, vacuum="lite", checkpoint=None)
    ran = MaintenanceResult(tables=(TableMaintenance(table="alpha", cared=cared),), remains={}, deleted=False)
    patch("forebay.upkeep.maintenance.job.maintain", lambda *_, **__: ran)
    return ["maintain"]


def test_files_that_reconcile_left_out_for_now_are_told(lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = boto3.client("sqs", region_name="eu-west-1").create_queue(QueueName="just-landed")["QueueUrl"]
    monkeypatch.setattr("forebay.upkeep.reconcile.job.find_missed", lambda *_, **__: Reconciled(0, (), too_new=348))
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="files-just-landed")
    said = ran(
        "find-missed", "--dry-run", "--landing", "s3://files-just-landed/in/", "--lake", str(lake), "--queue-url", queue
    )
    assert said.splitlines() == [
        "0 files checked: none missed",
        "348 files of the newest 6 hours were left out: --settle-hours 0 includes files that may still be on their way",
    ]


def test_one_missed_version_is_skipped_by_the_id_that_find_missed_prints(
    lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = boto3.client("sqs", region_name="eu-west-1").create_queue(QueueName="two-versions")["QueueUrl"]
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="two-versions")
    client.put_bucket_versioning(Bucket="two-versions", VersioningConfiguration={"Status": "Enabled"})
    versions = [client.put_object(Bucket="two-versions", Key="in/a", Body=body)["VersionId"] for body in (b"{}", b"[]")]
    where = ("--landing", "s3://two-versions/in/", "--settle-hours", "0", "--lake", str(lake), "--queue-url", queue)
    _, said, _ = given(("find-missed", "--dry-run", "--json", *where), "")
    missed = {one["version_id"]: one for one in json.loads(said)["missed"]}
    assert {one["uri"] for one in missed.values()} == {"s3://two-versions/in/a"}
    ran("files", "skip", "--file-id", missed[versions[0]]["file_id"], "--lake", str(lake))
    files = [LandedFile("two-versions", "in/a", version_id=version) for version in versions]
    assert Skips(open_objects(skips_of(str(lake)))).among(files) == {files[0].file_id}


@pytest.mark.parametrize(("waiting", "told"), [(1, "at least 1 was missed"), (2, "perhaps none was missed")])
def test_files_whose_messages_may_wait_are_not_called_missed(
    lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch, waiting: int, told: str
) -> None:
    queue = boto3.client("sqs", region_name="eu-west-1").create_queue(QueueName="still-waits")["QueueUrl"]
    files = tuple(LandedFile("files-that-wait", f"in/{n}") for n in range(2))
    done = Reconciled(9, files, may_wait=waiting)
    monkeypatch.setattr("forebay.upkeep.reconcile.job.find_missed", lambda *_, **__: done)
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="files-that-wait")
    where = ("--landing", "s3://files-that-wait/in/", "--lake", str(lake), "--queue-url", queue)
    assert f"messages for {waiting} of them, so {told}" in ran("find-missed", "--dry-run", *where)


def test_every_command_leaves_a_record_here_or_changes_nothing() -> None:
    assert SCENARIOS.keys() | WITHOUT_RECORD == ALL.keys(), "a new command needs a scenario, or a place in a list above"
    assert not SCENARIOS.keys() & WITHOUT_RECORD


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for number in range(2):
        write_deltalake(tmp_path / "alpha", pa.table({"_file_id": ["f"], "v": [number]}), mode="append")
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 2}, file_id="f"))
    held = {**dict.fromkeys(schema_of(COLUMNS).names), "line": 1, "table": "alpha", "reason": "not-json", "at": AT}
    held["service"] = "games"
    for pile in ("quarantine", "parked"):
        write_deltalake(tmp_path / "_forebay" / pile, pa.Table.from_pylist([held], schema_of(COLUMNS)))
    return tmp_path


@pytest.mark.parametrize("verb", SCENARIOS)
def test_what_a_verb_did_is_on_the_time_line(verb: str, lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = boto3.client("sqs", region_name="eu-west-1").create_queue(QueueName="of-records")["QueueUrl"]
    before = datetime.now(UTC) - timedelta(seconds=1)
    command = SCENARIOS[verb](lake, queue, monkeypatch.setattr)
    status, out, err = given((*command, "--lake", str(lake)), "")
    assert status == 0, out + err
    _, out, _ = given(("history", "--lake", str(lake), "--json"), "")
    told = [one for one in map(json.loads, out.splitlines()) if one["kind"] == "verb"]
    assert [one["what"].partition(":")[0] for one in told] == [verb], (told, err)
    assert " on " in told[0]["who"]
    assert told[0]["undo"]
    assert datetime.fromisoformat(told[0]["at"]) >= before
    if told[0]["undo"].startswith("forebay "):
        assert is_understood(shlex.split(told[0]["undo"])[1:])


def is_understood(words: list[str]) -> bool:
    """Whether a command can be typed as it is told, options and values too."""
    inner = " ".join(words[:2]) in ALL
    name = " ".join(words[: 1 + inner])
    of_lake = ["--lake", "/tmp", *(["--queue-url", "q"] if name == "files retry" else [])]
    # click keeps the options of the first help that a command was asked for
    found = ALL[name].make_context(name, [*words[1 + inner :], *of_lake], help_option_names=["-h", "--help"]).params
    return "to" not in found or bool(_target(found["to"], found["tables"]) is not None)


def test_rows_of_retried_records_leave_again_with_the_undo_that_is_told(
    lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    time.sleep(0.01)  # Delta's clock has milliseconds
    retries(monkeypatch.setattr, Retried(4, {"alpha": 3, "brand_new": 1}))
    before = DeltaTable(lake / "alpha").version()
    _, said, _ = given(("quarantine", "retry", "--lake", str(lake)), "")
    assert said.splitlines()[-1] == "4 records: 4 written, 0 dropped, 0 left"
    _, out, _ = given(("history", "--lake", str(lake), "--json"), "")
    undo = json.loads(out.splitlines()[0])["undo"]
    write_deltalake(lake / "alpha", pa.table({"_file_id": ["f"], "v": [9]}), mode="append")  # as the retry did
    status, out, err = given((*shlex.split(undo)[1:], "--lake", str(lake), "--dry-run", "--json"), "")
    assert (status, json.loads(out)["to"]) == (0, before), (undo, err)


def test_a_retry_prints_why_records_were_left(lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retries(monkeypatch.setattr, Retried(4, {"alpha": 1}, refused={"paused": 1, "expectation": 2}))
    _, said, _ = given(("quarantine", "retry", "--lake", str(lake)), "")
    assert said.splitlines()[-1] == "4 records: 1 written, 0 dropped, 3 left: 2 expectation, 1 paused"


def test_a_retry_that_was_interrupted_and_is_repeated_prints_what_it_finished(
    lake: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would say that nothing was written, and the rows are there."""
    retries(monkeypatch.setattr, Retried(), Retried(4, {"alpha": 3}, 1))
    _, said, _ = given(("quarantine", "retry", "--lake", str(lake)), "")
    assert said.splitlines()[-2:] == [
        "an interrupted command was finished first: 3 written, 1 dropped",
        "0 records: 0 written, 0 dropped, 0 left",
    ]


@pytest.mark.parametrize(("action", "undo"), [("moved", "copy the files back"), ("deleted", "put the files back")])
def test_the_undo_of_landed_files_that_went_fits_what_was_done(
    action: str, undo: str, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = Cleared(actions=Counter({action: 2, "replaced": 1}))
    done = MaintenanceResult(tables=(), remains={}, deleted=False, landed=landed)
    monkeypatch.setattr("forebay.upkeep.maintenance.job.maintain", lambda *_, **__: done)
    given(("maintain", "--lake", str(lake)), "")
    _, out, _ = given(("history", "--lake", str(lake), "--json"), "")
    (told,) = [one for one in map(json.loads, out.splitlines()) if one["kind"] == "verb"]
    assert told["what"] == f"maintain: 2 landed files {action}, as after_load declares"
    assert told["undo"].startswith(undo)
