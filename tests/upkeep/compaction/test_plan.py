from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from forebay.errors import InvalidConfiguration
from forebay.lake.log.live_file import LiveFile
from forebay.upkeep.compaction.live_files import TableState, Unreadable
from forebay.upkeep.compaction.plan import plan
from forebay.upkeep.compaction.policy import Budget, Group, Policy, Rates, Thresholds, target_file_bytes
from tests.upkeep.compaction.tables import DAY, MIB, NOW, carried_out, files, table

TIB = 1 << 40
HOT, OLD = timedelta(minutes=5), timedelta(days=30)
FIRST, SECOND = Policy(), Policy(round="second")
ORDERED = Policy(round="second", default=Thresholds(order_by=("player",)))


def into(n: int | None = None, **rest: Any) -> Policy:
    return Policy(default=Thresholds(way="rewrite", files=n, **rest))


# With targets of 128 MiB (first round) and 256 MiB (second); small is what is below three quarters of it.
CASES: list[tuple[str, Policy, list[LiveFile], str, int, int]] = [
    ("many small files", FIRST, files(*[1] * 20), "small-files", 20, 1),
    ("some small files", FIRST, files(*[1] * 7), "below-thresholds", 7, 7),
    ("few that fill one", FIRST, files(50, 50, 20), "small-bytes", 3, 1),
    ("one small, one large", FIRST, files(3, 500), "already-good", 2, 2),
    ("small ones that do not fit together", FIRST, files(*[90] * 9), "already-good", 9, 9),
    ("large ones stay", FIRST, files(*[1] * 10, 128, 300), "small-files", 12, 3),
    ("an old partition's last two", FIRST, files(1, 1, age=OLD), "settled", 2, 1),
    ("hot", FIRST, files(*[1] * 20, age=HOT), "too-hot", 20, 20),
    ("hot, and very many", FIRST, files(*[1] * 200, age=HOT), "small-files, small-bytes, hot", 200, 2),
    ("from a clock an hour ahead", FIRST, files(*[1] * 20, age=-timedelta(hours=1)), "too-hot", 20, 20),
    ("few deleted rows", FIRST, files(200, 200, deleted_rows=40), "already-good", 2, 2),
    ("many, in files that OPTIMIZE would leave alone", FIRST, files(200, 200, deleted_rows=300), "deletions", 2, 2),
    ("nobody knows of how many", FIRST, files(200, deleted_rows=1, rows=None), "deletions", 1, 1),
    ("n computed", into(), files(*[30] * 10), "small-files, small-bytes", 10, 3),
    ("n declared", into(4), files(*[30] * 12), "small-files", 12, 4),
    ("n declared, a few more there", into(4), files(*[30] * 6), "below-thresholds", 6, 6),
    ("n declared, fewer there", into(4), files(*[30] * 3, deleted_rows=300), "already-good", 3, 3),
    ("what the first round left", SECOND, files(*[100] * 10), "small-files, small-bytes", 10, 5),
    ("what it has still to do", SECOND, files(*[1] * 20), "first-round-first", 20, 20),
    ("warm is hot for the second", SECOND, files(*[100] * 10, age=timedelta(hours=5)), "too-hot", 10, 10),
    ("never ordered", ORDERED, files(300, 300), "unordered", 2, 2),
    ("Z-order takes all files", ORDERED, files(100, 100, 700), "unordered", 3, 3),
]


@pytest.mark.parametrize(
    ("policy", "live", "why", "before", "after"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_partition_is_rewritten_or_left_for_a_reason(
    policy: Policy, live: list[LiveFile], why: str, before: int, after: int
) -> None:
    rows = plan([table(*live)], policy, now=NOW).as_rows()
    assert [(row["why"], row["files_before"], row["files_after"]) for row in rows] == [(why, before, after)]


def test_optimize_reads_only_the_small_files_and_rewrite_the_whole_partition() -> None:
    state = table(*files(*[1] * 10, 500))
    optimize = plan([state], FIRST, now=NOW).tasks[0]
    rewrite = plan([state], into(2), now=NOW).tasks[0]
    assert (optimize.way, len(optimize.files), optimize.bytes, optimize.into) == ("optimize", 10, 10 * MIB, 1)
    assert (rewrite.way, len(rewrite.files), rewrite.bytes, rewrite.into) == ("rewrite", 11, 510 * MIB, 2)


def test_deleted_rows_that_optimize_would_leave_are_got_rid_of_by_rewriting() -> None:
    """OPTIMIZE does not rewrite a file that is alone in its bin, deletion vector or not."""
    alone = plan([table(*files(200, deleted_rows=300))], FIRST, now=NOW).tasks[0]
    among_small_ones = plan([table(*files(2, 2, deleted_rows=300))], FIRST, now=NOW).tasks[0]
    assert (alone.way, alone.bytes_after, among_small_ones.way) == ("rewrite", 140 * MIB, "optimize")


@pytest.mark.parametrize(
    ("table_bytes", "second"),
    [
        (0, 256 * MIB),
        (2 * TIB, 256 * MIB),
        (5 * TIB, 5 * TIB // 10_000),
        (11 * TIB, 1024 * MIB),
        (100 * TIB, 1024 * MIB),
    ],
)
def test_larger_tables_have_larger_files(table_bytes: int, second: int) -> None:
    assert target_file_bytes(table_bytes) == second
    assert target_file_bytes(table_bytes, "first") == second // 2


def test_a_partition_in_order_is_ordered_again_only_when_enough_has_come() -> None:
    state = table(*files(300, 300))
    (in_order,) = carried_out([state], plan([state], ORDERED, now=NOW), NOW)
    later = NOW + timedelta(days=10)
    few, much = (
        TableState("scores", [*in_order.files, *files(*sizes, age=timedelta(days=-5))], 8, ordered=in_order.ordered)
        for sizes in ([1], [300])
    )
    assert [task.reasons for task in plan([few], ORDERED, now=later).tasks] == []
    assert [task.reasons for task in plan([much], ORDERED, now=later).tasks] == [("unordered",)]


def test_a_clustered_table_is_for_the_second_round_by_its_own_columns() -> None:
    state = table(*files(*[1] * 20, partition=()), clustered=True)
    (skip,) = plan([state], FIRST, now=NOW).skipped
    (task,) = plan([state], ORDERED, now=NOW).tasks
    assert skip.reason == "clustered"
    assert (task.way, task.ordering, task.order_by, task.files_after) == ("optimize", True, (), 1)


def test_a_table_that_cannot_be_read_or_ordered_is_named_and_the_others_go_on() -> None:
    by_day = Policy(round="second", groups=(Group("bad", ("bad",), Thresholds(order_by=("day",))),))
    tables = [
        Unreadable("gone", "not-found", "s3://lake/gone"),
        table(*files(100, 100), name="bad"),
        table(*files(*[100] * 10), name="good"),
    ]
    planned = plan(tables, by_day, now=NOW)
    assert [task.table for task in planned.tasks] == ["good"]
    assert [(skip.table, skip.reason) for skip in planned.skipped] == [("bad", "cannot-order"), ("gone", "not-found")]


def test_groups_have_thresholds_of_their_own_and_a_run_may_be_for_one() -> None:
    live = files(*[1] * 3)
    eager = Group("eager", ("raw_*",), Thresholds(min_small_files=2))
    tables = [table(*live, name="raw_scores"), table(*live, name="scores")]
    both = plan(tables, Policy(groups=(eager,)), now=NOW)
    assert [(task.table, task.group) for task in both.tasks] == [("raw_scores", "eager")]
    only = plan(tables, Policy(groups=(eager,), only="default"), now=NOW)
    assert [(skip.table, skip.reason) for skip in only.skipped] == [
        ("raw_scores", "other-group"),
        ("scores", "below-thresholds"),
    ]


def test_what_saves_most_for_its_cost_comes_first_and_what_does_not_fit_waits() -> None:
    tables = [
        table(*files(*[10] * 10), name="few"),
        table(*files(*[1] * 90), name="many"),
        table(*files(*[5] * 9), name="small"),
        table(*files(*[20] * 40), name="huge"),
    ]
    planned = plan(tables, FIRST, now=NOW, budget=Budget(140 * MIB))
    assert [task.table for task in planned.tasks] == ["many", "small"]
    assert [(skip.table, skip.reason) for skip in planned.skipped] == [
        ("few", "over-budget"),
        ("huge", "larger-than-budget"),
    ]


def test_a_task_that_saves_little_comes_first_where_it_costs_much_less() -> None:
    few, tiny = table(*files(*[10] * 10), name="few"), table(*files(*[1] * 9), name="tiny")
    assert [(task.table, task.saved) for task in plan([few, tiny], FIRST, now=NOW).tasks] == [("tiny", 8), ("few", 9)]


@pytest.mark.parametrize("by", ["bytes", "dpu_s"])
def test_each_task_takes_from_what_the_tasks_before_it_left_of_the_budget(by: str) -> None:
    tables = [table(*files(*[10] * 10), name=name) for name in ("a", "b", "c")]
    one = plan(tables[:1], FIRST, now=NOW).tasks[0]
    budget = Budget(2 * one.bytes) if by == "bytes" else Budget(dpu_s=2.5 * one.dpu_s)
    planned = plan(tables, FIRST, now=NOW, budget=budget)
    assert [task.table for task in planned.tasks] == ["a", "b"]
    assert [(skip.table, skip.reason) for skip in planned.skipped] == [("c", "over-budget")]


def test_hot_comes_last_however_much_it_would_save() -> None:
    hot = table(*files(*[0] * 300, age=HOT), name="hot")
    cold = table(*files(*[12] * 8), name="cold")
    assert [(task.table, task.hot) for task in plan([hot, cold], FIRST, now=NOW).tasks] == [
        ("cold", False),
        ("hot", True),
    ]


def test_ordering_is_told_a_larger_target_where_it_would_make_more_files_of_few() -> None:
    (task,) = plan([table(*files(900, 900))], ORDERED, now=NOW).tasks
    assert (task.files_after, task.target_file_bytes) == (2, 900 * MIB)


def test_the_cost_can_be_reckoned_again_from_what_the_plan_prints() -> None:
    rates = Rates(per_task_s=1, per_file_s=0.5, bytes_per_dpu_s=MIB, ordering_factor=3)
    state = table(*files(*[100] * 10))
    for order_by, factor in ((), 1), (("player",), 3):
        policy = Policy(round="second", default=Thresholds(order_by=order_by), rates=rates)
        (task,) = plan([state], policy, now=NOW).tasks
        assert task.dpu_s == 1 + 0.5 * 10 + (1000 + 1000) * factor


def test_the_plan_prints_as_json() -> None:
    planned = plan([table(*files(*[1] * 9))], FIRST, now=NOW, budget=Budget(dpu_s=60))
    shown = json.loads(planned.as_json())
    assert shown["budget"] == {"bytes": None, "dpu_s": 60}
    assert shown["totals"] == {
        "tasks": 1,
        "tables": 1,
        "files_rewritten": 9,
        "files_saved": 8,
        "bytes": 9 * MIB,
        "dpu_s": round(planned.tasks[0].dpu_s, 3),
    }
    (task,) = shown["tasks"]
    assert (task["partition"], task["files"], task["into"]) == (dict(DAY), 9, 1)


def test_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="there are a, default"):
        Policy(groups=(Group("a", ("x",), Thresholds()),), only="b")


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_small_files": 1},
        {"cold_after": timedelta(seconds=-1)},
        {"order_by": ("a", "a")},
        {"target_file_bytes": 5 << 30},
        {"files": 3},
        {"hot_small_files": 1},
    ],
)
def test_a_threshold_that_makes_no_sense_is_said(wrong: dict[str, Any]) -> None:
    (problem,) = Thresholds(**wrong).problems("it")
    assert problem.where == f"it.{next(iter(wrong))}"


def test_a_table_given_twice_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="twice"):
        plan([table(), table()], FIRST, now=NOW)
