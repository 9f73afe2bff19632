"""Conforms records of one table: their fields decide its columns, and then their values go into those columns.

Two steps, because the columns can only be decided when all records have been looked at: `Records.shape`, then
`Records.conformed`. The records are parsed once for both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.record import swift, walk
from forebay.record.arrow_parser import ParseHints, Unordinary
from forebay.record.growth import Rules
from forebay.record.inexact import inexact_in
from forebay.record.kind import Fixed, Kind, Many, Struct, arrow_type
from forebay.record.shape import Shape


@dataclass(frozen=True)
class Conformed:
    """Values by column, in the order of the records as `rows` lists them; `rescued` is text or null."""

    columns: pa.StructArray
    rescued: pa.StringArray
    rows: pa.Int64Array
    in_order: bool
    """Whether these are all records in their own order."""


class Records:
    """Records of one table, as text; perhaps parsed already (`whole`). Without `shaped`, nobody asks for their shape."""

    def __init__(
        self,
        texts: pa.StringArray,
        rules: Rules,
        hints: ParseHints | None = None,
        whole: pa.StructArray | None = None,
        *,
        shaped: bool = True,
    ) -> None:
        self.texts, self.rules = texts, rules
        hints = hints or ParseHints()
        try:
            parts, refused = (
                swift.parse(texts, rules, hints) if whole is None else ([swift.parted(0, whole, rules)], [])
            )
            self._shapes = [part.shape(rules) for part in parts] if shaped else []
            self._swift, self._slow = parts, refused
        except Unordinary:
            self._shapes, self._swift, self._slow = [], [], list(range(len(texts)))
        self._walks_inexact = hints.numbers or whole is not None

    @cached_property
    def _walked(self) -> list[dict[str, Any]]:
        return [walk.parsed(text, self.rules) for text in self.texts.take(pa.array(self._slow, pa.int64())).to_pylist()]

    @property
    def parsed_parts(self) -> list[swift.Parsed]:
        """Those that Arrow could parse."""
        return self._swift

    @property
    def walked_positions(self) -> list[int]:
        """The records that are walked, because Arrow refuses them or would change them."""
        return self._slow

    @cached_property
    def inexact(self) -> np.ndarray[Any, Any]:
        """Which records have a number that Arrow would change."""
        odd = np.zeros(len(self.texts), bool)
        odd[self._slow if self._walks_inexact else inexact_in(self.texts)] = True
        return odd

    def shape(self) -> Shape:
        shape = Shape.sum(self._shapes)
        for record in self._walked:
            shape.observe(record, self.rules.depth + 1)
        return shape

    def conformed(self, columns: Struct) -> Conformed:
        """With these columns, none of them fixed: see `writable`."""
        arrays, rows, slow = [], [], list(zip(self._slow, self._walked, strict=True))
        for part in self._swift:
            try:
                made, odd = part.conformed(columns, self.rules)
            except Unordinary:
                odd = np.ones(part.stop - part.start, bool)
            positions = np.arange(part.start, part.stop)
            slow += [(int(at), walk.parsed(self.texts[int(at)].as_py(), self.rules)) for at in positions[odd]]
            if not odd.all():
                arrays.append(made if not odd.any() else made.filter(pa.array(~odd)))
                rows.append(positions[~odd])
        walked = [walk.conformed(record, columns, self.rules) for _, record in slow]
        ordinary = sum(map(len, rows))
        rescued = pa.concat_arrays(
            [pa.nulls(ordinary, pa.string()), pa.array([walk.rescued_text(left) for _, left in walked], pa.string())]
        )
        if slow or not rows:
            rows.append(np.array([at for at, _ in slow], np.int64))
            arrays.append(pa.array([made for made, _ in walked], arrow_type(columns)))
        kinds = arrow_type(columns)
        made = pa.concat_arrays([array.cast(kinds) if array.type != kinds else array for array in arrays])
        return Conformed(made, rescued, pa.array(np.concatenate(rows), pa.int64()), in_order=not slow)


def writable(columns: Struct) -> Struct:
    """Without what is fixed: values for such a column are rescued, and the files lack it."""
    fields = {}
    for name, column in columns.fields.items():
        kind = _writable(column.kind)
        if kind is not None:
            fields[name] = replace(column, kind=kind)
    return Struct(fields)


def _writable(kind: Kind) -> Kind | None:
    if isinstance(kind, Struct):
        inner = writable(kind)
        return inner if inner.fields else None
    if isinstance(kind, Many):
        of = _writable(kind.of)
        return None if of is None else Many(of)
    return None if isinstance(kind, Fixed) else kind
