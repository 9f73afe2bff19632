"""The rows of one table in one task: records in, rows with all their columns out.

In: blocks of records, parsed or not. Out: rows with the table's declared columns, forebay's own, `_rescued`, and columns of the
undeclared fields, decided by the records of this task. The driver sees all tasks, and decides (`table.staging`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.columns import Bits, Filled, filled
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.spec import Fact, KeptOut, PassSpec
from forebay.batch.reasons import EXPECTATION, TABLE_FAILED
from forebay.declaration.table import Table
from forebay.record.arrow_parser import ParseHints, may_be_whole
from forebay.record.conform import Records
from forebay.record.growth import grown
from forebay.record.ids import ID, ids_of
from forebay.record.kind import Struct
from forebay.record.shape import Shape
from forebay.table.shaping import DOCUMENT, MISFITS, some_at_a_time, with_columns
from forebay.transforms import NoFunction

Lines = Callable[[pa.Table], pa.Array]
"""The lines of rows, counted in their file."""
VIOLATED = "_violated"
IDENTITY = (ID, "_piece", "_byte_offset")
"""The columns of rows in tables that leave out duplicates: the id, and the position of the record."""


@dataclass(frozen=True)
class Block:
    """Records of one table: `rows` with the columns of `PLACE`; `whole` is what Arrow parsed them to."""

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


@dataclass(frozen=True)
class Kept:
    """Rows of the table that are not written. `facts` are what is known of them, as in `FACTS`."""

    rows: pa.Table
    facts: dict[str, Fact]


@dataclass
class Made:
    """Rows that may not be in the table, rows that are left out, rows of a table that is not written, and the other rows, ready
    to be written but for `VIOLATED`, the expectations that a row violates, as JSON, and for `IDENTITY`. `kept` are the records
    of all but those that are left out, and `written` those of the rows. `failed` says why the table's `transform` cannot be
    used; some rows are kept out for it."""

    refused: list[Kept] = field(default_factory=list)
    dropped: list[Kept] = field(default_factory=list)
    kept_out: list[Kept] = field(default_factory=list)
    rows: pa.Table | None = None
    kept: list[pa.Table] = field(default_factory=list)
    written: list[pa.Table] = field(default_factory=list)
    failed: str = ""


class TableRows:
    """The rows of one table. `declared` is the number of its declaration."""

    def __init__(self, name: str, declared: int, spec: PassSpec, landed: Landed) -> None:
        self.name, self.declared, self.landed = name, declared, landed
        self.table, self.place = spec.service.tables[declared], spec.place(name, declared)
        self.question, self.kept_out = spec.questions.of.get(declared), spec.kept_out(name)
        self.batch, self.at = spec.shared["batch"], spec.shared["at"]
        self.transform = spec.transform_of(declared)
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
        if are_all_of(waiting, pieces):
            yield from waiting
            return
        for block in waiting:
            if (mine := block.of(pieces)).rows.num_rows:
                yield mine
            still = pc.invert(pc.is_in(block.rows["piece"], value_set=over)).combine_chunks()
            if pc.any(still).as_py():
                self.add(block.only(still))

    def made(self, blocks: list[Block], lines: Lines) -> Made:
        made, kept = Made(), []
        for block in joined(blocks):
            records = self._records(block)
            try:
                values = self._filled(records, block)
            except NoFunction as failed:
                self._keep_out(block.rows, f"transform {failed}", made)
                continue
            judged = Judgement(self.table, values)
            made.refused += judged.kept(block.rows, judged.refused)
            made.dropped += judged.kept(block.rows, judged.dropped)
            made.kept.append(block.rows.filter(pa.array(~judged.dropped)))
            if self.kept_out is not None:
                mine = judged.kept(block.rows, judged.written, self.kept_out)
                made.kept_out += [self._identified(one, values, judged.written) for one in mine]
                continue
            if not judged.written.all():
                block, values = block.only(pa.array(judged.written)), values.only(pa.array(judged.written))
                if not block.rows.num_rows:
                    continue
                records = self._records(block)
            kept.append((self._with_declared(block, values, lines), records))
            made.written.append(block.rows)
        if not kept:
            return made
        for _, records in kept:
            self.seen.add(records.shape())
        self.columns = grown(self._known, self.seen, self._rules)
        made.rows = pa.concat_tables([with_columns(rows, records, self.columns) for rows, records in kept])
        return made

    def _keep_out(self, rows: pa.Table, failed: str, made: Made) -> None:
        """The table fails, unless it is not written anyway."""
        why = self.kept_out or KeptOut(TABLE_FAILED, failed)
        made.failed = "" if self.kept_out else failed
        made.kept_out.append(Kept(rows, {"reason": why.reason, "detail": why.detail}))
        made.kept.append(rows)

    def _records(self, block: Block) -> Records:
        """Parsed again where the records of other tables may have decided the type of a column that this one gets."""
        records = Records(_texts(block.rows), self._rules, self._hints, block.whole)
        if block.whole is None or not self._rules.grows:
            return records
        if any(may_be_whole(part.fields, self._known) for part in records.parsed_parts):
            return Records(records.texts, self._rules, self._hints)
        return records

    def _filled(self, records: Records, block: Block) -> Filled:
        return filled(records, block.rows, self.table, self.landed, self.question, self.transform)

    def _identified(self, kept: Kept, values: Filled, which: Bits) -> Kept:
        """The rows with their ids, if the table leaves out duplicates."""
        if (ids := self._ids(values)) is None:
            return kept
        return Kept(kept.rows, {**kept.facts, "id": ids.filter(pa.array(which))})

    def _ids(self, values: Filled) -> pa.Array | None:
        if self.table.dedupe is None:
            return None
        return ids_of(self.name, [values.columns[name] for name in self.table.dedupe.by])

    def _with_declared(self, block: Block, values: Filled, lines: Lines) -> pa.Table:
        pieces = block.rows["piece"].combine_chunks()
        count = len(pieces)
        made = dict(values.columns)
        made["_file_id"] = self.landed.named("file_id", pieces)
        made["_line"] = lines(block.rows)
        made["_batch"] = pa.repeat(pa.scalar(self.batch, pa.int64()), count)
        made["_ingested_at"] = pa.repeat(pa.scalar(self.at, pa.timestamp("us", tz="UTC")), count)
        if self.table.keep_record:
            made["_record"] = pc.utf8_rtrim(block.rows["value"], " ")
        made[VIOLATED] = violations(values)
        if (ids := self._ids(values)) is not None:
            made |= zip(IDENTITY, (ids, pieces, block.rows["byte_offset"]), strict=True)
        return pa.table({**made, DOCUMENT: block.rows["value"], MISFITS: values.misfits})


class Judgement:
    """Decides which rows of a block are written. A reason to refuse comes before violations, and quarantine before drop."""

    def __init__(self, table: Table, values: Filled) -> None:
        self.values = values
        self.refused = np.asarray(pc.is_valid(values.refused)) | self._violate(table, "quarantine")
        self.dropped = self._violate(table, "drop") & ~self.refused
        self.written = ~(self.refused | self.dropped)

    def _violate(self, table: Table, outcome: str) -> Bits:
        """The rows that violate an expectation with this outcome."""
        found = np.zeros(len(self.values.refused), bool)
        for name, which in self.values.violated.items():
            if table.expectations[name].on_violation == outcome:
                found |= which
        return found

    def kept(self, rows: pa.Table, which: Bits, why: KeptOut | None = None) -> list[Kept]:
        if not which.any():
            return []
        chosen = pa.array(which)
        violated = violations(self.values).filter(chosen)
        facts: dict[str, Fact] = {"violated": violated}
        if which is self.refused:
            facts["reason"] = pc.fill_null(self.values.refused.filter(chosen), EXPECTATION)
            details = [None if names is None else ", ".join(json.loads(names)) for names in violated.to_pylist()]
            facts["detail"] = pc.coalesce(self.values.detail.filter(chosen), pa.array(details, pa.string()))
        elif why is not None:
            facts |= {"reason": why.reason, "detail": why.detail}
        return [Kept(rows.filter(chosen), facts)]


def violations(values: Filled) -> pa.StringArray:
    """The names of the expectations that each row violates, as JSON; null if it meets all."""
    names = list(values.violated)
    made: list[str | None] = [None] * len(values.refused)
    if names:
        table = np.stack([values.violated[name] for name in names])
        for row in np.flatnonzero(table.any(axis=0)).tolist():
            made[row] = json.dumps([name for name, is_so in zip(names, table[:, row], strict=True) if is_so])
    return pa.array(made, pa.string())


def are_all_of(blocks: list[Block], pieces: pa.Array) -> bool:
    """One question about all blocks of a table: each file of a batch may have given it one."""
    numbers = [chunk for block in blocks for chunk in block.rows["piece"].chunks]
    return bool(numbers) and bool(pc.all(pc.is_in(pa.chunked_array(numbers), value_set=pieces)).as_py())


def _texts(rows: pa.Table) -> pa.StringArray:
    return rows["value"].combine_chunks()


def joined(blocks: list[Block]) -> Iterator[Block]:
    """Joins the blocks that Arrow parsed alike into one. Of the others, it joins not too many at a time."""
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
        whole = pa.concat_tables(unparsed).combine_chunks().rename_columns({"value": DOCUMENT})
        yield from (Block(rows.rename_columns({DOCUMENT: "value"})) for rows in some_at_a_time(whole))
