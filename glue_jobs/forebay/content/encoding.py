"""Text of any encoding becomes UTF-8 for the splitter, and byte offsets are those of the original.

In: expanded bytes. Out: a `Text`. A byte order mark decides, or the NUL beside the first bracket. Otherwise the bytes count as
UTF-8. Records that are not UTF-8 are refused later, one by one. Nothing is replaced: a broken UTF-16 unit becomes bytes that
are not UTF-8.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np


class Located(Protocol):
    """A text whose records each have a place in their file: the number of a byte, or of what it `counts`."""

    @property
    def utf8(self) -> bytes: ...
    @property
    def counts(self) -> str: ...
    def offsets(self, positions: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8 bytes (or bytes that are not valid UTF-8), their start in the original, and the width of its code units."""

    utf8: bytes
    offset: int = 0
    unit_bytes: int = 1
    counts: ClassVar[str] = "byte"

    def offsets(self, positions: Any) -> Any:
        """Positions in `utf8`, ascending, as byte offsets in the original."""
        if self.unit_bytes == 1 or not len(positions):
            return positions + self.offset
        widths = _WIDTHS[self.unit_bytes][np.frombuffer(self.utf8, np.uint8)]
        before = np.concatenate(([0], np.add.reduceat(widths, positions, dtype=np.int64)[:-1])).cumsum()
        return before + int(widths[: positions[0]].sum(dtype=np.int64)) + self.offset

    @property
    def original_bytes(self) -> int:
        """How many bytes of the original the text takes."""
        if self.unit_bytes == 1:
            return len(self.utf8)
        return int(_WIDTHS[self.unit_bytes][np.frombuffer(self.utf8, np.uint8)].sum(dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Several:
    """The texts of several files, one after the other, each from one of these places on."""

    utf8: bytes
    begins: Any
    counts: ClassVar[str] = "byte"

    def of(self, positions: Any) -> Any:
        """The number of the text that each position is in."""
        return np.searchsorted(self.begins, positions, "right") - 1

    def offsets(self, positions: Any) -> Any:
        return positions - self.begins[self.of(positions)]


def decoded(data: bytes) -> Text:
    """The text of a file."""
    for mark, codec, unit_bytes in _MARKS:
        if data.startswith(mark):
            body = data[len(mark) :]
            return Text(body if unit_bytes == 1 else _utf8(body, codec, unit_bytes), len(mark), unit_bytes)
    codec = _UNMARKED.get(data[:2], "")
    return Text(_utf8(data, codec, 2), 0, 2) if codec else Text(data)


def _utf8(body: bytes, codec: str, unit_bytes: int) -> bytes:
    cut_off = len(body) % unit_bytes
    try:
        text = body[: len(body) - cut_off].decode(codec, "surrogatepass")
    except UnicodeDecodeError:  # only UTF-32 has units that stand for nothing at all
        text = body[: len(body) - cut_off].decode(codec, "replace")
    return text.encode("utf-8", "surrogatepass") + (b"\xff" if cut_off else b"")


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", 4),  # begins like UTF-16's, so it is tried first
    (codecs.BOM_UTF32_BE, "utf-32-be", 4),
    (codecs.BOM_UTF16_LE, "utf-16-le", 2),
    (codecs.BOM_UTF16_BE, "utf-16-be", 2),
    (codecs.BOM_UTF8, "utf-8", 1),
)

# No JSON text in UTF-8 has a NUL beside its first bracket.
_UNMARKED = {b"{\0": "utf-16-le", b"[\0": "utf-16-le", b"\0{": "utf-16-be", b"\0[": "utf-16-be"}


def _widths(unit_bytes: int) -> Any:
    """How many bytes of the original each byte of UTF-8 stands for: all of them count at the first byte of a
    character."""
    widths = np.full(256, unit_bytes, np.uint8)
    widths[0x80:0xC0] = 0
    widths[0xF0:] = 4
    return widths


_WIDTHS = {unit_bytes: _widths(unit_bytes) for unit_bytes in (2, 4)}
