"""What a newcomer types in the first hour, knowing only the documents: each answer says what to do next."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.batch.events import BatchCommitted
from forebay_local.twin.twin import Twin
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger

RECORDS = [
    {"type": kind, "id": number, "at": "2026-11-24T10:00:00Z"}
    for number, kind in enumerate(("in", "out", "in", "out", "in"))
]


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a file in the folder where the commands are given."""
    (tmp_path / "events.json").write_text(json.dumps(RECORDS, indent=1))
    monkeypatch.chdir(tmp_path)
    for variable in ("FOREBAY_LAKE", "FOREBAY_SERVICE", "FOREBAY_LOCAL", "FOREBAY_STACK"):
        monkeypatch.delenv(variable, raising=False)
    return "events.json"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path / "lake", [entry("a", records=1, written=1, tables={"signup": 1})])
    write_deltalake(tmp_path / "lake" / "signup", pa.table({"id": [1], "_ingested_at": [datetime.now(UTC)]}))
    return str(tmp_path / "lake")


def test_try_without_declarations_shows_a_draft_of_them(sample: str) -> None:
    said = ran("try", sample)
    assert "table in_events: 3 rows" in said
    assert "table out: 2 rows" in said
    assert said.startswith(
        "no --service, so forebay drafted declarations; `forebay tables init ./my-service --from events.json` writes them\n"
    )
    assert "parked" not in said


def test_try_without_declarations_prints_one_json_object(sample: str) -> None:
    (line,) = ran("try", sample, "--json").splitlines()
    assert [table["name"] for table in json.loads(line)["tables"]] == ["in_events", "out"]


def test_try_of_a_file_that_no_draft_fits_says_why_it_is_refused(sample: str) -> None:
    Path(sample).write_text("[1, 2]")
    said = failed(1, "try", sample)
    assert "2 records refused" in said
    assert "not-an-object" in said
    assert "draft" not in said


def test_a_record_on_several_lines_is_shown_on_one(sample: str) -> None:
    Path("service.toml").write_text('name = "s"\n[[tables]]\nname = "none"\nwhere = { type = "never" }\n')
    said = ran("try", sample, "--service", ".")
    assert 'events.json:2  { "type": "in", "id": 0, "at": "2026-11-24T10:00:00Z" }' in said
    assert "\N{REPLACEMENT CHARACTER}" not in said


def test_a_draft_names_its_tables_and_the_next_command(sample: str) -> None:
    said = ran("tables", "init", "shop", "--from", sample)
    assert said == (
        "wrote shop/service.toml\ntables   in_events, out\nnext     forebay try events.json --service shop\n"
    )


def test_a_new_table_is_followed_by_the_next_command(sample: str) -> None:
    ran("tables", "init", "shop", "--from", sample)
    said = ran("tables", "add", "shop", "reviews", "--where", "type=review")
    assert said == "wrote shop/tables/reviews.toml\nnext     forebay try FILE --service shop\n"


def test_a_missing_lake_names_the_twin_of_the_folder_or_of_another_one(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "forebay local env" not in failed(2, "audit")
    Path(".forebay/local").mkdir(parents=True)
    Path(".forebay/local/twin.json").write_text("{}")
    hint = 'a twin runs in this folder: `eval "$(forebay local env)"` names its lake'
    assert failed(2, "audit") == f"forebay: audit: --lake is missing ({hint})\n"
    assert failed(2, "status") == f"forebay: status: --lake is missing ({hint}; or --stack)\n"
    Path(".forebay/local").rename("elsewhere")
    monkeypatch.setenv("FOREBAY_LOCAL", "elsewhere")
    assert "(a twin runs in elsewhere: " in failed(2, "audit")


def test_a_table_that_a_query_does_not_find_is_named_as_it_was_typed(lake: str) -> None:
    said = failed(2, "query", "select * from signups", "--lake", lake)
    assert said.startswith(
        "forebay: query: there is no table signups (did you mean signup? Tables are after_load, complete, "
    )
    assert "datafusion" not in said


@pytest.mark.parametrize(
    ("command", "says"),
    [
        *((command, "no records") for command in ("quarantine list", "quarantine show", "parked list", "parked show")),
        ("parked list --by event", "no records"),
        ("files list --outcome unreadable", "no files"),
        ("quality", "no expectations were judged"),
    ],
)
def test_nothing_that_is_found_is_said_in_words(command: str, says: str, lake: str) -> None:
    assert ran(*command.split(), "--lake", lake) == f"{says}\n"
    assert ran(*command.split(), "--lake", lake, "--json") == ""


def test_one_of_a_thing_is_no_plural(lake: str) -> None:
    assert "ledger      1 file\n" in ran("status", "--lake", lake)
    assert not re.search(r"\b1 (files|records|rows|tables|letters|messages)\b", ran("status", "--lake", lake))
    assert not re.search(r"\b1 (files|records)\b", ran("history", "--lake", lake, "--days", "20000"))


def test_a_twin_of_another_folder_that_the_variable_names_is_not_taken_for_a_new_one(
    twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOREBAY_LOCAL", str(twin.state))
    said = ran("local", "up")
    assert f"folder   {twin.state} (FOREBAY_LOCAL; `unset FOREBAY_LOCAL` for a twin of this folder)\n" in said
    monkeypatch.delenv("FOREBAY_LOCAL")
    assert "folder " not in ran("local", "up", "--state", str(twin.state))


@pytest.mark.parametrize("command", ["status", "env", "put x.json", "feed", "fire", "alarms", "runs", "down"])
def test_a_twin_of_another_folder_that_the_variable_names_is_named_by_every_command(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = tmp_path / "here", tmp_path / "other" / ".forebay" / "local"
    here.mkdir()
    other.parent.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("FOREBAY_LOCAL", str(other))
    warned = f"FOREBAY_LOCAL names the twin in {other}; `unset FOREBAY_LOCAL` for that of this folder\n"
    assert warned in given(("local", *command.split()), "")[2]
    monkeypatch.chdir(tmp_path / "other")
    assert "FOREBAY_LOCAL" not in given(("local", *command.split()), "")[2], "it is below this folder"
    monkeypatch.delenv("FOREBAY_LOCAL")
    assert "FOREBAY_LOCAL" not in given(("local", *command.split(), "--state", str(other)), "")[2], "it was typed"


def test_what_the_twin_says_to_set_lets_delta_rs_in(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_LOCAL", str(twin.state))
    monkeypatch.chdir(twin.state)
    told = dict(line.removeprefix("export ").split("=", 1) for line in ran("local", "env").splitlines())
    for name, value in told.items():
        monkeypatch.setenv(name, value.strip("'"))
    place = f"{os.environ['FOREBAY_LAKE']}/first_hour"
    write_deltalake(place, pa.table({"order_id": ["o-1"]}))
    assert DeltaTable(place).to_pyarrow_table().to_pylist() == [{"order_id": "o-1"}]


def test_an_ingest_ends_with_what_it_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person on a laptop sees events, and then does not know where the rows are."""
    took = {"claim_seconds": 0.1, "read_seconds": 0.1, "write_seconds": 0.1, "ledger_seconds": 0.1, "seconds": 0.4}

    def run(settings: Any, *, emit: Any, stop: Any) -> None:
        for batch, refused in enumerate(batches):
            counts = {"records": 1200, "written": 1197, "quarantined": 2, "parked": 1, "refused_files": refused}
            emit(BatchCommitted(service="shop", batch=batch, files=3, bytes=9, tables=1, **counts, **took))  # type: ignore[arg-type]

    monkeypatch.setattr("forebay.jobs.ingest.ingest", run)
    command = ("ingest", "--lake", str(tmp_path), "--queue-url", "https://sqs/q")
    batches: list[int] = []
    assert ran(*command) == "no batch ended\n"
    batches = [0, 1]
    assert ran(*command) == (
        "6 files (1 refused): 2,400 records read = 2,394 written + 4 quarantined + 2 parked + 0 dropped; "
        "`forebay tables list` shows the tables\n"
    )
