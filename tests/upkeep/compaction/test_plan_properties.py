"""What holds for every plan, whatever the tables look like."""

from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from forebay.lake.log.live_file import LiveFile
from forebay.upkeep.compaction.live_files import TableState
from forebay.upkeep.compaction.plan import Plan, plan
from forebay.upkeep.compaction.policy import Budget, Group, Policy, Thresholds
from tests.upkeep.compaction.tables import MIB, NOW, carried_out

PARTITIONS = [(), (("day", "2026-05-01"),), (("day", "2026-05-02"),), (("day", None),)]
LATER = NOW + timedelta(days=400)


@st.composite
def partitions(draw: st.DrawFn, *, deletions: bool) -> list[LiveFile]:
    """One partition's files: as old as each other, give or take, so that cold ones are as common as hot ones."""
    partition = draw(st.sampled_from(PARTITIONS))
    age = timedelta(minutes=draw(st.sampled_from([-30, 0, 20, 90, 2000, 20_000])))
    sizes = st.sampled_from([0, 1, 700, 5 * MIB, 40 * MIB, 300 * MIB]) | st.integers(0, 600 * MIB)
    files = []
    for number, size in enumerate(draw(st.lists(sizes, min_size=1, max_size=30))):
        rows = draw(st.none() | st.integers(1, 1000))
        gone = draw(st.integers(0, rows or 5)) if deletions and draw(st.booleans()) else 0
        modified = NOW - age - timedelta(minutes=number)
        files.append(LiveFile(f"{partition}/{number}", partition, size, rows, modified, gone))
    return files


def lakes(*, deletions: bool = True) -> st.SearchStrategy[list[TableState]]:
    some = st.lists(partitions(deletions=deletions), max_size=3, unique_by=lambda files: files[0].partition)
    return st.lists(st.tuples(some, st.booleans()), max_size=4).map(
        lambda tables: [
            TableState(f"t{n}", [file for files in some for file in files], n, clustered)
            for n, (some, clustered) in enumerate(tables)
        ]
    )


THRESHOLDS = st.builds(
    lambda way, files, **rest: Thresholds(way=way, files=files if way == "rewrite" else None, **rest),
    way=st.sampled_from(["optimize", "rewrite"]),
    files=st.none() | st.integers(1, 5),
    target_file_bytes=st.none() | st.sampled_from([MIB, 16 * MIB, 128 * MIB, 1024 * MIB]),
    small_share=st.sampled_from([0.01, 0.5, 0.75, 1.0]),
    min_small_files=st.integers(2, 12),
    min_small_bytes=st.none() | st.integers(1, 500 * MIB),
    max_deleted_share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    hot_small_files=st.none() | st.integers(12, 30),
    order_by=st.sampled_from([(), ("player",)]),
    min_unordered_share=st.sampled_from([0.01, 0.25, 1.0]),
)
POLICIES = st.builds(
    lambda round_, default, other: Policy(round=round_, default=default, groups=(Group("one", ("t1",), other),)),
    st.sampled_from(["first", "second"]),
    THRESHOLDS,
    THRESHOLDS,
)


@given(lakes(), POLICIES)
def test_a_task_never_makes_more_files_and_never_touches_a_file_twice(tables: list[TableState], policy: Policy) -> None:
    planned = plan(tables, policy, now=NOW)
    for task in planned.tasks:
        assert task.into >= 1
        assert task.files_after <= task.files_before
    touched = [(task.table, path) for task in planned.tasks for path in task.files]
    assert len(touched) == len(set(touched))
    live = {(table.name, file.path) for table in tables for file in table.files}
    assert set(touched) <= live


@given(lakes(), POLICIES)
def test_the_engine_does_what_the_plan_foretold(tables: list[TableState], policy: Policy) -> None:
    planned = plan(tables, policy, now=NOW)
    after = {table.name: table for table in carried_out(tables, planned, NOW)}
    before = {table.name: table for table in tables}
    for task in planned.tasks:
        was = [file for file in before[task.table].files if file.partition == task.partition]
        is_ = [file for file in after[task.table].files if file.partition == task.partition]
        gone = {file.path for file in was} - {file.path for file in is_}
        written = [file for file in is_ if file.path not in {file.path for file in was}]
        assert (len(was), len(is_)) == (task.files_before, task.files_after)
        size = {file.path: file.bytes for file in was}  # of files of one size, either may be the one that is packed
        assert sorted(size[path] for path in gone) == sorted(size[path] for path in task.files)
        live = {file.path: file.live_bytes for file in was}
        assert sum(file.bytes for file in written) == sum(live[path] for path in gone)
        assert task.bytes_after == sum(live[path] for path in task.files)


@given(
    lakes(),
    POLICIES,
    st.none() | st.integers(1, 2000 * MIB),
    st.none() | st.floats(0.01, 200),
)
def test_the_budget_is_never_exceeded_and_every_partition_is_accounted_for(
    tables: list[TableState], policy: Policy, size: int | None, dpu_s: float | None
) -> None:
    budget = Budget(size, dpu_s)
    planned = plan(tables, policy, now=NOW, budget=budget)
    assert sum(task.bytes for task in planned.tasks) <= (size or float("inf"))
    assert sum(task.dpu_s for task in planned.tasks) <= (dpu_s or float("inf"))
    free = {(task.table, task.partition): task for task in plan(tables, policy, now=NOW).tasks}
    taken = {(task.table, task.partition): task for task in planned.tasks}
    unaffordable = [s for s in planned.skipped if s.reason in ("over-budget", "larger-than-budget")]
    assert taken.keys() | {(s.table, s.partition) for s in unaffordable} == free.keys()
    for skip in unaffordable:
        wanted = free[skip.table, skip.partition or ()]
        assert (skip.reason == "over-budget") == budget.allows(wanted.bytes, wanted.dpu_s)
    partitions = sum(len({file.partition for file in table.files}) for table in tables)
    assert len(planned.tasks) + sum(skip.partitions for skip in planned.skipped) == partitions


@given(lakes(deletions=False), POLICIES)
def test_what_a_plan_left_behind_needs_no_plan(tables: list[TableState], policy: Policy) -> None:
    planned = plan(tables, policy, now=NOW)
    after = carried_out(tables, planned, NOW)
    again = plan(after, policy, now=LATER)
    done = {(task.table, task.partition) for task in planned.tasks}
    assert not [task for task in again.tasks if (task.table, task.partition) in done]


@given(lakes(), POLICIES)
def test_with_deleted_rows_the_third_run_at_the_latest_finds_nothing(tables: list[TableState], policy: Policy) -> None:
    """OPTIMIZE packs by the size on disk: where many rows were deleted, its files are smaller than it thought."""
    first = plan(tables, policy, now=NOW)
    second_tables = carried_out(tables, first, NOW)
    done = {(task.table, task.partition) for task in first.tasks}
    second = plan(second_tables, policy, now=LATER)
    third = plan(carried_out(second_tables, second, LATER), policy, now=LATER + timedelta(days=400))
    assert not [task for task in second.tasks if (task.table, task.partition) in done and "deletions" in task.reasons]
    assert not [task for task in third.tasks if (task.table, task.partition) in done]


@given(lakes(deletions=False), THRESHOLDS)
def test_the_first_round_finds_nothing_in_what_the_second_left(tables: list[TableState], default: Thresholds) -> None:
    planned = plan(tables, Policy(round="second", default=default), now=NOW)
    done = {(task.table, task.partition) for task in planned.tasks}
    again = plan(carried_out(tables, planned, NOW), Policy(round="first", default=default), now=LATER)
    assert not [task for task in again.tasks if (task.table, task.partition) in done]


@given(lakes(deletions=False), POLICIES, st.integers(1, 3000 * MIB))
def test_run_after_run_a_small_budget_gets_to_the_end(tables: list[TableState], policy: Policy, size: int) -> None:
    at = NOW
    for _ in range(100):
        planned = plan(tables, policy, now=at, budget=Budget(size))
        if not planned.tasks:
            break
        tables, at = carried_out(tables, planned, at), at + timedelta(days=30)
    assert not planned.tasks
    assert not [skip for skip in planned.skipped if skip.reason == "over-budget"]


@given(lakes(), POLICIES, st.none() | st.integers(1, 2000 * MIB))
def test_cold_partitions_come_before_hot_ones(tables: list[TableState], policy: Policy, size: int | None) -> None:
    tasks = plan(tables, policy, now=NOW, budget=Budget(size)).tasks
    newest: dict[tuple[str, object], timedelta] = {}
    for table in tables:
        for file in table.files:
            key = table.name, file.partition
            newest[key] = min(newest.get(key, timedelta.max), NOW - file.modified)
    hot = [
        newest[task.table, task.partition] < policy.group_of(task.table).thresholds.quiet(policy.round)
        for task in tasks
    ]
    assert hot == sorted(hot)
    assert hot == [task.hot for task in tasks]


@given(lakes(), POLICIES, st.none() | st.integers(1, 2000 * MIB), st.randoms(use_true_random=False))
def test_the_same_tables_in_another_order_give_the_same_plan(
    tables: list[TableState], policy: Policy, size: int | None, chance: random.Random
) -> None:
    def planned() -> Plan:
        return plan(tables, policy, now=NOW, budget=Budget(size))

    one = planned()
    tables = [
        TableState(t.name, chance.sample(t.files, len(t.files)), t.version, t.clustered)
        for t in chance.sample(tables, len(tables))
    ]
    assert planned() == one
    assert planned().tasks == one.tasks
    assert planned().as_json() == one.as_json()
