"""What nobody needs any more goes; what somebody may still read stays; and orphans are for a person to decide about."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from forebay.batch.plan import Plan, Plans, Staged
from forebay.lake.health import HealthRecords
from forebay.lake.layout import PLANS, lease_of
from forebay.lake.lease import hold
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.entry import COLUMNS
from forebay.privacy.secret import make_secret
from forebay.table.data_files.data_file import DataFile
from forebay.table.staged import StagedTable
from forebay.upkeep.events import TableLeftForLater
from forebay.upkeep.maintenance.care import care_for
from forebay.upkeep.maintenance.events import MaintenanceEnded, OrphansFound, TableMaintained, TableNotMaintained
from forebay.upkeep.maintenance.retention import Retention
from forebay_local.twin.twin import Twin
from tests.operate.command import given
from tests.operate.ledger import entry
from tests.upkeep.compaction.on_spark.lake import SmallLake
from tests.walk import telling

DECLARED = '[[tables]]\nname = "{any}"\ntime_travel_days = '


def data_files(small: SmallLake, table: str = "alpha") -> set[Path]:
    return set((small.folder / table).rglob("*.parquet")) - set((small.folder / table / "_delta_log").iterdir())


def rows_as_of(small: SmallLake, **when: object) -> int:
    reader = small.spark.read.format("delta")
    for name, value in when.items():
        reader = reader.option(name, str(value))
    return len(reader.load(small.path()).collect())


def rows_at(small: SmallLake, version: int) -> int:
    """Without Spark, which takes a second for each look."""
    return int(DeltaTable(small.path(), version=version).to_pyarrow_table().num_rows)


@pytest.fixture(scope="module")
def of_two_weeks(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose table has versions 0 to 2 that are ten days old, and 3 to 5 of now; 2 and 5 are compactions."""
    small = SmallLake(spark, tmp_path_factory.mktemp("two_weeks") / "lake")
    small.fill(files=4)
    small.fill(files=4, first=100)
    small.compact()
    small.age(days=10)
    small.fill(files=4, first=200)
    small.fill(files=4, first=300)
    small.compact()
    assert small.version() == 5
    return small.folder


@pytest.fixture
def aged(small: SmallLake, of_two_weeks: Path) -> SmallLake:
    """A lake of the test's own, with the old and the new versions of that one."""
    shutil.copytree(of_two_weeks, small.folder)
    return small


def test_on_s3_too_the_files_that_a_vacuum_deleted_are_counted(spark: SparkSession, twin: Twin) -> None:
    path = f"s3://{twin.lake_bucket}/vacuumed"
    for _ in range(2):
        spark.range(10).coalesce(1).write.format("delta").mode("overwrite").save(path)
    at_once = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    retention = Retention(None, at_once)
    cared = care_for(spark, path, retention, vacuum="full", checkpoint_after=100, version=1)
    assert (cared.vacuum, cared.files_deleted) == ("full", 1)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["lite", "full"])
def test_time_travel_works_inside_the_declared_window_and_outside_the_error_says_so(aged: SmallLake, kind: str) -> None:
    ran = aged.maintain(vacuum=kind, service=aged.declare(DECLARED + "7"))
    assert ran.status == 0
    (told,) = [e for e in aged.events if isinstance(e, TableMaintained)]
    assert (told.vacuum, told.files_deleted, told.kept_hours) == (kind, 8, 169)
    assert (rows_as_of(aged, versionAsOf=3), rows_as_of(aged, versionAsOf=4)) == (120, 160)
    with pytest.raises(PySparkException, match=r"beyond delta\.deletedFileRetentionDuration"):
        rows_as_of(aged, versionAsOf=1)
    assert HealthRecords(aged.place).of("alpha").vacuumed_at is not None
    assert aged.maintain(vacuum=kind).tables[0].cared is not None


@pytest.mark.deep
@pytest.mark.parametrize("off", [-1, 1], ids=["ahead", "behind"])
def test_a_writer_whose_clock_is_an_hour_off_costs_no_row_and_no_version_inside_the_window(
    small: SmallLake, off: int
) -> None:
    small.fill(files=4)
    service = small.declare(DECLARED + "7")
    small.compact()
    small.age(days=7, hours=-0.5)  # half an hour inside the window
    small.fill(files=4, first=100)
    small.age(hours=off)  # all of it was stamped by the other clock
    assert (small.compact(service=service).status, small.maintain(vacuum="full", service=service).status) == (0, 0)
    assert (len(small.files()), sum(small.rows().values())) == (1, 80)
    assert rows_at(small, small.version()) == 80
    assert (rows_at(small, 0), rows_at(small, 1)) == (40, 40)


def test_what_was_the_newest_version_inside_the_window_is_kept_however_old_its_commit(aged: SmallLake) -> None:
    """Delta looks at the commit's age, and refuses a version that was still in force three days ago; a reader who knows better
    can tell it so, for every file is there."""
    aged.maintain(vacuum="full", service=aged.declare(DECLARED + "7"))
    three_days_ago = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d %H:%M:%S}"
    with pytest.raises(PySparkException, match=r"beyond delta\.deletedFileRetentionDuration"):
        rows_as_of(aged, timestampAsOf=three_days_ago)
    knows_better = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    aged.spark.conf.set(knows_better, "false")
    try:
        assert rows_as_of(aged, timestampAsOf=three_days_ago) == 80
    finally:
        aged.spark.conf.unset(knows_better)


@pytest.mark.deep
def test_a_longer_promise_is_written_into_the_table_and_kept(aged: SmallLake) -> None:
    before = data_files(aged)
    service = aged.declare(DECLARED + "40")
    aged.maintain(vacuum="full", service=service)
    assert data_files(aged) == before
    assert [rows_at(aged, version) for version in range(6)] == [40, 80, 80, 120, 160, 160]
    properties = aged.delta().detail().collect()[0].properties
    assert properties["delta.deletedFileRetentionDuration"] == "interval 961 hours"
    assert properties["delta.logRetentionDuration"] == "interval 985 hours"
    version = aged.version()
    aged.maintain(vacuum="none", service=service)
    assert aged.version() == version, "what the table says already is not said again"


@pytest.mark.deep
def test_a_log_that_lost_what_came_after_the_last_vacuum_is_vacuumed_by_its_files(aged: SmallLake) -> None:
    aged.maintain(vacuum="lite")
    for number in range(4):
        aged.fill(files=1, first=1000 * number)
    aged.compact()
    aged.age(days=10)
    aged.maintain(vacuum="none", checkpoint_after=1)
    log = aged.folder / "alpha" / "_delta_log"
    last = aged.version()
    for version in range(last):
        (log / f"{version:020}.json").unlink()
    aged.fill(files=1)
    aged.events.clear()
    assert aged.maintain(vacuum="lite").status == 0
    (told,) = [e for e in aged.events if isinstance(e, TableMaintained)]
    assert told.vacuum == "full"
    aged.events.clear()
    aged.age(days=10)
    assert aged.maintain(vacuum="lite").status == 0
    (told,) = [e for e in aged.events if isinstance(e, TableMaintained)]
    assert told.vacuum == "lite", "from then on the log is enough again"


def test_a_log_that_grew_long_gets_a_checkpoint(small: SmallLake) -> None:
    for number in range(5):
        small.fill(files=1, first=number * 10)
    small.maintain(vacuum="none", checkpoint_after=20)
    (told,) = [e for e in small.events if isinstance(e, TableMaintained)]
    assert told.checkpoint is None
    small.maintain(vacuum="none", checkpoint_after=2)
    assert sorted(f.name for f in (small.folder / "alpha" / "_delta_log").glob("*.checkpoint.parquet"))
    assert HealthRecords(small.place).of("alpha").since_checkpoint <= 1


@pytest.mark.deep
def test_a_services_records_set_aside_are_deleted_when_their_time_is_past(small: SmallLake) -> None:
    today = datetime.now(UTC).date()
    of_days = ", ".join(f"DATE'{today - timedelta(days=days)}'" for days in (0, 29, 31, 400))
    of = ("if(id = 0, 'paused', 'not-json') reason", "if(id = 5, 'casual', 'studio') service")
    rows = small.spark.range(0, 6).selectExpr("id", *of, f"explode(array({of_days})) day")
    for name in ("_forebay/quarantine", "_forebay/quality", "alpha"):
        small.append(rows, name, by="day")
    service = small.declare("keep_aside_days = 30\nkeep_verdicts_days = 365\n[[tables]]\nname = '{any}'")
    assert small.maintain(service=service, vacuum="none").status == 0
    left = [sum(small.rows(name).values()) for name in ("_forebay/quarantine", "_forebay/quality", "alpha")]
    assert left == [16, 19, 24], "rows of a paused table are to land, and those of another service are not ours"
    until = HealthRecords(small.place).of("_forebay/quarantine").expired_before
    assert until == {"studio": (today - timedelta(days=30)).isoformat()}
    version = small.version("_forebay/quarantine")
    small.maintain(service=service, vacuum="none")
    assert small.version("_forebay/quarantine") == version, "there is nothing left to delete"


# --- orphans ---


def orphan(small: SmallLake, name: str, *, days: int) -> Path:
    place = small.folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"PAR1")
    then = time.time() - days * 86_400
    os.utime(place, (then, then))
    return place


@pytest.mark.deep
def test_orphans_are_named_and_deleted_only_when_a_person_says_so(aged: SmallLake) -> None:
    old, young = orphan(aged, "alpha/lost.parquet", days=30), orphan(aged, "alpha/new.parquet", days=2)
    dropped, being_made = orphan(aged, "gone/a.parquet", days=30), orphan(aged, "soon/a.parquet", days=2)
    ours = orphan(aged, "_forebay/checkpoints/x.parquet", days=30)
    before = aged.rows()
    aged.maintain(vacuum="full")
    found = {e.place: (e.files, e.such_as, e.deleted) for e in aged.events if isinstance(e, OrphansFound)}
    assert found == {"alpha": (1, "lost.parquet", False), "gone": (1, "a.parquet", False)}
    assert all(file.exists() for file in (old, young, dropped, being_made, ours))
    aged.events.clear()
    aged.maintain(vacuum="full", delete_orphans=True)
    assert {e.place: e.deleted for e in aged.events if isinstance(e, OrphansFound)} == {"alpha": True, "gone": True}
    (ended,) = [e for e in aged.events if isinstance(e, MaintenanceEnded)]
    assert (ended.orphans, ended.tables_left) == (2, 0)
    assert [file.exists() for file in (old, young, dropped, being_made, ours)] == [False, True, False, True, True]
    assert aged.rows() == before


def test_files_that_the_plan_of_a_batch_names_are_no_orphans_whatever_their_age(small: SmallLake) -> None:
    small.fill("alpha")
    kept = [orphan(small, name, days=30) for name in ("alpha/planned.parquet", "fresh/planned.parquet")]
    file = DataFile("", "planned.parquet", (), 1, 1, 0, "{}")
    staged = {name: StagedTable(name, "", None, (), (replace(file, table=name),)) for name in ("alpha", "fresh")}
    plan = Plan(
        generation="g",
        batch=1,
        began_at=datetime(2026, 11, 1, tzinfo=UTC),
        service={},
        files=(),
        ends=(),
        fates=(),
        staged=Staged({}, staged),
    )
    Plans(open_objects(f"{small.place}/{PLANS}"), "games").pin(plan)
    small.maintain(vacuum="full", delete_orphans=True)
    assert [e for e in small.events if isinstance(e, OrphansFound)] == []
    assert all(place.exists() for place in kept)


# --- bad tables ---


@pytest.mark.deep
def test_what_cannot_be_maintained_is_named_and_the_others_go_on(small: SmallLake) -> None:
    for name in ("alpha", "broken", "busy", "_forebay/ledger"):
        small.fill(name)
    (small.folder / "broken" / "_delta_log" / f"{1:020}.json").write_text("{")
    other = hold(lease_of(small.place, "busy"), wait_s=0)
    ran = small.maintain()
    other.let_go()
    assert {table.table: table.reason for table in ran.left} == {"broken": "unreadable-log", "busy": "busy"}
    assert {e.table for e in small.events if isinstance(e, TableMaintained)} == {"alpha", "_forebay/ledger"}
    assert {e.table for e in small.events if isinstance(e, TableNotMaintained)} == {"broken"}
    assert {e.table for e in small.events if isinstance(e, TableLeftForLater)} == {"busy"}
    assert ran.status == 1
    assert small.maintain(tables="absent").left[0].reason == "not-found"


# --- persons and old rows ---


VAULT = """[privacy]
subject = "user_id"
secret = "{0}/secret"
vault = "{0}/vault"
vault_key = "{0}/key"
vault_keep_days = 30
personal = [{{ path = "email", vault = true }}]
[[tables]]
name = "alpha"
"""


@pytest.mark.deep
def test_the_table_of_a_vault_loses_old_rows_and_small_files(small: SmallLake, tmp_path: Path) -> None:
    small.fill(files=1)
    service, today, vault = small.declare(VAULT.format(tmp_path)), datetime.now(UTC).date(), tmp_path / "vault/values"
    for days, of in ((1, "studio"), (31, "studio"), (31, "casual")):
        for number in range(9):
            row = pa.table({"day": [today - timedelta(days=days)], "service": [of], "n": [number]})
            write_deltalake(vault, row, mode="append", partition_by=["day"])
    ran = small.maintain(service=service)
    assert [(one.table, one.reason, one.detail) for one in ran.tables if one.reason] == []
    assert [one.table for one in ran.tables] == ["alpha", "the vault"]
    left = DeltaTable(vault)
    found = Counter((row["day"], row["service"]) for row in left.to_pyarrow_table().to_pylist())
    assert found == {(today - timedelta(days=1), "studio"): 9, (today - timedelta(days=31), "casual"): 9}
    assert len(left.file_uris()) == 2
    assert small.maintain(service=service).status == 0
    assert DeltaTable(vault).version() == left.version() + 2, "a VACUUM says when it begins and when it ends"


def test_rows_past_their_time_and_erased_persons_leave_where_delta_rs_is_not_installed(
    small: SmallLake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Jobs on Glue and EMR have Delta Kernel only."""
    make_secret(f"{tmp_path}/secret")
    small.folder.mkdir()
    privacy = f'[privacy]\nsubject = "user_id"\nsecret = "{tmp_path}/secret"\npersonal = []\n'
    service = small.declare(f"{privacy}[[tables]]\nname = 'alpha'\nkeep_days = 30")
    who = "if(id % 4 = 0, 'anna-4711', concat('user-', id)) user_id"
    file_id = LandedFile("landing", "a.json", 100, "e1").file_id
    of = ("timestampadd(DAY, -id * 2, now()) _ingested_at", f"'{file_id}' _file_id")
    small.append(small.spark.range(0, 20, 1, 2).selectExpr("id", who, *of))
    of_a = entry("a.json", tables={"alpha": 20}, service="studio")
    ledger = small.spark.createDataFrame([{**of_a, "tables": dict(of_a["tables"])}], COLUMNS)
    small.append(ledger, "_forebay/ledger", by="day")
    erase = ("privacy", "erase", "anna-4711", "--lake", str(small.folder), "--service", service, "--yes")
    assert given(erase, "")[0] == 0
    (done,) = (small.folder / "_forebay/erased/studio/done").rglob("alpha.json")
    done.write_text(json.dumps({**json.loads(done.read_text()), "due_at": datetime.now(UTC).isoformat()}))
    assert telling(small.folder, b"anna-4711")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "deltalake", None)
        assert small.maintain(service=service).status == 0
    assert telling(small.folder, b"anna-4711") == []
    assert {dict(row)["id"] for row in small.rows()} == {n for n in range(16) if n % 4}
    (counted,) = small.spark.read.format("delta").load(small.path("_forebay/ledger")).collect()
    assert (counted["records"], counted["tables"], counted["dropped"]) == (20, {"alpha": 12}, 8)
