"""The rows of one table in one task: records in, rows with all their columns out.

In: blocks of records, parsed or not. Out: rows with the table's declared columns, forebay's own, `_rescued`, and columns of the
undeclared fields, decided by the records of this task. The driver sees all tasks, and decides (`table.staging`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.columns import Filled, filled
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.told import PLACE, Told
from forebay.record.arrow_parser import ParseHints
from forebay.record.conform import Records
from forebay.record.growth import grown
from forebay.record.kind import Struct
from forebay.record.shape import Shape
from forebay.table.shaping import DOCUMENT, MISFITS, some_at_a_time, with_columns

__all__ = ["Block", "TableRows"]


@dataclass(frozen=True)
class Block:
    """Records of one table: `rows` with `piece`, `line`, `byte_offset` and `value`; `whole` is what Arrow parsed them to."""

    rows: pa.Table
    whole: pa.StructArray | None = None

    def of(self, pieces: pa.Array) -> Block:
        """Only the records of these pieces."""
        mine = pc.is_in(self.rows["piece"], value_set=pieces)
        if pc.all(mine).as_py():
            return self
        return self.only(mine.combine_chunks())

    def only(self, which: pa.BooleanArray) -> Block:
        return Block(self.rows.filter(which), None if self.whole is None else self.whole.filter(which))


class TableRows:
    """Of one table. `declared` is the number of its declaration."""

    def __init__(self, name: str, declared: int, told: Told, landed: Landed) -> None:
        self.name, self.declared, self.landed = name, declared, landed
        self.table, self.place = told.service.tables[declared], told.place(name, declared)
        self.batch, self.at = told.batch, told.shared["at"]
        shaping = self.place.shaping
        assert shaping is not None
        self.columns: Struct = shaping.columns
        self.seen = Shape()
        self._known, self._rules, self._hints = shaping.columns, shaping.rules, ParseHints()
        self._waiting: list[Block] = []
        self.bytes = 0

    def add(self, block: Block) -> None:
        self._waiting.append(block)
        self.bytes += block.rows["value"].nbytes

    def take(self, pieces: pa.Array, over: pa.Array) -> Iterator[Block]:
        """The records that wait, of pieces that land. Those of pieces that are not `over` wait on; all others are gone."""
        waiting, self._waiting, self.bytes = self._waiting, [], 0
        for block in waiting:
            if (mine := block.of(pieces)).rows.num_rows:
                yield mine
            still = pc.invert(pc.is_in(block.rows["piece"], value_set=over)).combine_chunks()
            if pc.any(still).as_py():
                self.add(block.only(still))

    def made(self, blocks: list[Block]) -> tuple[list[tuple[pa.Table, pa.StringArray]], pa.Table | None]:
        """Rows that are refused, with their reasons; and the other rows, ready to be written."""
        refused, kept = [], []
        for block in _joined(blocks):
            records = self._records(block)
            values = self._filled(records, block)
            if values.refused.null_count < len(values.refused):
                odd = pc.is_valid(values.refused)
                refused.append((block.rows.filter(odd), values.refused.filter(odd)))
                block = block.only(pc.invert(odd))
                if not block.rows.num_rows:
                    continue
                records = self._records(block)
                values = self._filled(records, block)
            kept.append((self._with_declared(block, values), records))
        if not kept:
            return refused, None
        for _, records in kept:
            self.seen.add(records.shape())
        self.columns = grown(self._known, self.seen, self._rules)
        return refused, pa.concat_tables([with_columns(rows, records, self.columns) for rows, records in kept])

    def _records(self, block: Block) -> Records:
        return Records(_texts(block.rows), self._rules, self._hints, block.whole)

    def _filled(self, records: Records, block: Block) -> Filled:
        return filled(records, block.rows["piece"].combine_chunks(), self.table, self.landed)

    def _with_declared(self, block: Block, values: Filled) -> pa.Table:
        pieces = block.rows["piece"].combine_chunks()
        count = len(pieces)
        made = dict(values.columns)
        made["_file_id"] = self.landed.named("file_id", pieces)
        made["_line"] = block.rows["line"]
        made["_batch"] = pa.repeat(pa.scalar(self.batch, pa.int64()), count)
        made["_ingested_at"] = pa.repeat(pa.scalar(self.at, pa.timestamp("us", tz="UTC")), count)
        if self.table.keep_record:
            made["_record"] = pc.utf8_rtrim(block.rows["value"], " ")
        return pa.table({**made, DOCUMENT: block.rows["value"], MISFITS: values.misfits})


def _texts(rows: pa.Table) -> pa.StringArray:
    return rows["value"].combine_chunks()


def _joined(blocks: list[Block]) -> Iterator[Block]:
    """Those that Arrow parsed alike, as one; and of the others, not too many at a time."""
    alike: dict[str, list[Block]] = {}
    unparsed = []
    for block in blocks:
        if block.whole is None:
            unparsed.append(block.rows)
        else:
            alike.setdefault(str(block.whole.type), []).append(block)
    for some in alike.values():
        yield Block(pa.concat_tables([b.rows for b in some]), pa.concat_arrays([b.whole for b in some]))
    if unparsed:
        whole = pa.concat_tables(unparsed).combine_chunks().rename_columns([*PLACE[:-1], DOCUMENT])
        yield from (Block(rows.rename_columns(PLACE)) for rows in some_at_a_time(whole))
