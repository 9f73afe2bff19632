"""What somebody types who is tired: wrong names, the wrong order. Nothing is done, and the line says what to do."""

from __future__ import annotations

from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.lake.lease import hold
from tests.operate.command import failed
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
        (("alpha", "--to", "7"), "has no version of 7"),
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
    assert "no job has written there (is it spelled right?)" in failed(2, *command, "--lake", str(tmp_path))


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
            "column _file: is not in table alpha (did you mean _file_id?)",
        ),
        (("where", "7", "--row", "alpah"), "did you mean alpha?"),
        (
            ("report", "--out", "/no/such/folder/r.html"),
            "--out /no/such/folder/r.html: cannot be written: No such file",
        ),
        (("lease", "break", "--yes", "--writer", "gmaes"), "never loaded files here (services that did: games)"),
    ],
)
def test_a_mistyped_name_is_not_taken_for_an_empty_answer(lake: str, command: tuple[str, ...], says: str) -> None:
    hold(f"{lake}/_forebay/writers/games", wait_s=0).let_go()
    assert says in failed(2, *command, "--lake", lake)


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
