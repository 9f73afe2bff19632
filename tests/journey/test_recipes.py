"""Recipes of examples/ from files in S3 to what a reader asks: snapshots day by day, and purchases beside a dimension."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.operate.lake_view import LakeView
from forebay.operate.looking.sql import query
from tests.journey.story import Story

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def products(told: Story) -> dict[str, str]:
    return {row["sku"]: str(row["price"]) for row in told.rows("products")}


@pytest.mark.deep
def test_what_the_newest_daily_snapshot_lacks_is_gone(told: Story) -> None:
    told.service = str(EXAMPLES / "daily-snapshot")
    days = EXAMPLES / "daily-snapshot" / "samples" / "in" / "catalogue"

    def land(file: str) -> None:
        told.put(f"catalogue/{file}", (days / file).read_bytes())

    # The older day comes after the newer one, of which a part is still missing.
    land("2026-11-22/part-0.jsonl")
    told.take_in()
    land("2026-11-21/products.jsonl")
    assert told.run().differences() == []
    assert products(told) == {"sword": "7.99"}
    land("2026-11-22/part-1.jsonl")
    told.put("catalogue/2026-11-22/part-0.jsonl", b'{"sku": "axe", "title": "Axe", "price": "3.99"}')
    assert told.run().differences() == []
    assert products(told) == {"axe": "3.99", "bow": "5.49", "shield": "4.99"}


@pytest.mark.deep
def test_each_purchase_stands_beside_the_profile_of_its_time(told: Story) -> None:
    example = EXAMPLES / "dimension"
    told.service = str(example)
    told.put("events.jsonl", (example / "samples" / "events.jsonl").read_bytes())
    assert told.run().differences() == []
    rows = query(LakeView(told.lake), (example / "purchases_then.sql").read_text()).to_pylist()
    assert [(row["purchase"], row["country"], row["level"]) for row in rows] == [
        ("b1", "DE", 5), ("b2", "FR", 9), ("b3", "JP", 3), ("b4", None, None), ("b5", None, None),
    ]  # fmt: skip
