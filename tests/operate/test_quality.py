"""How a table's rows stand up to what is expected of them, over all batches, as `forebay quality` tells it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from forebay.operate.lake_view import LakeView
from forebay.operate.quality import Quality, quality_of
from tests.operate.command import ran


def verdict(
    table: str, expectation: str, rows: int, violated: int, on_violation: str = "warn", *, failed: bool = False
) -> dict[str, object]:
    told = {"table": table, "expectation": expectation, "on_violation": on_violation}
    return {**told, "rows": rows, "violated": violated, "failed": failed}


def test_verdicts_are_added_up_by_expectation_and_consequence_the_most_violated_first(tmp_path: Path) -> None:
    kept = [
        verdict("o'clock", "known", 1000, 1),
        verdict("o'clock", "known", 3000, 0),
        verdict("o'clock", "price", 10, 4, "quarantine", failed=True),
        verdict("o'clock", "price", 10, 1, "warn"),
        verdict("other", "known", 7, 7),
    ]
    write_deltalake(tmp_path / "_forebay" / "quality", pa.Table.from_pylist(kept))
    assert quality_of(LakeView(str(tmp_path)), "o'clock") == [
        Quality("price", "quarantine", 10, 4, 1, 1),
        Quality("known", "warn", 4000, 1, 2, 0),
        Quality("price", "warn", 10, 1, 1, 0),
    ]
    shown = [line.split() for line in ran("quality", "--lake", str(tmp_path), "o'clock").splitlines()]
    assert shown[1] == ["price", "quarantine", "10", "4", "40.00", "%", "1", "1"]
    assert shown[2] == ["known", "warn", "4,000", "1", "0.03", "%", "2", "0"]


def test_of_a_table_of_which_nothing_is_expected_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert quality_of(LakeView(str(tmp_path)), "alpha") == []
    assert len(ran("quality", "--lake", str(tmp_path), "alpha").splitlines()) == 1
