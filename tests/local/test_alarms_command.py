"""`forebay local alarms`: nothing is started without a word, and a dry run starts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay_local import commands
from forebay_local.twin import alarms
from forebay_local.twin.alarms import Evaluation
from tests.operate.command import ran

RINGS = Evaluation("many-wait", "INSUFFICIENT_DATA", "ALARM", "30 wait, the threshold is 20", ("runs start-ingest",))


class Glue:
    """Of one job, which the alarm's function starts."""

    def __init__(self, **arguments: str) -> None:
        self.runs: list[dict[str, Any]] = []
        self._defaults = arguments

    def get_jobs(self) -> dict[str, Any]:
        return {"Jobs": [{"Name": "ingest", "DefaultArguments": self._defaults}]}

    def get_job_runs(self, JobName: str) -> dict[str, Any]:  # noqa: N803 (AWS's word)
        return {"JobRuns": self.runs}

    def start(self, client: object) -> None:
        self.runs.append({"Id": "jr_1", "JobName": "ingest"})


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Glue:
    found = Glue(**getattr(request, "param", {}))
    monkeypatch.setattr(commands, "_running", lambda state: SimpleNamespace(client=lambda name: found))
    monkeypatch.setattr(alarms, "evaluations", lambda client: [RINGS])
    monkeypatch.setattr(alarms, "evaluate", found.start)
    return found


def alarms_said(tmp_path: Path, *more: str) -> list[str]:
    return ran("local", "alarms", "--state", str(tmp_path), *more).splitlines()


def test_a_dry_run_says_what_a_change_does_and_starts_nothing(glue: Glue, tmp_path: Path) -> None:
    (said,) = alarms_said(tmp_path, "--dry-run")
    assert said == ("ALARM  many-wait  30 wait, the threshold is 20  (was INSUFFICIENT_DATA: runs start-ingest)")
    assert glue.runs == []


@pytest.mark.parametrize(
    ("glue", "by"),
    [
        ({}, "the built-in declarations"),
        ({"--service": "s3://lake/declared"}, "the declarations in s3://lake/declared"),
    ],
    indirect=["glue"],
)
def test_a_job_that_an_alarm_started_is_named_with_its_declarations(glue: Glue, by: str, tmp_path: Path) -> None:
    assert alarms_said(tmp_path)[1:] == [f"started  ingest with {by}: `forebay local runs` follows it"]
    told = [json.loads(line) for line in alarms_said(tmp_path, "--json")]
    assert [one["kind"] for one in told] == ["alarm"], "the run was there before"
