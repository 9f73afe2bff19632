"""Random histories of files, versions, rules and replays: after each batch the ledger has one row of each file, and tables hold
exactly the rows that it tells of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forebay.declaration.service import Overwritten
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim, Key
from forebay.ledger.decision import decide_files, files_to_read
from forebay.ledger.versions import Earlier

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FILES = [(key, version) for key in "ab" for version in (1, 2, 3)]
HOW = st.sampled_from(["loaded", "loaded", "missing", "denied", "unreadable"])
STEP = st.tuples(
    st.lists(st.tuples(st.sampled_from(FILES), HOW), min_size=1, max_size=5),  # what comes, and how it reads
    st.sets(st.sampled_from(FILES), max_size=3),  # what an operator wants replayed before that
)


def file_of(key: str, version: int) -> LandedFile:
    return LandedFile("b", key, 10, f"e{version}", f"v{version}", f"{version:016X}", AT + timedelta(seconds=version))


@dataclass
class Lake:
    """`rows` of one table by file, and the ledger; what a batch does to both, in the words of `Batch`."""

    ledger: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, LandedFile] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def mark(self, wanted: set[tuple[str, int]]) -> None:
        for file in (file_of(*one) for one in wanted):
            if self.ledger.get(file.file_id, {}).get("outcome") == "loaded":
                self.ledger[file.file_id]["outcome"] = "replay"

    def batch(self, coming: list[tuple[tuple[str, int], str]], rule: Overwritten) -> None:
        reads = {file_of(*one).file_id: how for one, how in coming}
        claim = Claim([file_of(*one) for one, _ in coming], self.earlier(), lambda key: rule)
        assert {file.file_id for file in files_to_read(claim).fresh} <= reads.keys()
        split = decide_files(claim, {file_id: "" for file_id, how in reads.items() if how == "loaded"})
        landed = {file.file_id for file in split.fresh if reads[file.file_id] == "loaded"}
        superseded = split.leaving
        for one in superseded:
            self.rows.pop(one.earlier.file.file_id, None)
        for file_id in landed:
            assert file_id not in self.rows, "its rows would stand twice"
            self.rows[file_id] = 1
        failed = [one for one in split.superseded if one.is_replay and one.by.file_id not in landed]
        kept = {one.by.file_id for one in failed}
        changed = [one.row({}) for one in superseded if not one.is_replay]
        changed += [one.not_replayed(reads[one.by.file_id], "") for one in failed]
        for leaving in {row["file_id"] for row in changed} | {file.file_id for file in split.retried}:
            del self.ledger[leaving]
        for row in changed:
            self.insert(row)
        for file in split.fresh:
            if file.file_id not in kept:
                self.insert(self.row(file, reads[file.file_id]))
        for entry in split.left_out:
            self.insert(self.row(entry.file, entry.outcome))

    def earlier(self) -> dict[Key, list[Earlier]]:
        found: dict[Key, list[Earlier]] = defaultdict(list)
        for file_id, row in self.ledger.items():
            file = self.files[file_id]
            found[file.bucket, file.key].append(Earlier(file, row))
        return found

    def row(self, file: LandedFile, outcome: str) -> dict[str, Any]:
        self.files[file.file_id] = file
        tables = {"alpha": 1} if outcome == "loaded" else {}
        counts = {"records": len(tables), "written": len(tables), "quarantined": 0, "parked": 0, "dropped": 0}
        return {"file_id": file.file_id, "outcome": outcome, "tables": tables, **counts}

    def insert(self, row: dict[str, Any]) -> None:
        assert row["file_id"] not in self.ledger, "the ledger would have two rows of one file"
        self.ledger[row["file_id"]] = row


@given(st.sampled_from(["append", "ignore", "replace"]), st.lists(STEP, min_size=1, max_size=6))
def test_tables_hold_what_the_ledger_tells_whatever_is_replayed(rule: Overwritten, steps: list[Any]) -> None:
    lake = Lake()
    for coming, wanted in steps:
        lake.mark(wanted)
        lake.batch(coming, rule)
        told = {file_id: row["tables"]["alpha"] for file_id, row in lake.ledger.items() if row["tables"]}
        assert lake.rows == told
        if rule == "replace":
            keys = [lake.files[file_id].key for file_id in lake.rows]
            assert len(set(keys)) == len(keys), "two versions of a key stand"


@given(st.lists(STEP, min_size=1, max_size=6))
def test_under_replace_the_newest_version_stands_whatever_is_replayed(steps: list[Any]) -> None:
    lake, newest = Lake(), dict[str, int]()
    for coming, wanted in steps:
        lake.mark(wanted)
        lake.batch([(one, "loaded") for one, _ in coming], "replace")
        for (key, version), _ in coming:
            newest[key] = max(version, newest.get(key, 0))
        assert set(lake.rows) == {file_of(*one).file_id for one in newest.items()}


@given(st.lists(st.tuples(st.sampled_from(["append", "ignore", "replace"]), STEP), min_size=1, max_size=6))
def test_a_rule_that_changes_on_the_way_loses_and_doubles_nothing(steps: list[Any]) -> None:
    lake = Lake()
    for rule, (coming, wanted) in steps:
        lake.mark(wanted)
        lake.batch(coming, rule)
        assert lake.rows == {file_id: row["tables"]["alpha"] for file_id, row in lake.ledger.items() if row["tables"]}
