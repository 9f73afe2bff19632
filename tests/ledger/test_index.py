"""The index of known files: exact about what it was told, and small."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forebay.ledger.index import Index

HASHES = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(HASHES), st.lists(HASHES), HASHES)
def test_it_knows_what_it_was_told_and_nothing_else(old: list[int], new: list[int], other: int) -> None:
    index = Index(old, [h // 2 for h in old])
    index.add((h, h // 2) for h in new)
    told = {*old, *new}
    assert all(index.knows_file(h) and index.knows_key(h // 2) for h in told)
    assert index.knows_file(other) == (other in told)


def test_a_long_run_folds_what_is_new_into_the_array(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    index = Index([1, 2], [1, 2])
    index.add((n, n) for n in range(10, 1_000_020))
    assert not index._new_files
    assert len(index) == 1_000_012
    assert index.knows_file(1_000_019)
    assert index.knows_key(10)
    assert not index.knows_file(5)


def test_ten_million_files_take_160_megabytes() -> None:
    hashes = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 1_000_000)
    index = Index(hashes, hashes)
    assert index._old_files.nbytes + index._old_keys.nbytes <= 16_000_000
