"""Updates the ledger after rows were removed: they count as dropped, and no longer as written, quarantined or parked.

In: rows that left, by file and table; or hashes of the bytes of files that are rewritten. Out: one commit to the ledger, which
carries a number as its transaction. A file with a newer entry has been read again since, without these rows, so its counts are
already correct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.errors import Halt
from forebay.lake.layout import LEDGER, table_path
from forebay.lake.log.listing import BrokenLog, NoTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import Snapshot, read_snapshot
from forebay.lake.objects import Objects, open_objects
from forebay.ledger.entry import HELD, hashes_in
from forebay.threads import in_threads
from forebay.upkeep.erase.rows import MOMENT, Found, plain
from forebay.upkeep.erase.table import FILES_AT_ONCE, Find, Leaving, TableErasure

FILE, WHEN, HASH = "file_id", "committed_at", "content_hash"
SAME = ("generation", "batch", WHEN)
"""These identify an entry: a batch that reads a file again writes another one."""
NUMBERS = ("written", *HELD.values(), "dropped")
Leaves = Mapping[str, Mapping[str, int]]
IsEntry = Callable[[str, list[Any]], bool]
"""By the id of a file, and the values of `SAME`."""


def change_ledger(lake: str, app_id: str, number: int, leaving: Leaves, *, as_of: int, at: datetime) -> None:
    """`leaving` are rows by file and table, `as_of` the ledger's version when they were there, and `at` its time. A repeat
    changes nothing."""
    objects, ids = open_objects(table_path(lake, LEDGER)), pa.array(leaving, pa.string())

    @cache
    def was_there() -> IsEntry:
        return _was_there(objects, as_of, at, ids)

    def find(content: BinaryIO, file: LiveFile) -> Found:
        return _found(content, ids, SAME, was_there())

    def finds(now: Snapshot) -> Find | None:
        if now.transactions.get(app_id) == number:
            return None
        was_there()
        return find

    if leaving:
        _change(objects, Leaving(app_id, number, finds, lambda now: partial(_recounted, leaving)))


def change_hashes(lake: str, app_id: str, number: int, hashes: Mapping[str, str]) -> None:
    """Stores the hash of the new bytes of each file. It is also recognised by its old ones, because a producer may send them
    again. A repeat changes nothing."""
    objects, ids = open_objects(table_path(lake, LEDGER)), pa.array(hashes, pa.string())

    def find(content: BinaryIO, file: LiveFile) -> Found:
        return _found(content, ids, (HASH,), lambda file_id, known: hashes[file_id] not in hashes_in(known[0]))

    if hashes:
        _change(objects, Leaving(app_id, number, lambda now: find, lambda now: partial(_rehashed, hashes)))


def _change(ledger: Objects, what: Leaving) -> None:
    TableErasure("the ledger", ledger, what, keep=timedelta()).erase(None)


def counts_after(row: Mapping[str, Any], leaving: Mapping[str, int]) -> dict[str, Any]:
    """Rows that are missing were removed by another command, which counted them."""
    tables, held = dict(row["tables"] or ()), {name: row[name] for name in HELD.values()}
    dropped = row["dropped"]
    for table, rows in leaving.items():
        there = held[HELD[table]] if table in HELD else tables.get(table, 0)
        left = min(rows, there)
        if table in HELD:
            held[HELD[table]] -= left
        else:
            tables[table] = there - left
        dropped += left
    tables = {table: rows for table, rows in sorted(tables.items()) if rows}
    counts = {"written": sum(tables.values()), **held, "dropped": dropped}
    if row["records"] != sum(counts.values()):
        raise Halt(f"s3://{row['bucket']}/{row['key']}: the ledger's counts do not add up; see `forebay audit`")
    return {**counts, "tables": list(tables.items())}


# --- inside ---


def _was_there(ledger: Objects, version: int, at: datetime, ids: pa.Array) -> IsEntry:
    """Whether an entry was in that version. Where maintenance has deleted it, because the run was interrupted for so long, the
    times of entries tell."""
    try:
        before = _entries(ledger, version, ids)
    except (NoTable, BrokenLog, _Gone):
        until = round(at.timestamp() * 1_000_000)
        return lambda file_id, known: known[SAME.index(WHEN)] <= until
    return lambda file_id, known: before.get(file_id) == known


class _Gone(Exception):
    """A data file of an earlier version no longer exists."""


def _entries(ledger: Objects, version: int, ids: pa.Array) -> dict[str, list[Any]]:
    """The values of `SAME` of these files' entries in that version."""

    def of(file: LiveFile) -> list[tuple[Any, ...]]:
        content = ledger.open(unquote(file.path))
        if content is None:
            raise _Gone
        with content:
            return [row for _, rows in _rows_of(content, ids, SAME) for row in rows]

    found = in_threads(of, read_snapshot(ledger, up_to=version).files, FILES_AT_ONCE)
    return {file_id: known for rows in found for file_id, *known in rows}


def _found(content: BinaryIO, ids: pa.Array, names: Sequence[str], wanted: IsEntry) -> Found:
    """The rows of these files that are `wanted`, by their values in these columns."""
    found = Found()
    for theirs, rows in _rows_of(content, ids, names):
        hits = [wanted(file_id, known) for file_id, *known in rows]
        found.groups.append(None)
        if any(hits):
            places = pc.indices_nonzero(theirs).filter(pa.array(hits))
            found.groups[-1] = pc.is_in(pa.array(range(len(theirs)), places.type), places)
            found.rows += sum(hits)
    return found


def _rows_of(
    content: BinaryIO, ids: pa.Array, names: Sequence[str]
) -> Iterator[tuple[pa.BooleanArray, list[tuple[Any, ...]]]]:
    """By row group: which rows are of these files; and of those, the id and what they have in these columns."""
    parquet = pq.ParquetFile(content)
    for group in range(parquet.num_row_groups):
        there = parquet.read_row_group(group, columns=[FILE])[FILE].combine_chunks().cast(pa.string())
        theirs = pc.is_in(there, ids)
        if not pc.any(theirs).as_py():
            yield theirs, []
            continue
        rows = plain(parquet.read_row_group(group, columns=[FILE, *names])).filter(theirs)
        if WHEN in names:
            when = rows[WHEN].cast(MOMENT).cast(pa.int64())
            rows = rows.set_column(rows.schema.get_field_index(WHEN), WHEN, when)
        yield theirs, list(zip(*(rows[name].to_pylist() for name in (FILE, *names)), strict=True))


def _recounted(leaving: Leaves, piece: pa.Table, which: pa.BooleanArray) -> pa.Table:
    asked = piece.select([FILE, "bucket", "key", "records", "tables", *NUMBERS]).filter(which)
    after = [counts_after(row, leaving[row[FILE]]) for row in asked.to_pylist()]
    return _with(piece, which, {name: [row[name] for row in after] for name in (*NUMBERS, "tables")})


def _rehashed(hashes: Mapping[str, str], piece: pa.Table, which: pa.BooleanArray) -> pa.Table:
    rows = piece.select([FILE, HASH]).filter(which).to_pylist()
    return _with(piece, which, {HASH: [f"{row[HASH] or ''} {hashes[row[FILE]]}".strip() for row in rows]})


def _with(piece: pa.Table, which: pa.BooleanArray, new: Mapping[str, list[Any]]) -> pa.Table:
    """These values, in the rows that change."""
    behind = iter(range(piece.num_rows, 2 * piece.num_rows))
    take = pa.array([next(behind) if hit else at for at, hit in enumerate(which.to_pylist())], pa.int64())
    for name, values in new.items():
        at = piece.schema.get_field_index(name)
        kind = piece.schema.field(at).type
        all_ = pa.concat_arrays([*piece[name].chunks, pa.array(values, kind)])
        piece = piece.set_column(at, piece.schema.field(at), all_.take(take))
    return piece
