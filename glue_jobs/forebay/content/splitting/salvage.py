"""Finds the intact records around broken lines: other lines, and documents over many lines.

In: a text, and its records as JSON lines, with some places left over. Out: `Records`. Each leftover that begins with `{` may
be the first line of a document over many lines; Python's decoder decides whether it is, and stops where it is not. If it is
not one, reading continues with the next line, or after the next `}{`. The lines of a broken document that was printed with
indentation stay together: its inner objects are not records.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

import numpy as np

from forebay.content.limits import Limits
from forebay.content.outcome import TooMany
from forebay.content.splitting.lines import SEAM, Records, Span
from forebay.content.splitting.structure import WHITE
from forebay.counted import counted

FIRST_LOOK_BYTES = 4 << 10
NEAR_THE_END = 16
"""An error so near to the end of what was looked at may be one of a word that was cut."""

WASTED_BYTES = 64 << 20
"""When so much was decoded in vain, besides twice the text, what is left over stays so."""

_SEPARATORS = re.compile(rb"[ \t\r\n,\[\]]*")
_STRICT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def salvaged(text: bytes, by_line: Records, limits: Limits) -> Records:
    """The same records, with documents over many lines in place of the records within them."""
    walk = _Walk(text, limits, WASTED_BYTES + 2 * len(text))
    for place in by_line.leftovers:
        walk.take(place)
    return _together(by_line, walk)


@dataclass(slots=True)
class _Walk:
    """The records so far. `done` are stretches of the text whose lines no longer count."""

    text: bytes
    limits: Limits
    patience_bytes: int
    documents: list[Span] = field(default_factory=list)
    leftovers: list[Span] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    position: int = 0

    def take(self, place: Span) -> None:
        start, _, line = place
        if start < self.position:
            return
        if self.text[start : start + 1] != b"{":
            self.leftovers.append(place)
            return
        self._from(start, line)
        self.done.append((start, self.position))

    def _from(self, start: int, line: int) -> None:
        """Decides about all text from here to the end of a line: documents, and the rest."""
        at, line_end = start, _line_end(self.text, start)
        while True:
            end = self._document_end(at)
            if end is not None:
                self.documents.append((at, end, line))
                if len(self.documents) > self.limits.max_records:
                    raise TooMany("too-many-records", f"more than {counted(self.limits.max_records, 'record')}")
            else:
                end = self._broken_end(at, line_end)
                self.leftovers.append((at, at + len(self.text[at:end].rstrip(WHITE)), line))
            self.position = end
            line += self.text.count(b"\n", at, end)
            if end > line_end:
                line_end = _line_end(self.text, end)
            at = _SEPARATORS.match(self.text, end, line_end).end()  # type: ignore[union-attr]
            if at == line_end:
                self.position = line_end
                return

    def _document_end(self, at: int) -> int | None:
        """Where the document ends that begins here, if there is one."""
        if self.text[at : at + 1] != b"{":
            return None
        look_bytes = FIRST_LOOK_BYTES
        while self.patience_bytes > 0:
            part = self.text[at : at + look_bytes].decode("latin-1")
            try:
                return at + _STRICT.raw_decode(part)[1]
            except json.JSONDecodeError as error:
                self.patience_bytes -= error.pos
                unfinished = error.pos >= len(part) - NEAR_THE_END or error.msg.startswith("Unterminated string")
            except RecursionError:
                self.patience_bytes -= len(part)
                return None
            if not unfinished or at + look_bytes >= len(self.text) or look_bytes > self.limits.max_record_bytes:
                return None
            look_bytes *= 8
        return None

    def _broken_end(self, at: int, line_end: int) -> int:
        """The end of a text that begins here and is not a document: the next `}{`, its line, or the last of the lines
        that stand further in."""
        seam = SEAM.search(self.text, at, line_end)
        if seam:
            return seam.start() + 1
        if self.text[max(at, line_end - NEAR_THE_END) : line_end].rstrip(WHITE)[-1:] not in (b"{", b"[", b","):
            return line_end
        indent, end = _indent(self.text, at), line_end
        while end < len(self.text):
            next_end = _line_end(self.text, end + 1)
            inner = self.text[end + 1 : next_end]
            content = inner.lstrip(WHITE)
            closes = content[:1] in (b"}", b"]")
            if content and len(inner) - len(content) <= indent and not closes:
                return end
            end = next_end
            if closes and len(inner) - len(content) <= indent:
                return end
        return end


def _line_end(text: bytes, at: int) -> int:
    newline = text.find(b"\n", at)
    return len(text) if newline < 0 else newline


def _indent(text: bytes, at: int) -> int:
    start = text.rfind(b"\n", 0, at) + 1
    line = text[start : at + 1]
    return len(line) - len(line.lstrip(WHITE))


def _together(by_line: Records, walk: _Walk) -> Records:
    if not walk.done:
        return by_line
    first, last = np.array(walk.done, np.int64).T
    around = np.searchsorted(first, by_line.starts, "right") - 1
    free = (around < 0) | (by_line.starts >= last[around])
    found = np.array(walk.documents, np.int64).reshape(-1, 3).T
    kept = (by_line.starts[free], by_line.ends[free], by_line.lines[free])
    columns = [np.concatenate(pair) for pair in zip(kept, found, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    starts, ends, lines = (column[order] for column in columns)
    return replace(by_line, starts=starts, ends=ends, lines=lines, leftovers=walk.leftovers, tight=False)
