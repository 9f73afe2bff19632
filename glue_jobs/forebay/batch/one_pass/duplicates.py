"""The driver leaves out duplicate rows of a pass: those of the same batch, or of an earlier one.

In: a `Pass`, whose tasks report the id of each row of each data file; and the known ids (`batch.dedupe`). Out: the same pass
without those rows, counted as dropped, and the ids of the others. Only the data files with duplicates are rewritten, from
their own contents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.accounting import Fate
from forebay.batch.dedupe import DUPLICATE, Dedupe
from forebay.batch.one_pass.answers import Answer, Identified, Vaulted, names_of
from forebay.batch.one_pass.columns import Bits
from forebay.batch.one_pass.gathering import unpacked
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.rows import IDENTITY, VIOLATED
from forebay.batch.recent_ids import bytes_of
from forebay.lake.layout import VAULT
from forebay.table.data_files.data_file import DataFile, Written
from forebay.table.data_files.fewer_rows import FewerRows, written_again
from forebay.table.data_files.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID, PIECE, OFFSET = IDENTITY
ROWS_AT_ONCE = 1 << 22
"""The rows that are compared at a time, by how their ids begin. Each takes some 150 bytes then, and 21 while it waits."""
IDS_AT_ONCE = 1_000_000
"""The rows of the table of ids that are made at a time: a data file of them."""
FEW_BYTES = 4 << 20
"""The size of data files that the driver rewrites itself, without a job."""

Dropped = Counter[tuple[str, str, int, str | None]]
"""Rows that are dropped, by the id of their landed file, their table, its declaration, and what they violate."""


def without_duplicates(made: Pass, dedupe: Dedupe, spark: SparkSession, storage: Storage) -> Pass:
    """Removes rows whose ids came before. Reads no data file if no row has an id."""
    if not made.identified:
        return made
    rows = _Rows(made.identified, made.files_by_piece)
    gone = rows.gone(dedupe, made.landed)
    ids = RowIds(rows, [~some for some in gone], dedupe)
    if not any(some.any() for some in gone):
        return replace(made, identified=(), vaulted=(), ids=ids)
    stays = rows.by_file([~some for some in gone]) | _of_vault(made.vaulted, rows, gone)
    written = _with_fewer_rows(made, stays, spark, storage)
    fates = [*_recounted(made.fates, rows.dropped(gone))]
    duplicates = partial(rows.left_out, gone)
    return replace(made, identified=(), vaulted=(), ids=ids, fates=fates, written=written, duplicates=duplicates)


def every_id(made: Pass, dedupe: Dedupe) -> Iterable[pa.Table]:
    """The ids of all rows that have one, before any is left out."""
    rows = _Rows(made.identified, made.files_by_piece)
    return RowIds(rows, [np.ones(one.count, bool) for one in made.identified], dedupe)


class _Rows:
    """The rows of all these data files. They stay packed, except those of one file, or those whose ids begin alike."""

    def __init__(self, files: Sequence[Identified], landed: Mapping[int, str]) -> None:
        self.files = files
        self.file_ids = sorted({*landed.values()})
        numbers = {name: number for number, name in enumerate(self.file_ids)}
        self._landed = np.full(max(landed, default=0) + 1, -1, np.int32)
        for piece, name in landed.items():
            self._landed[piece] = numbers[name]

    def of(self, at: int) -> _Some:
        """The rows of one data file."""
        rows = unpacked(self.files[at].rows).rows.combine_chunks()
        return _Some(rows, self._landed[rows[PIECE].to_numpy()], np.full(rows.num_rows, at, np.int32))

    def gone(self, dedupe: Dedupe, landed: Mapping[str, str]) -> list[Bits]:
        """The duplicate rows of each data file."""
        found = [np.zeros(one.count, bool) for one in self.files]
        bits = (sum(one.count for one in self.files) // ROWS_AT_ONCE).bit_length()
        since = dedupe.since  # rows of a table without `dedupe` wait in a data file with others, and have no id
        first = np.array([since.get(one.declared, date.max) for one in self.files], "datetime64[D]")
        for round_ in range(1 << bits):
            rows, places = self._begun_with(round_, bits)
            known = dedupe.days_of(rows.ids.unique(), landed) if rows.count else {}
            which = rows.again | rows.before(known, first)
            files, mine = rows.file[which], places[which]  # in the order of the files
            for file in np.unique(files).tolist():
                found[file][mine[slice(*np.searchsorted(files, [file, file + 1]))]] = True
        return found

    def _begun_with(self, first: int, bits: int) -> tuple[_Some, Any]:
        """The rows whose ids begin with these bits, and their places in their data files. Rows without an id are left out."""
        some, places = [], []
        for at in range(len(self.files)):
            rows = self.of(at)
            mine = np.asarray(pc.is_valid(rows.ids))
            if bits:
                content = bytes_of(rows.ids)
                begin = content[:, 0].astype(np.uint32) << 8 | content[:, 1]
                mine = mine & (begin >> (16 - bits) == first)
            places.append(np.flatnonzero(mine))
            some.append(rows.only(mine))
        return _Some.sum(some), np.concatenate(places)

    def by_file(self, stays: Sequence[Bits]) -> dict[tuple[str, str], Bits]:
        """The rows that stay in each data file, by its place and path."""
        parts: dict[tuple[str, str], list[Bits]] = {}
        for one, part in zip(self.files, stays, strict=True):
            parts.setdefault((one.place, one.path), []).append(part)
        return {place: np.concatenate(some) for place, some in parts.items()}

    def places(self, which: Sequence[Bits]) -> pa.Table:
        """The numbers of the files of these rows' records, and their places there."""
        some = [self.of(at).only(bits) for at, bits in enumerate(which) if bits.any()]
        return pa.concat_tables(
            [pa.table({"file": one.landed, "byte_offset": one.table[OFFSET].combine_chunks()}) for one in some]
        )

    def left_out(self, gone: Sequence[Bits]) -> pa.Table:
        """The ids of the files of these rows' records, and their places there."""
        places = self.places(gone)
        file_ids = pa.array(self.file_ids, pa.string()).take(places["file"].combine_chunks())
        return pa.table({"file_id": file_ids, "byte_offset": places["byte_offset"]})

    def dropped(self, gone: Sequence[Bits]) -> Dropped:
        dropped: Dropped = Counter()
        for at, (file, which) in enumerate(zip(self.files, gone, strict=True)):
            if not which.any():
                continue
            rows = self.of(at).only(which)
            counts = pa.table({"landed": rows.landed, "why": rows.table[VIOLATED]}).group_by(
                ["landed", "why"], use_threads=False
            )
            for one in counts.aggregate([([], "count_all")]).to_pylist():
                dropped[self.file_ids[one["landed"]], file.table, file.declared, one["why"]] += one["count_all"]
        return dropped


class _Some:
    """Some of the rows: the number of each row's landed file, in the order of their ids, and of its data file."""

    def __init__(self, table: pa.Table, landed: Any, file: Any) -> None:
        self.table, self.landed, self.file = table, landed, file
        self.ids: pa.FixedSizeBinaryArray = table[ID].combine_chunks()
        self.count = len(file)

    @classmethod
    def sum(cls, some: Sequence[_Some]) -> _Some:
        table = pa.concat_tables([one.table for one in some]).combine_chunks()
        return cls(table, np.concatenate([one.landed for one in some]), np.concatenate([one.file for one in some]))

    def only(self, which: Bits) -> _Some:
        return _Some(self.table.filter(pa.array(which)), self.landed[which], self.file[which])

    @property
    def again(self) -> Bits:
        """All rows with the same id except the first, by its file and its position there. Each has an id."""
        halves = np.ascontiguousarray(bytes_of(self.ids)).view(np.uint64)
        order = np.lexsort((self.table[OFFSET].to_numpy(), self.landed, halves[:, 1], halves[:, 0]))
        again = (halves[order][1:] == halves[order][:-1]).all(axis=1)
        found = np.zeros(self.count, bool)
        found[order[1:][again]] = True
        return found

    def before(self, known: Mapping[bytes, date], first: Any) -> Bits:
        """Marks rows that earlier batches wrote within their table's window. `first` has the first day of each data file."""
        if not known:
            return np.zeros(self.count, bool)
        at = pc.index_in(self.ids, value_set=pa.array(list(known), self.ids.type))
        days = np.array(list(known.values()), "datetime64[D]")[np.asarray(pc.fill_null(at, 0))]
        return np.asarray(pc.is_valid(at)) & (days >= first[self.file])


class RowIds:
    """The ids of the rows that stay, as rows of the table of ids: not all at once."""

    def __init__(self, rows: _Rows, stays: Sequence[Bits], dedupe: Dedupe) -> None:
        self._rows, self._stays, self._dedupe = rows, stays, dedupe
        self._file_ids = pa.array(rows.file_ids, pa.string())

    def __iter__(self) -> Iterator[pa.Table]:
        waiting: list[pa.Table] = []
        written = [at for at, one in enumerate(self._rows.files) if one.place == one.table]
        for at in written:
            for rows in self._of(at):
                waiting.append(rows)
                if sum(one.num_rows for one in waiting) >= IDS_AT_ONCE:
                    yield pa.concat_tables(waiting)
                    waiting = []
        if waiting:
            yield pa.concat_tables(waiting)

    def _of(self, at: int) -> Iterator[pa.Table]:
        rows = self._rows.of(at)
        mine = np.flatnonzero(self._stays[at] & np.asarray(pc.is_valid(rows.ids)))
        for begin in range(0, len(mine), IDS_AT_ONCE):
            some = mine[begin : begin + IDS_AT_ONCE]
            columns = {name: pa.repeat(pa.scalar(value), len(some)) for name, value in self._dedupe.of_all_ids.items()}
            columns["id"] = rows.ids.take(pa.array(some)).cast(pa.binary())
            columns["file_id"] = self._file_ids.take(pa.array(rows.landed[some]))
            columns["table"] = pa.repeat(self._rows.files[at].table, len(some))
            yield pa.table(columns)


def _of_vault(files: Sequence[Vaulted], of: _Rows, gone: Sequence[Bits]) -> dict[tuple[str, str], Bits]:
    """The rows that stay in each data file of the vault: the values of a duplicate are already there."""
    if not files:
        return {}
    left = of.places(gone)
    file_ids, made = pa.array(of.file_ids, pa.string()), {}
    for file in files:
        rows = unpacked(file.rows).rows
        numbers = pc.index_in(rows["file_id"].combine_chunks(), value_set=file_ids)
        at = pa.array(np.arange(rows.num_rows))
        mine = pa.table({"file": numbers, "byte_offset": rows["byte_offset"].combine_chunks(), "at": at})
        found = mine.join(left, ["file", "byte_offset"], join_type="inner")
        stays = np.ones(rows.num_rows, bool)
        stays[found["at"].to_numpy()] = False
        made[VAULT, file.path] = stays
    return made


def _with_fewer_rows(
    made: Pass, stays: Mapping[tuple[str, str], Bits], spark: SparkSession, storage: Storage
) -> Written:
    """The data files, with others in place of those that hold rows which do not stay."""
    whole: dict[str, list[DataFile]] = {}
    fewer = []
    for name, files in made.written.files.items():
        for file in files:
            mine = stays.get((name, file.path))
            if mine is None or mine.all():
                whole.setdefault(name, []).append(file)
            else:
                fewer.append(FewerRows(made.place_of(name), file, mine))
    again = Answer(files=[*_answers([one for one in fewer if one.stay.any()], spark, storage)]).written
    names = dict.fromkeys([*whole, *again.files])
    written = Written(
        {name: whole.get(name, []) + again.files.get(name, []) for name in names},
        made.written.failed,
        made.written.shapes,
    )
    if again.failed:
        replace(made, written=again).undo()
        raise ReadAgain(next(iter(again.failed.values())))
    made.delete(one.file for one in fewer)
    return written


def _answers(fewer: Sequence[FewerRows], spark: SparkSession, storage: Storage) -> Iterable[dict[str, Any]]:
    if sum(one.file.size for one in fewer) <= FEW_BYTES:
        return written_again(storage, fewer)
    context = spark.sparkContext
    tasks = context.parallelize(fewer, min(len(fewer), context.defaultParallelism))
    return tasks.mapPartitions(partial(written_again, storage)).collect()


def _recounted(fates: Iterable[Fate], leave: Dropped) -> Iterator[Fate]:
    """The rows that are dropped are written no more."""
    left = Counter(
        {(name, table, declared, names_of(why)): rows for (name, table, declared, why), rows in leave.items()}
    )
    dropped: Counter[tuple[str, str, int]] = Counter()
    for fate in fates:
        key: Any = (fate.file_id, fate.table, fate.declared, fate.violated)
        gone = left.pop(key, 0) if fate.fate == "write" else 0
        if gone:
            dropped[key[:3]] += gone
        if fate.rows > gone:
            yield replace(fate, rows=fate.rows - gone)
    for (name, table, declared), rows in dropped.items():
        yield Fate(name, "drop", rows, table, declared, (DUPLICATE,))
