"""Real tables, compacted by real Spark: what the plan said comes true, no row changes, and one bad table stops no other."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from typing import Any

import deltalake
import pytest
from pyspark.sql import DataFrameWriter
from pyspark.sql import functions as F

import forebay.upkeep.compaction.job as job
import forebay.upkeep.run as upkeep_run
from forebay.errors import Halt
from forebay.lake.health import HealthRecords
from forebay.lake.layout import lease_of
from forebay.lake.lease import hold
from forebay.table.commit import Txn
from forebay.table.destination import Destination
from forebay.upkeep.compaction.carry_out import ATTEMPTS, FIRST_PAUSE_S, Engine
from forebay.upkeep.compaction.events import CompactionEnded, TableCompacted, TableNotCompacted
from forebay.upkeep.compaction.work import Work
from forebay.upkeep.events import TableLeftForLater
from tests.table.appending import append
from tests.upkeep.compaction.on_spark.lake import SmallLake

ODD = ["it's", "a\\b", "", None, "x y/z=%"]


def by_partition(small: SmallLake, table: str = "alpha") -> Counter[Any]:
    return Counter(file.partition for file in small.files(table))


def test_moments_of_all_years_are_read_by_others_from_what_was_compacted(small: SmallLake) -> None:
    """Spark wrote INT96 unless it is told otherwise, which Arrow reads in nanoseconds: these end in 2262."""
    years = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    first, last = (f"timestamp '{year}'" for year in years)
    small.append(small.spark.range(0, 6, 1, 6).selectExpr(f"if(id % 2 = 0, {first}, {last}) at"))
    assert len(small.files()) == 6
    assert small.compact().status == 0
    assert len(small.files()) == 1
    found = deltalake.DeltaTable(small.path()).to_pyarrow_table()["at"].to_pylist()
    assert sorted(str(at)[:19] for at in found) == sorted(year[:19] for year in years * 3)


# --- the forecast ---


def test_optimize_makes_of_each_partition_what_the_plan_foretold(small: SmallLake) -> None:
    """Files of some 300 KiB that hardly compress, and a target of 1 MiB: several bins in a partition."""
    noise = "concat_ws('', transform(sequence(1, 300), i -> md5(cast(id * 300 + i as string))))"
    for part, files in (("a", 9), ("b", 3), ("c", 1)):
        rows = small.spark.range(0, files * 32, 1, files).selectExpr("id", f"{noise} text", f"'{part}' part")
        small.append(rows, by="part")
    before = small.rows()
    service = small.declare('[[tables]]\nname = "alpha"\ncompaction = { target_file_mib = 2 }')
    ran = small.compact(service=service)
    assert ran.status == 0
    foretold = {task.partition: task.files_after for task in ran.plan.tasks}
    assert {partition for ((_, partition),) in foretold} == {"a", "b"}
    assert max(foretold.values()) > 1
    found = by_partition(small)
    assert {partition: found[partition] for partition in foretold} == foretold
    assert small.rows() == before
    (told,) = [e for e in small.events if isinstance(e, TableCompacted)]
    assert (told.files_removed, told.files_added) == (12, told.foretold_files)
    assert abs(told.bytes_written - told.bytes_read) < told.bytes_read * 0.1
    assert small.compact(service=service).plan.tasks == ()
    health = HealthRecords(small.place).of("alpha")
    assert (health.files, health.waiting, health.version) == (len(small.files()), 0, small.version())
    assert health.compacted_at is not None


def test_rewrite_makes_the_declared_number_of_files_in_each_partition(small: SmallLake) -> None:
    part = F.array(*map(F.lit, ODD))[(F.col("id") / 40).cast("int")]
    small.append(small.spark.range(0, 40 * len(ODD), 1, 5 * len(ODD)).withColumn("part", part), by="part")
    assert len(small.files()) == 5 * len(ODD)
    small.fill("plain", files=7)
    before, plain = small.rows(), small.rows("plain")
    service = small.declare('[[tables]]\nname = "{any}"\ncompaction = { way = "rewrite", files = 2 }')
    ran = small.compact(service=service)
    assert ran.left == ()
    # Empty and null are the same partition to Delta: ten files became two.
    assert by_partition(small) == {(("part", value or None),): 2 for value in ODD}
    assert len(small.files("plain")) == 2
    assert (small.rows(), small.rows("plain")) == (before, plain)
    assert small.compact(service=service).plan.tasks == ()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("column", "type_"),
    [
        ("day", "date"),
        ("at", "timestamp"),
        ("n", "int"),
        ("ok", "boolean"),
        ("price", "decimal(9,2)"),
        ("odd name`s", "bigint"),
    ],
)
def test_partitions_of_every_type_are_found_again(small: SmallLake, column: str, type_: str) -> None:
    value = {"date": "'2026-05-01'", "timestamp": "'2026-05-01 12:00:00.123'", "boolean": "'true'"}.get(type_, "'42'")
    quoted = column.replace("`", "``")
    rows = small.spark.range(0, 40, 1, 4).selectExpr("id", f"cast({value} as {type_}) `{quoted}`")
    small.append(rows, by=column, **{"delta.columnMapping.mode": "name"} if "odd" in column else {})
    before = small.rows()
    assert small.compact().status == 0
    assert (len(small.files()), small.rows()) == (1, before)


@pytest.mark.deep
def test_the_second_round_orders_and_what_is_clustered_is_clustered(small: SmallLake) -> None:
    small.fill("ordered", files=4)
    clustered = Destination("clustered", small.path("clustered"), cluster_columns=("v",))
    row = small.spark.range(1000, 1001).selectExpr("'clustered' _table", "id", "id % 7 as v")
    append(small.spark, row, [clustered], txn=Txn("made", 1))
    small.append(small.spark.range(0, 40, 1, 4).selectExpr("id", "id % 7 as v"), "clustered")
    before = small.rows("ordered"), small.rows("clustered")
    service = small.declare('[[tables]]\nname = "{any}"\ncompaction = { order_by = ["v"] }')
    first = small.compact(service=service)
    assert {skip.reason for skip in first.plan.skipped} == {"clustered"}
    small.fill("ordered", files=2, first=100)
    before = small.rows("ordered"), before[1]
    ran = small.compact(service=service, round="second")
    assert (ran.left, {task.table for task in ran.plan.tasks}) == ((), {"clustered"})
    assert {skip.reason for skip in ran.plan.skipped} == {"first-round-first"}
    small.compact(service=service)
    ran = small.compact(service=service, round="second", tables="ordered")
    (operation,) = small.delta("ordered").history(1).select("operationParameters.zOrderBy").collect()
    assert operation.zOrderBy == '["v"]'
    assert small.compact(service=service, round="second", tables="ordered", now=False).plan.tasks == ()
    again = small.compact(service=service, round="second", tables="ordered")
    assert again.plan.tasks == (), "a partition that is in order is not ordered again"
    assert (small.rows("ordered"), small.rows("clustered")) == before


# --- others at work meanwhile ---


@pytest.fixture
def just_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    real = DataFrameWriter.save

    def arrange(deed: Callable[[], None]) -> None:
        def save(self: DataFrameWriter, *given: Any, **named: Any) -> None:
            monkeypatch.setattr(DataFrameWriter, "save", real)
            deed()
            real(self, *given, **named)

        monkeypatch.setattr(DataFrameWriter, "save", save)

    return arrange


@pytest.mark.parametrize("by", [None, "v"])
def test_rows_appended_while_a_partition_is_rewritten_stay(
    small: SmallLake, just_before_it_is_written: Callable[[Callable[[], None]], None], by: str | None
) -> None:
    rows = small.spark.range(0, 60, 1, 6).selectExpr("id", "1L as v")
    small.append(rows, by=by)
    before = small.rows()
    service = small.declare('[[tables]]\nname = "alpha"\ncompaction = { way = "rewrite", files = 1 }')
    just_before_it_is_written(lambda: small.append(rows, by=by))
    assert small.compact(service=service).status == 0
    assert small.rows() == before + before


class Unlucky(Engine):
    """Meets somebody else's merge the first so many times."""

    left = 2

    def _ask(self, work: Work, word: str) -> None:
        if type(self).left:
            type(self).left -= 1
            raise conflict(self)
        super()._ask(work, word)


def conflict(engine: Engine) -> Exception:
    """What Delta throws, made by Delta's own class in the JVM."""
    from delta.exceptions import ConcurrentDeleteReadException

    return ConcurrentDeleteReadException("deleted by a concurrent merge", None, None)  # type: ignore[no-untyped-call]


def test_a_conflict_is_tried_again_and_counted(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small.fill()
    Unlucky.left = 2
    monkeypatch.setattr(job, "Engine", Unlucky)
    assert small.compact().status == 0
    (told,) = [e for e in small.events if isinstance(e, TableCompacted)]
    assert (told.conflicts, len(small.files())) == (2, 1)


@pytest.mark.deep
def test_a_table_that_others_never_leave_alone_is_left_to_the_next_run(
    small: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("alpha", "beta"):
        small.fill(name)
    pauses: list[float] = []
    Unlucky.left = ATTEMPTS
    monkeypatch.setattr(job, "Engine", lambda *args, **more: Unlucky(*args, **more, sleep=pauses.append))
    ran = small.compact(tables="alpha,beta", tables_at_once=1)
    assert [(table.table, table.reason) for table in ran.left] == [("alpha", "conflict")]
    assert len(pauses) == ATTEMPTS - 1
    for conflicts, pause in enumerate(pauses):
        assert 0.5 <= pause / (FIRST_PAUSE_S * 2**conflicts) <= 1.5
    assert (len(small.files("alpha")), len(small.files("beta"))) == (6, 1)
    assert (ran.status, small.compact().status) == (1, 0)


def test_a_table_that_somebody_else_compacts_is_left_alone(small: SmallLake) -> None:
    for name in ("alpha", "beta"):
        small.fill(name)
    other = hold(lease_of(small.place, "alpha"), wait_s=0)
    ran = small.compact()
    assert [(table.table, table.reason) for table in ran.left] == [("alpha", "busy")]
    assert ran.left[0].detail.startswith("process ")
    assert ran.for_a_person == ()
    assert [type(e) for e in small.events if isinstance(e, TableNotCompacted | TableLeftForLater)] == [
        TableLeftForLater
    ]
    assert (len(small.files("alpha")), len(small.files("beta"))) == (6, 1)
    other.let_go()
    assert small.compact().status == 0


# --- commits ---


class AnswerLost(Engine):
    def _ask(self, work: Work, word: str) -> None:
        from py4j.protocol import Py4JError

        super()._ask(work, word)
        raise Py4JError("the network went away")


def test_a_commit_whose_answer_was_lost_is_found_again(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small.fill()
    monkeypatch.setattr(job, "Engine", AnswerLost)
    assert small.compact().status == 0
    assert len(small.files()) == 1


class Lossy(Engine):
    def _ask(self, work: Work, word: str) -> None:
        session = self._session(work, word)
        session.sql(f"DELETE FROM delta.`{self.path}` WHERE id < 3")


@pytest.mark.deep
def test_a_commit_that_changed_rows_would_be_told_with_the_way_back(
    small: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.fill()
    before = small.rows()
    monkeypatch.setattr(job, "Engine", Lossy)
    (left,) = small.compact().left
    assert left.reason == "failed"
    assert "If others committed since, RESTORE would take their rows, too" in left.detail
    (restore,) = re.findall(r"RESTORE TABLE \S+ TO VERSION AS OF \d+", left.detail)
    small.spark.sql(restore)
    assert small.rows() == before


def test_whoever_lost_the_lease_commits_no_more(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small.fill()

    def gone(*_: Any, **__: Any) -> Any:
        class Lost:
            def check(self) -> None:
                raise Halt("the lease was lost")

            def let_go(self) -> None: ...

        return Lost()

    monkeypatch.setattr(upkeep_run, "hold", gone)
    (left,) = small.compact().left
    assert (left.reason, left.detail, len(small.files())) == ("failed", "the lease was lost", 6)


# --- bad tables ---


def test_bad_tables_are_named_and_the_others_go_on(small: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("alpha", "broken", "dropped", "future", "none", "many", "zeta"):
        small.fill(name)
    log = small.folder / "broken" / "_delta_log" / f"{1:020}.json"
    log.write_text('{"add": {')
    future = small.folder / "future" / "_delta_log" / f"{1:020}.json"
    feature = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],"writerFeatures":["x"]}}'
    future.write_text(feature)
    service = small.declare(
        """
        [[tables]]
        name = "none"
        compaction = { way = "rewrite", files = 0 }
        [[tables]]
        name = "many"
        compaction = { way = "rewrite", files = 100000 }
        [[tables]]
        name = "{any}"
        """
    )

    class DroppedMeanwhile(Engine):
        def _ask(self, work: Work, word: str) -> None:
            if self.path.endswith("dropped"):
                shutil.rmtree(small.folder / "dropped")
            super()._ask(work, word)

    monkeypatch.setattr(job, "Engine", DroppedMeanwhile)
    names = "alpha,absent,broken,dropped,future,none,many,zeta"
    ran = small.compact(service=service, tables=names)
    assert {table.table: table.reason for table in ran.left} == {
        "absent": "not-found",
        "broken": "unreadable-log",
        "dropped": "not-found",
        "future": "unsupported",
        "none": "invalid-configuration",
        "many": "invalid-configuration",
    }
    assert ran.status == 1
    assert (len(small.files("alpha")), len(small.files("zeta"))) == (1, 1)
    told = [e for e in small.events if isinstance(e, TableNotCompacted)]
    assert {e.table for e in told} == {table.table for table in ran.left}
    (ended,) = [e for e in small.events if isinstance(e, CompactionEnded)]
    assert (ended.tables, ended.tables_left, ended.files_removed, ended.files_added) == (2, 6, 12, 2)


def test_a_data_file_that_is_gone_stops_its_table_and_loses_nothing(small: SmallLake) -> None:
    small.fill()
    (small.folder / "alpha" / small.files()[0].path).unlink()
    (left,) = small.compact().left
    assert left.reason == "failed"
    assert len(small.files()) == 6
