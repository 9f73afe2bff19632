"""The runbook: each alarm has a symptom, a first command, a cause, a fix and an end, and its commands can be typed."""

from __future__ import annotations

import os
import re
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.main import get_command

from forebay.cli.main import app
from infra.bundle import ROOT

RUNBOOK = (ROOT / "infra" / "README.md").read_text().partition("\n## Runbook\n")[2].partition("\n## ")[0]
ENTRIES = dict(re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", RUNBOOK, re.S | re.M))
COMMANDS = sorted({" ".join(line.split()) for line in re.findall(r"`(forebay [^`]+)`", RUNBOOK)})


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_says_what_to_type_first_and_when_it_is_over(name: str) -> None:
    parts = re.findall(r"^\* \*\*(.+?):\*\*", ENTRIES[name], re.M)
    assert parts in (
        ["Symptom", "First command", "Cause and fix", "Over when"],
        ["Symptom", "First command", "Cause", "Fix", "Over when"],
    )
    (first,) = re.findall(r"First command:\*\* (.*)", ENTRIES[name])
    assert re.match(r"`(forebay|aws) ", first)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_runbook_is_understood(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAKE", "QUEUE_URL", "LANDING", "STACK"):
        monkeypatch.setenv(f"FOREBAY_{name}", "s3://b/p/")
    words = line.split()[1:]
    command: Any = get_command(app)
    while getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command.make_context(line, words)


def test_the_program_that_moves_undelivered_messages_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r'-c "\n(.*?)"\n```', RUNBOOK, re.S)
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        sqs = boto3.resource("sqs")
        undelivered, arrivals = (sqs.create_queue(QueueName=f"PREFIX-arrivals{end}") for end in ("-undelivered", ""))
        bodies = [f"file {number}" for number in range(12)]
        for body in bodies:
            undelivered.send_message(MessageBody=body)
        exec(code, {})
        moved: list[str] = []
        while found := arrivals.receive_messages(MaxNumberOfMessages=10):
            moved += [message.body for message in found]
        assert sorted(moved) == sorted(bodies)
        assert undelivered.receive_messages() == []
