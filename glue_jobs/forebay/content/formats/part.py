"""A part of a file's content: records with their text, their lines and their places; all formats end as parts.

In: JSON that was made of rows, with the rows' lines and places. Out: `Part`, without the records that were refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.content.encoding import Located
from forebay.content.limits import Limits
from forebay.content.outcome import NotTaken
from forebay.content.splitting.lines import Records
from forebay.content.vetting import Split, vetted


@dataclass(frozen=True, slots=True)
class Part:
    """Records, and the text that they are in."""

    records: Split
    text: Located


@dataclass(frozen=True, slots=True)
class Made:
    """JSON made from rows: each position in it has a place in the file."""

    utf8: bytes
    starts: Any
    places: Any
    counts: str = "byte"

    def offsets(self, positions: Any) -> Any:
        return self.places[np.searchsorted(self.starts, positions)]


def part_of_rows(
    arrays: Sequence[Any], lines: Any, places: Any, limits: Limits, line_count: int, *, counts: str = "byte"
) -> Part:
    """The part made of arrays of JSON documents, one for each row. `counts` is the unit of their positions."""
    texts, lengths = list[memoryview](), [np.zeros(0, np.int64)]
    for documents in arrays:
        offsets = np.frombuffer(documents.buffers()[1], np.int32)[documents.offset :][: len(documents) + 1]
        texts.append(memoryview(documents.buffers()[2] or b"")[offsets[0] : offsets[-1]])
        lengths.append(np.diff(offsets))
    utf8 = b"".join(texts)
    ends = np.cumsum(np.concatenate(lengths))
    starts = ends - np.concatenate(lengths)
    records = Records(starts, ends, lines, [], line_count, tight=True)
    return Part(vetted(utf8, records, limits), Made(utf8, starts, places, counts))


def refuse_twins(names: Sequence[str]) -> None:
    """Refuses columns of one name, because a record keeps one value of a name."""
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise NotTaken("bad-header", f"two columns are called {name!r}")
