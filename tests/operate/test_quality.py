"""How a table's rows stand up to what is expected of them, over all batches, as `forebay quality` tells it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.operate.lake_view import LakeView
from forebay.operate.looking.quality import Quality, quality_of
from tests.operate.command import ran
from tests.operate.ledger import write_ledger


def verdict(
    table: str, expectation: str, rows: int, violated: int, on_violation: str = "warn", *, day: int = 1
) -> dict[str, object]:
    told = {"day": date(2026, 11, day), "table": table, "expectation": expectation, "on_violation": on_violation}
    return {**told, "rows": rows, "violated": violated, "failed": on_violation == "fail"}


@pytest.fixture
def lake(tmp_path: Path) -> str:
    write_ledger(tmp_path)
    kept = [
        verdict("o'clock", "known", 1000, 1),
        verdict("o'clock", "known", 3000, 0, day=5),
        verdict("o'clock", "price", 10, 4, "fail"),
        verdict("o'clock", "price", 10, 1, day=5),
        verdict("other", "known", 7, 7, day=4),
    ]
    write_deltalake(tmp_path / "_forebay" / "quality", pa.Table.from_pylist(kept), partition_by=["day"])
    return str(tmp_path)


def test_verdicts_are_added_up_by_expectation_and_consequence_the_most_violated_first(lake: str) -> None:
    assert quality_of(LakeView(lake), "o'clock") == [
        Quality("o'clock", "price", "fail", 10, 4, 1, 1),
        Quality("o'clock", "known", "warn", 4000, 1, 2, 0),
        Quality("o'clock", "price", "warn", 10, 1, 1, 0),
    ]
    shown = [line.split() for line in ran("quality", "--lake", lake, "o'clock").splitlines()]
    assert shown[1] == ["o'clock", "price", "fail", "10", "4", "40.00", "%", "1", "1"]
    assert shown[2] == ["o'clock", "known", "warn", "4,000", "1", "0.03", "%", "2", "0"]


def test_without_a_name_all_tables_are_told_of(lake: str) -> None:
    assert [q.table for q in quality_of(LakeView(lake))] == ["other", *["o'clock"] * 3]
    assert len(ran("quality", "--lake", lake, "--limit", "2").splitlines()) == 3


def test_after_a_fix_the_last_days_can_be_looked_at_alone(lake: str) -> None:
    assert [(q.table, q.expectation, q.rows) for q in quality_of(LakeView(lake), since=date(2026, 11, 5))] == [
        ("o'clock", "price", 10),
        ("o'clock", "known", 3000),
    ]
    assert len(ran("quality", "--lake", lake, "--days", "90000").splitlines()) == 5


def test_of_a_table_of_which_nothing_is_expected_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert quality_of(LakeView(str(tmp_path)), "alpha") == []
    write_ledger(tmp_path)
    write_deltalake(tmp_path / "alpha", pa.table({"v": [1]}))
    assert len(ran("quality", "--lake", str(tmp_path), "alpha").splitlines()) == 1
