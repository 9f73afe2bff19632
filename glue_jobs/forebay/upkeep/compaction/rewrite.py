"""Predicts a rewrite of a partition's files: which are rewritten, and how large the new ones are.

In: the live files of one partition. Out: an `Rewrite`. Pure. `packed` does as Delta 4.2's OPTIMIZE does. Candidates are the
files that are small or have too many deleted rows. Sorted by size, they fill bins one after the other. A bin of one file is
left unchanged, even if some of its rows are deleted. As the files come in ascending order, any two bins together are larger
than the target, so packing again finds nothing. `ordered` is its Z-order, which rewrites all. `spread` is `repartition(n)` of
a whole partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forebay.lake.log.live_file import LiveFile


@dataclass(frozen=True)
class Rewrite:
    """`target` is the file size to tell the engine so that it comes out like this."""

    rewritten: tuple[LiveFile, ...]
    written: tuple[int, ...]
    target: int

    @property
    def saved(self) -> int:
        return len(self.rewritten) - len(self.written)


def packed(files: Sequence[LiveFile], *, target: int, small_below: int, max_deleted_share: float) -> Rewrite:
    candidates = [f for f in files if f.bytes < small_below or f.deleted_share > max_deleted_share]
    bins = [files for files in _bins(candidates, target) if len(files) > 1]
    return Rewrite(tuple(f for b in bins for f in b), tuple(sum(f.live_bytes for f in b) for b in bins), target)


def ordered(files: Sequence[LiveFile], *, target: int) -> Rewrite:
    """The engine divides by the size on disk and rounds down. It gets a larger target if deleted rows would make the files
    small, or if there would be more files than before."""
    stays, size = sum(f.live_bytes for f in files), sum(f.bytes for f in files)
    count = min(len(files), max(1, stays // target))
    return Rewrite(tuple(files), _evenly(stays, count), max(target, size // count))


def spread(files: Sequence[LiveFile], *, target: int, into: int | None = None) -> Rewrite:
    """Into `into` files, or into the least number of files of at most `target`, but never into more than there are."""
    stays = sum(f.live_bytes for f in files)
    count = into if into is not None else min(len(files), max(1, -(-stays // target)))
    return Rewrite(tuple(files), _evenly(stays, count), target)


def _bins(candidates: Sequence[LiveFile], target: int) -> Iterator[list[LiveFile]]:
    current: list[LiveFile] = []
    size = 0
    for file in sorted(candidates, key=lambda f: (f.bytes, f.path)):
        if current and size + file.bytes > target:
            yield current
            current, size = [], 0
        current.append(file)
        size += file.bytes
    if current:
        yield current


def _evenly(total: int, count: int) -> tuple[int, ...]:
    each, rest = divmod(total, count)
    return (each + 1,) * rest + (each,) * (count - rest)
