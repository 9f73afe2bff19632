"""Files become records, each on its way to its table or beside the tables.

In: pieces of files. Out, into a `Sink`: blocks of records of one table, records that are kept beside the tables, and the ends
of pieces. `NotOrdinary` means that the files cannot be read this way, and `NoRoom` that more memory would help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.routing import Router
from forebay.batch.one_pass.rows import Block
from forebay.batch.one_pass.spec import PLACE, Fact, PassSpec
from forebay.content.end import PieceEnd
from forebay.content.fetch import Get, Metadata, OrCopy, Retrying, s3_of_this_process
from forebay.content.limits import Limits
from forebay.content.originals import NAME as ORIGINALS
from forebay.content.outcome import ERASED, RECORD_REASONS
from forebay.content.piece import Piece
from forebay.content.reading import read_pieces
from forebay.content.treated import treated_records
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.privacy.together import NOT_KEPT
from forebay.record.arrow_parser import ParseHints
from forebay.record.conform import Records
from forebay.record.growth import Rules
from forebay.record.number import problem_of
from forebay.record.route import Route
from forebay.record.typed import NotOrdinary

DROPPED = "dropped"
"""Records of erased people, and elements of exploded arrays that no table wants, go nowhere, and are counted."""
MIXED_AT_MOST = 2
"""Blocks that Arrow cannot parse whole, one after the other, before each table's records are parsed by themselves at once."""
ANY_FIELDS = Rules()


class NoRoom(NotOrdinary):
    """Memory is not enough for the records that wait, beside what is read."""


class Sink(Protocol):
    """The destination of the records."""

    def take(self, table: str, declared: int, block: Block) -> None:
        """Records of one table, which this declaration makes."""

    def take_unrouted(self, block: Block) -> None:
        """Records whose table depends on SQL."""

    def keep(self, place: str, rows: pa.Table, **facts: Fact) -> None:
        """Records that are kept beside the tables, with the facts in `FACTS`."""

    def end(self, end: PieceEnd) -> None:
        """A piece is over."""

    def rest(self) -> None:
        """Called between blocks: the records that wait may be written now."""


def source(limits: Limits, metadata: Metadata | None) -> Get:
    """The source of the bytes of pieces, and of the metadata of their objects."""
    return Retrying.over_s3(s3_of_this_process(limits.files_in_flight), limits, metadata)


def _get(spec: PassSpec, metadata: Metadata | None) -> Get:
    return OrCopy.over(source(spec.limits, metadata), spec.service, metadata)


def read(spec: PassSpec, pieces: Sequence[Piece], sink: Sink) -> Iterator[None]:
    """All of these pieces, a block at each step."""
    spec.must_have_its_secret()
    metadata: Metadata | None = {} if spec.service.asks_for_metadata else None
    get = _get(spec, metadata)
    yield from _taken(Reading(spec, pieces, sink), read_pieces(pieces, get, spec.limits, metadata, spec.service.forms))


def read_held(spec: PassSpec, batches: Iterable[pa.RecordBatch], sink: Sink) -> Iterator[None]:
    """All of these records, which were held: rows as `content` has them, but `problem` is the reason for which each was held.
    They are treated again, as they may be older than what the declarations call personal. A personal field is personal in
    every feed."""
    spec.must_have_its_secret()
    batches = map(_without_refused, batches)
    if spec.service.privacy is not None:
        form = spec.service.form_of_all_feeds
        batches = (treated_records(batch, form) for batch in batches)
    yield from _taken(Reading(spec, spec.pieces, sink), batches)


def _without_refused(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A text that the reader refused is not a document: it may be nested without end, and at `null` Arrow's parser ends the
    process. So it stays refused, and nobody parses it."""
    names, refused = batch.schema.names, pc.is_in(batch["problem"], value_set=pa.array(RECORD_REASONS))
    made = {
        "value": pc.if_else(refused, NOT_KEPT, batch["value"]),
        "problem": pc.if_else(refused, batch["problem"], pa.scalar(None, pa.string())),
    }
    return pa.record_batch([made.get(name, batch[name]) for name in names], schema=batch.schema)


def _taken(reading: Reading, batches: Iterable[pa.RecordBatch]) -> Iterator[None]:
    for batch in batches:
        reading.take(batch)
        reading.sink.rest()
        yield


def read_ends(spec: PassSpec, pieces: Sequence[Piece]) -> Iterator[PieceEnd]:
    """Only the ends of these pieces."""
    for batch in read_pieces(pieces, _get(spec, None), spec.limits, None, spec.service.forms):
        yield from ends_in(pa.Table.from_batches([batch]))


def ends_in(rows: pa.Table) -> Iterator[PieceEnd]:
    ends = rows.filter(pc.is_null(rows["line"])).select(["piece", "value", "problem", "detail"])
    for one in ends.to_pylist():
        yield PieceEnd.from_row(one["piece"], one["value"], one["problem"], one["detail"])


class Reading:
    """The reading of one task, into a sink."""

    def __init__(self, spec: PassSpec, pieces: Sequence[Piece], sink: Sink) -> None:
        self.sink, self.service = sink, spec.service
        self.router = Router(spec.service, Landed(pieces, spec.service), spec.conditions)
        self.has_conditions = bool(spec.conditions)
        self.hints, self.mixed = ParseHints(), 0
        self.columns = [*PLACE, ORIGINALS] if spec.service.vault else PLACE

    def take(self, batch: pa.RecordBatch) -> None:
        rows = pa.Table.from_batches([batch])
        is_record, is_refused = pc.is_valid(rows["line"]), pc.is_valid(rows["problem"])
        self.take_refused(rows.filter(pc.and_(is_record, is_refused)))
        documents = rows.filter(pc.and_(is_record, pc.invert(is_refused)))
        if documents.num_rows:
            self.take_documents(documents.select(self.columns).combine_chunks())
        for end in ends_in(rows):
            if end.reason == "too-large":
                raise NoRoom("a file needs more memory than the waiting records leave free")
            self.sink.end(end)

    def take_refused(self, rows: pa.Table) -> None:
        if rows.num_rows:
            is_erased = pc.equal(rows["problem"], ERASED)
            self.sink.keep(DROPPED, rows.filter(is_erased), reason=ERASED)
            others = rows.filter(pc.invert(is_erased))
            self.sink.keep(QUARANTINE, others, reason=others["problem"], detail=others["detail"])

    def take_documents(self, rows: pa.Table) -> None:
        """Each record to its table. Where Arrow parses the whole block, its tables get what it was parsed to."""
        records = self.parsed(rows["value"].combine_chunks())
        walked = self.readable(records, rows)
        if self.has_conditions:
            for part in records.parsed_parts:
                self.sink.take_unrouted(Block(rows.slice(part.start, part.stop - part.start), part.whole))
            if walked:
                self.sink.take_unrouted(Block(rows.take(walked)))
        else:
            self.take_routes(records, rows, walked)

    def route(self, block: Block) -> None:
        """Records that can be read, with the answers about their tables."""
        records = Records(block.rows["value"].combine_chunks(), ANY_FIELDS, self.hints, block.whole, shaped=False)
        self.take_routes(records, block.rows, records.walked_positions)

    def take_routes(self, records: Records, rows: pa.Table, walked: list[int]) -> None:
        """`walked` are those that Arrow did not parse, but that can be read."""
        unread = sorted({*records.walked_positions} - {*walked})
        routes, codes = self.router.routes(records, rows, unread)
        for part in records.parsed_parts:
            here = slice(part.start, part.stop)
            for route, some, parsed in by_route(
                codes[here], rows.slice(part.start, part.stop - part.start), part.whole
            ):
                self.take_routed(routes[route], Block(some, parsed))
        if walked:
            for route, some, _ in by_route(codes[walked], rows.take(walked), None):
                self.take_routed(routes[route], Block(some))

    def readable(self, records: Records, rows: pa.Table) -> list[int]:
        """The records that Arrow did not parse, but that are JSON. The others are kept with the reason."""
        walked = records.walked_positions
        problems = [problem_of(text) for text in records.texts.take(pa.array(walked, pa.int64())).to_pylist()]
        odd = [(at, why) for at, why in zip(walked, problems, strict=True) if why is not None]
        if odd:
            reasons = pa.array([why for _, why in odd], pa.string())
            self.sink.keep(QUARANTINE, self.without_persons(rows.take([at for at, _ in odd])), reason=reasons)
        return [at for at, why in zip(walked, problems, strict=True) if why is None]

    def without_persons(self, rows: pa.Table) -> pa.Table:
        """Nobody can find the personal fields of a text that is not JSON."""
        if not self.service.personal:
            return rows
        nothing = pa.repeat(pa.scalar(NOT_KEPT, rows["value"].type), rows.num_rows)
        return rows.set_column(rows.schema.get_field_index("value"), "value", nothing)

    def parsed(self, texts: pa.StringArray) -> Records:
        """Tables that use one field for different types cannot be parsed together: then each is parsed by itself, later."""
        hints = self.hints if self.mixed < MIXED_AT_MOST else ParseHints(sparse=True)
        records = Records(texts, ANY_FIELDS, hints, shaped=False)
        self.mixed = 0 if records.parsed_parts else self.mixed + 1
        return records

    def take_routed(self, route: Route, block: Block) -> None:
        if route.fate == "write" and route.table is not None and route.declared is not None:
            self.sink.take(route.table, route.declared, block)
        elif route.fate == "park":
            self.sink.keep(PARKED, block.rows)
        elif route.fate == "quarantine":
            self.sink.keep(QUARANTINE, block.rows, reason=route.reason, declared=route.declared)
        else:
            self.sink.keep(DROPPED, block.rows)


def by_route(
    codes: Any, rows: pa.Table, whole: pa.StructArray | None
) -> Iterator[tuple[int, pa.Table, pa.StructArray | None]]:
    """The rows of each route, with what they were parsed to."""
    if not len(codes) or (codes == codes[0]).all():
        if len(codes):
            yield int(codes[0]), rows, whole
        return
    order = np.argsort(codes, kind="stable")
    taken = pa.array(order)
    rows, whole = rows.take(taken).combine_chunks(), None if whole is None else whole.take(taken)
    found, starts = np.unique(codes[order], return_index=True)
    for code, start, stop in zip(found.tolist(), starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
        yield code, rows.slice(start, stop - start), None if whole is None else whole.slice(start, stop - start)
