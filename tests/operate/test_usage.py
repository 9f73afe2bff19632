"""What is typed wrongly is one line; and what a folder's forebay.toml says need not be typed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.cli.looking.status import lake_of
from forebay.operate.stack.deployment import Deployment
from tests.operate.command import failed, ran
from tests.operate.ledger import write_ledger


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("compact", "--grup", "x"), "compact: --grup is unknown (did you mean --group"),
        (("compcat",), "compcat is unknown (did you mean compact?)"),
        (
            ("query", "--lake", "/tmp", "select", "a.json", "from", "x"),
            "query: a.json from x: too many arguments (put quotes around",
        ),
        (("replay", "orders", "--lake", "/tmp"), "replay: orders: too many arguments (did you mean --table orders?)"),
        (
            ("replay", "s3://b/a", "--lake", "/tmp"),
            "replay: s3://b/a: too many arguments (did you mean --file s3://b/a?)",
        ),
        (("why", "s3://landing/in/a.json"), "why is unknown (did you mean where?)"),
        (("tables", "chek"), "tables: chek is unknown (did you mean check?)"),
        (("compact",), "compact: --lake is missing (or set FOREBAY_LAKE, or name it in forebay.toml)"),
        (
            ("schema", "show", "--lake", "/tmp"),
            "schema show: TABLE is missing (`forebay schema show --help` says more)",
        ),
        (("history", "--days", "1e9", "--lake", "/tmp"), "history: --days must be at most 100000"),
        (("quarantine", "show", "--limit", "x", "--lake", "/tmp"), "quarantine show: --limit must be a whole number"),
        (("try",), "try: SAMPLES is missing"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    typed: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FOREBAY_LAKE", raising=False)
    said = failed(2, *typed)
    assert said.startswith(f"forebay: {says}")
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", [(), ("compact",), ("tables", "check")])
def test_the_short_way_to_ask_for_help_is_known(command: tuple[str, ...]) -> None:
    assert ran(*command, "-h") == ran(*command, "--help")


@pytest.mark.parametrize("command", ["compact", "maintain", "merge"])
def test_an_argument_has_a_name_and_no_type_of_python(command: str) -> None:
    said = ran(command, "--help")
    assert f"forebay {command} [OPTIONS] [TABLE]...\n" in said
    assert "list[" not in said


def lake_with(table: str, lake: Path) -> None:
    write_ledger(lake)
    write_deltalake(lake / table, pa.table({"n": [1]}))


def test_tables_are_listed_by_either_name(tmp_path: Path) -> None:
    lake_with("alpha", tmp_path)
    assert ran("tables", "list", "--lake", str(tmp_path)) == ran("tables", "--lake", str(tmp_path))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOREBAY_LAKE", raising=False)
    lake_with("alpha", tmp_path / "lake")
    return tmp_path


def test_a_folder_says_which_lake_is_meant(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "forebay.toml").write_text(f'lake = "{folder}/lake"\n')
    assert json.loads(ran("tables", "--json"))["name"] == "alpha"
    assert "FOREBAY_LAKE" not in os.environ
    lake_with("beta", folder / "other")
    monkeypatch.setenv("FOREBAY_LAKE", f"{folder}/other")
    assert json.loads(ran("tables", "--json"))["name"] == "beta"
    assert json.loads(ran("tables", "--json", "--lake", f"{folder}/lake"))["name"] == "alpha"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lak = 'x'", "forebay.toml: lak: is unknown (it takes lake, "),
        ("lake = 1", "must be a text"),
        ("=", "is not TOML"),
    ],
)
def test_a_mistake_in_the_folders_file_is_named(folder: Path, text: str, says: str) -> None:
    (folder / "forebay.toml").write_text(text)
    assert says in failed(2, "tables")


def test_status_needs_a_lake_or_a_stack(folder: Path) -> None:
    said = failed(2, "status")
    assert said == "forebay: status: --lake is missing (or set FOREBAY_LAKE, or name it in forebay.toml; or --stack)\n"


def test_status_finds_the_lake_of_its_stack() -> None:
    on = Deployment(lambda name: None, "forebay-prod", "1", "eu-west-1", outputs={"LakeUri": "s3://studio-lake/lake"})
    assert lake_of("", on) == "s3://studio-lake/lake"
    assert lake_of("s3://other", on) == "s3://other"


def test_the_vault_of_the_built_in_example_is_not_meant_where_no_service_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FOREBAY_SERVICE", raising=False)
    said = failed(2, "privacy", "rotate")
    assert said.startswith("forebay: privacy rotate: --service is missing (or set FOREBAY_SERVICE")
