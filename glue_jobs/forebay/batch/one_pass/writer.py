"""Records become rows in data files, of every table and beside the tables.

In: blocks of records, and the ends of their pieces. Out: an `Answer`. The records of a file wait until its end is known: those
of a file that does not land are in no data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.answers import Answer, Identified, Judged, Moved, Vaulted, names_of
from forebay.batch.one_pass.columns import Bits
from forebay.batch.one_pass.gathering import packed
from forebay.batch.one_pass.held import HeldRows
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.reader import DROPPED, NoRoom
from forebay.batch.one_pass.rows import IDENTITY, VIOLATED, Block, Made, TableRows
from forebay.batch.one_pass.spec import TASK_BYTES, Fact, Held, PassSpec
from forebay.batch.one_pass.vault import VaultRows
from forebay.content.end import PieceEnd, file_ends
from forebay.lake.layout import PARKED, QUARANTINE, VAULT, table_path
from forebay.privacy.vault import values_of
from forebay.record.kind import Struct
from forebay.table.data_files.data_file import TableFolder
from forebay.table.data_files.partition import by_partition, can_name_folders
from forebay.table.data_files.upload import OpenFile, Uploads

TABLE_BYTES = 64 << 20
"""The bytes of text that may wait for one table. After that, they become a data file."""
BESIDE = [VIOLATED, *IDENTITY]
"""The columns of finished rows that are in no data file."""
KEPT_OUT, STAYS = "kept out", "stays"
SUPERSEDED = "superseded"
"""The fate of a held record that stays, because an earlier version of its file is in force again in its table."""
FATES = {QUARANTINE: "quarantine", PARKED: "park", DROPPED: "drop", KEPT_OUT: "write", STAYS: SUPERSEDED}
"""The fates of the rows that are in no table. Rows that are kept out of a table go to the quarantine."""


class Writer:
    """The writer of one task."""

    def __init__(self, spec: PassSpec, uploads: Uploads) -> None:
        self.spec, self.uploads = spec, uploads
        self.landed = Landed(spec.pieces, spec.service)
        self.answer = Answer()
        self.tables: dict[str, TableRows] = {}
        self.held = {place: HeldRows(self.landed, spec) for place in FATES}
        self.vault = VaultRows(self.landed, spec)
        self.ends: dict[int, PieceEnd] = {}
        self.lines_before: dict[int, int] = {}
        self.over: set[int] = set()
        """Pieces whose end is known."""
        self.has_ended = self.knows_all = False
        self.identified = 0

    def take(self, table: str, declared: int, block: Block) -> None:
        if self.spec.only_unwritten and table not in self.spec.unwritten:
            return
        if (held := self.spec.held) is not None:
            block = self.without_staying(held, table, declared, block)
            if not block.rows.num_rows:
                return
        found = self.tables.get(table)
        if found is None:
            found = self.tables[table] = TableRows(table, declared, self.spec, self.landed)
        assert found.declared == declared, f"two declarations claim the name {table}"
        found.add(block)

    def without_staying(self, held: Held, table: str, declared: int, block: Block) -> Block:
        """The records that leave where they were held."""
        if held.only not in (None, table):
            stays = pa.array(np.ones(block.rows.num_rows, bool))
        else:
            pieces = pa.array(held.stay.get(table, ()), pa.int32())
            stays = pc.is_in(block.rows["piece"].combine_chunks(), value_set=pieces)
        self.keep(STAYS, block.rows.filter(stays), table=table, declared=declared)
        return block.only(pc.invert(stays))

    def take_unrouted(self, block: Block) -> None:
        raise AssertionError("Spark has said which declarations want these records, before they are written")

    def keep(self, place: str, rows: pa.Table, **facts: Fact) -> None:
        self.held[place].add(rows, **facts)
        if place != DROPPED:
            self.vault.add(rows)

    def end(self, end: PieceEnd) -> None:
        self.ends[end.piece] = end
        self.over.add(end.piece)
        self.has_ended = True

    def end_all(self, ends: Iterable[PieceEnd]) -> None:
        """Takes the ends of all pieces of some files. A file lands if all of its pieces do."""
        ends = list(ends)
        ended = {end.piece for end in ends}
        of_files = file_ends([piece for piece in self.spec.pieces if piece.number in ended], ends)
        self.lines_before = {number: lines for end in of_files for number, lines in end.lines_before.items()}
        lands = {number for end in of_files if end.lands for number in end.lines_before}
        self.ends = {end.piece: end for end in ends if end.piece in lands}
        self.over |= ended
        self.knows_all = True

    def rest(self) -> None:
        """Writes tables if a piece has ended since. Records beside the tables wait until everything is read. Once it is known
        which pieces land, they wait only until there are many."""
        if self.has_ended:
            self.has_ended = False
            self.write_large()
        kept = self.vault.bytes + sum(held.bytes for held in self.held.values())
        if self.knows_all:
            if kept > TASK_BYTES:
                self.write_all_beside()
        elif kept + sum(table.bytes for table in self.tables.values()) > 2 * TASK_BYTES:
            raise NoRoom("more records wait than a task may hold")

    def write_large(self) -> None:
        """Tables with much that waits; all of them where much waits in all."""
        are_all = sum(table.bytes for table in self.tables.values()) > TASK_BYTES
        self.write_tables(table for table in self.tables.values() if are_all or table.bytes > TABLE_BYTES)

    def finish(self) -> Answer:
        self.write_tables(self.tables.values())
        self.write_all_beside()
        self.answer.files += self.uploads.finish()
        shapes = ((one.name, one.seen.as_json()) for one in self.tables.values() if one.kept_out is None)
        self.answer.files += [{"table": name, "shape": shape} for name, shape in shapes]
        return self.answer

    @property
    def landing(self) -> pa.Array:
        """The pieces that are read, and good."""
        return pa.array([n for n, end in self.ends.items() if end.outcome in ("loaded", "empty")], pa.int32())

    def write_tables(self, tables: Iterable[TableRows]) -> None:
        over, landing = pa.array(sorted(self.over), pa.int32()), self.landing
        for table in list(tables):
            if blocks := list(table.take(landing, over)):
                made = table.made(blocks, self.lines)
                if made.failed:
                    self.answer.broken[table.name] = made.failed
                for place, some in ((QUARANTINE, made.refused), (DROPPED, made.dropped), (KEPT_OUT, made.kept_out)):
                    for kept in some:
                        self.held[place].add(kept.rows, table=table.name, declared=table.declared, **kept.facts)
                for rows in made.kept:
                    self.vault.add(rows)
                if made.rows is not None:
                    self.write(table.name, table.place, made.rows, table.columns, table.declared)
                    self.count(table, made)
                for rows in made.written:
                    self.move(table.name, rows)

    def count(self, table: TableRows, made: Made) -> None:
        for file_id, violated, rows in self.counted(made):
            judged = Judged(file_id, "write", table.name, table.declared, violated=names_of(violated))
            self.answer.fates[judged] += rows

    def counted(self, made: Made) -> Iterator[tuple[str, str | None, int]]:
        """The rows of each file by their violation. Most violate nothing. Then their pieces are counted: that is faster than
        counting texts or grouping by two columns, and there may be a thousand tables."""
        assert made.rows is not None
        files, violated = made.rows["_file_id"], made.rows[VIOLATED]
        if violated.null_count == len(violated):
            pieces = np.concatenate([np.asarray(chunk) for rows in made.written for chunk in rows["piece"].chunks])
            for piece, count in zip(*np.unique(pieces, return_counts=True), strict=True):
                yield self.landed.files[int(piece)].file_id, None, int(count)
            return
        rows = pa.table([files, violated], ["file", "violated"]).group_by(["file", "violated"], use_threads=False)
        for one in rows.aggregate([([], "count_all")]).to_pylist():
            yield one["file"], one["violated"], one["count_all"]

    def move(self, table: str | None, rows: pa.Table) -> None:
        """Held records leave where they were."""
        if self.spec.held is not None and rows.num_rows:
            self.answer.moved.append(Moved(table, packed(Block(rows.select(["piece", "byte_offset"])))))

    def lines(self, rows: pa.Table) -> pa.Array:
        """Lines are counted in the piece until all pieces of the file are read."""
        if not any(self.lines_before.values()):
            return rows["line"]
        before = np.array([self.lines_before.get(piece, 0) for piece in rows["piece"].to_pylist()], np.int64)
        return pc.add(rows["line"], pa.array(before))

    def write_all_beside(self) -> None:
        self.write_held()
        self.write_vault()
        self.vault.clear()
        for held in self.held.values():
            held.clear()

    def write_held(self) -> None:
        landing = self.landing
        for place, fate in FATES.items():
            self.answer.fates += self.held[place].counted(fate, landing)
        if (held := self.spec.held) is not None and (rows := self.held[DROPPED].of(landing)) is not None:
            self.move(None, rows if held.only is None else rows.filter(pc.equal(rows["table"], held.only)))
        writes = held is None and not self.spec.only_unwritten
        for place in (QUARANTINE, PARKED):
            if writes and (rows := self.held[place].of(landing)) is not None:
                self.write_beside(place, self.held[place].shaped(rows, self.lines))
        if (rows := self.held[KEPT_OUT].of(landing)) is not None:
            stand = self.standing(rows) if held is None else np.ones(rows.num_rows, bool)
            self.write_kept_out(rows.filter(pa.array(~stand)), are_kept=True)
            self.write_kept_out(rows.filter(pa.array(stand)), are_kept=False)

    def standing(self, rows: pa.Table) -> Bits:
        """Finds new rows of a replayed file whose table keeps its earlier rows: they must not wait beside those."""
        found = np.zeros(rows.num_rows, bool)
        for name, pieces in self.spec.standing_pieces.items():
            of_table = np.asarray(pc.equal(rows["table"], name))
            found |= of_table & np.asarray(pc.is_in(rows["piece"], value_set=pa.array(pieces, pa.int32())))
        return found

    def write_kept_out(self, rows: pa.Table, *, are_kept: bool) -> None:
        """One data file of rows by their tables. Some tables may leave out duplicates."""
        if not rows.num_rows:
            return
        rows = rows.sort_by("table").combine_chunks()
        path = self.write_beside(QUARANTINE, self.held[KEPT_OUT].shaped(rows, self.lines)) if are_kept else ""
        if rows["id"].null_count == rows.num_rows:
            return
        beside = rows.select(["violated", "id", "piece", "byte_offset"]).rename_columns(BESIDE)
        names, starts = np.unique(np.asarray(rows["table"]), return_index=True)
        for name, start, stop in zip(names, starts, [*starts[1:], rows.num_rows], strict=True):
            some = packed(Block(beside.slice(start, stop - start)))
            count, declared = int(stop - start), rows["declared"][start].as_py()
            self.identify(Identified(name, declared, some, count, QUARANTINE, path))

    def write_beside(self, place: str, rows: pa.Table) -> str:
        """All of them have one day, so it is one data file."""
        (name,) = self.write(place, TableFolder(table_path(self.spec.lake, place), ("day",)), rows, None)
        return name

    def write_vault(self) -> None:
        if self.spec.only_unwritten or (rows := self.vault.kept(self.landing)) is None:
            return
        (path,) = self.write(VAULT, TableFolder(values_of(self.spec.service.vault), ("day",)), rows, None)
        if any(table.dedupe for table in self.spec.service.tables):
            self.answer.vaulted.append(Vaulted(path, packed(Block(rows.select(["file_id", "byte_offset"])))))

    def write(
        self, name: str, place: TableFolder, rows: pa.Table, columns: Struct | None, declared: int | None = None
    ) -> list[str]:
        """The names of the data files. The driver fails a table that cannot be partitioned by its columns (`table.staging`)."""
        names = []
        partitions = [
            one for one in place.partition_columns if one in rows.column_names and can_name_folders(rows[one].type)
        ]
        for values, some in by_partition(rows, partitions):
            written = some.drop_columns([name for name in BESIDE if name in some.column_names])
            file = OpenFile(name, name, place.path, values, written.schema, columns)
            file.write(written)
            self.answer.files += self.uploads.add(file)
            names.append(file.name)
            if declared is not None and IDENTITY[0] in some.column_names:
                rows_of_file = packed(Block(some.select(BESIDE)))
                self.identify(Identified(name, declared, rows_of_file, some.num_rows, name, file.name))
        return names

    def identify(self, rows: Identified) -> None:
        self.identified += rows.count
        if self.identified <= self.spec.ids_at_most:
            self.answer.identified.append(rows)
        else:
            self.answer.identified, self.answer.lacks_ids = [], True
