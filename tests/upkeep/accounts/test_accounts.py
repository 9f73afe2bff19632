"""What the ledger says of each file, held against what the tables hold of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.batch.plan import Plan, Plans
from forebay.events import Event
from forebay.lake.health import HealthRecords
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.entry import file_hash
from forebay.upkeep.accounts import accounts as module
from forebay.upkeep.accounts.accounts import Accounts, accounts, lasting
from forebay.upkeep.accounts.events import AccountDiffers, AccountsChecked
from forebay.upkeep.accounts.job import check_accounts

OLD, NEW = date(2026, 1, 5), date(2026, 5, 5)


def file_of(key: str) -> LandedFile:
    return LandedFile("landing", key, version_id="1")


@dataclass
class Lake:
    """What a batch would leave, said file by file."""

    place: Path
    ledger: list[dict[str, Any]] = field(default_factory=list)

    def entry(
        self,
        key: str,
        tables: Mapping[str, int],
        day: date = NEW,
        outcome: str = "loaded",
        service: str = "studio",
        **counts: int,
    ) -> None:
        written, file = sum(tables.values()), file_of(key)
        what = {"written": written, "quarantined": 0, "parked": 0, "dropped": 0, **counts}
        what |= {"outcome": outcome, "records": written + sum(counts.values())}  # type: ignore[dict-item]
        at = datetime(day.year, day.month, day.day, 23, tzinfo=UTC)
        where = {
            "file_hash": file_hash(file),
            "bucket": file.bucket,
            "key": file.key,
            "claimed_at": at,
            "service": service,
        }
        self.ledger.append({**where, **what, "tables": list(tables.items())})

    def rows(self, table: str, *keys: str, day: date | None = None, service: str = "studio") -> None:
        ids = [file_of(key).file_id for key in keys]
        if day is None:
            found = pa.table({"_file_id": ids, "v": range(len(ids))})
        else:
            same = {name: [value] * len(ids) for name, value in (("day", day), ("line", 1), ("service", service))}
            found = pa.table({"file_id": ids, **same})
        write_deltalake(self.place / table, found, mode="append", partition_by=["day"] if day else None)

    def aside(self, key: str, *days: date) -> None:
        for day in days:
            self.rows("_forebay/quarantine", key, day=day)
            self.rows("_forebay/parked", key, day=day)

    def accounts(self) -> Accounts:
        numbers = ("file_hash", "records", "written", "quarantined", "parked", "dropped")
        schema = pa.schema(
            [
                *((name, pa.int64()) for name in numbers),
                *((name, pa.string()) for name in ("service", "bucket", "key", "outcome")),
                ("claimed_at", pa.timestamp("us", "UTC")),
                ("tables", pa.map_(pa.string(), pa.int64())),
            ]
        )
        ledger = pa.Table.from_pylist(self.ledger, schema)
        write_deltalake(self.place / "_forebay" / "ledger", ledger, mode="overwrite")
        return accounts(str(self.place))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two files, one of each day; of each two records were written, one was quarantined and one parked."""
    lake = Lake(tmp_path)
    for key, day in (("old", OLD), ("new", NEW)):
        lake.entry(key, {"alpha": 1, "beta": 1}, day, quarantined=1, parked=1)
        lake.rows("alpha", key)
        lake.rows("beta", key)
        lake.aside(key, day)
    return lake


def expire(lake: Lake, until: date) -> None:
    for name in ("_forebay/quarantine", "_forebay/parked"):
        HealthRecords(str(lake.place)).update(
            name, lambda was: replace(was, expired_before={"studio": until.isoformat()})
        )


def test_all_sums_hold(lake: Lake) -> None:
    found = lake.accounts()
    assert found.differences() == []
    assert found.rows == {"alpha": 2, "beta": 2, "_forebay/quarantine": 2, "_forebay/parked": 2}
    assert (found.files, found.records, found.written) == ({"loaded": 2}, 8, 4)


def test_before_the_first_batch_all_sums_hold(tmp_path: Path) -> None:
    assert accounts(str(tmp_path)).differences() == []


def test_a_file_that_the_ledger_calls_loaded_and_a_table_lacks_is_named(lake: Lake) -> None:
    lake.entry("lost", {"alpha": 2})
    assert lake.accounts().differences() == [
        "alpha: the ledger says 4 rows, the table has 2; such as s3://landing/lost (2 in the ledger, 0 in the table)"
    ]


def test_a_data_file_that_somebody_deleted_is_named_and_the_other_tables_are_counted(lake: Lake) -> None:
    """A VACUUM that retains nothing, or a lifecycle rule. To count again would not help."""
    gone = next((lake.place / "alpha").glob("*.parquet"))
    gone.unlink()
    lake.rows("beta", "old")
    one, other = lake.accounts().differences()
    assert one.startswith(
        f"alpha: cannot be counted: its data file {lake.place}/alpha/{gone.name} was deleted; restore"
    )
    assert other.startswith("beta: the ledger says 2 rows, the table has 3")


def test_a_file_loaded_twice_and_another_one_lost_do_not_make_up_for_each_other(lake: Lake) -> None:
    lake.entry("lost", {"alpha": 1})
    lake.rows("alpha", "new")
    assert lake.accounts().differences() == [
        "alpha: 3 rows as the ledger says, but from other files; such as "
        "s3://landing/lost (1 in the ledger, 0 in the table), s3://landing/new (1 in the ledger, 2 in the table)"
    ]


def test_a_file_that_was_loaded_twice_and_has_two_rows_in_the_ledger_is_told(lake: Lake) -> None:
    """Two jobs that do not know of each other: every number is doubled alike."""
    lake.entry("new", {"alpha": 1, "beta": 1}, quarantined=1, parked=1)
    lake.rows("alpha", "new")
    lake.rows("beta", "new")
    lake.aside("new", NEW)
    found = lake.accounts()
    assert (found.expected, found.records) == (found.rows, 12)
    assert found.differences() == [
        "s3://landing/new: has more than one row in the ledger, so it may have been loaded twice"
    ]


def test_files_whose_numbers_are_wrong_do_not_make_up_for_each_other(lake: Lake) -> None:
    for key, records, written in (("more", 4, 3), ("less", 2, 3), ("by table", 3, 2)):
        lake.entry(key, {"alpha": 3})
        lake.rows("alpha", key, key, key)
        lake.ledger[-1] |= {"records": records, "written": written}
    lake.ledger[-1] |= {"dropped": 1}
    assert [said.partition(": ")[0] for said in lake.accounts().differences()] == [
        "s3://landing/by table",
        "s3://landing/less",
        "s3://landing/more",
    ]


def test_rows_of_a_superseded_version_that_stayed_in_a_table_are_told(lake: Lake) -> None:
    lake.entry("earlier", {}, outcome="superseded", dropped=1)
    lake.rows("beta", "earlier")
    assert lake.accounts().differences() == [
        "beta: the ledger says 2 rows, the table has 3; such as s3://landing/earlier (0 in the ledger, 1 in the table)"
    ]


def test_rows_of_files_that_the_ledger_never_heard_of_are_told(lake: Lake) -> None:
    lake.rows("alpha", "unknown")
    write_deltalake(lake.place / "foreign", pa.table({"v": [1]}))
    alpha, foreign = lake.accounts().differences()
    assert f"such as file {file_of('unknown').file_id} (0 in the ledger, 1 in the table)" in alpha
    assert foreign == (
        "foreign: the ledger says 0 rows, the table has 1; such as rows that name no file (0 in the ledger, 1 in the table)"
    )


def test_games_called_quarantine_and_parked_are_tables_like_others(lake: Lake) -> None:
    for game in ("quarantine", "parked"):
        lake.entry(f"of-{game}", {game: 1})
        lake.rows(game, f"of-{game}")
    assert lake.accounts().differences() == []
    lake.rows("quarantine", "new")
    assert len(lake.accounts().differences()) == 1


def test_a_table_whose_log_cannot_be_read_is_named_and_the_others_are_counted(lake: Lake) -> None:
    (lake.place / "beta" / "_delta_log" / f"{9:020}.json").write_text("{")
    lake.entry("lost", {"alpha": 1})
    beta, alpha = lake.accounts().differences()
    assert beta.startswith("beta: cannot be counted: ")
    assert alpha.startswith("alpha: the ledger says 3 rows, the table has 2")


def test_a_table_whose_origin_was_deleted_is_told_with_what_to_do(lake: Lake) -> None:
    for name, origin in (("state", "alpha"), ("daily", "state"), ("orphan", "gone"), ("sums", "gone,lost")):
        path = lake.place / name
        write_deltalake(path, pa.table({"n": [1]}), configuration={"delta.enableChangeDataFeed": "true"})
        first = path / "_delta_log" / f"{0:020}.json"
        told = '"delta.enableChangeDataFeed":"true"'
        first.write_text(first.read_text().replace(told, f'{told},"forebay.derivedFrom":"{origin}"'))
    orphan, sums = lake.accounts().differences()
    assert orphan.startswith(
        "orphan: cannot be counted: orphan stays unchanged, because gone, which it is computed from, is"
    )
    assert "because gone and lost, which it is computed from, are gone" in sums


def test_a_batch_in_flight_is_no_lasting_difference_and_a_lost_file_is_one(lake: Lake) -> None:
    lake.rows("alpha", "in-flight")
    lake.entry("lost", {"beta": 1})
    first = lake.accounts()
    assert len(first.differences()) == 2
    lake.entry("in-flight", {"alpha": 1})
    lake.rows("alpha", "the-next-one")
    second = lake.accounts()
    assert [said.partition(":")[0] for said in second.differences()] == ["alpha", "beta"]
    assert [said.partition(":")[0] for said in lasting(first, second)] == ["beta"]


def test_many_files_in_many_row_groups_are_counted_in_bounded_parts(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for n in range(300):
        lake.entry(f"{n}", {"alpha": 2})
    keys = [f"{n}" for n in range(300)]
    lake.rows("alpha", *keys)
    lake.rows("alpha", *keys[:299], "0")
    (said,) = lake.accounts().differences()
    assert "s3://landing/0 (2 in the ledger, 3 in the table)" in said
    assert "s3://landing/299 (2 in the ledger, 1 in the table)" in said


# --- what was set aside ---


def test_a_row_that_is_missing_is_told(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.entry("old", {}, OLD, quarantined=1, parked=1)
    assert [said.partition(";")[0] for said in lake.accounts().differences()] == [
        "_forebay/parked: the ledger says 1 row, the table has 0",
        "_forebay/quarantine: the ledger says 1 row, the table has 0",
    ]


@pytest.mark.parametrize("there", [(NEW,), (OLD, NEW)], ids=["gone", "about to go"])
def test_a_row_whose_time_was_past_is_not_missed_and_one_still_there_is_not_too_much(
    tmp_path: Path, there: tuple[date, ...]
) -> None:
    lake = Lake(tmp_path)
    for key, day in (("old", OLD), ("new", NEW)):
        lake.entry(key, {}, day, quarantined=1, parked=1)
        lake.aside(key, *([day] if day in there else []))
    expire(lake, date(2026, 2, 1))
    assert lake.accounts().differences() == []


def test_a_row_that_should_have_stayed_is_missed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for key, day in (("old", OLD), ("new", NEW)):
        lake.entry(key, {}, day, quarantined=1, parked=1)
    lake.aside("old", OLD)
    expire(lake, date(2026, 2, 1))
    assert len(lake.accounts().differences()) == 2


@pytest.mark.parametrize("is_there", [True, False])
def test_rows_that_expired_for_one_service_are_counted_for_another_one(tmp_path: Path, is_there: bool) -> None:
    """It keeps them, so one that is gone is lost."""
    lake = Lake(tmp_path)
    lake.entry("ours", {}, OLD, quarantined=1)
    lake.entry("theirs", {}, OLD, service="casual", quarantined=1)
    lake.rows("_forebay/quarantine", "ours" if is_there else "more", day=OLD)  # of a paused table
    lake.rows("_forebay/quarantine", *(["theirs"] if is_there else []), day=OLD, service="casual")
    expire(lake, date(2026, 2, 1))
    found = lake.accounts()
    assert (found.expected["_forebay/quarantine"], found.rows["_forebay/quarantine"]) == (1, int(is_there))
    assert len(found.differences()) == (not is_there)


# --- each night ---


def test_each_night_only_what_lasts_is_told_and_published(lake: Lake) -> None:
    lake.rows("alpha", "in-flight")
    lake.entry("lost", {"beta": 1})
    lake.accounts()

    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        lake.entry("in-flight" if len(naps) == 1 else "next 0", {"alpha": 1})
        lake.rows("alpha", f"next {len(naps) - 1}")
        lake.accounts()

    events: list[Event] = []
    (found,) = check_accounts(str(lake.place), "studio", emit=events.append, sleep=sleep)
    assert found.startswith("beta: the ledger says 3 rows, the table has 2; such as s3://landing/lost")
    differs, checked = events
    assert differs == AccountDiffers(service="studio", difference=found)
    assert isinstance(checked, AccountsChecked)
    assert (len(naps), checked.files, checked.differences) == (2, 5, 1)


def test_a_lost_file_is_found_among_a_thousand_tables_with_rows_in_flight(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More places differ at the first look than files are looked for in."""
    monkeypatch.setattr("forebay.upkeep.accounts.accounts.SAMPLED", 2)
    tables = [f"game{n}" for n in range(6)]
    for table in tables:
        lake.rows(table, "in-flight")
    lake.rows("zeta", "kept")
    for file in ("kept", "lost"):
        lake.entry(file, {"zeta": 1})
    lake.accounts()

    def sleep(seconds: float) -> None:
        if len(lake.ledger) == 4:
            lake.entry("in-flight", dict.fromkeys(tables, 1))
            lake.accounts()

    (found,) = check_accounts(str(lake.place), "studio", emit=lambda event: None, sleep=sleep)
    assert found == (
        "zeta: the ledger says 2 rows, the table has 1; such as s3://landing/lost (1 in the ledger, 0 in the table)"
    )


def test_a_night_on_which_all_sums_hold_waits_for_nothing(lake: Lake) -> None:
    lake.accounts()
    events: list[Event] = []
    assert check_accounts(str(lake.place), "studio", emit=events.append, sleep=lambda s: pytest.fail("waited")) == ()
    (checked,) = events
    assert isinstance(checked, AccountsChecked)
    assert (checked.files, checked.rows, checked.differences) == (2, 8, 0)


def begin_batch(lake: Lake, *keys: str, batch: int = 7) -> None:
    """Its plan is durable; nothing is in the ledger."""
    plan = Plan(
        generation="g1",
        batch=batch,
        began_at=datetime(2026, 5, 5, 10, tzinfo=UTC),
        service={},
        files=tuple(file_of(key) for key in keys),
        ends=(),
        fates=(),
    )
    Plans(open_objects(f"{lake.place}/_forebay/plans"), "games").pin(plan)


def test_a_batch_that_has_not_ended_is_named_and_is_no_difference(lake: Lake) -> None:
    lake.rows("alpha", "coming", "coming")
    assert len(lake.accounts().differences()) == 1
    begin_batch(lake, "coming", "later")
    found = lake.accounts()
    assert found.differences() == []
    assert [str(one) for one in found.open] == ["batch 7 of games, begun at 2026-05-05 10:00:00, with 2 files"]
    assert found.rows["alpha"] == 2


def test_what_a_batch_that_has_not_ended_does_not_touch_is_compared_all_the_same(lake: Lake) -> None:
    begin_batch(lake, "coming")
    lake.rows("alpha", "coming", "new")
    assert lake.accounts().differences() == [
        "alpha: the ledger says 2 rows, the table has 3; such as s3://landing/new (1 in the ledger, 2 in the table)"
    ]


def test_an_earlier_version_that_is_on_its_way_out_of_some_tables_is_no_difference(lake: Lake) -> None:
    earlier = LandedFile("landing", "new", version_id="0")
    lake.ledger.append({**lake.ledger[0], "file_hash": file_hash(earlier), "key": "new", "tables": [("beta", 2)]})
    begin_batch(lake, "new")
    assert lake.accounts().differences() == []


def test_a_plan_that_outlived_its_batch_explains_nothing(lake: Lake) -> None:
    begin_batch(lake, "coming")
    lake.rows("alpha", "coming")
    lake.accounts()
    ledger = DeltaTable(lake.place / "_forebay" / "ledger")
    properties = CommitProperties(app_transactions=[Transaction("forebay/games/g1", 7)])
    write_deltalake(ledger, ledger.to_pyarrow_table().slice(0, 0), mode="append", commit_properties=properties)
    found = accounts(str(lake.place))
    assert found.open == ()
    assert len(found.differences()) == 1


def test_a_batch_that_begins_while_the_rows_are_counted_is_no_difference(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.rows_by_file

    def begins_meanwhile(table: Any, **more: Any) -> Any:
        if table.place.endswith("/alpha") and not Path(lake.place, "_forebay/plans").exists():
            begin_batch(lake, "coming")
            lake.rows("alpha", "coming")
        return real(table, **more)

    monkeypatch.setattr(module, "rows_by_file", begins_meanwhile)
    found = lake.accounts()
    assert (found.differences(), len(found.open)) == ([], 1)


def test_a_ledger_that_a_command_has_changed_is_compared_beside_an_open_batch_and_expired_rows(lake: Lake) -> None:
    """delta-rs writes texts as views, for which Arrow lacks functions."""
    begin_batch(lake, "coming")
    expire(lake, date(2026, 1, 2))
    lake.accounts()
    DeltaTable(f"{lake.place}/_forebay/ledger").update(updates={"outcome": "'replay'"}, predicate="key = 'old'")
    found = accounts(str(lake.place))
    assert found.files == {"loaded": 1, "replay": 1}
    assert [name for name in found.tables_apart if "forebay" not in name] == []
