"""Ctrl-C while an operator's command waits, asks or works: one line, which says what is left to do, and nothing unfinished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.cli.changing import replay as cli_replay
from forebay.cli.interrupted import left_to_do
from forebay.lake.lease import hold
from forebay.operate.changing import rollback
from forebay.operate.lake_view import LakeView
from forebay.operate.looking import queue
from forebay.operate.looking.accounts import accounts
from forebay.upkeep.reconcile import backfill as backfilling
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger
from tests.operate.test_rollback import file_id

WAITS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from forebay.cli.main import main
time.sleep = lambda s: print("waits", flush=True) or sys.stdin.read()
main(sys.argv[1:])
"""
INTERRUPTED = 130


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for key, rows in (("in/a.json", 3), ("in/b.json", 2)):
        found = pa.table({"_file_id": [file_id(key)] * rows, "n": range(rows)})
        write_deltalake(tmp_path / "alpha", found, mode="append")
        write_ledger(tmp_path, entry(key, tables={"alpha": rows}))
    return str(tmp_path)


@pytest.mark.parametrize("command", [("stop",), ("rollback", "alpha", "--to", "0", "--yes")])
def test_one_that_waits_for_a_job_says_that_the_job_still_ends(lake: str, command: tuple[str, ...]) -> None:
    ingests = hold(f"{lake}/_forebay/checkpoints/ingest", wait_s=0)
    typed = [sys.executable, "-c", WAITS, *command, "--lake", lake]
    with subprocess.Popen(typed, stdin=-1, stdout=-1, stderr=-1, text=True, start_new_session=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waits\n"
        os.killpg(waiting.pid, signal.SIGINT)
        _, said = waiting.communicate(timeout=60)
    ingests.let_go()
    told = f"forebay: stopped: process {os.getpid()} on {os.uname().nodename} was asked to stop, and will still end"
    assert (waiting.returncode, said) == (INTERRUPTED, f"{told} after its batch\n")
    assert DeltaTable(f"{lake}/alpha").version() == 1


@pytest.fixture(autouse=True)
def keys_arrive() -> Iterator[None]:
    """Also where the suite is a background job of a shell, which then ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupts(real: Any) -> Any:
    def interrupted(*arguments: Any, **more: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **more)

    return interrupted


def test_a_rollback_that_has_begun_is_finished_first(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "_restore", interrupts(rollback._restore))
    status, out, err = given(("rollback", "alpha", "--to", "0", "--lake", lake, "--yes"), "")
    assert (status, err) == (INTERRUPTED, "forebay: stopped\n")
    assert "alpha: is as in version 0; 2 rows left" in out
    assert "rollback: alpha" in ran("history", "--lake", lake)
    assert accounts(LakeView(lake)).differences() == []
    assert rollback.finish_earlier(LakeView(lake)) is None


def test_a_replay_that_is_announced_in_part_says_how_the_rest_is(
    lake: str, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="stopped")["QueueUrl"]
    monkeypatch.setattr(cli_replay.Progress, "tell", interrupts(cli_replay.Progress.tell))
    said = failed(INTERRUPTED, "replay", "--table", "alpha", "--lake", lake, "--queue-url", queue, "--yes")
    assert said.splitlines()[-1] == "forebay: stopped: `forebay replay --resume` announces the rest"


def test_a_backfill_says_that_it_continues(lake: str, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1").create_queue(QueueName="b")["QueueUrl"]
    monkeypatch.setattr(backfilling, "backfill", interrupts(backfilling.backfill))
    said = failed(INTERRUPTED, "backfill", "s3://studio-lake/in/", "--lake", lake, "--queue-url", url)
    assert said.splitlines()[-1] == "forebay: stopped: repeat the command to continue"


def test_a_redrive_says_where_the_other_letters_are(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sqs = boto3.client("sqs", endpoint_url=s3, region_name="eu-west-1")
    dead = sqs.create_queue(QueueName="stopped-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})}
    url = sqs.create_queue(QueueName="stopped-main", Attributes=policy)["QueueUrl"]
    sqs.send_message(QueueUrl=dead, MessageBody="{}")
    monkeypatch.setattr(queue, "redrive", interrupts(queue.redrive))
    said = failed(INTERRUPTED, "queue", "redrive", "--all", "--yes", "--queue-url", url)
    assert (
        said.splitlines()[-1]
        == "forebay: stopped: unsent letters are still in the dead-letter queue; repeat the command"
    )


def test_whoever_knows_better_what_is_left_says_it() -> None:
    with pytest.raises(KeyboardInterrupt, match=r"^inner$"), left_to_do("outer"), left_to_do("inner"):
        raise KeyboardInterrupt


QUESTION = ("rollback", "alpha", "--to", "0")


@pytest.mark.parametrize("typed", ["n\n", "\n", "what?\n"])
def test_any_answer_but_yes_changes_nothing(lake: str, typed: str) -> None:
    said = failed(1, *QUESTION, "--lake", lake, typed=typed)
    assert said.endswith("no table was changed\n")
    assert DeltaTable(f"{lake}/alpha").version() == 1


def test_where_nobody_can_answer_the_option_is_named(lake: str) -> None:
    assert "--yes: is missing, and there is no terminal to ask (no table was changed)" in failed(
        2, *QUESTION, "--lake", lake
    )


def test_a_question_is_no_part_of_what_is_piped(lake: str) -> None:
    status, out, err = given((*QUESTION, "--json", "--lake", lake), "y\n")
    assert (status, out.splitlines()[0][0], "Roll these tables back?" in err) == (0, "{", True)


IMPORTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
meant = sys.argv[1]
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == meant:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from forebay.cli.start import main
sys.argv = ["forebay", "tables", "--lake", "/nowhere"]
main()
"""


@pytest.mark.parametrize(
    "module", ["forebay.cli.main", "typer.core", "forebay.cli.examples", "forebay.cli.declaring.tables"]
)
def test_a_command_that_is_stopped_while_its_modules_are_imported_says_one_line(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS, module], stdin=-3, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "forebay: stopped\n")


def test_a_command_that_was_started_to_ignore_interrupts_still_does() -> None:
    ignores = IMPORTS.replace("signal.default_int_handler", "signal.SIG_IGN")
    done = subprocess.run([sys.executable, "-c", ignores, "typer.core"], stdin=-3, capture_output=True, text=True)
    assert (done.returncode, "stopped" in done.stderr) == (2, False)


def test_the_command_that_is_installed_begins_there() -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert declared["project"]["scripts"] == {"forebay": "forebay.cli.start:main"}
