"""Every list in its three forms: on a terminal of eighty columns, in a pipe, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import forebay.cli
from forebay.batch.one_pass.held import COLUMNS as HELD
from forebay.cli.main import main
from forebay.cli.show import console, error_console
from forebay.operate.looking.history import record_verb
from tests.operate.command import given
from tests.operate.ledger import AT, entry, schema_of, write_ledger
from tests.operate.test_conventions import LEAVES

LONG = "a_game_with_a_long_name_events"
CLI = Path(forebay.cli.__file__).parent
MOMENT = pa.timestamp("us", "UTC")
KEY = "in/" + "long/" * 20 + "a.json"
ADDRESS = f"s3://landing/{KEY}"
"""It may go past the edge, so that it can be copied."""
REPLAYED = ["replay", "--table", LONG, "--since", "2026-01-01", "--dry-run"]
LISTS: list[tuple[list[str], list[str]]] = [
    (["tables", "list"], [LONG, "1,234", "2026-11-21 10:00:00"]),
    (["tables", "health"], [LONG, "_forebay/ledger", "100 %"]),
    (["schema", "show", LONG], ["event_time", "timestamp", "long"]),
    (["schema", "history", LONG], ["version 0", "+ event_time timestamp"]),
    (["files", "list"], ["2026-11-21 10:01:00", "1,234,567", "loaded", ADDRESS]),
    (["quarantine", "list"], ["1,234", "2026-11-21 10:00:00"]),
    (["parked", "list"], ["1", "2026-11-21 10:00:00"]),
    (["parked", "list", "--by", "event"], ["refund", "1"]),
    (["quality"], ["quarantine", "1,234,567", "123,456"]),
    (["history", "--days", "90000"], ["2026-11-21 10:01:00", "forebay undo it"]),
    (["query", "select outcome, records from ledger"], ["loaded", "1234567"]),
    (["plan-capacity", "--days", "365"], ["30 min"]),
    (["privacy", "scan", LONG], ["email", "1,234"]),
    (["compact", "--dry-run", "--now"], ["2 → 1"]),
    (["files", "forget", f"s3://landing/{KEY}", "--dry-run"], [LONG, "1,234,567"]),
    (REPLAYED, [LONG, "1,234,567"]),
]
NAMES = [" ".join(word for word in command if " " not in word and "/" not in word) for command, _ in LISTS]
TESTED_ELSEWHERE = {
    "forebay.cli.changing.upkeep": "here, as `compact`: a command of settings is of the module that makes it one",
    "forebay.cli.looking.try_out": "tests/operate/test_trial.py: it has no lake",
    "forebay.cli.looking.status": "tests/operate/test_status.py: its table comes below other lines",
    "forebay.cli.changing.drop": "tests/operate/test_drop.py: whole commands follow below its table",
    "forebay.cli.changing.rollback": "tests/operate/test_rollback.py: it asks Spark",
    "forebay.cli.people.report": "tests/operate/test_erase.py: sentences follow below its table",
    "forebay.cli.people.vault": "tests/operate/test_person.py: it needs a vault and its keys",
}


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """A lake with one of each thing, and names that are as long as they may be."""
    write_ledger(tmp_path, entry(KEY, tables={LONG: 1_234_567}))
    texts = ["player@example.org"] * 1234
    rows = pa.table({"v": range(1234), "event_time": pa.array([AT] * 1234, MOMENT), "email": texts})
    for part in (rows.slice(0, 1000), rows.slice(1000)):
        write_deltalake(tmp_path / LONG, part, mode="append")
    held = {"day": AT.date(), "at": AT, "service": "games", "file_id": "f", "bucket": "landing", "key": KEY, "line": 1}
    refused = {**held, "table": LONG, "reason": "expectation-failed"}
    write_deltalake(tmp_path / "_forebay" / "quarantine", pa.Table.from_pylist([refused] * 1234, schema_of(HELD)))
    parked = {**held, "record": '{"event": "refund"}'}
    write_deltalake(tmp_path / "_forebay" / "parked", pa.Table.from_pylist([parked], schema_of(HELD)))
    verdict = {"day": AT.date(), "table": LONG, "expectation": "a_price_is_positive", "on_violation": "quarantine"}
    counted = {**verdict, "rows": 1_234_567, "violated": 123_456, "failed": False}
    write_deltalake(tmp_path / "_forebay" / "quality", pa.Table.from_pylist([counted]))
    record_verb(str(tmp_path), "rollback: " + "a long story " * 9, undo="forebay undo it")
    return str(tmp_path)


@pytest.mark.parametrize(("command", "whole"), LISTS, ids=NAMES)
def test_at_eighty_columns_no_number_moment_or_outcome_is_broken(
    command: list[str], whole: list[str], lake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_width", 80)
    monkeypatch.setattr(error_console, "_width", 80)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--lake", lake])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert [line for line in said.splitlines() if len(line) > 80 and not line.endswith(ADDRESS)] == []
    assert [one for one in whole if one not in said] == []


def listed(*command: str) -> str:
    """Standard output alone: `compact` says on the other one whose declarations it takes."""
    status, out, _ = given(command, "")
    assert status == 0
    return out


@pytest.mark.parametrize(("command", "whole"), LISTS, ids=NAMES)
def test_in_a_pipe_nothing_is_cut_or_coloured(command: list[str], whole: list[str], lake: str) -> None:
    said = listed(*command, "--lake", lake)
    assert "\x1b" not in said
    assert "…" not in said
    assert [line for line in said.splitlines() if line.endswith(" ")] == []
    assert [one for one in whole if one not in said] == []


@pytest.mark.parametrize("command", [command for command, _ in LISTS], ids=NAMES)
def test_as_json_each_line_is_one_object_and_all_are_alike(command: list[str], lake: str) -> None:
    objects: list[dict[str, Any]] = [
        json.loads(line) for line in listed(*command, "--lake", lake, "--json").splitlines()
    ]
    assert objects
    assert len({tuple(one) for one in objects}) == 1


def test_every_module_that_shows_a_table_is_tested_here_or_elsewhere() -> None:
    shows = {
        ".".join(("forebay.cli", *file.relative_to(CLI).with_suffix("").parts))
        for file in CLI.rglob("*.py")
        if file.name != "show.py" and re.search(r"(?<!_)columns\(", file.read_text())
    }
    tested = {LEAVES[name].callback.__module__ for name in LEAVES if any(typed.startswith(name) for typed in NAMES)}
    assert shows - tested == TESTED_ELSEWHERE.keys()
