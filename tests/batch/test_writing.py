"""One table that cannot be read or written is that table's trouble, and nobody else's."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from forebay.batch.accounting import Fate, by_table
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import Known
from forebay.batch.reasons import DERIVED_TABLE, PAUSED_TABLE, TABLE_FAILED, TOO_MANY_NEW_TABLES
from forebay.batch.writing import Writing
from forebay.declaration.loading import builtin_service
from forebay.declaration.privacy import Privacy
from forebay.errors import Halt
from forebay.lake.layout import IDS, PARKED, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.versions import Sorted
from forebay.table.commit import LogFailed, Txn
from forebay.table.data_files.data_file import DataFile, Written
from forebay.table.destination import Appended, Failed, Skipped
from forebay.table.staged import StagedTable
from forebay.table.staging import FilesDoNotFit, StagingFromTasks

LAKE = "s3://lake"


class Logs:
    """`alpha` asks for a feature that nobody here knows, `gone` is no table, all others are."""

    def has(self, path: str, txn: Txn, *, again: bool = False) -> bool:
        return path == f"{LAKE}/done"

    def look(self, path: str, *, again: bool = False) -> object | None:
        if path == f"{LAKE}/alpha":
            raise LogFailed("UnsupportedTableFeatureException", "alpha has the feature of tomorrow")
        if path.startswith((f"{LAKE}/gone", f"{LAKE}/new")):
            return None
        return SimpleNamespace(derived_from="changes" if path == f"{LAKE}/state" else "")


@pytest.fixture
def writing() -> Writing:
    made: dict[str, Any] = {"spark": None, "logs": Logs(), "emit": lambda event: None, "tables_at_once": 1}
    made |= {
        "service": builtin_service().model_copy(update={"new_tables_per_day": 1}),
        "generation": "g",
        "txn": Txn("a", 1),
        "new_tables": NewTables(),
    }
    return Writing(lake=LAKE, began_at=datetime(2026, 11, 22, tzinfo=UTC), catalog=None, **made)


def fates(*tables: str) -> list[Fate]:
    return [Fate("f", "write", 1, table, 0) for table in tables]


def test_a_table_whose_log_cannot_be_read_is_not_taken_for_a_new_one(writing: Writing) -> None:
    coming = fates("alpha", "beta", "new_1", "new_2")
    unwritten = writing.not_to_write(coming, writing.origins(by_table(coming).keys()))
    assert list(unwritten.values()) == [TOO_MANY_NEW_TABLES]
    assert unwritten.keys() < {"new_1", "new_2"}


def test_each_table_is_looked_at_once_and_several_at_the_same_time(writing: Writing) -> None:
    both, looked = Barrier(2), list[str]()

    class Slow(Logs):
        def look(self, path: str, *, again: bool = False) -> object | None:
            looked.append(path)
            both.wait(5)
            return super().look(path)

    together = dataclasses.replace(writing, logs=Slow(), tables_at_once=2)  # type: ignore[arg-type]
    names = ("alpha", "beta", "new_1", "state")
    assert [name for name, origin in together.origins(names).items() if origin is None] == ["new_1"]
    assert sorted(looked) == [f"{LAKE}/{name}" for name in names]


def test_a_table_that_was_absent_just_now_is_not_looked_for_again(writing: Writing) -> None:
    class Forgetful(Logs):
        def look_for(self, path: str, app_id: str, *, again: bool = False) -> tuple[object | None, int]:
            raise AssertionError(path)

    logs: Any = Forgetful()
    columns = StructType([StructField("id", StringType()), StructField("day", StringType())])
    absent = StagingFromTasks(cast("Any", None), logs, columns, Txn("a", 1), print, {}, Written({}, {}), {"new_1"})
    destination = writing.destination("new_1", builtin_service().tables[0])
    assert absent.run([destination], 1) == {}


def test_a_table_whose_log_cannot_be_read_fails_alone_where_rows_are_replaced(writing: Writing) -> None:
    assert writing.is_there("alpha")
    assert isinstance(writing.removed("alpha", ["f"]), Failed)


def test_rows_leave_every_table_that_is_there_and_none_that_is_gone(writing: Writing) -> None:
    file = LandedFile("landing", "a", 1, "e1")
    of_earlier: Any = SimpleNamespace(tables={"alpha": 1, "beta": 2, "gone": 3}, earlier=SimpleNamespace(file=file))
    split: Any = SimpleNamespace(leaving=[of_earlier])
    assert writing.leaving_tables(split) == {"alpha": [file.file_id], "beta": [file.file_id]}


def test_a_table_that_a_merge_computes_takes_no_rows_and_lets_none_leave(writing: Writing) -> None:
    origins = writing.origins({"alpha", "beta", "gone", "state"})
    assert writing.not_to_write(fates("alpha", "beta"), origins) == {"state": DERIVED_TABLE}
    found = writing.removed("state", ["f"])
    assert isinstance(found, Failed)
    assert "a merge or a rollup computes this table" in str(found.error)
    assert not found.may_be_in


def test_a_table_whose_log_cannot_be_read_is_registered_later(writing: Writing) -> None:
    class Catalog:
        def keep(self, *_: object) -> None:
            raise AssertionError("there is nothing to register")

    object.__setattr__(writing, "catalog", Catalog())
    writing.register("alpha")


def test_before_a_plan_is_carried_out_the_data_files_of_several_tables_are_looked_for_at_once(
    writing: Writing, tmp_path: Path
) -> None:
    both = Barrier(2)

    class Slow(Logs):
        def has(self, path: str, txn: Txn, *, again: bool = False) -> bool:
            both.wait(5)
            return again and path.endswith("/done")  # it may have come since this driver last looked

    lake = str(tmp_path)
    (tmp_path / "alpha").mkdir()
    (tmp_path / "alpha" / "there.parquet").write_bytes(b"PAR1")
    together = dataclasses.replace(writing, lake=lake, logs=Slow(), tables_at_once=2)  # type: ignore[arg-type]
    together.must_have_files([staged("done", "gone.parquet"), staged("alpha", "there.parquet")], "the plan")
    lost = [staged("beta", "gone.parquet", "gone too.parquet"), staged("alpha", "there.parquet")]
    with pytest.raises(
        Halt, match=r"lacks 2 data files, such as .*/beta/gone\.parquet.* Restore the data files of the plan"
    ):
        together.must_have_files(lost, "the plan")


def test_the_data_files_of_a_table_whose_log_cannot_be_read_are_looked_for(writing: Writing, tmp_path: Path) -> None:
    class Unreadable(Logs):
        def has(self, path: str, txn: Txn, *, again: bool = False) -> bool:
            raise LogFailed("UnsupportedTableFeatureException", "it has the feature of tomorrow")

    (tmp_path / "alpha").mkdir()
    (tmp_path / "alpha" / "there.parquet").write_bytes(b"PAR1")
    unreadable = dataclasses.replace(writing, lake=str(tmp_path), logs=Unreadable())  # type: ignore[arg-type]
    unreadable.must_have_files([staged("alpha", "there.parquet")], "the plan")
    with pytest.raises(Halt, match="lacks 1 data file"):
        unreadable.must_have_files([staged("alpha", "gone.parquet")], "the plan")


def test_held_records_that_an_earlier_try_committed_are_counted_in_its_commit(writing: Writing, tmp_path: Path) -> None:
    """Ids are not: no count of a file says how many there are."""
    beside = dataclasses.replace(writing, lake=str(tmp_path))
    add = {"path": "f", "size": 1, "dataChange": True, "stats": '{"numRecords": 2}', "partitionValues": {}}
    commit = [{"txn": {"appId": "a", "version": 1}}, {"add": add}]
    log = tmp_path / QUARANTINE / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, commit)))
    beside.must_be_in(beside.own(QUARANTINE), 2, Skipped())
    with pytest.raises(Halt, match="3 rows should have been added, but its commit added 2"):
        beside.must_be_in(beside.own(QUARANTINE), 3, Skipped())
    with pytest.raises(Halt, match="2 rows should have been added, but its log has no commit of that batch"):
        beside.must_be_in(beside.own(PARKED), 2, Skipped())
    beside.must_be_in(beside.own(IDS), 2, Skipped())
    beside.must_be_in(beside.own(PARKED), 2, Appended(version=1, files=1, rows=2, bytes=1, seconds=0))
    with pytest.raises(Halt, match="2 rows belong there, but Delta's commit 1 has 1"):
        beside.must_be_in(beside.own(IDS), 2, Appended(version=1, files=1, rows=1, bytes=1, seconds=0))


def tasks_of(writing: Writing, answers: dict[str, Any], **more: Any) -> Writing:
    """The same, where the data files of each table are there, or something is wrong with them. `answers` has the others."""

    class OfTasks(Writing):
        def tables_of(self, made: Pass, declared: object, wanted: Mapping[str, int], absent: object) -> Any:
            found = {name: answers.get(name) or staged(name, "f.parquet") for name in wanted}
            for other in found.values():
                if isinstance(other, FilesDoNotFit):
                    raise other
            return found

        def kept_by(self, made: Pass, name: str, count: int, *, replaces: bool) -> StagedTable | None:
            return staged(name, "f.parquet") if count else None

    fields = {field.name: getattr(writing, field.name) for field in dataclasses.fields(writing)}
    return OfTasks(**{**fields, **more})


PLACE = cast(Any, object())
NOTHING = Sorted((), (), ())
MISFIT = FilesDoNotFit("alpha has other partition columns", {"alpha": PLACE})
FAILED = Failed(LogFailed("UnsupportedTableFeatureException", "it has the feature of tomorrow"))


def pass_of(*tables: str, lake: str = LAKE) -> Pass:
    written = {name: list(staged(name, "f.parquet").files) for name in tables}
    return Pass([], fates(*tables), Written(written, {}), lake)


@pytest.mark.parametrize(
    ("answers", "says", "tables", "known"),
    [
        ({"alpha": MISFIT}, "alpha has other partition columns", {}, {"alpha": Known(0, PLACE)}),
        ({"alpha": FAILED}, "1 table is not written, such as alpha", {"alpha": TABLE_FAILED}, {}),
        ({"state": None}, "1 table is not written, such as state", {"state": DERIVED_TABLE}, {}),
    ],
)
def test_a_pass_with_rows_of_a_table_that_cannot_take_them_is_made_again(
    writing: Writing, answers: dict[str, Any], says: str, tables: dict[str, str], known: dict[str, Known]
) -> None:
    made = pass_of("beta", *answers)
    with pytest.raises(ReadAgain, match=says) as again:
        tasks_of(writing, answers).stage(made, [], made.fates, NOTHING, None)
    assert {name: why.reason for name, why in again.value.tables.items()} == tables
    assert again.value.known == known


def test_rows_of_a_paused_table_wait_and_need_no_other_pass(writing: Writing) -> None:
    made, service = pass_of("alpha", "beta"), writing.service.with_paused({"beta"})
    done = tasks_of(writing, {"beta": MISFIT}, service=service).stage(made, [], made.fates, NOTHING, None)
    assert (done.unwritten, [*done.tables], [*done.beside]) == ({"beta": PAUSED_TABLE}, ["alpha"], [QUARANTINE])


def test_held_records_whose_data_files_do_not_fit_leave_none_of_them(writing: Writing, tmp_path: Path) -> None:
    (tmp_path / "alpha").mkdir()
    (tmp_path / "alpha" / "f.parquet").write_bytes(b"PAR1")
    retried = tasks_of(writing, {"alpha": MISFIT}, lake=str(tmp_path))
    with pytest.raises(ReadAgain, match="other partition columns") as again:
        retried.write_again(pass_of("alpha", lake=str(tmp_path)), {})
    assert again.value.known == {"alpha": Known(0, PLACE)}
    assert [*tmp_path.rglob("*.parquet")] == []


def test_a_first_try_has_kept_no_table_out(writing: Writing) -> None:
    assert writing.unwritten_before() == {}


def test_a_table_that_is_named_vault_is_not_taken_for_the_vault(writing: Writing, tmp_path: Path) -> None:
    kept = {"vault": f"{tmp_path}/apart", "vault_key": "alias/v", "secret": "s3://apart/secret"}
    privacy = Privacy(subject="user_id", personal=[{"path": "email", "vault": True}], **kept)  # type: ignore[arg-type]
    service, lake = writing.service.model_copy(update={"privacy": privacy}), tmp_path / "lake"
    (lake / "vault").mkdir(parents=True)
    (lake / "vault" / "there.parquet").write_bytes(b"PAR1")
    with_vault = dataclasses.replace(writing, lake=str(lake), service=service)
    with_vault.must_have_files([staged("vault", "there.parquet")], "the plan")


def staged(table: str, *files: str) -> StagedTable:
    return StagedTable(table, "{}", None, (), tuple(DataFile(table, file, (), 4, 1, 0, "{}") for file in files))
