"""`forebay compact --dry-run`: an answer without Spark and without a change."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from forebay.cli.main import app
from forebay.errors import Halt
from forebay.lake.health import HealthRecords
from forebay.lake.log.tables import own_tables, tables_of
from tests.operate.command import failed, given
from tests.operate.ledger import write_ledger


def run(*arguments: str) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["compact", *arguments], env={"COLUMNS": "200"})
    return ran.exit_code, ran.stdout


def lake(tmp_path: Path, **files: int) -> str:
    for name, count in files.items():
        for value in range(count):
            write_deltalake(tmp_path / name.replace("__", "/"), pa.table({"v": [value]}), mode="append")
    return str(tmp_path)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A lake that a batch was loaded into."""
    write_ledger(tmp_path)
    return tmp_path


def test_a_lake_has_the_tables_that_it_has(tmp_path: Path) -> None:
    place = lake(tmp_path, alpha=1, beta=1, _forebay__ledger=1, _forebay__ids=1, _forebay__quality=1)
    (tmp_path / "_forebay" / "checkpoints").mkdir()
    own = ["_forebay/ledger", "_forebay/quality", "_forebay/ids"]
    assert (tables_of(place), list(own_tables(place))) == (["alpha", "beta"], own)
    assert (tables_of(place + "/nowhere"), list(own_tables(place + "/nowhere"))) == ([], [])


def test_the_plan_is_shown_and_nothing_is_done(begun: Path) -> None:
    place = lake(begun, alpha=3, beta=1)
    status, shown = run("--lake", place, "--dry-run", "--now")
    assert status == 0
    assert [line.split()[:2] for line in shown.splitlines()[1:3]] == [["optimize", "alpha"], ["skip", "beta"]]
    assert "3 → 1" in shown
    assert "2 files fewer in 1 table:" in shown
    assert len(list((begun / "alpha" / "_delta_log").glob("*.json"))) == 3


def test_the_plan_as_json_says_what_why_and_at_what_cost(tmp_path: Path) -> None:
    status, shown = run("--lake", lake(tmp_path, alpha=3, _forebay__ledger=4), "--dry-run", "--json", "--now")
    assert status == 0
    tasks = {task["table"]: task for task in json.loads(shown)["tasks"]}
    assert set(tasks) == {"alpha", "_forebay/ledger"}
    alpha = tasks["alpha"]
    assert (alpha["files_before"], alpha["files_after"], alpha["reasons"]) == (3, 1, ["small-files", "settled"])
    assert alpha["dpu_s"] > 0


def test_a_table_that_is_not_there_is_named_before_anything_is_done(begun: Path) -> None:
    said = failed(2, "compact", "--lake", lake(begun, alpha=3), "--now", "alpha", "gamma")
    assert "table gamma: is not in" in said


def test_declarations_that_lie_in_the_lake_are_no_table_in_trouble(
    begun: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = lake(begun, alpha=3)
    given(("tables", "init", str(mine := tmp_path_factory.mktemp("mine"))), "")
    assert given(("tables", "push", str(mine), f"{place}/declarations"), "")[0] == 0  # as the README does
    status, shown = run("--lake", place, "--dry-run", "--now")
    assert (status, "declarations" in shown) == (0, False)
    ran = CliRunner().invoke(app, ["tables", "health", "--lake", place])
    assert (ran.exit_code, "declarations" in ran.stdout, "alpha" in ran.stdout) == (0, False, True)
    assert run("--lake", place, "--dry-run", "--now", "declarations")[0] == 1


def test_a_setting_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["compact", "--lake", str(tmp_path), "--round", "third"])
    assert "--round: must be 'first' or 'second'" in str(ran.exception)


def test_the_job_lets_out_which_tables_a_person_must_look_at(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[3] / "glue_jobs" / "compact.py"
    job = runpy.run_path(str(script))
    place = lake(tmp_path, alpha=1)
    job["main"](["--lake", place, "--tables", "alpha", "--JOB_NAME", "x"])
    with pytest.raises(Halt, match="1 table was not compacted, or only in part: gone: not-found"):
        job["main"](["--lake", place, "--tables", "alpha,gone"])
    assert (tmp_path / "_forebay" / "health" / "alpha.json").exists()


def test_what_is_too_hot_today_is_remembered_as_waiting(begun: Path) -> None:
    place = lake(begun, alpha=20, beta=1)
    assert run("--lake", place)[0] == 0
    found = {health.table: (health.files, health.waiting) for health in HealthRecords(place).all()}
    assert found == {"alpha": (20, 20), "beta": (1, 0), "_forebay/ledger": (0, 0)}
