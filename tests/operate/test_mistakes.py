"""What somebody types who is tired: wrong names, the wrong order. Nothing is done, and the line says what to do."""

from __future__ import annotations

from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.lease import hold
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger
from tests.operate.test_rollback import file_id


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for key in ("in/a.json", "in/b.json"):
        write_deltalake(tmp_path / "alpha", pa.table({"_file_id": [file_id(key)], "n": [1]}), mode="append")
        write_ledger(tmp_path, entry(key, tables={"alpha": 1}))
    return str(tmp_path)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("alpah", "--to", "0"), "did you mean alpha?"),
        (
            ("alpha", "--to", "7"),
            "has no version 7 (its newest is 1; `forebay history --table alpha --days 30` lists",
        ),
        (("alpha", "--to", "2001-01-01"), "did not exist at 2001"),
    ],
)
def test_no_job_is_stopped_for_a_rollback_that_cannot_be(lake: str, typed: tuple[str, ...], says: str) -> None:
    ingests = hold(f"{lake}/_forebay/checkpoints/ingest", wait_s=0)
    assert says in failed(2, "rollback", *typed, "--lake", lake, "--yes", "--wait-s", "0")
    assert not Path(lake, "_forebay/checkpoints/ingest/stop").exists()
    ingests.let_go()


@pytest.mark.parametrize("command", [("stop",), ("lease", "show"), ("lease", "break", "--yes")])
def test_a_mistyped_lake_does_not_look_as_if_nothing_ran_there(command: tuple[str, ...], tmp_path: Path) -> None:
    assert "no job has written there (is it spelled correctly? The first" in failed(
        2, *command, "--lake", str(tmp_path)
    )


@pytest.mark.parametrize(
    "command", [("show",), ("history",), ("diff",), ("settle",), ("promote", "f", "--type", "long")]
)
def test_a_mistyped_table_of_schema_gets_a_suggestion_without_spark(
    lake: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.lake.safety.session_for", None)
    assert "did you mean alpha?" in failed(2, "schema", command[0], "alpah", *command[1:], "--lake", lake)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("files", "list", "--table", "alpah"), "did you mean alpha?"),
        (("tail", "--table", "alpah"), "did you mean alpha?"),
        (("quality", "alpah"), "did you mean alpha?"),
        (("quarantine", "show", "--table", "alpah"), "did you mean alpha?"),
        (
            ("where", "7", "--row", "alpha", "--by", "_file"),
            "--by _file: is not a column of table alpha (did you mean _file_id?)",
        ),
        (("where", "7", "--row", "alpah"), "did you mean alpha?"),
        (
            ("report", "--out", "/no/such/folder/r.html"),
            "--out /no/such/folder/r.html: cannot be written: No such file",
        ),
        (("lease", "break", "--yes", "--of", "gmaes"), "never loaded files here (known services: games)"),
        (("lease", "show", "--table", "alpah"), "did you mean alpha?"),
        (("files", "skip"), "forebay: files skip: names no file (give an address, or --file-id)"),
        (("tables", "health", "alpah"), "did you mean alpha?"),
        (("tables", "health", "_forebay/leger"), "did you mean _forebay/ledger?"),
        (("compact", "alpah", "--dry-run"), "did you mean alpha?"),
        (("compact", "--dry-run", "--group", "nope"), "--group: 'nope' is not a group"),
        (("replay", "--key", "in/*", "--of", "gmaes", "--dry-run"), "did you mean games?"),
        (("files", "retry", "--queue-url", "http://q", "--of", "gmaes", "--dry-run"), "did you mean games?"),
        (("files", "list", "--since", "2026-11-22", "--until", "2026-11-21"), "--until: is not after --since"),
        (("quarantine", "show", "--reason", "tabel-failed"), "did you mean table-failed?"),
        (("quarantine", "retry", "--reason", "tabel-failed"), "did you mean table-failed?"),
        (("rollback", "alpha", "--to", "9" * 20), f"has no version {'9' * 20}"),
        (("rollback", "alpha", "--to", "2999-01-01"), "is in the future (times are in UTC)"),
        (("history", "--days", "1e9"), "must be at most 100000"),
    ],
)
def test_a_mistyped_name_is_not_taken_for_an_empty_answer(lake: str, command: tuple[str, ...], says: str) -> None:
    hold(f"{lake}/_forebay/writers/games", wait_s=0).let_go()
    assert says in failed(2, *command, "--lake", lake)


def test_a_table_that_nobody_declares_adopts_nothing_and_spark_does_not_start(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.lake.safety.session_for", None)
    service = tmp_path / "mine.toml"
    service.write_text('name = "games"\n[[tables]]\nname = "alpha"\n')
    said = failed(2, "parked", "adopt", "alpah", "--lake", lake, "--service", str(service))
    assert "table alpah: no declaration defines it (service games declares alpha; --service names other" in said


@pytest.mark.parametrize("command", [("compact", "--dry-run"), ("compact",), ("maintain",), ("merge",)])
def test_upkeep_of_a_mistyped_lake_fails_before_spark_starts(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.lake.safety.session_for", None)
    assert "has no ledger (is it spelled correctly?" in failed(2, *command, "--lake", str(tmp_path))


@pytest.mark.parametrize("command", ["compact", "maintain"])
def test_upkeep_of_a_mistyped_table_gets_a_suggestion_before_spark_starts(
    command: str, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.lake.safety.session_for", None)
    assert "did you mean alpha?" in failed(2, command, "alpah", "--lake", lake)


@pytest.mark.parametrize("command", [("stop",), ("lease", "show"), ("status",), ("rollback", "alpha", "--to", "0")])
def test_a_mistyped_checkpoint_does_not_look_as_if_nothing_ran_there(command: tuple[str, ...], lake: str) -> None:
    mistyped = f"{lake}/_forebay/checkpoints/ingset"
    said = failed(2, *command, "--lake", lake, "--checkpoint", mistyped)
    assert f"checkpoint {mistyped}: no job has written there (is it spelled correctly?)" in said


@pytest.fixture
def landing(s3: str) -> str:
    """An empty bucket, and its queue."""
    boto3.client("s3", endpoint_url=s3, region_name="us-east-1").create_bucket(Bucket="mistaken-landing")
    return str(boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="q")["QueueUrl"])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("status", "--queue-url", "MISSING"), "there is no such queue"),
        (("report", "--queue-url", "MISSING", "--out", "/dev/null"), "there is no such queue"),
        (
            ("find-missed", "--dry-run", "--landing", "s3://no-such/in/", "--queue-url", "QUEUE"),
            "landing s3://no-such/in/: cannot be used: 404",
        ),
        (("backfill", "s3://no-such/in/", "--dry-run"), "s3://no-such/in/: cannot be used: 404"),
        (
            ("backfill", "s3://mistaken-landing/", "--dry-run", "--since", "2026-02-02", "--until", "2026-01-01"),
            "--until: is not after --since",
        ),
    ],
)
def test_a_mistyped_place_of_aws_is_named(lake: str, landing: str, command: tuple[str, ...], says: str) -> None:
    typed = [one.replace("QUEUE", landing).replace("MISSING", f"{landing}-not") for one in command]
    assert says in failed(2, *typed, "--lake", lake)


LANDING = "s3://mistaken-landing/typo//no#1/%41/"
"""Keys of landed files may have names that a lake may not have."""


@pytest.mark.parametrize("command", [("backfill", LANDING), ("find-missed", "--landing", LANDING)])
def test_where_no_file_lies_and_where_none_was_loaded_is_said(
    tmp_path: Path, landing: str, command: tuple[str, ...]
) -> None:
    status, _, said = given((*command, "--dry-run", "--queue-url", landing, "--lake", str(tmp_path)), "")
    assert status == 0
    assert f"found no file under {command[-1]}: is it spelled correctly?" in said
    assert f"{tmp_path} has no ledger yet, so all files count as new" in said


def test_a_value_that_no_row_has_is_not_called_a_file(lake: str) -> None:
    said = failed(1, "where", "7", "--row", "alpha", "--by", "n", "--lake", lake)
    told = "table alpha: no row has 7 in its column n; `forebay quarantine show --table alpha` shows refused records\n"
    assert said == told


def test_files_are_not_announced_to_a_queue_that_is_not_there(lake: str, s3: str) -> None:
    write_ledger(lake, entry("in/c.json", outcome="denied"))
    said = failed(2, "files", "retry", "--lake", lake, "--queue-url", f"{s3}/123456789012/mistyped")
    assert "there is no such queue" in said
    assert "in/c.json" not in said


def test_a_rollback_that_is_said_twice_is_done_once(lake: str) -> None:
    command = ("rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    assert "1 row left" in ran(*command)
    assert "nothing to do" in ran(*command)
    assert DeltaTable(f"{lake}/alpha").version() == 2


def test_no_job_is_stopped_where_the_tables_are_there_already(lake: str) -> None:
    ingests = hold(f"{lake}/_forebay/checkpoints/ingest", wait_s=0)
    assert "nothing to do" in ran("rollback", "alpha", "--to", "1", "--lake", lake, "--yes", "--wait-s", "0")
    assert not Path(lake, "_forebay/checkpoints/ingest/stop").exists()
    ingests.let_go()


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_records_of_a_mistyped_table_are_not_tried(lake: str, verb: str) -> None:
    service = Path(lake, "service.toml")
    service.write_text('name = "games"\n[[tables]]\nname = "alpha"\n')
    asked = ("quarantine", verb, "--table", "alpah", "--service", str(service), "--lake", lake)
    assert "did you mean alpha?" in failed(2, *asked, "--dry-run")


def test_no_table_goes_back_before_the_queue_of_its_replay_is_found(lake: str, s3: str) -> None:
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    missing = sqs.create_queue(QueueName="there")["QueueUrl"] + "-not"
    command = ("rollback", "alpha", "--to", "0", "--and-replay", "--lake", lake, "--yes", "--queue-url", missing)
    assert "there is no such queue" in failed(2, *command)
    assert DeltaTable(f"{lake}/alpha").version() == 1


def test_a_secret_in_the_lake_is_refused_before_spark_starts(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.jobs.ingest.check_queue", lambda _: None)
    monkeypatch.setattr("forebay.jobs.ingest.session_for", None)
    service = tmp_path / "mine.toml"
    privacy = f'[privacy]\nsecret = "{lake}/tokens"\npersonal = [{{ path = "email", become = "token" }}]\n'
    service.write_text(f'name = "games"\n{privacy}[[tables]]\nname = "alpha"\n')
    says = f"privacy.secret: {lake}/tokens is in the lake {lake}, or around it"
    assert says in failed(2, "ingest", "--queue-url", "http://q", "--lake", lake, "--service", str(service))
    assert says in failed(2, "tables", "check", str(service), "--no-sql", "--lake", lake)
