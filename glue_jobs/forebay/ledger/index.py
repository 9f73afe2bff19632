"""Which files the ledger has, in the driver's memory: a lookup per file costs nothing, and no batch reads the ledger.

Ten million files are two sorted arrays of eight-byte hashes, 160 MB; what came since the start is in two small sets. A
hit is only a hint, since hashes of different files may be equal: the ledger confirms it exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Index"]


class Index:
    """Hashes of files and of keys. Not for several threads: a batch at a time uses it."""

    def __init__(self, file_hashes: Any = (), key_hashes: Any = ()) -> None:
        self._old_files = _ascending(np.asarray(file_hashes, np.int64))
        self._old_keys = _ascending(np.asarray(key_hashes, np.int64))
        self._new_files: set[int] = set()
        self._new_keys: set[int] = set()

    def __len__(self) -> int:
        return len(self._old_files) + len(self._new_files)

    def knows_file(self, hash_: int) -> bool:
        return hash_ in self._new_files or _among(self._old_files, hash_)

    def knows_key(self, hash_: int) -> bool:
        return hash_ in self._new_keys or _among(self._old_keys, hash_)

    def add(self, hashes: Iterable[tuple[int, int]]) -> None:
        """Remembers (file, key) hashes; again is harmless."""
        for of_file, of_key in hashes:
            self._new_files.add(of_file)
            self._new_keys.add(of_key)
        if len(self._new_files) > 1_000_000:
            self._settle()

    def _settle(self) -> None:
        """A Python set costs ten times what an array does, so a long run folds the new ones in."""
        self._old_files = _ascending(np.concatenate((self._old_files, np.fromiter(self._new_files, np.int64))))
        self._old_keys = _ascending(np.concatenate((self._old_keys, np.fromiter(self._new_keys, np.int64))))
        self._new_files.clear()
        self._new_keys.clear()


def _ascending(hashes: Any) -> Any:
    """Each once. (`np.unique` takes fifteen times as long for ten million: it asks a table of hashes first.)"""
    hashes = np.sort(hashes)
    first = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]


def _among(sorted_hashes: Any, hash_: int) -> bool:
    at = int(np.searchsorted(sorted_hashes, hash_))
    return at < len(sorted_hashes) and int(sorted_hashes[at]) == hash_
