"""The rows of a step of an export, with their operations: `upsert` and `delete`, or `insert` and `delete`.

In: a table at the version that the step ends with, and where the step begins. Out: Arrow tables whose size does not grow with
the step. The feed of a step is read in batches. If changes must be combined with others of their key, they are stored on disk
in parts by key, so that each part fits into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from forebay.errors import InvalidConfiguration
from forebay.operate.lake_view import quoted

CHANGE = "_change"
HELD_BYTES = 32 << 20
"""The bytes of change files in memory at once."""
MOST_PARTS = 500
"""Each is an open file. Of more than 16 GB of change files, more is held."""
ASKED_AT_ONCE = 500


def whole_rows(table: DeltaTable, *, unique: bool) -> Iterator[pa.Table]:
    """All rows of the version. `unique`: keys name them."""
    schema = _schema(table)
    for rows in _batches(QueryBuilder().register("t", table).execute("select * from t")):
        yield _changes("upsert" if unique else "insert", rows, schema)


def changed_rows(name: str, table: DeltaTable, at: int, size: int, keys: tuple[str, ...] | None) -> Iterator[pa.Table]:
    """The changes after version `at`. `size`: bytes of the files that contain them."""
    feed = _Feed(name, table, at)
    if keys is None:
        yield from _by_file(feed)
        return
    for some in _apart(feed, keys, min(MOST_PARTS, 1 + size // HELD_BYTES)):
        yield from _net(some, keys, feed.schema)


class _Feed:
    """Change after change, up to the version that the table is loaded at: `_version` of its commit, and whether it `_comes`."""

    def __init__(self, name: str, table: DeltaTable, at: int) -> None:
        self.name, self.table, self._at = name, table, at
        self.schema = _schema(table)
        own = [pa.field("_version", pa.int64()), pa.field("_comes", pa.bool_())]
        self.with_own = pa.schema([*self.schema, *own])

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        wanted = None if columns is None else [*columns, "_change_type", "_commit_version"]
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        try:
            last = self.table.version()
            stream = self.table.load_cdf(starting_version=self._at + 1, ending_version=last, columns=wanted)
            for rows in _batches(stream):
                comes = pc.is_in(rows["_change_type"].cast(pa.string()), pa.array(["insert", "update_postimage"]))
                version = rows["_commit_version"].cast(pa.int64())
                yield _of_types(rows, schema).append_column("_version", version).append_column("_comes", comes)
        except (DeltaError, pa.ArrowInvalid, OSError) as refused:
            raise InvalidConfiguration.one(
                f"table {self.name}",
                f"has no change feed from version {self._at + 1} to {self.table.version()}: {refused}",
                "try it again; if a file of the feed no longer exists, export to another folder, from the start",
            ) from None


def _apart(feed: _Feed, keys: Sequence[str], parts: int) -> Iterator[pa.Table]:
    """All changes of a key are in one part."""
    if parts == 1:
        yield pa.concat_tables([feed.with_own.empty_table(), *feed.batches()])
        return
    with tempfile.TemporaryDirectory(prefix="forebay-export-") as folder:
        files = [Path(folder) / f"{part}.arrow" for part in range(parts)]
        writers = [pa.ipc.new_stream(str(file), feed.with_own) for file in files]
        for rows in feed.batches():
            hashes = map(hash, zip(*(rows[key].to_pylist() for key in keys), strict=True))
            part_of = np.fromiter(hashes, dtype=np.int64, count=rows.num_rows) % parts
            for part in np.unique(part_of):
                writers[part].write_table(rows.filter(pa.array(part_of == part)))
        for writer in writers:
            writer.close()
        for file in files:
            with pa.OSFile(str(file)) as there, pa.ipc.open_stream(there) as reader:
                yield reader.read_all()


def _net(feed: pa.Table, keys: Sequence[str], schema: pa.Schema) -> Iterator[pa.Table]:
    """The last change of each key. One commit has both, the row that leaves and the row that comes for a key."""
    feed = feed.sort_by([("_version", "ascending"), ("_comes", "ascending")])
    feed = feed.append_column("_at", pa.array(np.arange(feed.num_rows)))
    last = feed.take(feed.group_by(list(keys)).aggregate([("_at", "max")])["_at_max"].sort())
    yield _changes("upsert", last.filter(last["_comes"]), schema)
    yield _changes("delete", last.filter(pc.invert(last["_comes"])), schema)


def _by_file(feed: _Feed) -> Iterator[pa.Table]:
    files = _files_that_lost_rows(feed)
    yield _changes("delete", pa.table({"_file_id": files}), feed.schema)
    for rows in feed.batches():
        fresh = rows.filter(pc.and_(rows["_comes"], pc.invert(pc.is_in(rows["_file_id"], files))))
        yield _changes("insert", fresh, feed.schema)
    ids = files.to_pylist()
    for begin in range(0, len(ids), ASKED_AT_ONCE):
        some = ", ".join(map(quoted, ids[begin : begin + ASKED_AT_ONCE]))
        query = f"select * from t where _file_id in ({some})"
        for rows in _batches(QueryBuilder().register("t", feed.table).execute(query)):
            yield _changes("insert", rows, feed.schema)


def _files_that_lost_rows(feed: _Feed) -> Any:
    found: dict[str | None, None] = {}
    for rows in feed.batches(["_file_id"]):
        found |= dict.fromkeys(rows.filter(pc.invert(rows["_comes"]))["_file_id"].unique().to_pylist())
    if None in found:
        raise InvalidConfiguration.one(
            f"table at {feed.table.table_uri}",
            f"lost rows before version {feed.table.version()} that forebay did not write, so they cannot be identified",
            "export it to another folder, from the start",
        )
    return pa.array(list(found), feed.schema.field("_file_id").type)


def _batches(stream: Any) -> Iterator[pa.Table]:
    """Read by Arrow, whose errors have names: those of delta-rs's own reader are all `Exception`."""
    for batch in pa.RecordBatchReader.from_stream(stream):
        yield pa.Table.from_batches([batch])


def _schema(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def _changes(change: str, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    typed = _of_types(rows, schema)
    return typed.add_column(0, CHANGE, pa.array([change] * rows.num_rows, pa.string()))


def _of_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """With the columns and types of the table; missing ones are null. delta-rs returns views of texts, with which Arrow
    can do little."""
    columns = {
        field.name: rows[field.name].cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    }
    return pa.table(columns, schema=schema)
