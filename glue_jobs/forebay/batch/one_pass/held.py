"""The quarantine and the parked records, beside the tables. Both have the same columns.

The tasks of a batch write its records, the driver whole files: rows of the quarantine without a line. In: records with the
reason why they are in no table, or the ends of files that nobody can read. Out: rows; those of tasks only of pieces that land.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.answers import Judged, names_of
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.spec import PLACE, Fact, PassSpec
from forebay.content.end import FileEnd
from forebay.table.data_files.in_arrow import arrow_rows

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, file_id string, bucket string, key string, "
    "version_id string, line long, byte_offset long, table string, reason string, detail string, record string, "
    "metadata string"
)

MOST_DETAIL = 1_000
"""Characters of why a table could not be written: each of its rows has it."""
FACTS = {
    "table": pa.string(),
    "declared": pa.int64(),
    "reason": pa.string(),
    "detail": pa.string(),
    "violated": pa.string(),
    "id": pa.binary(16),
}
"""The facts about such a record. `violated` is JSON: a list of names. A table leaves out duplicates by the `id`."""


def whole_files(files: Iterable[FileEnd], shared: Mapping[str, Any]) -> pa.Table:
    """The rows of files that nobody can read. `shared` are the fields that all rows of a batch share."""
    return arrow_rows((_whole(end, shared) for end in files), COLUMNS)


def _whole(end: FileEnd, shared: Mapping[str, Any]) -> dict[str, Any]:
    file = end.file
    named = {"file_id": file.file_id, "bucket": file.bucket, "key": file.key, "version_id": file.version_id}
    reported = {"reason": end.reason, "detail": end.detail, "record": end.head or None}
    nothing = dict.fromkeys(("line", "byte_offset", "table", "metadata"))
    return {**shared, **named, **reported, **nothing}


class RowsBeside:
    """The rows of one task for one place beside the tables. They wait until it is known which pieces land."""

    def __init__(self, landed: Landed, spec: PassSpec, schema: pa.Schema) -> None:
        self.landed, self.schema, self.shared = landed, schema, spec.shared
        self._waiting: list[pa.Table] = []
        self.bytes = 0

    def clear(self) -> None:
        """They are written."""
        self._waiting, self.bytes = [], 0

    def of(self, pieces: pa.Array) -> pa.Table | None:
        """The rows of these pieces; None where there are none."""
        if not self._waiting:
            return None
        rows = pa.concat_tables(self._waiting)
        rows = rows.filter(pc.is_in(rows["piece"], value_set=pieces))
        return rows if rows.num_rows else None

    def with_shared(self, made: dict[str, Any], rows: int) -> pa.Table:
        """These columns, and those that all rows of the batch share."""
        for name, value in self.shared.items():
            made[name] = pa.repeat(pa.scalar(value, self.schema.field(name).type), rows)
        return pa.table([made[name] for name in self.schema.names], schema=self.schema)


class HeldRows(RowsBeside):
    """The rows of the quarantine, of the parked records, or of those that are only counted."""

    def __init__(self, landed: Landed, spec: PassSpec) -> None:
        super().__init__(landed, spec, spec.kept)

    def add(self, rows: pa.Table, **facts: Fact) -> None:
        """`rows` have the columns of `PLACE`."""
        assert facts.keys() <= FACTS.keys()
        if not rows.num_rows:
            return
        kept = rows.select(PLACE)
        for name, kind in FACTS.items():
            value = facts.get(name)
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

    def _judged(self, fate: str, one: dict[str, Any]) -> Judged:
        file_id = self.landed.files[one["piece"]].file_id
        reason = None if fate == "write" else one["reason"]
        return Judged(file_id, fate, one["table"], one["declared"], reason, names_of(one["violated"]))

    def shaped(self, rows: pa.Table, lines: Callable[[pa.Table], pa.Array]) -> pa.Table:
        """The rows with the columns of the table that holds them. `lines` are those of their files."""
        numbers = rows["piece"].combine_chunks()
        made: dict[str, Any] = {name: rows[name] for name in ("byte_offset", "table", "reason", "detail", "metadata")}
        made["line"] = lines(rows)
        made |= {name: self.landed.named(name, numbers) for name in ("file_id", "bucket", "key", "version_id")}
        made["record"] = rows["value"]
        return self.with_shared(made, rows.num_rows)
