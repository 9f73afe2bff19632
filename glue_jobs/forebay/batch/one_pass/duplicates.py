"""The driver leaves out the rows of a pass that came before: in the same batch, or in an earlier one.

In: a `Pass`, whose tasks say which id each row of each data file has; and the known ids (`batch.dedupe`). Out: the same pass
without those rows, counted as dropped, and the ids of the others. Only the data files that hold duplicates are written again,
from themselves.
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
from forebay.batch.one_pass.fewer_rows import FewerRows, written_again
from forebay.batch.one_pass.gathering import unpacked
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.rows import IDENTITY, VIOLATED
from forebay.batch.recent_ids import bytes_of
from forebay.batch.staged import VAULT
from forebay.lake.layout import own_table
from forebay.table.data_file import DataFile, Written
from forebay.table.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["without_duplicates"]

ID, PIECE, OFFSET = IDENTITY
FEW_BYTES = 4 << 20
"""Of data files that are written again: the driver does it, without a job."""

Moved = Counter[tuple[str, str, int, str | None]]
"""Rows that are dropped, by the id of their landed file, their table, its declaration, and what they violate."""


def without_duplicates(made: Pass, dedupe: Dedupe, spark: SparkSession, storage: Storage) -> Pass:
    """Where nothing came before, no data file is read."""
    if not made.identified:
        return made
    rows = _Rows(made.identified, made.files_by_piece)
    known = dedupe.days_of(rows.ids.drop_null().unique(), made.landed)
    gone = rows.in_this_batch() | rows.before(known, dedupe.since)
    ids = rows.as_ids(~gone, dedupe)
    if not gone.any():
        return replace(made, identified=(), vaulted=(), ids=ids)
    stays = rows.by_file(~gone) | _of_vault(made.vaulted, rows.places(gone))
    written = _with_fewer_rows(made, stays, spark, storage)
    fates = [*_recounted(made.fates, rows.moved(gone))]
    return replace(made, identified=(), vaulted=(), ids=ids, fates=fates, written=written)


class _Rows:
    """Of all these data files, one after the other."""

    def __init__(self, files: Sequence[Identified], landed: Mapping[int, str]) -> None:
        self.files = files
        parts = [unpacked(one.rows).rows for one in files]
        self.table = pa.concat_tables(parts).combine_chunks()
        self.counts = [part.num_rows for part in parts]
        self.file = np.repeat(np.arange(len(files)), self.counts)
        self.ids: pa.FixedSizeBinaryArray = self.table[ID].combine_chunks()
        pieces = self.table[PIECE].combine_chunks().dictionary_encode()
        names = np.array([landed[piece] for piece in pieces.dictionary.to_pylist()], object)
        self.file_ids, numbers = np.unique(names, return_inverse=True)
        self.landed = numbers[np.asarray(pieces.indices)]
        """The number of each row's landed file, in the order of their ids."""

    def in_this_batch(self) -> Bits:
        """Of rows with one id, all but that which comes first, by its file and its place there."""
        places = np.flatnonzero(np.asarray(pc.is_valid(self.ids)))
        halves = np.ascontiguousarray(bytes_of(self.ids)[places]).view(np.uint64)
        offsets = self.table[OFFSET].to_numpy()[places]
        order = np.lexsort((offsets, self.landed[places], halves[:, 1], halves[:, 0]))
        again = (halves[order][1:] == halves[order][:-1]).all(axis=1)
        found = np.zeros(len(self.file), bool)
        found[places[order[1:][again]]] = True
        return found

    def before(self, known: Mapping[bytes, date], since: Mapping[int, date]) -> Bits:
        """Those that earlier batches wrote, in the window of their table."""
        if not known:
            return np.zeros(len(self.file), bool)
        at = pc.index_in(self.ids, value_set=pa.array(list(known), self.ids.type))
        days = np.array(list(known.values()), "datetime64[D]")[np.asarray(pc.fill_null(at, 0))]
        first = np.array([since[one.declared] for one in self.files], "datetime64[D]")[self.file]
        return np.asarray(pc.is_valid(at)) & np.asarray(pc.is_valid(self.ids)) & (days >= first)

    def by_file(self, stays: Bits) -> dict[tuple[str, str], Bits]:
        """For each data file, by its place and path, which of its rows stay."""
        parts: dict[tuple[str, str], list[Bits]] = {}
        for one, part in zip(self.files, np.split(stays, np.cumsum(self.counts)[:-1]), strict=True):
            parts.setdefault((one.place, one.path), []).append(part)
        return {place: np.concatenate(some) for place, some in parts.items()}

    def places(self, which: Bits) -> pa.Table:
        """The files of these rows' records, and their places there."""
        file_ids = pa.array(self.file_ids[self.landed[which]], pa.string())
        return pa.table({"file_id": file_ids, "byte_offset": self.table[OFFSET].filter(pa.array(which))})

    def moved(self, gone: Bits) -> Moved:
        places = np.flatnonzero(gone)
        files = [self.files[at] for at in self.file[places].tolist()]
        violated = self.table[VIOLATED].take(pa.array(places)).to_pylist()
        landed = self.file_ids[self.landed[places]].tolist()
        return Counter(
            (name, file.table, file.declared, why) for name, file, why in zip(landed, files, violated, strict=True)
        )

    def as_ids(self, stays: Bits, dedupe: Dedupe) -> pa.Table | None:
        """Rows of the table of ids; None where there are none."""
        written = np.array([one.place == one.table for one in self.files], bool)[self.file]
        mine = np.flatnonzero(stays & written & np.asarray(pc.is_valid(self.ids)))
        if not len(mine):
            return None
        tables = np.array([one.table for one in self.files], object)[self.file[mine]]
        told = {name: pa.repeat(pa.scalar(value), len(mine)) for name, value in dedupe.of_all_ids.items()}
        told["id"] = self.ids.take(pa.array(mine)).cast(pa.binary())
        told["file_id"] = pa.array(self.file_ids[self.landed[mine]], pa.string())
        told["table"] = pa.array(tables, pa.string())
        return pa.table(told)


def _of_vault(files: Sequence[Vaulted], gone: pa.Table) -> dict[tuple[str, str], Bits]:
    """For each data file of the vault, which of its rows stay: the values of a duplicate are there already."""
    gone = gone.append_column("gone", pa.repeat(True, gone.num_rows))
    made = {}
    for file in files:
        rows = unpacked(file.rows).rows
        rows = rows.append_column("at", pa.array(np.arange(rows.num_rows)))
        found = rows.join(gone, ["file_id", "byte_offset"], join_type="inner")
        stays = np.ones(rows.num_rows, bool)
        stays[found["at"].to_numpy()] = False
        made[own_table(VAULT), file.path] = stays
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
        {name: whole.get(name, []) + again.files.get(name, []) for name in names}, {}, made.written.shapes
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


def _recounted(fates: Iterable[Fate], moved: Moved) -> Iterator[Fate]:
    """The rows that are dropped are written no more."""
    left = Counter(
        {(name, table, declared, names_of(why)): rows for (name, table, declared, why), rows in moved.items()}
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
