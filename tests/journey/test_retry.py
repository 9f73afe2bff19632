"""Records that were kept beside the tables land after all, exactly once, whatever dies in between; and every number adds up."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import forebay.batch.retrying.planning as planning
from forebay.batch.events import RecordsRetried, TableFailed
from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import load_service
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.held import piles, waiting_for
from forebay_local.twin.twin import Twin
from tests.journey.story import Story, event, lines, story
from tests.operate.command import failed, ran
from tests.operate.test_lineage import must_fit

BEFORE = """
name = "studio"
[[tables]]
name = "{game}"
where = { event = "tick" }
columns = [{ name = "level", type = "long" }]
[tables.expectations]
possible = { check = "level <= 100", on_violation = "quarantine" }
"""
AFTER = BEFORE.replace("<= 100", "<= 1000") + '[[tables]]\nname = "purchases"\nwhere = { event = "purchase" }\n'


@pytest.fixture(scope="module")
def landed(twin: Twin, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """What all begin with, made once."""
    folder = tmp_path_factory.mktemp("landed")
    with story(twin) as told:
        told.place, told.service = f"file://{folder}/lake", str(folder)
        (folder / "service.toml").write_text(BEFORE)
        for number in range(2):
            ticks = [event("alpha", n, level=level) for n, level in enumerate([1, 500, 5000])]
            bought = [event("alpha", n, price=n) | {"event": "purchase"} for n in range(2)]
            told.put(f"{number}.json", lines([*ticks, *bought, ["null", "{broken"][number]]))
        sums = told.run()
        assert sums.differences() == []
        assert sums.rows == {"alpha": 2, "_forebay/quarantine": 6, "_forebay/parked": 4}
        return told


@pytest.fixture
def told(landed: Story, tmp_path: Path) -> Story:
    """A copy of it for each test, with declarations that were mended."""
    shutil.copytree(f"{landed.service}/lake", tmp_path / "lake")
    (tmp_path / "service.toml").write_text(AFTER)
    return replace(landed, place=f"file://{tmp_path}/lake", service=str(tmp_path), events=[])


def tries(told: Story, spark: SparkSession) -> Retry:
    return Retry(spark, load_service(told.service), lake=told.lake, emit=told.events.append)


def tried(told: Story, spark: SparkSession, choice: Choice) -> Retried:
    again = tries(told, spark)
    try:
        return again.run(choice)
    finally:
        again.logs.close()


@pytest.mark.deep
def test_after_a_fix_what_fits_lands_and_what_does_not_stays(told: Story, spark: SparkSession) -> None:
    left = "4 left: 2 expectation, 1 not-an-object, 1 not-json"
    for wanted in (
        ["alpha: 2 rows", f"6 records: 2 written, 0 dropped, {left}"],
        [f"4 records: 0 written, 0 dropped, {left}"],
    ):
        what, *became = ran("quarantine", "retry", "--lake", told.lake, "--service", told.service).splitlines()
        assert what.startswith(f"{wanted[-1].split()[0]} records of service studio will be retried")
        assert became == wanted
        sums = told.accounts()
        assert sums.differences() == []
        assert sums.rows == {"alpha": 4, "_forebay/quarantine": 4, "_forebay/parked": 4}
    assert sorted(row["level"] for row in told.rows("alpha")) == [1, 1, 500, 500]
    assert {(p.table, p.reason, p.records) for p in piles(LakeView(told.lake), "quarantine")} == {
        ("alpha", "expectation", 2),
        (None, "not-json", 1),
        (None, "not-an-object", 1),
    }


def test_a_row_leads_back_to_its_record_in_the_landed_file_and_lineage_has_both(told: Story) -> None:
    said = ran("where", "alpha-0", "--row", "alpha", "--text", "--lake", told.lake, "--json")
    found = [json.loads(line) for line in said.splitlines()]
    assert sorted(one["uri"] for one in found) == [f"s3://{told.bucket}/in/{number}.json" for number in range(2)]
    record = {"line": 1, "byte_offset": 0, "text": json.dumps(event("alpha", 0, level=1)), "table": "alpha"}
    assert [one["row"]["records"] for one in found] == [[record], [record]]
    assert {(one["row"]["rule"]["name"], one["row"]["not_read"]) for one in found} == {("{game}", None)}
    rows, columns = Counter[str](), set[str]()
    for sent in map(json.loads, ran("lineage", "--lake", told.lake).splitlines()):
        must_fit(sent)
        for table in sent["outputs"] if sent["eventType"] == "COMPLETE" else ():
            rows[sent["job"]["name"]] += table["outputFacets"]["outputStatistics"]["rowCount"]
            columns |= {column["name"] for column in table["facets"]["schema"]["fields"]}
    assert rows == {"studio.alpha": 2, "studio._forebay/quarantine": 6, "studio._forebay/parked": 4}
    assert {"level", "_file_id", "reason"} <= columns


def test_parked_records_are_adopted_once_a_table_takes_them(told: Story, spark: SparkSession) -> None:
    what, *became = ran("parked", "adopt", "purchases", "--lake", told.lake, "--service", told.service).splitlines()
    assert what.startswith("4 records of service studio will be tried for table purchases")
    assert became == ["purchases: 4 rows", "4 records: 4 written, 0 dropped, 0 left"]
    sums = told.accounts()
    assert sums.differences() == []
    assert (sums.parked, sums.rows["purchases"], sums.rows["_forebay/parked"]) == (0, 4, 0)
    assert tried(told, spark, Choice("parked", table="purchases")) == Retried()


def test_records_can_be_given_up_and_the_ledger_says_so(told: Story, spark: SparkSession) -> None:
    which = ("--reason", "not-json", "--lake", told.lake, "--service", told.service)
    what, *became = ran("quarantine", "drop", "--yes", *which).splitlines()
    assert what.startswith("1 record of service studio will be dropped")
    assert became == ["1 record: 0 written, 1 dropped, 0 left"]
    sums = told.accounts()
    assert sums.differences() == []
    assert (sums.dropped, sums.quarantined) == (1, 5)


@pytest.mark.deep
def test_parked_records_can_be_given_up_too(told: Story, spark: SparkSession) -> None:
    what, *became = ran("parked", "drop", "--yes", "--lake", told.lake, "--service", told.service).splitlines()
    assert what.startswith("4 records of service studio will be dropped")
    assert became == ["4 records: 0 written, 4 dropped, 0 left"]
    sums = told.accounts()
    assert (sums.differences(), sums.dropped, sums.parked, sums.quarantined) == ([], 4, 0, 6)
    assert "parked drop: 0 records written, 4 dropped" in ran("history", "--lake", told.lake)


def test_the_rows_of_a_table_that_failed_land_when_it_is_mended(told: Story, spark: SparkSession) -> None:
    path = f"{told.lake}/beta"
    spark.sql("select 'x' level").write.format("delta").save(path)
    told.put("beta.json", lines([event("beta", n, level=n) for n in range(3)]))
    sums = told.run()
    assert [e.table for e in told.events if isinstance(e, TableFailed)] == ["beta"]
    assert (sums.rows["beta"], sums.quarantined) == (1, 9)
    cause = "column level: is string in the table"
    assert cause in waiting_for(LakeView(told.lake), "table-failed")["beta"].cause
    assert cause in failed(1, "status", "--lake", told.lake)
    assert cause in ran("where", f"s3://{told.bucket}/in/beta.json", "--lake", told.lake)
    held = ("files", "list", "--reason", "table-failed", "--lake", told.lake)
    assert "in/beta.json" in ran(*held)
    again = failed(0, "quarantine", "retry", "--table", "beta", "--lake", told.lake, "--service", told.service)
    assert "beta: still cannot be written: " in again
    spark.sql("select 1L level").write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert tried(told, spark, Choice("quarantine", table="beta")) == Retried(3, {"beta": 3})
    sums = told.accounts()
    assert (sums.quarantined, sums.rows["beta"], sums.expected["beta"]) == (6, 4, 3)
    assert ran(*held) == "no files\n"


class Killed(BaseException):
    """What no handler takes for an error."""


def dying(method: str, *, before: bool) -> Callable[..., Any]:
    real = getattr(Moving, method)

    def dies(self: Any, *arguments: Any) -> Any:
        if before:
            raise Killed
        real(self, *arguments)
        raise Killed

    return dies


@pytest.mark.deep
@pytest.mark.parametrize(
    ("method", "before"),
    [
        ("_in_tables", True),
        ("_written", True),
        ("_remember", False),
        ("change_ledger", False),
        ("let_go", True),
        ("let_go", False),
    ],
)
def test_killed_anywhere_it_is_finished_first_and_nothing_stands_twice(
    told: Story, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, method: str, before: bool
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Moving, method, dying(method, before=before))
        with pytest.raises(Killed):
            tried(told, spark, Choice("quarantine"))
    # Meanwhile somebody changes the declarations back: what was begun is finished as it was meant.
    (Path(told.service) / "service.toml").write_text(BEFORE)
    assert tried(told, spark, Choice("quarantine")) == Retried(4)
    sums = told.accounts()
    assert sums.differences() == []
    assert sums.rows == {"alpha": 4, "_forebay/quarantine": 4, "_forebay/parked": 4}


@pytest.mark.deep
def test_a_choice_that_is_too_large_for_one_plan_takes_several(
    told: Story, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "FILES_AT_ONCE", 1)
    assert tried(told, spark, Choice("quarantine")) == Retried(6, {"alpha": 2})
    assert [(e.records, e.written) for e in told.events if isinstance(e, RecordsRetried)] == [(3, 1), (3, 1)]
    sums = told.accounts()
    assert sums.differences() == []
    assert sums.rows == {"alpha": 4, "_forebay/quarantine": 4, "_forebay/parked": 4}


@pytest.mark.deep
def test_rows_of_a_table_that_failed_land_by_themselves_when_the_job_starts_again(
    twin: Twin, spark: SparkSession, tmp_path: Path
) -> None:
    with story(twin) as told:
        told.place = f"file://{tmp_path}/lake"
        mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
        spark.sql(f"CREATE TABLE delta.`{told.lake}/alpha` (event string) USING delta TBLPROPERTIES ({mapped})")
        told.put("a.json", lines([event("alpha", 1), event("beta", 1), event("alpha", 2)]))
        for _ in range(2):
            sums = told.run()
            assert sums.differences() == []
            assert (sums.rows["alpha"], sums.rows["beta"], sums.quarantined) == (0, 1, 2)
        assert [e.table for e in told.events if isinstance(e, TableFailed)] == ["alpha"] * 2

        shutil.rmtree(tmp_path / "lake" / "alpha")
        sums = told.run()
        assert sums.differences() == []
        assert (sums.rows["alpha"], sums.rows["beta"], sums.rows["_forebay/quarantine"]) == (2, 1, 0)
