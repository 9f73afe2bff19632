"""The index of known keys: it forgets nothing, it names the days to look at, and it is small."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from forebay.lake.objects import open_objects
from forebay.ledger.index import FIRST_DAY, Index, Packed, load_index, packed
from tests.operate.ledger import AT, entry, write_ledger

HASHES = st.integers(-(2**63), 2**63 - 1)
TODAY = date(2026, 11, 22)
DAYS = st.integers(0, 4000).map(lambda days: date(2020, 1, 1) + timedelta(days=days))


def days_of(index: Index, hash_: int) -> set[date]:
    return index.days_of([hash_]).get(hash_, set())


def of(hash_: int, day: date) -> Packed:
    return packed(np.array([hash_], np.int64), day)


@given(st.lists(st.tuples(HASHES, DAYS)), st.lists(st.tuples(HASHES, DAYS)), HASHES)
def test_every_row_is_found_on_its_day_and_other_keys_are_new(
    old: list[tuple[int, date]], new: list[tuple[int, date]], other: int
) -> None:
    index = Index(np.concatenate([of(0, TODAY)[:0], *(of(*row) for row in old)]))
    for row in [*new, *new]:
        index.add(of(*row))
    rows = [*old, *new]
    told = {hash_ >> 16: {day for h, day in rows if h >> 16 == hash_ >> 16} for hash_, _ in rows}
    asked = [hash_ for hash_, _ in rows]
    assert index.days_of(asked) == {hash_: told[hash_ >> 16] for hash_ in asked}
    assert days_of(index, other) == told.get(other >> 16, set())


def test_what_comes_batch_by_batch_is_merged_into_few_runs() -> None:
    index = Index(packed(np.arange(1, 100_001) << 20, FIRST_DAY))
    for n in range(200_000, 200_500):
        index.add(of(n << 20, TODAY))
    assert len(index) == 100_500
    assert len(index._runs) < 12
    assert days_of(index, 200_499 << 20) == {TODAY}
    assert days_of(index, 1 << 20) == {FIRST_DAY}
    assert not days_of(index, 150_000 << 20)
    index.forget_before(TODAY)
    assert len(index) == 500


def test_ten_million_rows_take_80_megabytes() -> None:
    hashes = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1_000_000)
    assert Index(packed(hashes, TODAY)).bytes <= 8_000_000


def test_the_index_is_read_from_the_ledgers_data_files_as_they_lie_there(tmp_path: Path) -> None:
    ledger = open_objects(str(tmp_path / "_forebay" / "ledger"))
    assert len(load_index(ledger, ["games"])) == 0
    first, again = entry("in/a.json"), entry("in/a.json", at=AT + timedelta(days=3), etag="e2")
    write_ledger(tmp_path, first, entry("in/gone.json"))
    write_ledger(tmp_path, again)
    DeltaTable(tmp_path / "_forebay" / "ledger").delete("key = 'in/gone.json'")
    found = load_index(ledger, ["games"])
    assert len(found) == 2
    assert days_of(found, first["key_hash"]) == {first["day"], again["day"]}
    assert not days_of(found, entry("in/gone.json")["key_hash"])
