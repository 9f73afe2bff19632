"""Counts that add up, or halt."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from forebay.batch import reasons
from forebay.batch.accounting import (
    Fate,
    arriving,
    entries_of,
    percentile,
    quarantined_by_reason,
    quarantined_rows,
)
from forebay.batch.events import RecordsQuarantined
from forebay.batch.reasons import REASONS
from forebay.batch.retrying.moving import Retried, refused_in
from forebay.content.end import FileEnd
from forebay.content.outcome import RECORD_REASONS
from forebay.errors import Halt
from forebay.landed_file import LandedFile

FILE, OTHER = (LandedFile("landing", f"in/{name}.json", 10, "etag") for name in "ab")
ID = FILE.file_id


def end(file: LandedFile = FILE, *, outcome: str = "loaded", documents: int = 0, refused: int = 0) -> FileEnd:
    return FileEnd(
        file=file,
        outcome=outcome,  # type: ignore[arg-type]
        reason=None,
        detail=None,
        documents=documents,
        refused=refused,
        bytes_read=0,
        expanded_bytes=0,
        requests=1,
        head="",
        lines_before={0: 0},
    )


def test_the_fates_of_a_file_make_one_entry() -> None:
    fates = [
        Fate(ID, "write", 3, "alpha", 0),
        Fate(ID, "write", 2, "beta", 0),
        Fate(ID, "park", 1),
        Fate(ID, "quarantine", 4),
    ]
    (entry,) = entries_of([end(documents=6, refused=4)], fates)
    assert (entry.records, entry.written, entry.quarantined, entry.parked) == (10, 5, 4, 1)
    assert entry.tables == {"alpha": 3, "beta": 2}


def test_a_record_that_nobody_counted_halts() -> None:
    with pytest.raises(Halt, match="5 records were read, but 4 are accounted for"):
        entries_of([end(documents=5)], [Fate(ID, "write", 4, "alpha", 0)])


def test_a_record_that_was_counted_twice_halts() -> None:
    with pytest.raises(Halt, match="1 record was read, but 2 are accounted for"):
        entries_of([end(documents=1)], [Fate(ID, "write", 1, "alpha", 0), Fate(ID, "park", 1)])


def test_the_rows_of_a_failed_table_are_counted_as_quarantined() -> None:
    fates = [Fate(ID, "write", 3, "alpha", 0), Fate(ID, "write", 2, "beta", 0)]
    (entry,) = entries_of([end(documents=5)], fates, {"beta": "table-failed"})
    assert (entry.written, entry.quarantined, entry.tables, entry.reason) == (3, 2, {"alpha": 3}, "table-failed")
    (entry,) = entries_of([replace(end(documents=5), reason="not-replayed")], fates, {"beta": "table-failed"})
    assert entry.reason == "not-replayed"  # that a table failed is told in the quarantine


@pytest.mark.parametrize(
    ("fates", "tables", "quarantined"),
    [
        ([Fate(ID, "write", 3, "alpha", 0), Fate(ID, "write", 2, "beta", 0)], {"alpha": 3, "beta": 7}, 0),
        ([Fate(ID, "write", 5, "alpha", 0)], {"alpha": 5, "beta": 7}, 0),
        ([Fate(ID, "write", 3, "gamma", 0), Fate(ID, "write", 2, "beta", 0)], {"beta": 7}, 3),
    ],
)
def test_the_earlier_rows_of_a_replayed_file_are_counted_where_its_new_ones_cannot_be_written(
    fates: list[Fate], tables: dict[str, int], quarantined: int
) -> None:
    """They stand in `beta`, which fails; a table in which nothing of the file stands has its rows in the quarantine."""
    failed, stand = {"beta": "table-failed", "gamma": "table-failed"}, {ID: {"alpha": 1, "beta": 7}}
    (entry,) = entries_of([end(documents=5)], fates, failed, stand)
    assert (entry.tables, entry.quarantined) == (tables, quarantined)
    assert (entry.reason, entry.detail) == ("partly-replayed", "beta")
    assert entry.records == sum(tables.values()) + quarantined


@pytest.mark.parametrize(
    ("writes", "drops", "standing", "dropped"),
    [(2, 3, 2, 3), (0, 5, 1, 4), (1, 4, 3, 2), (0, 5, 7, 0), (0, 5, 5, 0), (5, 0, 2, 3)],
)
def test_a_replayed_file_has_its_duplicates_counted_in_a_table_that_is_paused_too(
    writes: int, drops: int, standing: int, dropped: int
) -> None:
    """A copy may have come since the file was read first: its record is dropped now, but its row stands in the table. Or the
    record was dropped then, and would be written now: no row of it stands."""
    fates = [Fate(ID, "write", writes, "beta", 0), Fate(ID, "drop", drops, "beta", 0, ("_duplicate",))]
    fates += [Fate(ID, "drop", 1, "alpha", 0, ("_duplicate",))]
    (entry,) = entries_of([end(documents=6)], fates, {"beta": "paused"}, {ID: {"beta": standing, "alpha": 1}})
    counts = (entry.records, entry.tables, entry.quarantined, entry.dropped)
    assert counts == (standing + dropped + 1, {"beta": standing}, 0, dropped + 1)


def test_records_of_a_replayed_file_that_violate_an_expectation_are_counted_in_a_table_that_fails_too() -> None:
    """Those of the earlier reading leave the quarantine, so these must be there, and be counted."""
    fates = [Fate(ID, "write", 2, "beta", 0), Fate(ID, "quarantine", 3, "beta", 0, ("few",), "expectation")]
    stand = {ID: {"beta": 2}}
    (entry,) = entries_of([end(documents=5)], fates, {"beta": "table-failed"}, stand)
    assert (entry.records, entry.tables, entry.quarantined, entry.dropped) == (5, {"beta": 2}, 3, 0)
    assert quarantined_rows(arriving(fates, {"beta": "table-failed"}, stand), {"beta"}) == 3


@pytest.mark.parametrize(
    ("outcome", "in_ledger"),
    [("missing", "missing"), ("changed", "missing"), ("denied", "denied"), ("unavailable", "unavailable")],
)
def test_a_file_that_does_not_land_counts_no_records(outcome: str, in_ledger: str) -> None:
    (entry,) = entries_of([end(outcome=outcome)], [Fate(ID, "write", 7, "alpha", 0)])
    assert (entry.outcome, entry.records, entry.tables) == (in_ledger, 0, {})


def test_each_file_counts_its_own_records() -> None:
    files = (FILE, OTHER)
    entries = entries_of([end(file, documents=2) for file in files], [Fate(file.file_id, "park", 2) for file in files])
    assert [(entry.file, entry.records, entry.parked) for entry in entries] == [(file, 2, 2) for file in files]


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.99, 4), (0.25, 1), (1.0, 4)])
def test_a_percentile_is_one_of_the_values(share: float, value: float) -> None:
    assert percentile([4, 1, 3, 2], share) == value


def test_nothing_has_no_percentile() -> None:
    assert percentile([], 0.5) is None


def test_quarantined_records_are_counted_by_reason_and_those_of_files_that_did_not_land_are_not() -> None:
    fates = [
        Fate(ID, "quarantine", 3, reason="not-json"),
        Fate(ID, "write", 2, "beta", 0),
        Fate(ID, "write", 5, "alpha", 0),
        Fate(OTHER.file_id, "quarantine", 9, reason="not-json"),
    ]
    ends = [end(), end(OTHER, outcome="unreadable")]
    assert quarantined_by_reason(ends, fates, {"beta": "table-failed"}) == {"not-json": 3, "table-failed": 2}


def test_a_reason_that_the_event_does_not_know_is_counted_as_another() -> None:
    told = RecordsQuarantined.of("studio", 7, {"not-json": 3, "unheard-of": 1, "unseen": 2})
    assert told.as_dict() == {"event": "RecordsQuarantined", "service": "studio", "batch": 7, "not_json": 3, "other": 3}


def test_every_reason_is_declared_once_and_is_a_metric_of_its_own() -> None:
    assert set(RECORD_REASONS) <= REASONS.keys()
    for reason in REASONS:
        told = RecordsQuarantined.of("s", 0, {reason: 1})
        assert (getattr(told, reason.replace("-", "_")), told.other) == (1, None)


def test_no_reason_is_spelt_out_beside_the_list() -> None:
    room = Path(reasons.__file__).parent
    spelt = {
        (module.name, node.value)
        for module in room.glob("*.py")
        if module.name != "reasons.py"
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Constant) and node.value in REASONS.keys() - {"expectation"}
    }
    assert spelt == set(), "name them by their constants"


def test_a_retry_says_why_it_left_a_record() -> None:
    fates = [
        Fate("f", "write", 5, "alpha"),
        Fate("f", "write", 3, "beta"),
        Fate("f", "quarantine", 2, "alpha", reason="not-json"),
        Fate("g", "quarantine", 4, None, reason="not-json"),
        Fate("g", "quarantine", 1, "alpha", violated=("positive",)),
        Fate("g", "park", 6),
        Fate("g", "drop", 7),
    ]
    assert refused_in(fates, {"alpha"}) == {"table-failed": 3, "not-json": 6, "expectation": 1, "no-table": 6}
    tried = [Retried(2, refused=one) for one in ({"not-json": 1}, {"not-json": 1, "paused": 1})]
    assert sum(tried, start=Retried()).refused == {"not-json": 2, "paused": 1}
