"""The bytes that belong to a piece: all of a file in one GET, or the lines that begin within a range of it.

In: a piece. Out: `Fetched`. A range owns the lines whose first byte is in it. It reads one byte before its start for the
newline before its first line, and reads past its end until its last line ends. Every piece decides by the file's first bytes
whether the file can be cut at newlines, so all pieces decide alike. If it cannot be cut, the first piece reads the whole file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from forebay.content.encoding import decoded
from forebay.content.fetch import Get
from forebay.content.limits import Limits
from forebay.content.outcome import Unread
from forebay.content.piece import Piece
from forebay.content.signature import looks_like
from forebay.content.splitting.split import HEAD_BYTES, is_json_lines, without_separators
from forebay.content.unpack import is_archive
from forebay.declaration.form import FOUND, Form
from forebay.landed_file import LandedFile

OVERRUN_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Fetched:
    """The bytes of a piece. `lines`: they are lines of a larger file, the first at `offset` of it."""

    content: bytes | Unread
    offset: int = 0
    lines: bool = False
    bytes_read: int = 0
    requests: int = 1


def take(piece: Piece, get: Get, limits: Limits, form: Form = FOUND) -> Fetched:
    """The bytes of a piece."""
    if piece.stop is None:
        content = get(piece.file)
        return Fetched(content, bytes_read=0 if isinstance(content, Unread) else len(content))
    counted = _Counted(get, piece.file)
    content, offset, lines = _range(piece, piece.stop, counted, limits, form)
    return Fetched(content, offset, lines, counted.bytes_read, counted.requests)


def can_be_cut(head: bytes, form: Form) -> bool:
    """Whether a file with this beginning may be cut at newlines. CSV has a header, and newlines within quotes."""
    text = decoded(head)
    if text.unit_bytes > 1 or is_archive(head):
        return False
    if form.format == "lines":
        return looks_like(head) is None
    return form.may_be_json and is_json_lines(without_separators(text.utf8))


@dataclass(slots=True)
class _Counted:
    get: Get
    file: LandedFile
    bytes_read: int = 0
    requests: int = 0

    def __call__(self, start: int = 0, stop: int | None = None) -> bytes | Unread:
        answer = self.get(self.file, start, stop)
        self.requests += 1
        if not isinstance(answer, Unread):
            self.bytes_read += len(answer)
        return answer


@dataclass(slots=True)
class _Stretch:
    """Bytes of a file from `at` on, and whether the file ends with them."""

    at: int
    data: bytes = b""
    ended: bool = field(default=False)

    def newline_from(self, position: int) -> int | None:
        """Where the first newline is, at or after a position of the file."""
        found = self.data.find(b"\n", max(position - self.at, 0))
        return None if found < 0 else self.at + found


def _range(piece: Piece, stop: int, get: _Counted, limits: Limits, form: Form) -> tuple[bytes | Unread, int, bool]:
    if piece.start:
        head = get(0, HEAD_BYTES)
        if isinstance(head, Unread):
            return head, 0, False
        if not can_be_cut(head, form):
            return b"", piece.start, True
    at = max(piece.start - 1, 0)
    data = get(at, stop + OVERRUN_BYTES)
    if isinstance(data, Unread):
        return data, 0, False
    if not piece.start and not can_be_cut(data[:HEAD_BYTES], form):
        del data  # as much as a piece, beside a file that is larger
        return get(), 0, False
    stretch = _Stretch(at, data, len(data) < stop + OVERRUN_BYTES - at)
    return _owned(piece, stop, stretch, get, limits)


def _owned(
    piece: Piece, stop: int, stretch: _Stretch, get: _Counted, limits: Limits
) -> tuple[bytes | Unread, int, bool]:
    first = 0
    if piece.start:
        newline = stretch.newline_from(stretch.at)
        if newline is None or newline + 1 >= stop:
            return b"", piece.start, True
        first = newline + 1
    last = stretch.newline_from(stop - 1)
    while last is None and not stretch.ended:
        problem = _read_on(stretch, stop, get, limits)
        if problem:
            return problem, 0, False
        last = stretch.newline_from(stop - 1)
    end = None if last is None else last + 1 - stretch.at
    return stretch.data[first - stretch.at : end], first, True


def _read_on(stretch: _Stretch, stop: int, get: _Counted, limits: Limits) -> Unread | None:
    """Reads more of the last line, twice as much each time, until it ends or is too long."""
    end = stretch.at + len(stretch.data)
    if end - stop > limits.max_record_bytes:
        stretch.ended = True
        return None
    more = get(end, end + 2 * max(end - stop, OVERRUN_BYTES))
    if isinstance(more, Unread):
        if more.reason != "range-refused":  # S3's answer where the file ends exactly here
            return more
        more = b""
    stretch.ended = len(more) < 2 * max(end - stop, OVERRUN_BYTES)
    stretch.data += more
    return None
