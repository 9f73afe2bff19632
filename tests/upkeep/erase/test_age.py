"""`keep_days`: old rows leave their table, and the ledger says so, wherever a run was stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.transaction import AddAction

from forebay.batch.plan import Plan, Plans
from forebay.declaration.loading import parse_service
from forebay.lake.folder_objects import FolderObjects
from forebay.lake.layout import DERIVED_FROM, PLANS
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import pairs_of
from forebay.operate.changing.rollback import plan_rollback, roll_back
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.upkeep.erase import age
from forebay.upkeep.erase.age import drop_old_rows
from tests.operate.ledger import entry, write_ledger

SERVICE = parse_service(
    {"service.toml": 'name = "games"\n[[tables]]\nname = "alpha"\nkeep_days = 30\n[[tables]]\nname = "b"'}
)
NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
FIRST = datetime(2026, 10, 23, tzinfo=UTC)
"""The first moment that stays."""
OLD = FIRST - timedelta(microseconds=1)


def append(lake: Path, table: str, key: str, *moments: datetime | None, **more: Any) -> None:
    rows = {
        "_ingested_at": pa.array(moments, pa.timestamp("us", "UTC")),
        "_file_id": [LandedFile("landing", key, 100, "e1").file_id] * len(moments),
    }
    write_deltalake(f"{lake}/{table}", pa.table(rows), mode="append", **more)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    append(tmp_path, "alpha", "a.json", OLD, OLD, FIRST)
    append(tmp_path, "alpha", "b.json", FIRST)
    append(tmp_path, "b", "c.json", OLD)
    tables: dict[str, dict[str, int]] = {"a.json": {"alpha": 3}, "b.json": {"alpha": 1}, "c.json": {"b": 1}}
    write_ledger(tmp_path, *(entry(key, tables=counts) for key, counts in tables.items()))
    return tmp_path


def moments(lake: Path) -> list[datetime]:
    found: list[datetime] = DeltaTable(f"{lake}/alpha").to_pyarrow_table()["_ingested_at"].to_pylist()
    return found


def drop(lake: Path, table: str = "alpha", now: datetime = NOW) -> int:
    return drop_old_rows(str(lake), table, SERVICE, keep=timedelta(days=7), now=now)


def counts(lake: Path) -> dict[str, Any]:
    rows = DeltaTable(f"{lake}/_forebay/ledger").to_pyarrow_table().to_pylist()
    return {row["key"]: (row["written"], row["dropped"], dict(row["tables"])) for row in rows}


def test_rows_that_are_too_old_leave_and_the_ledger_has_them_as_dropped(lake: Path) -> None:
    assert (drop(lake), drop(lake, "b"), drop(lake)) == (2, 0, 0)
    assert moments(lake) == [FIRST, FIRST]
    assert counts(lake) == {"a.json": (1, 2, {"alpha": 1}), "b.json": (1, 0, {"alpha": 1}), "c.json": (1, 0, {"b": 1})}
    assert drop(lake, now=NOW + timedelta(days=1)) == 2
    assert moments(lake) == []
    assert accounts(LakeView(str(lake))).differences() == []


def plan_of(*keys: str) -> Plan:
    files = tuple(LandedFile("landing", key, 100, "e2") for key in keys)
    return Plan(generation="g1", batch=7, began_at=NOW, service={}, files=files, ends=(), fates=())


def test_rows_of_files_in_an_open_batch_stay_until_it_has_ended(lake: Path) -> None:
    """The batch goes by what the ledger counts of a version that it replaces, also after a crash."""
    append(lake, "alpha", "d.json", OLD)
    write_ledger(lake, entry("d.json", tables={"alpha": 1}))
    plans, plan = Plans(open_objects(f"{lake}/{PLANS}"), "games"), plan_of("a.json")
    plans.pin(plan)
    assert drop(lake) == 1
    assert counts(lake)["a.json"] == (3, 0, {"alpha": 3})
    assert counts(lake)["d.json"] == (0, 1, {})
    plans.forget("g1", 7)
    assert drop(lake) == 2
    assert counts(lake)["a.json"] == (1, 2, {"alpha": 1})


@pytest.mark.parametrize("at", ["before the commit", "before the ledger"])
def test_a_batch_that_begins_beside_the_run_makes_it_wait(lake: Path, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = Plans(open_objects(f"{lake}/{PLANS}"), "games")
    with monkeypatch.context() as patched:
        if at == "before the commit":
            looks = iter(([], [SimpleNamespace(landed=plan_of("a.json").files)]))
            patched.setattr(age, "open_batches", lambda lake: next(looks))
            there = sorted((lake / "alpha").rglob("*.parquet"))
            assert drop(lake) == 0
            assert sorted((lake / "alpha").rglob("*.parquet")) == there, "no data file is left that nothing names"
        else:
            patched.setattr(age, "change_ledger", dies)
            with pytest.raises(KeyboardInterrupt):
                drop(lake)
    left = moments(lake)
    plans.pin(plan_of("a.json"))
    assert drop(lake) == 0
    assert (counts(lake)["a.json"], moments(lake)) == ((3, 0, {"alpha": 3}), left)
    plans.forget("g1", 7)
    assert drop(lake) == 2
    assert accounts(LakeView(str(lake))).differences() == []


def test_a_batch_after_an_operator_changed_the_ledger_keeps_its_rows(lake: Path) -> None:
    """Commands write the ledger through delta-rs, whose texts Arrow reads as views."""
    ledger = DeltaTable(f"{lake}/_forebay/ledger")
    change = pa.table({"key": ["a.json", "b.json"]})
    merge = ledger.merge(change, "t.key = s.key", source_alias="s", target_alias="t")
    merge.when_matched_update({"outcome": "'replay'"}).execute()
    Plans(open_objects(f"{lake}/{PLANS}"), "games").pin(plan_of("a.json"))
    assert (drop(lake), len(moments(lake))) == (0, 4)


def test_rows_of_a_file_that_a_whole_batch_read_again_meanwhile_are_counted(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table was paused, so its old rows stayed, as the batch's entry says."""
    looks = 0

    def a_batch_passes(lake: str) -> list[Any]:
        nonlocal looks
        looks += 1
        if looks == 2:
            DeltaTable(f"{lake}/_forebay/ledger").delete("key = 'a.json'")
            write_ledger(Path(lake), entry("a.json", tables={"alpha": 3}, batch=8))
        return []

    monkeypatch.setattr(age, "open_batches", a_batch_passes)
    assert drop(lake) == 2
    assert counts(lake)["a.json"] == (1, 2, {"alpha": 1})
    assert accounts(LakeView(str(lake))).differences() == []


def test_an_attempt_after_another_writer_reads_the_ledger_no_more(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it took longer than a busy table leaves between two commits, and no attempt ever came first."""
    asked = list[str]()

    def pairs(ledger: Any, wanted: Any, by: str, other: str) -> Any:
        asked.append(by)
        return pairs_of(ledger, wanted, by, other)

    def commits_of_others(lake_: str) -> list[Any]:
        if len(commits) < 3:
            append(lake, "alpha", "b.json", FIRST)
        commits.append(1)
        return [SimpleNamespace(landed=plan_of("z.json").files)]

    commits = list[int]()
    monkeypatch.setattr(age, "pairs_of", pairs)
    monkeypatch.setattr(age, "open_batches", commits_of_others)
    assert drop(lake) == 2
    assert (len(commits), asked) == (4, ["key_hash", "file_id"])


def dies(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_rows_that_a_rollback_brought_back_leave_again_on_the_same_day(lake: Path) -> None:
    before, view = DeltaTable(f"{lake}/alpha").version(), LakeView(str(lake))
    assert drop(lake) == 2
    roll_back(view, plan_rollback(view, ["alpha"], before, replay=False))
    assert counts(lake)["a.json"] == (3, 0, {"alpha": 3})
    assert drop(lake) == 2
    assert counts(lake)["a.json"] == (1, 2, {"alpha": 1})
    assert accounts(view).differences() == []


def test_rows_of_a_table_that_no_declaration_makes_stay(lake: Path) -> None:
    append(lake, "c", "c.json", FIRST - timedelta(days=1000))
    assert drop(lake, "c") == 0


def test_rows_of_a_computed_table_stay(lake: Path) -> None:
    """They leave when it is computed again, from a table that they have left."""
    first = lake / "alpha" / "_delta_log" / f"{0:020}.json"
    first.write_text(first.read_text().replace('"configuration":{}', f'"configuration":{{"{DERIVED_FROM}":"b"}}'))
    before = moments(lake)
    assert (drop(lake), moments(lake)) == (0, before)


def test_rows_whose_age_is_not_known_stay(lake: Path) -> None:
    append(lake, "alpha", "b.json", None, OLD)
    append(lake, "alpha", "b.json", None)
    assert drop(lake) == 3
    assert sorted(map(str, moments(lake))) == sorted(map(str, [FIRST, FIRST, None, None]))


@pytest.mark.parametrize("has_age", [True, False])
def test_rows_of_a_table_or_a_data_file_without_ages_stay(lake: Path, has_age: bool) -> None:
    """Somebody else made the table, or gave it the column later."""
    shutil.rmtree(lake / "alpha")
    write_deltalake(f"{lake}/alpha", pa.table({"_file_id": ["a"]}))
    if has_age:
        append(lake, "alpha", "a.json", OLD, schema_mode="merge")
    assert drop(lake) == has_age
    assert DeltaTable(f"{lake}/alpha").to_pyarrow_table()["_file_id"].to_pylist() == ["a"]


def test_rows_of_a_data_file_without_statistics_leave_as_well(lake: Path) -> None:
    without = WriterProperties(default_column_properties=ColumnProperties(statistics_enabled="NONE"))
    append(lake, "alpha", "b.json", OLD, writer_properties=without)
    assert drop(lake) == 3


def test_a_data_file_without_rows_has_none_that_leave(lake: Path) -> None:
    table = DeltaTable(f"{lake}/alpha")
    schema = pa.schema(table.schema())
    with pq.ParquetWriter(lake / "alpha" / "empty.parquet", schema) as writer:
        writer.write_table(schema.empty_table())
    file = AddAction("empty.parquet", (lake / "alpha/empty.parquet").stat().st_size, {}, 0, True, "{}")
    table.create_write_transaction([file], "append", schema)
    assert drop(lake) == 2


class Killed(BaseException):
    """The process is no more."""


def test_a_run_that_was_stopped_anywhere_is_finished_by_the_next_one(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run dies one object later, and comes a day later."""
    for allowed in range(20):
        with monkeypatch.context() as patched:
            left = [allowed]
            for name in ("write", "write_once"):
                patched.setattr(FolderObjects, name, dying(getattr(FolderObjects, name), left))
            try:
                drop(lake, now=NOW + timedelta(days=allowed))
                break
            except Killed:
                continue
    drop(lake, now=NOW + timedelta(days=30))
    assert moments(lake) == []
    assert counts(lake)["a.json"] == (0, 3, {})
    assert accounts(LakeView(str(lake))).differences() == []


def test_rows_leave_although_a_killed_run_has_the_number_of_the_run_before(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is the ledger's version. Rows that no file has leave without a commit to the ledger."""
    old = pa.array([FIRST - timedelta(days=5)], pa.timestamp("us", "UTC"))
    stray = pa.table({"_ingested_at": old, "_file_id": pa.array([None], pa.string())})
    write_deltalake(f"{lake}/alpha", stray, mode="append")
    assert drop(lake, now=NOW - timedelta(days=2)) == 1
    with monkeypatch.context() as patched:
        patched.setattr(FolderObjects, "write_once", dying(FolderObjects.write_once, [0]))
        with pytest.raises(Killed):
            drop(lake)
    assert drop(lake) == 2
    assert moments(lake) == [FIRST, FIRST]
    assert counts(lake)["a.json"] == (1, 2, {"alpha": 1})


def dying(write: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def dies(objects: FolderObjects, name: str, *more: Any) -> Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return write(objects, name, *more)

    return dies
