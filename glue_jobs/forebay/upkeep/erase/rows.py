"""The rows of a data file that belong to erased subjects, and the file without them.

In: a Parquet file, the columns with a row's subject, and the tokens of the erased. Out: `Found`: how many such rows came from
each landed file, and the bytes of a file without them. A file is read by row groups; the columns with the subject come first.
All other rows stay unchanged, in their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.declaration.form import Keys
from forebay.declaration.personal import PersonalField, may_hold, means
from forebay.lake.log.live_file import Partition
from forebay.privacy.subject import is_record, subject_tokens, subject_values, values_at
from forebay.privacy.text import pattern_of
from forebay.privacy.token import remembered_token
from forebay.record.walk import RESCUED_WHOLE, rescued_records
from forebay.table.data_files.statistics import Statistics
from forebay.upkeep.erase.places import TEXTS, Place

CODEC = "zstd"
MOMENT = pa.timestamp("us", "UTC")
OF_FILES = ("_file_id", "file_id")
OF_SERVICE = "service"
LINE, RECORD = "line", "record"
"""Columns of kept records. A row without a line is a file that was kept whole, not a record."""


@dataclass(frozen=True)
class Erased:
    """The tokens of erased subjects, and their secret. `shared`: several services have rows in one table, as in a vault."""

    tokens: frozenset[str]
    secret: bytes
    service: str = ""
    shared: bool = False


@dataclass
class Found:
    """`files` counts rows by the file that they came from. `groups` has for each row group which of its rows they are.
    `unjudged` rows hold a text that nobody can read, so whose they are is not known."""

    rows: int = 0
    unjudged: int = 0
    by_token: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    groups: list[pa.BooleanArray | None] = field(default_factory=list)


@dataclass(frozen=True)
class Rewritten:
    content: pa.Buffer
    stats: str
    rows: int


def found_in(file: BinaryIO, places: Sequence[Place], erased: Erased, partition: Partition = ()) -> Found:
    """`partition` are values that all of its rows have, and that are not in the file. Of what several services keep together,
    only the rows of this service are looked at."""
    parquet, found = pq.ParquetFile(file), Found()
    there, of_all = set(parquet.schema_arrow.names), _of_all(dict(partition), places, erased)
    places = [place for place in places if place.column in there]
    named = [name for name in OF_FILES if name in there]
    if not places and not of_all:
        return found
    columns = list(dict.fromkeys([*(place.column for place in places), *named, *({LINE, OF_SERVICE} & there)]))
    for group in range(parquet.num_row_groups):
        rows = plain(parquet.read_row_group(group, columns=columns))
        which, doubtful = _which(rows, places, erased, of_all)
        unjudged = _unjudged(rows, places) | doubtful
        if (which is not None or unjudged) and OF_SERVICE in there and (LINE in there or erased.shared):
            ours = pc.fill_null(pc.equal(rows[OF_SERVICE].combine_chunks(), erased.service), False).to_pylist()
            which = which and [tokens if own else set() for tokens, own in zip(which, ours, strict=True)]
            unjudged = {at for at in unjudged if ours[at]}
        found.unjudged += sum(not (which and which[at]) for at in unjudged)
        theirs = None if which is None else pa.array([bool(tokens) for tokens in which], pa.bool_())
        found.groups.append(theirs)
        for tokens in which or ():
            found.by_token.update(tokens)
            found.rows += bool(tokens)
        if theirs is not None and named:
            counts = pc.and_(theirs, rows[LINE].combine_chunks().is_valid()) if LINE in there else theirs
            counted = pc.value_counts(rows[named[0]].combine_chunks().filter(counts)).to_pylist()
            found.files.update({one["values"]: one["counts"] for one in counted if one["values"]})
    return found


def _of_all(partition: Mapping[str, str | None], places: Sequence[Place], erased: Erased) -> set[str]:
    return {token for place in places if not place.path for token in _tokens_of(partition.get(place.column), erased)}


Change = Callable[[pa.Table, pa.BooleanArray], pa.Table]
"""From rows, and the mask of those to change, to the new rows."""


def rewritten(file: BinaryIO, found: Found, change: Change | None = None) -> Rewritten:
    """Without these rows; or with them, as `change` makes them."""
    # In nanoseconds, which Arrow makes of INT96 otherwise, it has no room for the year 9999.
    parquet, statistics = pq.ParquetFile(file, coerce_int96_timestamp_unit="us"), Statistics()
    into, schema = pa.BufferOutputStream(), _true_schema(parquet)
    rows = 0
    with pq.ParquetWriter(into, schema, compression=CODEC, store_schema=False) as writer:
        for group, which in enumerate(found.groups):
            piece = parquet.read_row_group(group).cast(schema)
            if which is not None:
                piece = change(piece, which) if change else piece.filter(pc.invert(which))
            if piece.num_rows:
                statistics.observe(piece)
                writer.write_table(piece, row_group_size=piece.num_rows)
                rows += piece.num_rows
    return Rewritten(into.getvalue(), statistics.as_json(), rows)


def _true_schema(parquet: pq.ParquetFile) -> pa.Schema:
    """Spark's INT96 is a timestamp. Arrow reads it without a zone, and Spark would read that back as another type."""
    leaves = (parquet.schema.column(at).physical_type for at in range(len(parquet.schema)))
    return _plain_schema(parquet.schema_arrow, leaves)


def plain(rows: pa.Table) -> pa.Table:
    """The rows in types that Arrow can filter. A cast of no columns would forget how many rows there are."""
    return rows.cast(_plain_schema(rows.schema)) if rows.num_columns else rows


def _plain_schema(schema: pa.Schema, leaves: Iterator[str] | None = None) -> pa.Schema:
    """delta-rs stores types of Arrow's own, and Arrow cannot filter all of them. `leaves` are Parquet's types, in order."""
    leaves = leaves or repeat("")
    return pa.schema([one.with_type(_plain_type(one.type, leaves)) for one in schema])


def _plain_type(kind: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_plain_type(one.type, leaves)) for one in kind])
    if pa.types.is_map(kind):
        key = _plain_type(kind.key_type, leaves)
        return pa.map_(key, kind.item_field.with_type(_plain_type(kind.item_type, leaves)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type, leaves)))
    if next(leaves) == "INT96":
        return MOMENT
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind) else kind


def null_in(names: Sequence[str], piece: pa.Table, which: pa.BooleanArray) -> pa.Table:
    """The change by which rows lose what these columns have."""
    for name in names:
        if name in piece.schema.names:
            at = piece.schema.get_field_index(name)
            kind = piece.schema.field(at).type
            column = pc.if_else(which, pa.scalar(None, kind), piece[name].combine_chunks())
            piece = piece.set_column(at, piece.schema.field(at), column)
    return piece


def _which(
    rows: pa.Table, places: Sequence[Place], erased: Erased, of_all: set[str]
) -> tuple[list[set[str]] | None, set[int]]:
    """The erased subjects of each row; None if no row has any. And the rows that are probably somebody else's."""
    hits: list[set[str]] | None = [set(of_all) for _ in range(rows.num_rows)] if of_all else None
    for place in places:
        column = rows[place.column].combine_chunks()
        for at, tokens in _hits(column, place.path, erased):
            hits = hits or [set() for _ in range(rows.num_rows)]
            hits[at] |= tokens
    if hits is None:
        return None, set()
    doubtful = set[int]()
    for at, tokens in _of_others(rows, places, erased, [at for at, tokens in enumerate(hits) if tokens]):
        hits[at] -= tokens
        doubtful.add(at)
    return hits, doubtful


def _of_others(
    rows: pa.Table, places: Sequence[Place], erased: Erased, hits: Sequence[int]
) -> Iterator[tuple[int, set[str]]]:
    """A column of doubles has only the nearest one of a large number, which may be somebody else's. The text beside it has all
    digits. A record that says two numbers under two spellings of the key looks alike."""
    for place in (place for place in places if place.path and place.column in TEXTS and hits):
        texts = rows[place.column].take(hits).to_pylist()
        for at, text in ((at, text) for at, text in zip(hits, texts, strict=True) if text):
            subjects = {one for record in rescued_records(text) for one in subject_values(record, (place.path,))}
            near = {_text(one) for number in subjects for one in _nearest(number)}
            if tokens := (_tokens(near, erased) - _tokens(subjects, erased)) & erased.tokens:
                yield at, tokens


def _tokens(values: Iterable[str], erased: Erased) -> set[str]:
    return {remembered_token(value, erased.secret) for value in values}


def _nearest(number: str) -> tuple[float | np.float32, ...]:
    try:
        double = float(number)
    except ValueError:
        return ()
    with np.errstate(over="ignore"):
        return double, np.float32(double)


def _unjudged(rows: pa.Table, places: Sequence[Place]) -> set[int]:
    """Rows with a text that is not a record. Beside columns, only a text that names the subject could belong to somebody."""
    unjudged: set[int] = set()
    for name in {place.column for place in places if place.path} & {*TEXTS, RECORD}:
        texts = rows[name].combine_chunks()
        if not pa.types.is_string(texts.type):
            continue
        fields = tuple(PersonalField(place.path, "dropped") for place in places if place.column == name)
        named = f"{pattern_of(fields)}|{RESCUED_WHOLE}"
        may = texts.is_valid() if name == RECORD else pc.match_substring_regex(texts, named)
        for at in pc.indices_nonzero(may).to_pylist():
            text = texts[at].as_py()
            if not all(map(is_record, rescued_records(text))):
                unjudged.add(at)
    return unjudged


def _hits(column: Any, path: Keys, erased: Erased) -> Iterator[tuple[int, set[str]]]:
    while path and pa.types.is_struct(column.type):
        inner = [one.name for one in column.type if may_hold(path[:1], one.name)]
        for name in inner[1:]:
            yield from _hits(pc.struct_field(column, name), path[1:], erased)
        if not inner:
            return
        column, path = pc.struct_field(column, inner[0]), path[1:]
    if path and pa.types.is_binary(column.type):
        column = pa.array([None if one is None else _text(one) for one in column.to_pylist()], pa.string())
    if path and pa.types.is_string(column.type):
        yield from _in_texts(column, path, erased)
    elif not path and not pa.types.is_nested(column.type):
        yield from _in_values(column, erased)
    elif not path and pa.types.is_list(column.type) and not pa.types.is_nested(column.type.value_type):
        rows = pc.list_parent_indices(column)
        yield from ((rows[at].as_py(), tokens) for at, tokens in _in_values(pc.list_flatten(column), erased))
    elif pa.types.is_nested(column.type):
        for at, value in enumerate(column.to_pylist()):
            if tokens := _tokens(_inside(value, path), erased) & erased.tokens:
                yield at, tokens


def _in_values(column: Any, erased: Erased) -> Iterator[tuple[int, set[str]]]:
    """Each value is looked at once, however many rows have it. A float is its shortest digits, as the reader takes it."""
    if pa.types.is_float32(column.type):
        column = column.cast(pa.string())
    coded = column.dictionary_encode()
    tokens = (_tokens_of(value, erased) for value in coded.dictionary.to_pylist())
    wanted = {at: theirs for at, theirs in enumerate(tokens) if theirs}
    if not wanted:
        return
    hit = pc.is_in(coded.indices, pa.array(list(wanted), coded.indices.type))
    for at in pc.indices_nonzero(hit).to_pylist():
        yield at, wanted[coded.indices[at].as_py()]


def _tokens_of(value: Any, erased: Erased) -> set[str]:
    """A column of text holds an array as JSON."""
    if value is None:
        return set()
    elements = subject_tokens(value, ((),), erased.secret) if isinstance(value, str) and value[:1] == "[" else set()
    return {remembered_token(_text(value), erased.secret), *elements} & erased.tokens


def _in_texts(column: Any, path: Keys, erased: Erased) -> Iterator[tuple[int, set[str]]]:
    named = f"{pattern_of((PersonalField(path, 'dropped'),))}|{RESCUED_WHOLE}"
    for at in pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(column, named), False)).to_pylist():
        text = column[at].as_py()
        tokens_of = (subject_tokens(record, (path,), erased.secret) for record in rescued_records(text))
        if tokens := set().union(*tokens_of) & erased.tokens:
            yield at, tokens


def _inside(value: Any, path: Keys) -> Iterator[str]:
    """Lists on the way are passed through; a map's entries are pairs."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if path and may_hold(path[:1], key):
                yield from _inside(inner, path[1:])
    elif isinstance(value, tuple):
        if path and isinstance(value[0], str) and means(path[0], value[0]):
            yield from _inside(value[1], path[1:])
    elif isinstance(value, list):
        for element in value:
            yield from _inside(element, path)
    elif isinstance(value, str | bytes):  # it may be JSON
        yield from values_at(_text(value), path)
    elif value is not None and not path:
        yield _text(value)


def _text(value: Any) -> str:
    """The text as a record may have written it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value).lower() if isinstance(value, bool) else str(value)
