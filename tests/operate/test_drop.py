"""`forebay tables drop`: a table goes for good, nothing calls it lost, and whatever stops the command, it can be repeated."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from deltalake import DeltaTable, write_deltalake

from forebay.batch.one_pass.held import COLUMNS
from forebay.declaration.kept.in_force import keep_in_force, kept_services, service_for
from forebay.declaration.loading import parse_service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.folder_objects import FolderObjects
from forebay.lake.health import Health
from forebay.lake.layout import DERIVED_FROM, HEALTH, ROLLBACK_PLAN, rollback_of, writer_of
from forebay.lake.lease import hold
from forebay.lake.objects import open_objects
from forebay.lake.paused import pause, paused_tables
from forebay.lake.rollback_plan import must_not_be_half_rolled_back, tables_going_back
from forebay.operate.changing import drop as dropping
from forebay.operate.changing.must_stay import must_stay
from forebay.operate.lake_view import LakeView, lost_tables
from forebay.operate.looking.accounts import accounts
from tests.operate.command import failed, given, ran
from tests.operate.ledger import AT, entry, schema_of, write_ledger
from tests.operate.test_rollback import append, file_id, ledger

FILES: dict[str, dict[str, int]] = {
    "in/a.json": {"alpha": 3, "beta": 1},
    "in/b.json": {"alpha": 2},
    "in/c.json": {"beta": 4},
}


@pytest.fixture
def lake(tmp_path: Path) -> str:
    for key, counts in FILES.items():
        for table, rows in counts.items():
            append(tmp_path, table, key, rows)
    write_ledger(tmp_path, *(entry(key, tables=counts) for key, counts in FILES.items()))
    open_objects(str(tmp_path)).write(f"{HEALTH}/alpha.json", Health(table="alpha").as_json().encode())
    declare(str(tmp_path), '[[tables]]\nname = "beta"\n')
    return str(tmp_path)


def declare(lake: str, text: str) -> None:
    keep_in_force(lake, parse_service({"service.toml": f'name = "games"\n{text}'}))


def derive(lake: str, name: str) -> None:
    """A table that is computed from alpha."""
    write_deltalake(f"{lake}/{name}", pa.table({"id": [1]}), configuration={"delta.checkpointInterval": "9"})
    first, known = Path(lake, name, "_delta_log", f"{0:020}.json"), '"delta.checkpointInterval":"9"'
    first.write_text(first.read_text().replace(known, f'{known},"{DERIVED_FROM}":"alpha"'))


def is_there(lake: str, table: str = "alpha") -> bool:
    return Path(lake, table).exists()


def rows_in_ledger(lake: str) -> dict[str, tuple[Any, ...]]:
    return {
        key: (reason, written, dropped, tables) for key, (_, reason, written, dropped, tables) in ledger(lake).items()
    }


def test_a_table_goes_and_every_command_agrees_that_it_is_gone(lake: str) -> None:
    before = ledger(lake)
    said = ran("tables", "drop", "alpha", "--lake", lake, "--dry-run")
    assert said.splitlines()[1].split()[:3] == ["alpha", "5", "2"]
    assert is_there(lake)
    assert ledger(lake) == before
    assert "nothing was done" in failed(1, "tables", "drop", "alpha", "--lake", lake, typed="n\n")
    assert is_there(lake)

    assert "dropped: alpha. Landed files, archives" in ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert not is_there(lake)
    assert rows_in_ledger(lake) == {
        "in/a.json": ("table-dropped", 1, 3, {"beta": 1}),
        "in/b.json": ("table-dropped", 0, 2, {}),
        "in/c.json": (None, 4, 0, {"beta": 4}),
    }
    life = ran("where", "s3://landing/in/a.json", "--lake", lake)
    assert "4 records  (table-dropped: table alpha dropped on" in life
    assert "dropped     3 records, by a rule or a command" in life
    assert accounts(LakeView(lake)).differences() == []
    assert lost_tables(LakeView(lake)) == {}
    for command in (("tables", "list"), ("tables", "health"), ("audit",), ("status",)):
        assert "alpha" not in ran(*command, "--lake", lake), command
    assert open_objects(lake).names(HEALTH) == []
    assert "is not in" in failed(2, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "there is no table alpha" in failed(2, "query", "select * from alpha", "--lake", lake)


def test_what_had_rows_in_it_is_found_by_its_name_and_read_again(lake: str, s3: str) -> None:
    """Where a declaration makes it again."""
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    listed = map(json.loads, ran("files", "list", "--table", "alpha", "--lake", lake, "--json").splitlines())
    details = {one["key"]: one["detail"].partition(" on ")[0] for one in listed}
    assert details == dict.fromkeys(("in/a.json", "in/b.json"), "table alpha dropped")
    (told,) = map(json.loads, ran("replay", "--table", "alpha", "--lake", lake, "--dry-run", "--json").splitlines())
    assert told["files"] == 2
    assert "is not in" in failed(2, "replay", "--table", "alph", "--lake", lake, "--dry-run")


def test_a_table_that_comes_back_is_counted_from_its_new_start(lake: str) -> None:
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    append(lake, "alpha", "in/d.json", 7)
    write_ledger(lake, entry("in/d.json", tables={"alpha": 7}))
    assert accounts(LakeView(lake)).differences() == []
    assert "7 rows" not in ran("audit", "--lake", lake)
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert rows_in_ledger(lake)["in/d.json"] == ("table-dropped", 0, 7, {})
    assert rows_in_ledger(lake)["in/b.json"] == ("table-dropped", 0, 2, {})


def test_a_pause_goes_with_its_table(lake: str) -> None:
    pause(lake, ["alpha", "beta"])
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert paused_tables(lake) == {"beta"}


def test_without_the_right_to_delete_a_drop_does_not_begin(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that S3 refuses halfway keeps every job from starting."""
    delete = FolderObjects.delete

    def refused(self: FolderObjects, names: Iterable[str]) -> None:
        if self.place.endswith("/alpha"):
            raise Halt("1 object was not deleted: AccessDenied")
        delete(self, names)

    monkeypatch.setattr(FolderObjects, "delete", refused)
    before = ledger(lake)
    said = failed(1, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "table alpha: 1 object was not deleted: AccessDenied. Nothing was done" in said
    assert ledger(lake) == before
    must_not_be_half_rolled_back(lake)


def test_a_lost_table_is_dropped_as_one_that_is_there(lake: str) -> None:
    for found in DeltaTable(f"{lake}/alpha").file_uris():
        Path(found.removeprefix("file://")).unlink()
    for one in Path(lake, "alpha", "_delta_log").iterdir():
        one.unlink()
    assert "forebay tables drop alpha" in failed(1, "tables", "list", "--lake", lake)
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "alpha" not in ran("tables", "list", "--lake", lake)


STOPS = ["_leave_ledger", "_forget_ids", "_delete_folder"]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("step", STOPS)
def test_a_repeated_command_finishes_a_drop_wherever_it_was_interrupted(
    lake: str, monkeypatch: pytest.MonkeyPatch, step: str, half: bool
) -> None:
    """Before the step, or after it."""
    whole = getattr(dropping, step)

    def stopped(*given: Any) -> None:
        if half:
            whole(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dropping, step, stopped)
        failed(130, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert tables_going_back(lake) == {"alpha"}
    with pytest.raises(Halt, match=r"a drop of tables of .* is unfinished: repeat `forebay tables drop alpha`"):
        must_not_be_half_rolled_back(lake)
    assert "a drop of alpha is unfinished (repeat `forebay tables drop alpha` to finish it)" in failed(
        1, "status", "--lake", lake
    )
    assert "repeat `forebay tables drop alpha`" in failed(1, "rollback", "beta", "--to", "0", "--lake", lake, "--yes")
    assert "dropped: alpha" in ran("tables", "drop", "alpha", "--lake", lake)
    assert not is_there(lake)
    assert rows_in_ledger(lake)["in/a.json"] == ("table-dropped", 1, 3, {"beta": 1})
    assert accounts(LakeView(lake)).differences() == []
    must_not_be_half_rolled_back(lake)


def test_a_drop_leaves_an_unfinished_rollback_to_its_own_command(lake: str) -> None:
    open_objects(rollback_of(lake)).write(ROLLBACK_PLAN, b'{"tables": [{"table": "beta", "to": 1}]}')
    said = failed(1, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "a rollback of" in said
    assert "repeat `forebay rollback beta --to 1`" in said
    assert is_there(lake)


def test_a_table_of_others_that_cannot_be_read_stops_no_drop(lake: str) -> None:
    log = Path(lake, "theirs", "_delta_log")
    log.mkdir(parents=True)
    for name in (f"{5:020}.json", f"{4:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"):
        (log / name).touch()
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert not is_there(lake)


def test_a_folder_that_is_no_table_stays(lake: str) -> None:
    """A deployed job reads the folder `declarations` of its lake."""
    open_objects(lake).write("declarations/service.toml", b"")
    said = failed(2, "tables", "drop", "declarations", "--lake", lake, "--yes")
    assert "table declarations: its folder is there, but no Delta log" in said
    assert is_there(lake, "declarations/service.toml")


def test_nothing_goes_while_a_batch_is_unfinished(lake: str) -> None:
    open_objects(f"{lake}/_forebay/plans").write("games/g1-7.json", b"{}")
    said = failed(1, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "a batch of games is unfinished" in said
    assert is_there(lake)
    must_not_be_half_rolled_back(lake)


def test_nothing_goes_while_a_service_runs_that_has_loaded_nothing_yet(lake: str) -> None:
    """Its first batch may bring rows of the table. A rollback asks the same."""
    lease = hold(writer_of(lake, "newcomer"), wait_s=0)
    try:
        failed(1, "tables", "drop", "alpha", "--lake", lake, "--yes")
        failed(1, "rollback", "alpha", "--to", "0", "--lake", lake, "--yes")
    finally:
        lease.let_go()
    assert is_there(lake)
    must_not_be_half_rolled_back(lake)


def test_a_job_that_begins_while_the_plan_is_made_keeps_the_table(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asked for a plan before there was one."""
    view = LakeView(lake)
    plan, found = dropping.plan_drop(view, ["alpha"]), []

    def begun(*given: Any) -> Any:
        found.append(hold(writer_of(lake, "newcomer"), wait_s=0))
        return plan

    monkeypatch.setattr(dropping, "plan_drop", begun)
    with pytest.raises(Halt, match=r"a job of newcomer began meanwhile\. Nothing was done; repeat the command"):
        dropping.drop(view, plan)
    found[0].let_go()
    assert is_there(lake)
    must_not_be_half_rolled_back(lake)


def test_declarations_that_a_job_takes_up_meanwhile_keep_the_table(lake: str) -> None:
    view = LakeView(lake)
    plan = dropping.plan_drop(view, ["alpha"])
    declare(lake, '[[tables]]\nname = "alpha"\n')
    with pytest.raises(InvalidConfiguration, match=SENDS):
        dropping.drop(view, plan)
    assert is_there(lake)
    must_not_be_half_rolled_back(lake)


SENDS = "service games sends records to it"
REFUSED = {
    '[[tables]]\nname = "alpha"\n': SENDS,
    '[[tables]]\nname = "beta"\n[[rollups]]\nname = "alpha"\ntables = ["beta"]\ngroup_by.day = "date(at)"\n'
    'columns.n = "count(*)"\n': "service games computes it from beta",
    '[[tables]]\nname = "alpha"\nwhere = { a = 1 }\n[[tables]]\nname = "b"\n[[rollups]]\nname = "sums"\n'
    'tables = ["alpha"]\ngroup_by.day = "date(at)"\ncolumns.n = "count(*)"\n': "the rollup sums of service games counts its",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_table_that_a_declaration_names_stays(lake: str, text: str) -> None:
    declare(lake, text)
    said = failed(2, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert f"table alpha: {REFUSED[text]}" in said
    assert "remove the declaration, run the ingest job once with the others, then repeat this command" in said
    assert is_there(lake)


def test_a_table_whose_name_a_record_gives_goes_and_the_command_says_that_it_may_come_back(lake: str) -> None:
    declare(lake, '[[tables]]\nname = "{game}"\n')
    said = ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "a new record makes alpha again, counted from its start: the declarations of games fit it" in said
    assert not is_there(lake)


def test_a_service_that_left_the_lake_keeps_no_table_there(lake: str) -> None:
    """docs/declarations.md names the two places that are deleted before."""
    keep_in_force(lake, parse_service({"service.toml": 'name = "other"\n[[tables]]\nname = "alpha"\n'}))
    write_ledger(lake, entry("in/other.json", service="other", tables={}))
    for name in ("games", "other"):
        hold(writer_of(lake, name), wait_s=0).let_go()
    failed(2, "tables", "drop", "alpha", "--lake", lake, "--yes")
    page = (Path(__file__).parents[2] / "docs" / "declarations.md").read_text()
    for place in re.findall(r"aws s3 rm (?:--recursive )?s3://LAKE/(\S+)", page):
        for found in list(open_objects(lake).found(place.replace("NAME", "other"))):
            open_objects(lake).delete([found.name])
    shutil.rmtree(Path(writer_of(lake, "other")))
    assert service_for("", lake).name == "games"
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert accounts(LakeView(lake)).differences() == []
    assert service_for("", lake).name == "games", "the drop left no sign of a job of the other"


def test_changes_and_their_state_go_together(lake: str) -> None:
    derive(lake, "players")
    write_deltalake(f"{lake}/_forebay/tombstones/players", pa.table({"id": [2]}))
    said = failed(2, "tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "players is computed from it (name both: forebay tables drop alpha players)" in said
    ran("tables", "drop", "alpha", "players", "--lake", lake, "--yes")
    assert not is_there(lake)
    assert not is_there(lake, "players")
    assert not is_there(lake, "_forebay/tombstones/players")


def test_a_state_stays_while_its_changes_do(lake: str) -> None:
    merge = 'merge = { into = "now_{game}", keys = ["id"], sequence_by = ["n"] }'
    columns = "columns = [{ name = 'id', type = 'long' }, { name = 'n', type = 'long' }]"
    declare(lake, f'[[tables]]\nname = "{{game}}"\nvalues = "alpha"\nmode = "merge"\n{merge}\n{columns}\n')
    derive(lake, "now_alpha")
    said = failed(2, "tables", "drop", "now_alpha", "--lake", lake, "--yes")
    assert "table now_alpha: is computed from alpha (name both: forebay tables drop alpha now_alpha)" in said
    ran("tables", "drop", "alpha", "now_alpha", "--lake", lake, "--yes")


def test_records_that_wait_for_it_stay_and_are_named(lake: str) -> None:
    held = {**dict.fromkeys(schema_of(COLUMNS).names), "line": 1, "table": "alpha", "reason": "table-failed", "at": AT}
    write_deltalake(f"{lake}/_forebay/quarantine", pa.Table.from_pylist([held], schema_of(COLUMNS)))
    said = ran("tables", "drop", "alpha", "--lake", lake, "--dry-run")
    assert (
        "1 record for alpha stays in the quarantine (`forebay quarantine drop --table alpha --reason table-fai" in said
    )
    declare(lake, '[[tables]]\nname = "{game}"\n')
    assert must_stay(LakeView(lake), kept_services(lake), ["beta"]) == []
    assert "table alpha: 1 record waits for it in the quarantine, and would make it again" in failed(
        2, "tables", "drop", "alpha", "--lake", lake, "--yes"
    )


def test_its_records_are_no_duplicates_where_it_comes_back(lake: str) -> None:
    ids = {"table": ["alpha", "beta", None], "file_id": [file_id("in/a.json")] * 3, "id": [1, 1, 1]}
    write_deltalake(f"{lake}/_forebay/ids", pa.table(ids))
    ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    left = DeltaTable(f"{lake}/_forebay/ids").to_pyarrow_table()["table"].to_pylist()
    assert sorted(left, key=str) == [None, "beta"]


def test_reasons_that_still_say_what_becomes_of_a_file_stay(tmp_path: Path) -> None:
    rows = {"tables": {"alpha": 2}}
    held = {"quarantined": 1, "records": 3, "reason": "table-failed", "detail": "beta"}
    write_ledger(
        tmp_path,
        entry("in/back.json", reason="rolled-back", **rows),
        entry("in/held.json", **held, **rows),
        entry("in/marked.json", outcome="replay", reason="same-key-same-bytes", **rows),
        entry("in/not.json", reason="not-replayed", detail="denied: 403", **rows),
        entry("in/partly.json", reason="partly-replayed", detail="beta, gamma", tables={"alpha": 2, "beta": 1}),
        entry("in/rolled.json", reason="partly-replayed", detail="alpha", records=3, dropped=1, **rows),
        entry("in/whole.json", **{**held, **rows, "reason": "partly-replayed", "detail": "alpha"}),
    )
    ran("tables", "drop", "alpha", "--lake", str(tmp_path), "--yes")
    reasons = {key: row[0] for key, row in rows_in_ledger(str(tmp_path)).items()}
    assert reasons == {
        "in/back.json": "rolled-back",
        "in/held.json": "table-failed",
        "in/marked.json": "same-key-same-bytes",
        "in/not.json": "table-dropped",
        "in/partly.json": "partly-replayed",
        "in/rolled.json": "rolled-back",
        "in/whole.json": "table-dropped",
    }
    found = DeltaTable(tmp_path / "_forebay" / "ledger").to_pyarrow_table().to_pylist()
    details = {row["key"]: row["detail"].partition(" on ")[0] for row in found}
    assert details["in/not.json"] == "denied: 403; table alpha dropped"


def test_a_ledger_of_many_days_is_changed_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropping, "FILES_AT_ONCE", 2)
    days = [AT.replace(day=day) for day in range(1, 8)]
    write_ledger(tmp_path, *(entry(f"in/{at.day}.json", at=at, tables={"alpha": 1}) for at in days))
    before = DeltaTable(tmp_path / "_forebay" / "ledger").version()
    ran("tables", "drop", "alpha", "--lake", str(tmp_path), "--yes")
    assert DeltaTable(tmp_path / "_forebay" / "ledger").version() - before == 4
    assert [row[1:] for row in rows_in_ledger(str(tmp_path)).values()] == [(0, 1, {})] * len(days)


def test_json_is_one_object(lake: str) -> None:
    status, out, err = given(("tables", "drop", "alpha", "--lake", lake, "--yes", "--json"), "")
    told = json.loads(out)
    assert (status, told["dropped"], told["tables"][0]["rows"]) == (0, ["alpha"], 5), err


@pytest.fixture
def glue(s3: str) -> Iterator[Any]:
    glue = boto3.client("glue", endpoint_url=s3, region_name="eu-west-1")
    glue.create_database(DatabaseInput={"Name": "games"})
    yield glue
    glue.delete_database(Name="games")


def entry_of(place: str) -> dict[str, Any]:
    return {"Name": "alpha", "Parameters": {"table_type": "DELTA"}, "StorageDescriptor": {"Location": place}}


def test_its_entry_in_the_catalog_goes_and_anothers_stays(lake: str, glue: Any) -> None:
    glue.create_table(DatabaseName="games", TableInput=entry_of(f"{lake}/alpha"))
    glue.create_table(DatabaseName="games", TableInput={**entry_of("s3://other/beta"), "Name": "beta"})
    declare(lake, '[[tables]]\nname = "gamma"\n')
    typed = ("tables", "drop", "alpha", "beta", "--lake", lake, "--yes", "--catalog", "games")
    said = failed(1, *typed)
    assert "the entry beta of the Glue database games stays: it is DELTA at s3://other/beta" in said
    assert [one["Name"] for one in glue.get_tables(DatabaseName="games")["TableList"]] == ["beta"]
    assert not is_there(lake)


def test_its_entry_goes_also_where_another_person_finishes_the_drop(
    lake: str, glue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is gone by then, so nobody could name the table again."""
    glue.create_table(DatabaseName="games", TableInput=entry_of(f"{lake}/alpha"))

    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dropping, "remove_entry", stopped)
        failed(130, "tables", "drop", "alpha", "--lake", lake, "--yes", "--catalog", "games")
    assert not is_there(lake)
    declare(lake, '[[tables]]\nname = "gamma"\n')
    status, out, err = given(("tables", "drop", "beta", "--lake", lake, "--yes", "--json"), "")
    assert (status, json.loads(out)["dropped"]) == (0, ["alpha", "beta"]), err
    assert glue.get_tables(DatabaseName="games")["TableList"] == []


def test_an_entry_that_aws_does_not_remove_is_told_with_the_command_that_does(
    lake: str, glue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DeleteTable")

    monkeypatch.setattr(dropping, "remove_entry", refused)
    said = failed(1, "tables", "drop", "alpha", "--lake", lake, "--yes", "--catalog", "games")
    assert "the entry alpha of the Glue database games stays: An error occurred (AccessDeniedException)" in said
    assert "remove it with `aws glue delete-table --database-name games --name alpha`" in said
    must_not_be_half_rolled_back(lake)


def test_a_mistyped_database_is_named(lake: str, glue: Any) -> None:
    """Glue says the same of a database that is not there as of an entry."""
    said = ran("tables", "drop", "alpha", "--lake", lake, "--yes", "--catalog", "gmaes")
    assert "the Glue database gmaes has no entry alpha: is its name spelled correctly?" in said


def test_on_s3_a_table_with_a_longer_name_stays_and_the_entry_of_the_catalog_is_told(s3: str) -> None:
    options = {"aws_allow_http": "true"}
    lake = "s3://studio-lake/dropped"
    write_ledger(lake, entry("in/a.json", tables={"alpha": 2, "alpha2": 1}), storage_options=options)
    for name, rows in (("alpha", 2), ("alpha2", 1)):
        found = pa.table({"_file_id": [file_id("in/a.json")] * rows})
        write_deltalake(f"{lake}/{name}", found, storage_options=options)
    said = ran("tables", "drop", "alpha", "--lake", lake, "--yes")
    assert "objects of alpha stay where the bucket keeps deleted ones, until its lifecycle rule deletes them" in said
    assert "entries in the Glue Data Catalog stay: aws glue delete-table" in said
    assert {one.name.partition("/")[0] for one in open_objects(lake).found()} == {"_forebay", "alpha2"}
    assert accounts(LakeView(lake)).differences() == []
    must_not_be_half_rolled_back(lake)
