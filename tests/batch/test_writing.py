"""One table that cannot be read or written is that table's trouble, and nobody else's."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.new_tables import NewTables
from forebay.batch.reasons import DERIVED_TABLE, TOO_MANY_NEW_TABLES
from forebay.batch.writing import Writing
from forebay.declaration.loading import builtin_service
from forebay.declaration.privacy import Privacy
from forebay.errors import Halt
from forebay.table.commit import LogFailed, Txn
from forebay.table.data_files.data_file import DataFile
from forebay.table.destination import Failed
from forebay.table.staged import StagedTable

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
    unwritten = writing.not_to_write(fates("alpha", "beta", "new_1", "new_2"), ())
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
    together.not_to_write(fates("alpha", "beta", "new_1", "state"), ())
    assert sorted(looked) == [f"{LAKE}/{name}" for name in ("alpha", "beta", "new_1", "state")]


def test_a_table_whose_log_cannot_be_read_fails_alone_where_rows_are_replaced(writing: Writing) -> None:
    assert writing.is_there("alpha")
    assert isinstance(writing.removed("alpha", ["f"]), Failed)


def test_a_table_that_a_merge_computes_takes_no_rows_and_lets_none_leave(writing: Writing) -> None:
    assert writing.not_to_write(fates("alpha", "beta"), {"gone", "state"}) == {"state": DERIVED_TABLE}
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
            return path.endswith("/done")

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
