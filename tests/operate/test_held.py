"""What lies beside the tables, as `forebay quarantine list|show` and `parked list|show` tell it, without a JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.batch.retrying.plan import PLAN as RETRY_PLAN
from forebay.cli.changing.held import PUT_AGAIN
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import load_service
from forebay.lake.layout import plans_of
from forebay.lake.objects import open_objects
from forebay.lake.paused import paused_tables
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.held import held_records, piles
from forebay.privacy.known_secret import keep_secret
from forebay.privacy.secret import make_secret, secret_at
from tests.operate.command import failed, ran
from tests.operate.ledger import schema_of, write_ledger

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
SCHEMA = schema_of(COLUMNS)


def record(number: int, **more: Any) -> dict[str, Any]:
    said = {"at": AT + timedelta(hours=number), "bucket": "landing", "key": f"in/{number}.json", "line": number}
    said |= {"service": "games", "file_id": f"f{number}", "byte_offset": 0, "metadata": '{"studio": "north"}'}
    return said | {"table": None, "reason": None, "detail": None, "record": '{"n": [1]}\n'} | more


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path)
    kept = [
        record(1, table="alpha", reason="expectation", detail="possible"),
        record(2, table="alpha", reason="expectation", detail="possible, known"),
        record(3, reason="not-json", record="{broken [/bold]"),
        record(4, reason="corrupt", line=None, record=None),
        record(5, table="o'clock", reason="table-failed"),
    ]
    write_deltalake(tmp_path / "_forebay" / "quarantine", pa.Table.from_pylist(kept, SCHEMA))
    parked = [record(1, record='{"event": "new"}'), record(2)]
    write_deltalake(tmp_path / "_forebay" / "parked", pa.Table.from_pylist(parked, SCHEMA))
    return str(tmp_path)


def listed(*arguments: str) -> list[list[str]]:
    return [line.split() for line in ran(*arguments).splitlines()]


def test_records_and_whole_files_are_counted_by_table_and_reason_the_newest_first(lake: str) -> None:
    assert [(p.table, p.reason, p.records, p.files, p.whole_files) for p in piles(LakeView(lake), "quarantine")] == [
        ("o'clock", "table-failed", 1, 1, 0),
        (None, "corrupt", 0, 1, 1),
        (None, "not-json", 1, 1, 0),
        ("alpha", "expectation", 2, 2, 0),
    ]
    assert listed("quarantine", "list", "--lake", lake)[4] == [
        "alpha",
        "expectation",
        "2",
        "2",
        "0",
        "2026-11-21",
        "12:00:00",
    ]
    assert listed("parked", "list", "--lake", lake)[1] == ["-", "-", "2", "2", "0", "2026-11-21", "12:00:00"]


def test_records_are_shown_as_they_came_with_where_and_why(lake: str) -> None:
    assert ran("quarantine", "show", "--lake", lake, "--reason", "not-json").splitlines() == [
        "s3://landing/in/3.json:3  not-json",
        "{broken [/bold]",
    ]
    alpha = ran("quarantine", "show", "--lake", lake, "--table", "alpha", "--limit", "1").splitlines()
    assert alpha == ["s3://landing/in/2.json:2  expectation · possible, known · alpha", '{"n": [1]}']
    assert ran("quarantine", "show", "--lake", lake, "--reason", "corrupt").splitlines()[0] == (
        "s3://landing/in/4.json  corrupt"
    )
    assert ran("parked", "show", "--lake", lake).splitlines()[-1] == '{"event": "new"}'


def test_parked_records_are_counted_by_what_a_declaration_could_ask_for(tmp_path: Path) -> None:
    records = [
        '{"event": "new", "at": {"x": 1}}',
        '{"event": "new"}',
        '{"event": "new"}',
        '{"event": "[old]"}',
        "[1]",
        '"text"',
        '{"event": 7}',
    ]
    rows = [record(n, record=text) for n, text in enumerate(records)]
    write_ledger(tmp_path)
    write_deltalake(tmp_path / "_forebay" / "parked", pa.Table.from_pylist(rows, SCHEMA))
    asked = ("parked", "list", "--lake", str(tmp_path), "--by")
    assert listed(*asked, "event")[:2] == [["event", "records"], ["new", "3"]]
    assert sorted(listed(*asked, "event")[2:]) == [["-", "2"], ["7", "1"], ["[old]", "1"]]
    assert listed(*asked, "at.x") == [["at.x", "records"], ["-", "6"], ["1", "1"]]
    assert listed(*asked, "event", "--limit", "1") == [["event", "records"], ["7", "1"]]


def test_parked_records_are_counted_by_what_their_key_and_metadata_say(lake: str, tmp_path: Path) -> None:
    service = tmp_path / "service"
    service.mkdir()
    (service / "service.toml").write_text('name = "games"\n[envelope]\nkey = "in/{number}."\n[[tables]]\nname = "t"\n')
    asked = ("parked", "list", "--lake", lake, "--service", str(service), "--by")
    assert sorted(listed(*asked, "@key.number")[1:]) == [["1", "1"], ["2", "1"]]
    assert listed(*asked, "@metadata.studio") == [["@metadata.studio", "records"], ["north", "2"]]
    assert "the declared `key` is 'in/{number}.'" in failed(2, *asked, "@key.game")
    assert "no `key` is declared" in failed(2, *asked[:4], "--by", "@key.game")


def test_the_same_as_json(lake: str) -> None:
    first = json.loads(ran("quarantine", "list", "--lake", lake, "--json").splitlines()[0])
    assert (first["table"], first["records"], first["newest"]) == ("o'clock", 1, "2026-11-21T15:00:00+00:00")
    shown = [json.loads(line)["record"] for line in ran("quarantine", "show", "--lake", lake, "--json").splitlines()]
    assert "{broken [/bold]" in shown
    assert json.loads(ran("parked", "list", "--lake", lake, "--by", "event", "--json").splitlines()[0])["records"] == 1


def test_a_quote_in_a_name_is_part_of_the_name(lake: str) -> None:
    assert [row["line"] for row in held_records(LakeView(lake), "quarantine", table="o'clock")] == [5]
    assert held_records(LakeView(lake), "quarantine", reason="' or 'a' = 'a") == []


def test_where_nothing_was_ever_kept_nothing_is_listed_or_shown(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    for kept in ("quarantine", "parked"):
        for look in ("list", "show"):
            assert ran(kept, look, "--lake", str(tmp_path)) == "no records\n"


@pytest.mark.parametrize("dedupe", ["", 'columns = [{ name = "id" }]\ndedupe = { by = ["id"], days = 3 }\n'])
def test_records_are_not_given_up_unless_somebody_says_yes(lake: str, dedupe: str) -> None:
    """Where duplicates are dropped, copies of the records may stay out, too. Parked records are no duplicates of others."""
    (Path(lake) / "service.toml").write_text(f'name = "games"\n[[tables]]\nname = "a"\n{dedupe}')
    said = failed(1, "quarantine", "drop", "--lake", lake, "--service", lake, typed="n\n")
    assert "These records will be in no table, and no copy will be kept" in said
    assert ("Copies in other files may have been left out as duplicates" in said) == bool(dedupe)
    assert "Copies" not in failed(1, "parked", "drop", "--lake", lake, "--service", lake, typed="n\n")
    assert "nothing was done" in said
    assert len(piles(LakeView(lake), "quarantine")) == 4


def test_records_of_another_service_are_not_silently_none(lake: str, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "studio"\n[[tables]]\nname = "a"\n')
    for command in (("quarantine", "retry"), ("quarantine", "drop", "--yes"), ("parked", "adopt", "a")):
        said = failed(2, *command, "--lake", lake, "--service", str(tmp_path))
        assert said.startswith(f"forebay: service studio: none of these records in the {command[0]} belong to it")
        assert "of service games" in said


def test_what_would_be_tried_is_said_and_nothing_starts(lake: str, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "games"\n[[tables]]\nname = "a"\n')
    asked = ("--lake", lake, "--service", str(tmp_path), "--dry-run")
    said = ran("quarantine", "retry", "--table", "alpha", *asked)
    assert said.startswith("2 records of service games will be retried with its declarations, version ")
    service = load_service(str(tmp_path))
    keep_in_force(lake, service)
    assert ran("quarantine", "retry", "--lake", lake, "--dry-run") == (
        f"4 records of service games will be retried with its declarations, version {service.version}\n"
        "These are the declarations that the ingest job used last. --service names others, such as newly pushed ones\n"
    )
    assert ran("quarantine", "drop", *asked).startswith("4 records of service games will be dropped")
    assert ran("parked", "adopt", "a", *asked).startswith("2 records of service games will be tried for table a")


def test_where_there_is_nothing_to_retry_no_spark_starts(lake: str, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "games"\n[[tables]]\nname = "empty"\n')
    asked = ("--lake", lake, "--service", str(tmp_path))
    for command in (("retry",), ("drop", "--yes")):
        said = ran("quarantine", *command, "--table", "empty", *asked)
        assert said == "nothing to do: service games has no such records\n"


def test_of_a_whole_file_that_no_retry_reads_again_it_is_said_how_its_records_come(lake: str, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "games"\n[[tables]]\nname = "empty"\n')
    for command in (("retry",), ("drop", "--yes")):
        said = ran("quarantine", *command, "--reason", "corrupt", "--lake", lake, "--service", str(tmp_path))
        assert said.splitlines() == [
            "nothing to do: service games has no such records",
            f"1 whole file could not be read. {PUT_AGAIN}",
        ]


def test_an_unfinished_retry_is_finished_although_nothing_else_waits(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "service.toml").write_text('name = "games"\n[[tables]]\nname = "empty"\n')
    open_objects(plans_of(lake, "games")).write(RETRY_PLAN, b"{}")
    retried: list[str] = []
    monkeypatch.setattr("forebay.cli.changing.held.retry_records", lambda *_, **__: retried.append("started"))
    ran("quarantine", "retry", "--table", "empty", "--lake", lake, "--service", str(tmp_path))
    assert retried == ["started"]


def test_records_are_not_tried_with_another_secret_than_that_of_the_lake(lake: str, tmp_path: Path) -> None:
    """A resume tries them, too. A look needs no secret, which an operator who only reads may not have."""
    declared = tmp_path / "declared" / "service.toml"
    declared.parent.mkdir()
    declared.write_text(
        f'name = "games"\n[privacy]\nsubject = "user"\nsecret = "{tmp_path}/secret"\n[[tables]]\nname = "a"\n'
    )
    asked = ("--lake", lake, "--service", str(declared))
    assert ran("quarantine", "retry", *asked, "--dry-run").startswith("4 records of service games will be retried")
    make_secret(f"{tmp_path}/secret")
    keep_secret(lake, load_service(str(declared)))
    (tmp_path / "secret").unlink()
    make_secret(f"{tmp_path}/secret")
    secret_at.cache_clear()
    paused = [record(6, table="a", reason="paused")]
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist(paused, SCHEMA), mode="append")
    ran("pause", "a", *asked)
    for command in (("quarantine", "retry"), ("parked", "adopt", "a"), ("resume", "a")):
        said = failed(2, *command, *asked)
        assert "is not the secret that made the tokens in this lake" in said
        assert "resumed" not in said
    assert paused_tables(lake) == {"a"}, "a resume is refused before it does anything"
    assert ran("quarantine", "drop", *asked, "--dry-run").startswith("5 records of service games will be dropped")


def test_a_mistake_in_the_declarations_is_told_before_anything_is_tried(lake: str, tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "Studio!"\n[[tables]]\nname = "a"\n')
    for command in (("quarantine", "retry"), ("quarantine", "drop", "--yes"), ("parked", "adopt", "a")):
        said = failed(2, *command, "--lake", lake, "--service", str(tmp_path))
        assert said.startswith("forebay: service.toml:1: name: must be a lowercase letter")


def test_nothing_in_names_and_records_is_obeyed_by_the_terminal(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    hostile = "[red]a[/x]\x1b[2J\x9b2J\u202eb"
    kept = [record(1, table=hostile, reason="[/]", key=f"in/{hostile}", record=f'{{"event": "{hostile}"}}')]
    for pile in ("quarantine", "parked"):
        write_deltalake(tmp_path / "_forebay" / pile, pa.Table.from_pylist(kept, SCHEMA))
    shown = r"[red]a[/x]\x1b[2J\x9b2J\u202eb"
    at = ("--lake", str(tmp_path))
    assert shown in ran("quarantine", "list", *at)
    assert ran("quarantine", "show", *at).splitlines()[-1] == f'{{"event": "{shown}"}}'
    assert "\x9b" not in ran("parked", "show", "--json", *at)
