"""The policy of a run, from the declarations: each declared table brings its thresholds and belongs to a group.

In: the service. Out: a `Policy`. An invalid declaration (0 files, or 100,000) affects only its own tables: they are skipped by
name, and the run continues with the others.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from forebay.declaration.layout import Compaction
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.errors import Problem
from forebay.lake.layout import own_table
from forebay.upkeep.compaction.policy import MIB, Group, Policy, Round, Thresholds

OWN = Group("own", (own_table("*"),), Thresholds())
"""The ledger, the quarantine and the parked records: compacted like any table."""


def policy_of(service: Service, *, round_: Round = "first", only: str | None = None) -> Policy:
    """The first group that holds a table counts: declarations may give the same name."""
    declared = [service.tables[number] for number in service.owners]
    return Policy(round=round_, groups=(OWN, *map(_group, declared)), only=only)


def _group(table: Table) -> Group:
    where = f"tables.{table.name}.compaction"
    try:
        thresholds = _thresholds(table.compaction)
        wrong = tuple(thresholds.problems(where))
    except OverflowError:
        minutes = table.compaction.cold_after_minutes
        wrong = (Problem(f"{where}.cold_after_minutes", f"{minutes} is more than a span of time can be"),)
    if wrong:
        return Group(table.compaction.group, table.globs, Thresholds(), invalid=wrong)
    return Group(table.compaction.group, table.globs, thresholds)


def _thresholds(declared: Compaction) -> Thresholds:
    usual = Thresholds()
    cold = timedelta(minutes=declared.cold_after_minutes)
    return replace(
        usual,
        way=declared.way,
        files=declared.files,
        target_file_bytes=None if declared.target_file_mib is None else declared.target_file_mib * MIB,
        min_small_files=declared.min_small_files,
        cold_after=cold,
        second_cold_after=max(usual.second_cold_after, cold),
        settled_after=max(usual.settled_after, cold),
        hot_small_files=declared.hot_small_files or None,
        order_by=declared.order_by,
    )
