"""Which lake is meant: one that no forebay ever wrote to is said to be none, and one that cannot be asked is named."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from forebay.lake.lease import hold
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger

ANSWERS = (("tables",), ("quarantine", "list"), ("parked", "show"), ("quality",))
BEFORE_THE_FIRST_BATCH = (
    ("status",),
    ("history",),
    ("files", "list"),
    ("audit",),
    ("where", "s3://landing/in/a.json"),
)
"""What an operator asks of a job that has just begun."""


@pytest.mark.parametrize("command", ANSWERS, ids=" ".join)
def test_a_folder_without_a_ledger_is_no_lake(command: tuple[str, ...], tmp_path: Path) -> None:
    for lake in (tmp_path, tmp_path / "mistyped"):
        said = failed(2, *command, "--lake", str(lake))
        assert said.startswith(f"forebay: lake {lake}: has no ledger (is it spelled correctly?")


WITH_A_LEDGER = (("query", "select 1"), ("replay", "--table", "alpha", "--dry-run"), ("quarantine", "list"))


@pytest.mark.parametrize("command", WITH_A_LEDGER, ids=" ".join)
def test_a_lake_that_lost_its_ledger_is_not_taken_for_a_mistyped_one(command: tuple[str, ...], tmp_path: Path) -> None:
    app = CommitProperties(app_transactions=[Transaction("forebay/games/g", 7)])
    write_deltalake(tmp_path / "alpha", pa.table({"n": [1]}), commit_properties=app)
    said = failed(2, *command, "--lake", str(tmp_path))
    assert "has no ledger (_forebay/ledger), but table alpha has rows that a job loaded" in said
    assert "spelled" not in said


@pytest.mark.parametrize("command", BEFORE_THE_FIRST_BATCH, ids=" ".join)
def test_a_folder_that_no_job_wrote_to_is_no_lake(command: tuple[str, ...], tmp_path: Path) -> None:
    write_deltalake(tmp_path / "alpha", pa.table({"n": [1]}))
    for lake in (tmp_path, tmp_path / "mistyped"):
        said = failed(2, *command, "--lake", str(lake))
        assert said.startswith(f"forebay: lake {lake}: no job has written there (is it spelled correctly?")


def test_until_the_first_batch_has_ended_there_are_answers_all_the_same(tmp_path: Path) -> None:
    lake = str(tmp_path)
    for place in ("writers/games", "checkpoints/ingest"):
        hold(f"{lake}/_forebay/{place}", wait_s=0).let_go()
    said = ran("status", "--lake", lake).splitlines()
    assert "last batch  no batch has ended yet" in said
    assert "job         not running" in said
    for command in (("history",), ("files", "list")):
        assert "no batch has ended yet, so nothing is in the ledger" in failed(0, *command, "--lake", lake)
        assert ran(*command, "--lake", lake, "--json") == ""
    assert "all sums hold" in ran("audit", "--lake", lake)
    assert "it is not in the ledger" in failed(1, "where", "s3://landing/in/a.json", "--lake", lake)
    out = str(tmp_path / "r.html")
    assert ran("report", "--lake", lake, "--out", out) == f"wrote {out}\n"


@pytest.mark.parametrize("command", [*ANSWERS, *BEFORE_THE_FIRST_BATCH], ids=" ".join)
def test_an_address_that_is_no_place_of_a_lake_is_refused(command: tuple[str, ...]) -> None:
    said = failed(2, *command, "--lake", "https://studio-lake.s3.amazonaws.com/")
    assert said == (
        "forebay: lake https://studio-lake.s3.amazonaws.com/: is not the address of a lake "
        "(write s3://bucket/prefix, or a folder)\n"
    )


@pytest.mark.parametrize(
    "name", ["a b", "100%", "a#b", "a?b", "é e\u0301", "日本", "a'b", 'a"b', "a&b=c;d", "a+b", "a*", "a "]
)
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_folder_of_any_name_is_a_lake_however_it_is_written(name: str, scheme: str, tmp_path: Path) -> None:
    lake = tmp_path / name
    write_ledger(str(lake), entry("in/a.json", tables={"alpha": 2}))
    write_deltalake(lake / "alpha", pa.table({"v": [1, 2]}))
    assert ran("tables", "--lake", f"{scheme}{lake}").splitlines()[1].split()[:3] == ["alpha", "2", "1"]


@pytest.mark.parametrize("name", ["a b", "100%", "é e\u0301", "日本", "a'b", "a&b=c;d", "a+b", "a*"])
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_prefix_of_any_name_is_a_lake(name: str, scheme: str, s3: str) -> None:
    options = {
        "aws_endpoint_url": s3,
        "aws_allow_http": "true",
        "aws_access_key_id": "AK",
        "aws_secret_access_key": "SK",
    }
    write_ledger(f"s3://studio-lake/{name}", entry("in/a.json", tables={"alpha": 2}), storage_options=options)
    write_deltalake(
        f"s3://studio-lake/{name}/alpha", pa.table({"v": [1, 2]}), storage_options=options, mode="overwrite"
    )
    assert ran("tables", "--lake", f"{scheme}://studio-lake/{name}").splitlines()[1].split()[:3] == ["alpha", "2", "1"]


@pytest.mark.parametrize("command", [*ANSWERS, *BEFORE_THE_FIRST_BATCH, ("tables", "health")], ids=" ".join)
@pytest.mark.parametrize(
    "lake", ["{}/100%25", "s3://studio-lake/a%2Fb", "s3://studio-lake/a#b", "s3a://studio-lake/a//b"]
)
def test_a_lake_that_engines_read_differently_is_refused(command: tuple[str, ...], lake: str, tmp_path: Path) -> None:
    lake = lake.format(tmp_path)
    said = failed(2, *command, "--lake", lake)
    assert said.startswith(f"forebay: lake {lake}: has ")
    assert said.endswith(" in its name, which not all engines read alike (choose another folder)\n")


def test_a_scheme_that_hadoop_no_longer_knows_is_refused() -> None:
    assert "s3n://studio-lake: is not the address of a lake" in failed(2, "tables", "--lake", "s3n://studio-lake")


def test_a_mistyped_prefix_or_bucket_is_said_to_be_none(s3: str) -> None:
    assert "lake s3://studio-lake/gmaes: no job has written there" in failed(
        2, "audit", "--lake", "s3://studio-lake/gmaes"
    )
    assert "there is no bucket studio-laek" in failed(2, "audit", "--lake", "s3://studio-laek")


def test_a_dead_endpoint_and_missing_credentials_are_one_line_and_exit_status_three(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    of_held = (("quarantine", "retry"), ("parked", "adopt", "alpha"), ("privacy", "erase"), ("privacy", "report"))
    for command in (("tables",), ("schema", "show", "alpha"), ("stop",), *of_held):
        said = failed(3, *command, "--lake", "s3://studio-lake")
        assert "does not answer (AWS_ENDPOINT_URL is http://127.0.0.1:9" in said
        assert said.count("\n") == 1
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    said = failed(3, "audit", "--lake", "s3://studio-lake")
    assert said == (
        "forebay: lake s3://studio-lake: no AWS credentials were found (set AWS_PROFILE, or run `aws sso login`)\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "stduio")
    assert "The config profile (stduio) could not be found" in failed(2, "audit", "--lake", "s3://studio-lake")


def test_a_profile_is_enough_to_look_at_a_lake_in_s3(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "aws_endpoint_url": s3,
        "aws_allow_http": "true",
        "aws_access_key_id": "AK",
        "aws_secret_access_key": "SK",
    }
    write_ledger("s3://studio-lake/games", entry("in/a.json", tables={"alpha": 2}), storage_options=options)
    write_deltalake("s3://studio-lake/games/alpha", pa.table({"v": [1, 2]}), storage_options=options)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text("[studio]\naws_access_key_id = AK\naws_secret_access_key = SK\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "studio")
    assert ran("tables", "--lake", "s3://studio-lake/games").splitlines()[1].split()[:3] == ["alpha", "2", "1"]


@pytest.mark.parametrize("left", ["nothing", "data files"])
def test_a_table_whose_log_is_gone_is_named_as_lost_with_the_next_step(left: str, tmp_path: Path) -> None:
    write_ledger(
        str(tmp_path), entry("in/a.json", tables={"alpha": 2, "beta": 1}), entry("in/b.json", tables={"beta": 0})
    )
    write_deltalake(tmp_path / "alpha", pa.table({"v": [1, 2]}))
    if left == "data files":
        write_deltalake(tmp_path / "beta", pa.table({"v": [1]}))
        rmtree(tmp_path / "beta" / "_delta_log")
    lost = "beta: lost: the ledger counts 1 row, and there is no Delta log; "
    fix = "or run `forebay replay --table beta` to load its files again"
    for command in (("tables", "list"), ("tables", "health"), ("status",), ("audit",)):
        said = failed(1, *command, "--lake", str(tmp_path))
        assert lost in said, command
        assert fix in said, command
    by_name = (("history", "--table", "beta"), ("tables", "health", "beta")) if left == "nothing" else ()
    for command in (*by_name, ("query", "select * from beta")):
        said = failed(2, *command, "--lake", str(tmp_path))
        assert lost in said, command
        assert fix in said, command


@pytest.mark.parametrize(
    ("outcome", "left"), [("replay", "a replay of its files is announced"), ("loaded", "for the others")]
)
def test_a_lost_table_that_is_loaded_again_is_said_to_be(outcome: str, left: str, tmp_path: Path) -> None:
    """Whoever announced a replay must not be told to do it again."""
    files = (
        entry("in/a.json", tables={"beta": 2}, outcome="replay"),
        entry("in/b.json", tables={"beta": 1}, outcome=outcome),
    )
    write_ledger(str(tmp_path), *files)
    for command in (("tables", "list"), ("tables", "health"), ("status",), ("audit",)):
        said = failed(1, *command, "--lake", str(tmp_path))
        assert "beta: lost: the ledger counts 3 rows" in said, command
        assert left in said, command
        assert ("run `forebay replay --table beta`" in said) is (outcome == "loaded"), command


def test_a_name_that_is_almost_that_of_a_lost_table_is_told_apart(tmp_path: Path) -> None:
    write_ledger(str(tmp_path), entry("in/a.json", tables={"orders": 2}))
    for command in (
        ("replay", "--table", "ordrs", "--dry-run"),
        ("history", "--table", "ordrs"),
        ("tables", "health", "ordrs"),
    ):
        assert "did you mean orders?" in failed(2, *command, "--lake", str(tmp_path)), command


def test_a_lost_table_is_an_object_of_json_and_a_problem_of_the_declarations(tmp_path: Path) -> None:
    lake, declared = tmp_path / "lake", tmp_path / "declared"
    write_ledger(str(lake), entry("in/a.json", tables={"alpha": 2, "beta": 1}))
    write_deltalake(lake / "alpha", pa.table({"v": [1, 2]}))
    declared.mkdir()
    (declared / "service.toml").write_text('name = "games"\n[[tables]]\nname = "{game}"\n')
    for command, name in (("list", "name"), ("health", "table")):
        _, out, _ = given(("tables", command, "--lake", str(lake), "--json"), "")
        told = [one for one in map(json.loads, out.splitlines()) if "lost_rows" in one]
        assert told == [{name: "beta", "lost_rows": 1}], command
    assert json.loads(given(("status", "--lake", str(lake), "--json"), "")[1])["lost_tables"] == {"beta": 1}
    check = ("tables", "check", str(declared), "--lake", str(lake), "--no-sql")
    assert "table beta: lost: the ledger counts 1 row" in failed(2, *check)
    _, out, _ = given((*check, "--json"), "")
    assert json.loads(out.splitlines()[-1])["where"] == "table beta"
    ran("tables", "drop", "beta", "--lake", str(lake), "--yes")
    ran(*check)


def test_a_table_of_which_the_ledger_counts_no_row_is_not_lost(tmp_path: Path) -> None:
    write_ledger(str(tmp_path), entry("in/a.json", tables={"alpha": 0}))
    ran("tables", "list", "--lake", str(tmp_path))
