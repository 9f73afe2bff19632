"""The rows of one task that are kept beside the tables: refused records, and parked ones.

In: records with the reason why they are in no table. Out: rows as `batch.held` has them, of the pieces that land.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.answers import Judged, names_of
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.told import PLACE, Told

SAID = {
    "table": pa.string(),
    "declared": pa.int64(),
    "reason": pa.string(),
    "detail": pa.string(),
    "violated": pa.string(),
    "id": pa.binary(16),
}


class HeldRows:
    """The rows of one place beside the tables."""

    def __init__(self, landed: Landed, told: Told) -> None:
        self.landed, self.schema = landed, told.kept
        self.shared = {"day": told.shared["at"].date(), **told.shared}
        self._waiting: list[pa.Table] = []
        self.bytes = 0

    def add(
        self,
        rows: pa.Table,
        *,
        table: str | None = None,
        declared: int | None = None,
        reason: pa.Array | str | None = None,
        detail: pa.Array | str | None = None,
        violated: pa.Array | None = None,
        id: pa.Array | None = None,  # noqa: A002 (as the column is named)
    ) -> None:
        """`rows` have the columns of `PLACE`. `violated` is JSON: a list of names, or null. The `id` is by what a table leaves
        out duplicates."""
        if not rows.num_rows:
            return
        kept = rows.select(PLACE)
        said = {
            "table": table,
            "declared": declared,
            "reason": reason,
            "detail": detail,
            "violated": violated,
            "id": id,
        }
        for name, kind in SAID.items():
            value = said[name]
            is_array = isinstance(value, pa.Array | pa.ChunkedArray)
            kept = kept.append_column(name, value if is_array else pa.repeat(pa.scalar(value, kind), kept.num_rows))
        self._waiting.append(kept)
        self.bytes += kept["value"].nbytes

    def counted(self, fate: str, pieces: pa.Array) -> Counter[Judged]:
        """Counts the rows of these pieces by table and reason."""
        if (rows := self.of(pieces)) is None:
            return Counter()
        names = ["piece", "table", "declared", "reason", "violated"]
        counts = rows.group_by(names, use_threads=False).aggregate([([], "count_all")])
        judged = Counter[Judged]()
        for one in counts.to_pylist():
            judged[self._judged(fate, one)] += one["count_all"]
        return judged

    def clear(self) -> None:
        """They are written."""
        self._waiting, self.bytes = [], 0

    def _judged(self, fate: str, one: dict[str, Any]) -> Judged:
        file_id = self.landed.files[one["piece"]].file_id
        reason = None if fate == "write" else one["reason"]
        return Judged(file_id, fate, one["table"], one["declared"], reason, names_of(one["violated"]))

    def shaped(self, rows: pa.Table, lines: Callable[[pa.Table], pa.Array]) -> pa.Table:
        """The rows with the columns of the table that holds them. `lines` are those of their files."""
        schema = self.schema
        numbers = rows["piece"].combine_chunks()
        made: dict[str, Any] = {name: rows[name] for name in ("byte_offset", "table", "reason", "detail", "metadata")}
        made["line"] = lines(rows)
        made |= {name: self.landed.named(name, numbers) for name in ("file_id", "bucket", "key", "version_id")}
        made["record"] = rows["value"]
        for name, value in self.shared.items():
            made[name] = pa.repeat(pa.scalar(value, schema.field(name).type), len(numbers))
        return pa.table([made[name] for name in schema.names], schema=schema)

    def of(self, pieces: pa.Array) -> pa.Table | None:
        """The rows of these pieces; None where there are none."""
        if not self._waiting:
            return None
        rows = pa.concat_tables(self._waiting)
        rows = rows.filter(pc.is_in(rows["piece"], value_set=pieces))
        return rows if rows.num_rows else None
