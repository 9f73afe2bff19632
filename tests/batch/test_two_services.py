"""Two services take in the same objects of one bucket into one lake: each loads each file once, into its own tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forebay.lake.objects import open_objects
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from tests.batch.world import World, records

ONE = """
name = "one"
overwritten = "replace"
[[tables]]
name = "{game}"
"""
TWO = ONE.replace("one", "two").replace("{game}", "two_{game}")


@pytest.mark.deep
def test_each_service_loads_and_replaces_its_own_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = f"file://{tmp_path}"
    one, two = (World(spark, lake, monkeypatch, service=text) for text in (ONE, TWO))
    first, second = one.file("in/a.json"), one.file("in/a.json", 2)
    answers = {first.etag: records(alpha=2, broken=1), second.etag: records(alpha=3, homeless=1)}
    one.answers = two.answers = answers  # type: ignore[assignment]
    one.try_batch(0, [first])
    two.try_batch(0, [first])
    two.try_batch(1, [second])
    told = sorted((row["service"], row["outcome"], row["written"], row["quarantined"]) for row in one.entries())
    assert told == [("one", "loaded", 2, 1), ("two", "loaded", 3, 0), ("two", "superseded", 0, 0)]
    assert (len(one._table("alpha")), len(two._table("two_alpha"))) == (2, 3)
    assert [row["service"] for row in one._table("_forebay/quarantine")] == ["one"]
    assert accounts(LakeView(str(tmp_path))).differences() == []
    assert open_objects(f"{lake}/_forebay/services").read("first") == b"one"
