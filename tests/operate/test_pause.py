"""`forebay pause` and `forebay resume`, as an operator types them; what lands afterwards is told in `tests/batch`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.lake.lease import hold
from forebay.lake.paused import paused_tables
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, schema_of, write_ledger


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path, entry("in/a.json", tables={"alpha": 1}))
    for table in ("alpha", "beta"):
        write_deltalake(tmp_path / table, pa.table({"v": [1]}))
    return str(tmp_path)


def hold_back(lake: str, table: str) -> None:
    nothing = dict.fromkeys(schema_of(COLUMNS).names)
    held = {**nothing, "line": 1, "table": table, "reason": "paused", "service": "games", "at": datetime.now(UTC)}
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist([held], schema_of(COLUMNS)), mode="append")


def test_a_pause_is_told_recorded_and_taken_back(lake: str) -> None:
    assert ran("pause", "alpha", "beta", "--lake", lake, "--dry-run") == "alpha, beta: would be paused\n"
    assert paused_tables(lake) == frozenset()
    assert ran("pause", "alpha", "--lake", lake) == "alpha: paused from the next batch on\n"
    assert ran("pause", "alpha", "--lake", lake) == "paused already; nothing changed\n"
    assert "paused      alpha; 0 rows wait for `forebay resume`" in ran("status", "--lake", lake)
    told, *_ = map(json.loads, ran("history", "--lake", lake, "--json", "--days", "1").splitlines())
    assert (told["what"], told["undo"]) == ("pause: alpha", "forebay resume alpha")
    assert ran("resume", "alpha", "--lake", lake) == "alpha: resumed from the next batch on; 0 rows wait\n"
    assert paused_tables(lake) == frozenset()


def test_resume_without_a_table_names_those_that_are_paused(lake: str) -> None:
    assert failed(2, "resume", "--lake", lake) == "forebay: resume: TABLE is missing (no table is paused)\n"
    ran("pause", "alpha", "beta", "--lake", lake)
    assert failed(2, "resume", "--lake", lake) == "forebay: resume: TABLE is missing (paused: alpha, beta)\n"
    ran("pause", "all", "--lake", lake)
    assert "(paused: all tables)" in failed(2, "resume", "--lake", lake)
    assert "pause: TABLE|all is missing (`forebay pause --help` says more)" in failed(2, "pause", "--lake", lake)


def test_a_mistyped_table_is_no_pause(lake: str, tmp_path: Path) -> None:
    assert "did you mean alpha?" in failed(2, "pause", "alpah", "--lake", lake)
    assert paused_tables(lake) == frozenset()
    (tmp_path / "declared").mkdir()
    (tmp_path / "declared" / "service.toml").write_text('name = "games"\n[[tables]]\nname = "to_come"\n')
    ran("pause", "to_come", "--lake", lake, "--service", str(tmp_path / "declared"))
    assert paused_tables(lake) == {"to_come"}
    assert "is filled by forebay" in failed(2, "tables", "check", _declares_a_pause(tmp_path))


def test_a_table_of_the_declarations_in_force_is_paused_before_its_first_row(lake: str) -> None:
    service = parse_service({"service.toml": 'name = "games"\n[[tables]]\nname = "to_come"\n'})
    keep_in_force(lake, service)
    assert ran("pause", "to_come", "--lake", lake) == "to_come: paused from the next batch on\n"
    assert "table to_come_: is not in" in failed(2, "pause", "to_come_", "--lake", lake)
    keep_in_force(lake, parse_service({"service.toml": 'name = "studio"\n[[tables]]\nname = "later"\n'}))
    assert ran("pause", "later", "--lake", lake) == "later: paused from the next batch on\n"
    assert paused_tables(lake) == {"to_come", "later"}


def test_a_table_is_paused_while_the_first_batch_of_the_lake_runs(tmp_path: Path) -> None:
    keep_in_force(str(tmp_path), parse_service({"service.toml": 'name = "games"\n[[tables]]\nname = "to_come"\n'}))
    assert ran("pause", "to_come", "--lake", str(tmp_path)) == "to_come: paused from the next batch on\n"
    assert "table to_come_: is not in" in failed(2, "pause", "to_come_", "--lake", str(tmp_path))
    assert ran("resume", "to_come", "--lake", str(tmp_path)) == "to_come: resumed from the next batch on; 0 rows wait\n"


def _declares_a_pause(tmp_path: Path) -> str:
    place = tmp_path / "declared" / "service.toml"
    place.write_text('paused = ["to_come"]\n' + place.read_text())
    return str(place)


def test_all_tables_are_resumed_together_or_not_at_all(lake: str) -> None:
    ran("pause", "beta", "--lake", lake)
    assert ran("pause", "all", "--lake", lake) == "all tables: paused from the next batch on\n"
    assert "paused      all tables, beta" in ran("status", "--lake", lake)
    assert "all of them are paused" in failed(2, "resume", "alpha", "--lake", lake)
    assert "use it alone" in failed(2, "pause", "all", "alpha", "--lake", lake)
    assert ran("resume", "all", "--lake", lake).startswith("all tables, beta: resumed")
    assert paused_tables(lake) == frozenset()


def test_resume_says_that_a_running_batch_may_still_hold_rows_back(lake: str) -> None:
    ran("pause", "alpha", "--lake", lake)
    ingests = hold(f"{lake}/_forebay/writers/games", wait_s=0)
    service = Path(lake, "service.toml")
    service.write_text('name = "games"\n[[tables]]\nname = "alpha"\n')
    status, out, err = given(("resume", "alpha", "--lake", lake, "--service", str(service)), "")
    assert (status, out) == (0, "alpha: resumed from the next batch on; 0 rows wait\n")
    assert "a batch that it began before may still put rows aside" in err
    assert given(("resume", "alpha", "--lake", lake, "--service", str(service)), "") == (
        0,
        "nothing is paused; 0 rows wait\n",
        "",
    )
    ingests.let_go()


def test_a_mistyped_table_is_not_resumed(lake: str) -> None:
    ran("pause", "alpha", "--lake", lake)
    assert "did you mean alpha?" in failed(2, "resume", "alpah", "--lake", lake)
    assert paused_tables(lake) == {"alpha"}


def test_rows_that_wait_are_counted_and_those_that_were_left_behind_are_a_problem(lake: str) -> None:
    ran("pause", "alpha", "--lake", lake)
    hold_back(lake, "alpha")
    assert "paused      alpha; 1 row waits" in ran("status", "--lake", lake)
    assert ran("resume", "alpha", "--lake", lake, "--dry-run") == "alpha: would be resumed; 1 row waits\n"
    hold_back(lake, "beta")
    assert "beta: 1 row waits that arrived while it was paused (`forebay resume beta` loads them)" in failed(
        1, "status", "--lake", lake
    )
