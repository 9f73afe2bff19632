"""The policy that the declarations make."""

from __future__ import annotations

from forebay.declaration.loading import builtin_service, parse_service
from forebay.upkeep.compaction.declared import policy_of
from forebay.upkeep.compaction.live_files import TableState
from forebay.upkeep.compaction.plan import plan
from forebay.upkeep.compaction.policy import Policy
from tests.upkeep.compaction.tables import MIB, NOW, files, table


def policy(toml: str, **run: str) -> Policy:
    return policy_of(parse_service({"service.toml": f'name = "studio"\n{toml}'}), **run)  # type: ignore[arg-type]


FAMILIES = """
[[tables]]
name = "{game}_events"
compaction = { group = "hourly", min_small_files = 3 }
[[tables]]
name = "old_events"
compaction = { way = "rewrite", files = 4, target_file_mib = 64, order_by = ["player"], hot_small_files = 0 }
"""


def test_a_plain_name_comes_before_a_family_that_gives_it_too() -> None:
    said = policy(FAMILIES)
    assert (said.group_of("new_events").name, said.group_of("new_events").thresholds.min_small_files) == ("hourly", 3)
    old = said.group_of("old_events")
    assert (old.name, old.thresholds.way, old.thresholds.files) == ("default", "rewrite", 4)
    assert (old.thresholds.target_file_bytes, old.thresholds.hot_small_files) == (64 * MIB, None)
    assert said.group_of("old_events").thresholds.order_by == ("player",)


def test_our_own_tables_are_compacted_like_any_table_whatever_families_there_are() -> None:
    said = policy_of(builtin_service())
    assert said.group_of("_forebay/ledger").name == "own"
    own = TableState("_forebay/ledger", files(*[1] * 20))
    assert [task.table for task in plan([own], said, now=NOW).tasks] == ["_forebay/ledger"]


def test_numbers_that_make_no_sense_keep_their_table_out_and_the_others_go_on() -> None:
    said = policy(
        """
        [[tables]]
        name = "none"
        compaction = { way = "rewrite", files = 0 }
        [[tables]]
        name = "many"
        compaction = { way = "rewrite", files = 100000 }
        [[tables]]
        name = "slow"
        compaction = { cold_after_minutes = 1000000000000000 }
        [[tables]]
        name = "{game}"
        """
    )
    tables = [table(*files(*[1] * 20), name=name) for name in ("none", "many", "slow", "alpha")]
    planned = plan(tables, said, now=NOW)
    assert [task.table for task in planned.tasks] == ["alpha"]
    assert [(skip.table, skip.reason, skip.bad) for skip in planned.skipped] == [
        ("many", "invalid-configuration", True),
        ("none", "invalid-configuration", True),
        ("slow", "invalid-configuration", True),
    ]
    assert planned.skipped[0].detail == "tables.many.compaction.files: 100000 is not from 1 to 10,000"


def test_a_run_may_be_for_one_group() -> None:
    planned = plan(
        [table(*files(*[1] * 20), name=name) for name in ("a_events", "old_events")],
        policy(FAMILIES, only="hourly"),
        now=NOW,
    )
    assert [task.table for task in planned.tasks] == ["a_events"]


def test_what_a_person_names_is_compacted_now_whatever_its_thresholds_say() -> None:
    few_and_hot = table(*files(1, 1, age=NOW - NOW), name="alpha")
    said = policy_of(builtin_service())
    assert plan([few_and_hot], said, now=NOW).tasks == ()
    assert [task.files_after for task in plan([few_and_hot], said.eager(), now=NOW).tasks] == [1]
