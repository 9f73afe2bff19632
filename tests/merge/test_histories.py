"""Random histories of changes, in any order and any batches, with all that may happen to their log: files replaced, a rollback,
a compaction, a driver that dies between two commits. After each step the state equals the model in plain Python."""

from __future__ import annotations

import itertools
import shutil
import time
from typing import Any

import pytest
from delta.tables import DeltaTable as Delta
from deltalake import DeltaTable
from pyspark.sql import functions as F

from forebay.declaration.merge import Merge
from forebay.errors import Halt
from forebay.lake.layout import tombstones_of
from forebay.merge import state as state_module
from forebay.merge.derived import Derived
from forebay.merge.state import State
from forebay.merge.step import kind_of
from forebay.record.kind import SPELLED
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs
from tests.merge.story import COLUMNS, GROWING, HISTORY, MERGE, NOW, PARTIAL, SNAPSHOT, Held, Story, die, in_columns


@pytest.mark.deep
def test_the_state_equals_the_model_whatever_happens_to_the_log(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.bring()
    assert story.merge().recomputed
    story.must_agree()
    # What follows is more than one event before the state hears of any.
    for events in (
        [story.bring, story.optimize, story.replace_one],
        [story.forget_one],
        [story.bring, story.replace_one, story.bring, story.roll_back],
    ):
        for happens in events:
            happens()
        assert not story.merge().recomputed
        story.must_agree()
    crash(story, monkeypatch)


@pytest.mark.deep
def test_a_state_that_somebody_changed_by_hand_is_computed_from_scratch_with_the_next_changes(story: Story) -> None:
    story.bring()
    story.merge()
    state = Delta.forPath(story.spark, f"{story.lake}/players")
    for how in ("delete", "restore"):
        story.bring()
        assert not story.merge().recomputed
        if how == "delete":
            state.delete("world = 'a'")
        else:
            state.restoreToVersion(state.history(1).collect()[0].version - 1)
        state.optimize().executeCompaction()
        story.bring(count=1)
        assert how.upper() in (story.merge().recomputed or "")
        story.must_agree()


@pytest.mark.deep
def test_the_history_equals_the_model_too(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.declared = HISTORY
    story.bring()
    assert story.merge().recomputed
    story.bring()
    assert not story.merge().recomputed
    story.must_agree()
    crash(story, monkeypatch)


@pytest.mark.deep
def test_a_log_with_a_column_that_the_history_has_for_itself_is_merged(story: Story) -> None:
    """An earlier release gave the field this column. Now it gets another one, and the state has the values of both there."""
    story.declared = HISTORY
    story.bring(count=9)
    story.spark.sql(f"ALTER TABLE delta.`{story.log}` ADD COLUMNS (valid_to string)")
    Delta.forPath(story.spark, story.log).update("true", {"valid_to": "id"})
    assert story.merge().recomputed
    story.must_agree()
    rows = story.spark.read.format("delta").load(story.log).limit(3).drop("valid_to")
    metadata = {SPELLED: ["valid_to"]}
    rows = rows.selectExpr("* except (at)", "at + 100 at").withColumn(
        "valid_to_field", F.lit("x").alias("", metadata=metadata)
    )
    rows.write.format("delta").mode("append").option("mergeSchema", "true").save(story.log)
    assert not story.merge().recomputed
    found = DeltaTable(f"{story.lake}/versions").to_pyarrow_table().to_pylist()
    assert {row["valid_to_field"] for row in found if row["at"] >= 100} == {"x"}
    assert all(row["valid_to_field"] == row["id"] for row in found if row["at"] < 100)


@pytest.mark.deep
def test_partial_updates_equal_the_model_too(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.declared = PARTIAL
    story.bring()
    assert story.merge().recomputed
    # A few changes, of which some are late; then rows leave as well.
    story.bring(count=5)
    assert not story.merge().recomputed
    story.must_agree()
    crash(story, monkeypatch)
    # In order: newer than all that is there.
    story.append([(f"p{n}", "a", 99, "u", None, None, "last", n, 9, NOW) for n in range(9)])
    assert not story.merge().recomputed
    story.must_agree()
    # Another declaration in another process, and the first one again: what it committed says nothing of the rows there now.
    for declared, logs in ((MERGE, TableLogs(story.spark)), (PARTIAL, story.logs)):
        story.declared, story.logs = declared, logs
        assert story.merge().recomputed
        story.must_agree()
        assert story.merge() is None


@pytest.mark.deep
def test_files_that_were_compacted_before_a_merge_saw_them(story: Story) -> None:
    def change(key: str) -> None:
        story.append([(key, "a", 1, "u", 1, None, f"f{key}", 1, 1, NOW)])

    change("p")
    story.merge()
    change("q")
    story.optimize()
    Delta.forPath(story.spark, story.log).delete("_file_id = 'fq'")
    assert story.merge().recomputed is None
    story.must_agree()
    for key in ("r", "s"):
        change(key)
    story.optimize()
    story.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    Delta.forPath(story.spark, story.log).vacuum(0)
    assert "maintenance deleted" in story.merge().recomputed
    story.must_agree()


@pytest.mark.deep
@pytest.mark.parametrize("counted", [False, True], ids=["merged at once", "counted before"])
def test_a_state_that_nothing_leaves_equals_the_model_and_is_told_alike(
    story: Story, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    story.declared = GROWING
    story.append([("p1", "a", 50, "u", 1, None, "first", 1, 1, NOW)])
    story.bring()
    story.merge()
    if counted:
        monkeypatch.setattr(State, "only_grows", False)
    story.append([("p1", "a", 99, "u", 1, None, "next", 1, 2, NOW), ("q", "a", 1, "d", 2, None, "next", 2, 2, NOW)])
    found = story.merge()
    assert (found.keys, found.inserted, found.updated, found.deleted, found.tombstones) == (2, 1, 1, 0, 0)
    story.append([("p1", "a", late, "u", 1, None, "late", late, 3, NOW) for late in (3, 4)])
    files = DeltaTable(f"{story.lake}/players").file_uris()
    found = story.merge()
    assert (found.keys, found.inserted, found.updated) == (0, 0, 0)
    assert DeltaTable(f"{story.lake}/players").file_uris() == files, "a late change rewrites no file"
    assert story.merge() is None
    if counted:
        story.must_agree()
        return  # `crash` is the rest of its story
    story.bring()
    with monkeypatch.context() as patched:
        patched.setattr(State, "add", die)
        with pytest.raises(KeyboardInterrupt):
            story.merge()
    story.bring()
    story.merge()
    story.must_agree()
    story.replace_one()
    assert not story.merge().recomputed
    story.must_agree()


@pytest.mark.deep
def test_a_merge_that_outlived_its_lease_undoes_nothing(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one took the table over, after rows had left the changes that the first one still has."""
    story.declared, execute = GROWING, Derived.execute
    story.bring()
    story.merge()
    before = story.file_ids()
    story.bring()
    (file_id,) = set(story.file_ids()) - set(before)

    def overtaken(table: Derived, merge: Any, txn: Txn) -> None:
        monkeypatch.undo()
        story.bring(into=file_id, count=5)
        story.merge()
        execute(table, merge, txn)

    monkeypatch.setattr(Derived, "execute", overtaken)
    story.merge()
    story.must_agree()
    story.optimize()
    assert (story.merge().keys, story.merge()) == (0, None), "a compaction changes no row"
    story.must_agree()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("moment", "other"),
    [("create", GROWING), ("create", PARTIAL), ("overwrite", PARTIAL), ("_is_taken_over", PARTIAL)],
    ids=["created", "created by an earlier release", "before the deletes", "between look and commit"],
)
def test_of_two_who_compute_a_new_state_the_one_that_lost_its_lease_changes_nothing(
    story: Story, monkeypatch: pytest.MonkeyPatch, moment: str, other: Merge
) -> None:
    """Each has a name of its own for its transactions, so Delta would take both."""
    story.declared, real = GROWING, getattr(Derived, moment)
    story.bring()

    def overtaken(table: Derived, *given: Any) -> Any:
        if moment == "_is_taken_over":
            found = real(table, *given)
        monkeypatch.undo()
        story.bring()
        story.declared = other
        story.merge()
        return found if moment == "_is_taken_over" else real(table, *given)

    monkeypatch.setattr(Derived, moment, overtaken)
    with pytest.raises(Halt, match="another run took"):
        story.merge()
    assert (story.merge() is None) == (moment != "_is_taken_over"), "what the other one computed stands"
    story.must_agree()
    story.declared = GROWING
    story.merge()
    story.must_agree()


@pytest.mark.deep
def test_more_partitions_than_a_merge_names_rows_without_one_and_what_an_earlier_declaration_left(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changes(*given: tuple[str, str | None, int, str]) -> None:
        story.append([(*one, 1, None, f"f{len(given)}{at}", at, 1, NOW) for at, one in enumerate(given)])

    monkeypatch.setattr(state_module, "MOST_PARTITIONS", 1)
    changes(("p", "a", 1, "u"), ("p", "b", 9, "d"), ("q", "b", 1, "u"))
    assert story.merge().tombstones == 1
    story.declared = GROWING
    assert story.merge().recomputed
    changes(("p", "b", 10, "u"), ("q", "b", 2, "u"), ("r", "a", 2, "u"), ("p", "a", 0, "u"))
    done = story.merge()
    assert (done.keys, done.inserted, done.updated) == (3, 1, 2)
    story.must_agree()
    # The driver dies after the MERGE: its rows and its version are one commit, also where all changes come too late.
    for at in (11, 0):
        changes(("p", "b", at, "u"))
        with monkeypatch.context() as patched:
            patched.setattr(Derived, "note", die)
            with pytest.raises(KeyboardInterrupt):
                story.merge()
        assert story.merge() is None
        story.must_agree()
    changes(("s", None, 1, "u"), *(("s", text, 1, "u") for text in ("", "x" * 101, "\0", "__HIVE_DEFAULT_PARTITION__")))
    assert (story.merge().keys, story.merge()) == (0, None)


@pytest.mark.deep
def test_days_and_hours_that_python_does_not_tell_name_partitions(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days that another writer brought, and the hour that comes twice where the driver is."""
    story.declared = Merge(into="players", keys=("id", "day", "hour"), sequence_by=("at",), partitions=("day", "hour"))

    def change(at: int, day: str, hour: str) -> None:
        row = f"select 'p' id, date '{day}' day, timestamp '{hour}' hour, {at}L at, 'f{at}' _file_id, 1L _line, now()"
        story.spark.sql(f"{row} _ingested_at").write.format("delta").mode("append").save(story.log)

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        places = [
            ("+12345-01-01", "+12345-01-01 00:00:00"),
            *(("0000-01-01", f"2026-10-25 0{n}:30:00") for n in (0, 1)),
        ]
        for at in range(3):
            for place in places:
                change(at, *place)
            story.merge()
    finally:
        monkeypatch.undo()
        time.tzset()
    found = story.spark.read.format("delta").load(f"{story.lake}/players").selectExpr("cast(day as string)", "at")
    assert sorted(map(tuple, found.collect())) == [("+12345-01-01", 2), ("0000-01-01", 2), ("0000-01-01", 2)]


@pytest.mark.deep
def test_only_the_newest_snapshot_counts_whatever_happens_to_its_files(story: Story) -> None:
    story.declared = SNAPSHOT

    def land(day: int, file: str, *keys: str) -> None:
        story.append([(key, "a", day, "u", n, None, file, n, 1, NOW) for n, key in enumerate(keys)])

    land(12, "part-0", "p1", "p2")
    story.merge()
    land(11, "late", "p1", "p9")
    land(12, "part-1", "p2", "p3")
    assert story.merge().keys == 3
    story.must_agree()
    land(13, "next", "p2")
    assert story.merge().keys == 1
    story.must_agree()
    story.bring(into="next")
    story.merge()
    story.must_agree()
    story.roll_back()
    story.bring(into="part-0")
    story.merge()
    story.must_agree()


def crash(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver dies after the deleted keys were committed, and before the state was. More happens before the next one."""
    story.bring()
    with monkeypatch.context() as patched:
        patched.setattr(kind_of(story.declared), "_merge_rows", die)
        with pytest.raises(KeyboardInterrupt):
            story.merge()
    story.said.append("crash")
    story.replace_one()
    assert not story.merge().recomputed
    story.must_agree()


@pytest.mark.deep
def test_a_late_insert_does_not_revive_a_deleted_key(story: Story) -> None:
    def change(key: str, at: int, op: str) -> None:
        story.append([(key, "a", at, op, 1, {}, f"f{key}{at}", 1, 1, NOW)])

    change("early", 5, "u")
    story.merge()
    change("p", 9, "d")
    story.merge()
    change("p", 7, "u")
    done = story.merge()
    assert (done.inserted, done.updated, done.deleted) == (0, 0, 0)
    assert story.merge() is None, "a step that changes no row is not looked at again"
    tombstones = DeltaTable(f"{story.lake}/{tombstones_of('players')}").to_pyarrow_table().to_pylist()
    assert [row["id"] for row in tombstones] == ["p"]


@pytest.mark.deep
@pytest.mark.parametrize("declared", [MERGE, PARTIAL, HISTORY], ids=["latest", "partial", "scd2"])
def test_very_many_changes_of_one_key_and_those_that_cannot_be_placed(story: Story, declared: Merge) -> None:
    story.declared = declared
    story.append([("p", "a", 1, "u", 1, None, "f", 1, 1, NOW)])
    story.merge()
    rows: list[tuple[Any, ...]] = [("p", "a", 2 + n % 50, "u", n, None, "g", n, 2, NOW) for n in range(20_000)]
    story.append(
        [*rows, (None, "a", 9, "u", 1, None, "g", -1, 2, NOW), ("q", "a", None, "u", 1, None, "g", -2, 2, NOW)]
    )
    done = story.merge()
    # No key and no moment: passed over. The one key is one row, or one for each of its moments, and the last line wins.
    rows_now = DeltaTable(f"{story.lake}/{declared.into}").to_pyarrow_table().to_pylist()
    assert {row["id"] for row in rows_now} == {"p"}
    assert (len(rows_now), max(row["score"] for row in rows_now)) == (51 if declared.history else 1, 19_999)
    assert done.recomputed is None


@pytest.mark.deep
@pytest.mark.parametrize("known", [False, True], ids=["anew", "forward"])
def test_a_merge_whose_lease_was_lost_while_it_computed_commits_nothing(story: Story, known: bool) -> None:
    story.append([("p", "a", 1, "u", 1, None, "f", 1, 1, NOW)])
    if known:
        story.merge()
        story.append([("q", "a", 1, "u", 1, None, "g", 1, 1, NOW)])

    def check() -> None:
        if (looked := next(looks)) == 3:
            raise Halt(f"lost at look {looked}")

    looks, lease = itertools.count(1), Held()
    lease.check = check  # type: ignore[method-assign]
    with pytest.raises(Halt, match="lost"):
        story.merge(lease)
    assert DeltaTable.is_deltatable(f"{story.lake}/players") == known
    story.merge()
    assert len(DeltaTable(f"{story.lake}/players").to_pyarrow_table()) == 1 + known


@pytest.mark.deep
def test_another_log_at_the_place_of_its_own_is_refused_until_the_state_is_deleted(story: Story) -> None:
    story.append([("p", "a", 1, "u", 1, None, "f", 1, 1, NOW)])
    story.merge()
    shutil.rmtree(story.log)
    # By Spark: its cache takes a table of the same version that another process wrote here for the first one.
    another = story.spark.createDataFrame(in_columns([("q", "a", 1, "u", 1, None, "g", 1, 1, NOW)], COLUMNS))
    another.coalesce(1).write.format("delta").mode("append").save(story.log)
    with pytest.raises(Halt, match="another player_changes than the current one"):
        story.merge()
    assert [row["id"] for row in DeltaTable(f"{story.lake}/players").to_pyarrow_table().to_pylist()] == ["p"]
    shutil.rmtree(story.lake / "players")
    assert story.merge().recomputed
    story.must_agree()


@pytest.mark.deep
def test_a_key_of_another_type_computes_the_state_anew(story: Story) -> None:
    story.append([("7", "a", 1, "u", 1, None, "f", 1, 1, NOW), ("8", "a", 1, "d", 1, None, "f", 2, 1, NOW)])
    story.merge()
    log = story.spark.read.format("delta").load(story.log).selectExpr("* except (id)", "cast(id as long) id")
    log.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(story.log)
    assert "another type" in story.merge().recomputed
    assert [row["id"] for row in DeltaTable(f"{story.lake}/players").to_pyarrow_table().to_pylist()] == [7]
    tombstones = DeltaTable(f"{story.lake}/{tombstones_of('players')}").to_pyarrow_table().to_pylist()
    assert [row["id"] for row in tombstones] == [8]
