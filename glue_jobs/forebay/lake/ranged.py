"""An object in S3 as a file that can be searched: only the ranges that are read are fetched.

In: a function that fetches a range, and the object's end, which was fetched with its size. Out: a binary file. Parquet keeps
its index at the end, so a small file costs one request, and one column of a large file a few.
"""

from __future__ import annotations

import io
from collections.abc import Callable


class Ranged(io.RawIOBase):
    def __init__(self, fetch: Callable[[int, int], bytes], size: int, tail: bytes) -> None:
        self._fetch, self._size, self._tail, self._at = fetch, size, tail, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """All that was asked for, where it is there; a raw file may give less, which Arrow takes for the end."""
        end = self._size if size < 0 else min(self._size, self._at + size)
        begin, of_tail = self._at, self._size - len(self._tail)
        if begin >= end:
            return b""
        found = self._tail[begin - of_tail : end - of_tail] if begin >= of_tail else self._fetch(begin, end)
        self._at = begin + len(found)
        return found

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        found = self.read(len(into))
        into[: len(found)] = found
        return len(found)
