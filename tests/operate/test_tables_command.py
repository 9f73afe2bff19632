"""`forebay tables`: the tables, and declarations from their beginning until they are in force, as an operator types it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.declaration.feed import copy_in
from forebay.declaration.loading import load_service
from forebay.lake.layout import AFTER_LOAD
from forebay.lake.objects import open_objects
from forebay.privacy.known_secret import keep_secret
from forebay.privacy.secret import make_secret
from forebay.upkeep.after_load.due import DueFile
from forebay.upkeep.after_load.effect import Done
from forebay.upkeep.after_load.notes import Notes
from tests.operate.command import failed, given, ran
from tests.operate.ledger import write_ledger


@pytest.fixture
def mine(tmp_path: Path) -> str:
    folder = str(tmp_path / "mine")
    written = f"wrote {folder}/service.toml\nnext     forebay try FILE --service {folder}\n"
    assert ran("tables", "init", folder) == written
    return folder


def test_tables_are_listed_with_what_they_hold_and_our_own_are_not_among_them(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "alpha", pa.table({"n": list(range(1200))}))
    write_ledger(tmp_path)
    heads, *lines = (line.split() for line in ran("tables", "--lake", str(tmp_path)).splitlines())
    assert heads[:4] == ["table", "rows", "files", "bytes"]
    assert [line[:3] for line in lines] == [["alpha", "1,200", "1"]]
    assert "tables list: --lake is missing (or set FOREBAY_LAKE, or name it in forebay.toml)" in failed(2, "tables")


def test_what_is_begun_is_right_and_begun_only_once(mine: str) -> None:
    assert ran("tables", "check", mine).endswith("1 declaration, nothing wrong\n")
    assert "already exists" in failed(2, "tables", "init", mine)


@pytest.mark.parametrize("command", ["init", "add"])
def test_a_file_is_not_taken_for_a_folder_of_declarations(mine: str, command: str) -> None:
    typed = ("tables", command, f"{mine}/service.toml", *(["crashes"] if command == "add" else []))
    assert failed(2, *typed) == f"forebay: {mine}/service.toml: is a file (name its folder, {mine})\n"


@pytest.mark.parametrize("typed", [("init", "{}/file/mine"), ("editor-schema", "--into", "{}/nowhere")])
def test_a_folder_that_cannot_be_written_is_named(typed: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    *command, folder = (part.format(tmp_path) for part in typed)
    said = failed(2, "tables", *command, folder)
    assert said.startswith(f"forebay: {folder}: cannot be written: ")
    assert said.count("\n") == 1


def test_the_declarations_that_the_environment_names_are_meant_where_none_are(
    mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran("tables", "add", mine, "crashes", "--where", "event=crash")
    monkeypatch.setenv("FOREBAY_SERVICE", mine)
    assert ran("tables", "check").endswith("2 declarations, nothing wrong\n")
    assert json.loads(ran("tables", "show", "crashes"))["where"] == {"event": "crash"}


def test_a_check_without_sql_says_so_where_there_is_some(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('name = "s"\n[[tables]]\nname = "a"\nwhere_sql = "nope > 3"\n')
    said = ran("tables", "check", str(tmp_path), "--no-sql")
    assert said.endswith("1 declaration, nothing wrong; SQL was not checked\n")


@pytest.mark.parametrize(("command", "lacks"), [(("check",), "SERVICE"), (("show", "alpha"), "--service")])
def test_a_forgotten_service_is_not_the_built_in_example(
    command: tuple[str, ...], lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FOREBAY_SERVICE", raising=False)
    said = failed(2, "tables", *command)
    assert said.startswith(f"forebay: tables {command[0]}: {lacks} is missing (or set FOREBAY_SERVICE")


def test_check_says_which_files_are_of_which_feed(tmp_path: Path) -> None:
    trail = '[[feeds]]\nname = "trail"\nprefix = "AWSLogs/"\nrecords = "Records"\n'
    other = '[[feeds]]\nname = "a"\nbucket = "b"\nkey = "{game}/"\n'
    (tmp_path / "service.toml").write_text(f'name = "s"\n{trail}{other}[[tables]]\nname = "t"\n')
    said = ran("tables", "check", str(tmp_path))
    assert "feed trail: s3://*/AWSLogs/*, records in Records\n" in said
    assert "feed a: s3://b/*, key {game}/\n" in said


def test_every_mistake_is_one_line_and_the_status_is_two(mine: str) -> None:
    (Path(mine) / "tables").mkdir()
    (Path(mine) / "tables" / "a.toml").write_text('name = "A"\nfoo = 1\n')
    (Path(mine) / "tables" / "b.toml").write_text("a = [1,")
    said = failed(2, "tables", "check", mine).splitlines()
    assert all(line.startswith("forebay: tables/") for line in said)
    assert len(said) >= 2


def test_of_a_table_everything_is_shown_that_is_declared_defaults_included(mine: str) -> None:
    said = ran("tables", "add", mine, "crashes", "--where", "event=crash", "--where", "os=android").splitlines()
    assert said[1] == "  table crashes: comes before {game}"
    shown = json.loads(ran("tables", "show", "crashes", "--service", mine))
    assert (shown["name"], shown["where"]) == ("crashes", {"event": "crash", "os": "android"})
    assert (shown["time_travel_days"], shown["columns"]) == (7, [])
    assert json.loads(ran("tables", "show", "alpha", "--service", mine))["name"] == "{game}"
    assert "--where crash: is not field=value (such as --where event=review)" in failed(
        2, "tables", "add", mine, "others", "--where", "crash"
    )
    assert "no declaration defines it" in failed(2, "tables", "show", "Upper Case!", "--service", mine)


def test_a_table_whose_name_is_a_keyword_is_added_with_a_warning(mine: str) -> None:
    says = {
        "order": "is a keyword of SQL, so queries must write it in quotes",
        "ledger": "`forebay query` then reads this",
    }
    for name, said in says.items():
        assert f"  table {name}: {said}" in ran("tables", "add", mine, name, "--where", f"event={name}")


def test_a_difference_is_told_and_nothing_is_changed_until_it_is_pushed(mine: str, tmp_path: Path) -> None:
    place = str(tmp_path / "in-force")
    first = ran("tables", "diff", mine, place).splitlines()
    assert first[0] == f"nothing is in force at {place} yet; a deployed job reads the folder `declarations` of its lake"
    assert "  table {game}: is new" in first
    assert not Path(place).exists()
    assert f"in force: {place}, version " in ran("tables", "push", mine, place)
    assert load_service(place) == load_service(mine)
    assert ran("tables", "diff", mine, place) == "nothing changes\n"
    assert ran("tables", "push", mine, place) == "nothing changes\n"
    ran("tables", "add", mine, "crashes", "--where", "event=crash")
    told = ran("tables", "diff", mine, place)
    assert told.splitlines() == [
        "  table crashes: is new; it can adopt matching parked records",
    ]
    assert ran("tables", "push", mine, place).startswith(told)
    assert len(load_service(place).tables) == 2
    declaration = Path(mine, "service.toml")
    declaration.write_text(declaration.read_text() + "# a thought\n")
    assert ran("tables", "diff", mine, place) == "only comments and layout change\n"


def test_declarations_are_not_pushed_to_the_root_of_a_lake(mine: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "_forebay").mkdir(parents=True)
    for command in ("push", "diff"):
        said = failed(2, "tables", command, mine, str(lake))
        assert said == f"forebay: {lake}: is a lake, and no job reads declarations there (write {lake}/declarations)\n"
    assert [place.name for place in lake.iterdir()] == ["_forebay"]


def test_what_a_change_comes_to_for_the_tables_of_a_lake_is_told_before_it_is_made(mine: str, tmp_path: Path) -> None:
    place, lake = str(tmp_path / "in-force"), str(tmp_path / "lake")
    ran("tables", "push", mine, place)
    write_deltalake(Path(lake, "alpha"), pa.table({"event": ["tick"], "level": [1.5]}))
    says = "  table alpha: column level: is double in the table but declared long"
    told = ran("tables", "diff", mine, place, "--lake", lake)
    assert [line for line in told.splitlines() if line.startswith(says)]


def test_declarations_that_make_rows_wait_are_pushed_with_status_1(mine: str, tmp_path: Path) -> None:
    """`tables check` ends with 2, because it did nothing. Neither minds a difference that the next rows resolve."""
    place, lake = tmp_path / "in-force", str(tmp_path / "lake")
    write_deltalake(Path(lake, "alpha"), pa.table({"event": ["tick"]}))
    assert "column level: is declared long but is not in the table" in ran("tables", "check", mine, "--lake", lake)
    ran("tables", "push", mine, str(place), "--lake", lake)
    write_deltalake(
        Path(lake, "alpha"), pa.table({"event": ["tick"], "level": [1.5]}), schema_mode="merge", mode="append"
    )
    failed(2, "tables", "check", mine, "--lake", lake)
    Path(mine, "service.toml").write_text(Path(mine, "service.toml").read_text() + "# a thought\n")
    waits = "column level: is double in the table but declared long (rows for it wait in the quarantine; run `forebay schema"
    for is_new in (True, False):
        said = failed(1, "tables", "push", mine, str(place), "--lake", lake)
        assert (waits in said, "in force: " in said) == (True, is_new)
    _, out, _ = given(("tables", "push", mine, str(place), "--lake", lake, "--json"), "")
    assert json.loads(out) == {"place": str(place), "pushed": False, "rows_wait": True}


@pytest.mark.parametrize("named", [False, True])
def test_an_archive_that_holds_files_and_is_no_longer_named_is_told(mine: str, tmp_path: Path, named: bool) -> None:
    place, lake, old = str(tmp_path / "in-force"), tmp_path / "lake", "s3://archive/2026/"
    write_ledger(lake)
    declaration = Path(mine, "service.toml")
    text = declaration.read_text()
    declaration.write_text(f'after_load = {{ move = "{old}" }}\n{text}')
    ran("tables", "push", mine, place)
    for n, key in enumerate(("in/a.json", "b.json")):
        file = DueFile(f"id{n}", "landing", key, None, "etag", 10, "2026-11-20")
        copy = "/".join(copy_in(old, "landing", key, file.file_id))
        notes = Notes(open_objects(str(lake / AFTER_LOAD)), "games")
        notes.add([Done(file, "started", f"s3://{copy}"), Done(file, "moved", f"s3://{copy}")])
    former = f'former_archives = ["{old}"]\n' if named else ""
    declaration.write_text(f'after_load = {{ move = "s3://archive/2027/" }}\n{former}{text}')
    changed, now = f'add "{old}" to former_archives', "where a replay no longer looks"
    holds = f"service: after_load moved 2 files to {old}, {now}: {changed}"
    assert (f"  {holds}\n" in ran("tables", "check", mine, "--lake", str(lake))) is not named
    assert (f"in {old}: {changed}" in ran("tables", "diff", mine, place)) is not named
    said = ran("tables", "push", mine, place, "--lake", str(lake))
    assert ((holds in said), said.count(changed)) == (not named, 0 if named else 1)


def test_a_push_is_in_the_history_of_the_lake_that_it_names(mine: str, tmp_path: Path) -> None:
    write_ledger(tmp_path / "lake")
    ran("tables", "push", mine, str(tmp_path / "in-force"), "--lake", str(tmp_path / "lake"))
    told = json.loads(ran("history", "--lake", str(tmp_path / "lake"), "--json"))
    assert told["what"].startswith("tables push: version ")


def test_a_push_is_in_the_history_of_the_lake_that_the_environment_names(
    mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ledger(tmp_path / "lake")
    monkeypatch.setenv("FOREBAY_LAKE", str(tmp_path / "lake"))
    ran("tables", "push", mine, str(tmp_path / "in-force"))
    assert "tables push: version " in ran("history")


def test_a_folder_that_no_job_of_the_lake_reads_is_refused(mine: str, tmp_path: Path) -> None:
    place = tmp_path / "declarations"
    said = failed(2, "tables", "push", mine, str(place), "--no-sql", "--lake", "s3://studio-lake")
    assert f"{place}: is a folder on this machine, and the lake s3://studio-lake is in S3" in said
    assert not place.exists()


@pytest.mark.parametrize("command", ["check", "diff", "push"])
def test_a_lake_where_nothing_is_is_not_said_to_be_as_declared(mine: str, tmp_path: Path, command: str) -> None:
    mistyped = tmp_path / "mistyped"
    place = [str(tmp_path / "in-force")] if command != "check" else []
    status, out, err = given(("tables", command, mine, *place, "--lake", str(mistyped)), "")
    assert status == 0
    assert (
        err
        == f"{mistyped} has neither a ledger nor tables yet, so there is nothing to compare: is it spelled correctly?\n"
    )
    assert "as declared" not in out
    assert not mistyped.exists(), "what is left there would make it look like a lake"


def test_a_machine_is_told_the_same_as_json(mine: str, tmp_path: Path) -> None:
    place, lake = str(tmp_path / "in-force"), str(tmp_path / "lake")
    (told,) = map(json.loads, ran("tables", "diff", mine, place, "--json").splitlines())
    assert (told["from"], told["to"], told["same_text"]) == (None, load_service(mine).version, False)
    assert told["changes"][0].startswith("table {game}: is new")
    ran("tables", "push", mine, place)
    assert json.loads(ran("tables", "diff", mine, place, "--json"))["changes"] == []
    write_deltalake(Path(lake, "alpha"), pa.table({"event": ["tick"], "level": [1.5]}))
    *_, drift = map(json.loads, failed(2, "tables", "check", mine, "--lake", lake, "--json").splitlines())
    assert (drift["kind"], drift["where"]) == ("problem", "table alpha: column level")
    Path(mine, "service.toml").write_text("name = 1")
    problems = [json.loads(line) for line in failed(2, "tables", "check", mine, "--json").splitlines()]
    assert {problem["kind"] for problem in problems} == {"problem"}
    assert {problem["where"] for problem in problems} == {"service.toml:1: name", "service.toml: tables"}


def test_what_is_wrong_is_not_put_in_force(mine: str, tmp_path: Path) -> None:
    place = str(tmp_path / "in-force")
    ran("tables", "push", mine, place)
    Path(mine, "service.toml").write_text('name = "games"\n')
    assert "no table is declared" in failed(2, "tables", "push", mine, place)
    assert [table.name for table in load_service(place).tables] == ["{game}"]


def test_a_push_compares_the_secret_with_that_of_the_lake(mine: str, tmp_path: Path) -> None:
    """The job would refuse it, too, but only in its log. Who pushes may lack the permission to read the secret."""
    lake, place, declaration = tmp_path / "lake", tmp_path / "in-force", Path(mine, "service.toml")
    write_ledger(lake)
    text = declaration.read_text()
    for name in ("first", "other"):
        make_secret(f"{tmp_path}/{name}")
    (tmp_path / "folder").mkdir()

    def declared(secret: str) -> None:
        tokens = f'[privacy]\npersonal = [{{ path = "user", become = "token" }}]\nsecret = "{tmp_path}/{secret}"\n'
        declaration.write_text(text + tokens)

    declared("first")
    keep_secret(str(lake), load_service(mine))
    ran("tables", "push", mine, str(place), "--lake", str(lake))
    for secret, why in (("other", "is not the secret that made the tokens"), ("lost", "holds no secret for tokens")):
        declared(secret)
        for typed in (("push", mine, str(place)), ("diff", mine, str(place)), ("check", mine)):
            assert why in failed(2, "tables", *typed, "--lake", str(lake))
    assert load_service(str(place)).secret == f"{tmp_path}/first"
    declared("folder")
    for typed in (("check", mine), ("push", mine, str(place))):
        assert "the secret was not compared with that of the lake" in ran("tables", *typed, "--lake", str(lake))
    assert load_service(str(place)).secret == f"{tmp_path}/folder"
