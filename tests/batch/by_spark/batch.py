"""The steps of such a batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import forebay.batch.one_pass.reader as reader
from forebay.batch.accounting import Fate, Standing, arriving, by_declaration, by_table, quarantined_rows, rows_of
from forebay.batch.attempt.attempt import Begun
from forebay.batch.attempt.beginning import Beginning
from forebay.batch.one_pass.held import COLUMNS as HELD
from forebay.batch.one_pass.held import whole_files
from forebay.batch.plan import Staged
from forebay.batch.writing import Writing
from forebay.content.end import FileEnd, PieceEnd, file_ends
from forebay.content.originals import COLUMN
from forebay.content.piece import Piece, cut
from forebay.content.reading import read_pieces
from forebay.declared_sql.questions import encrypted_values
from forebay.lake.layout import IDS, PARKED, QUARANTINE, VAULT
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files
from forebay.ledger.versions import Sorted, standing
from forebay.privacy.vault import COLUMNS as VAULTED
from forebay.privacy.vault import value_data
from forebay.table.destination import Failed, Skipped
from forebay.table.staged import StagedTable
from forebay.table.staging import StagingFromSpark
from tests.batch.by_spark.declared_columns import with_table_columns
from tests.batch.by_spark.dedupe import ids_of_rows, until, without_duplicates
from tests.batch.by_spark.expectations import checked
from tests.batch.by_spark.routing import routed, with_final_fates

COLUMNS = "piece int, line long, byte_offset long, value string, problem string, detail string, metadata string"
"""Of `content.rows`, in Spark's words."""
END = ("piece", "value", "problem", "detail")
FATE = ("_file_id", "_fate", "_table", "_declared", "_violated", "_reason")
OF_HELD = {"file_id": "_file_id", "line": "_line", "table": "_table", "reason": "_reason", "record": "value"}


@dataclass(frozen=True)
class Read:
    rows: DataFrame
    ends: Sequence[FileEnd]

    @property
    def landed(self) -> Mapping[str, str]:
        return {end.file.file_id: end.content_hash for end in self.ends if end.lands}

    @property
    def fates(self) -> list[Fate]:
        return [
            Fate(
                r["_file_id"],
                r["_fate"],
                r["count"],
                r["_table"],
                r["_declared"],
                (*(r["_violated"] or ()),),
                r["_reason"],
            )
            for r in self.rows.where("_fate <> 'end'").groupBy(*FATE).count().collect()
        ]

    def landing(self, fresh: Collection[str]) -> DataFrame:
        """The rows of these files, if they land, with their line in the file rather than in the piece."""
        before = {piece: n for end in self.ends for piece, n in end.lines_before.items()}
        mine = [end.file.file_id for end in self.ends if end.lands and end.file.file_id in fresh]
        offsets = F.create_map(*[F.lit(x) for pair in before.items() for x in pair])
        rows = self.rows.withColumn("_line", F.col("line") + offsets[F.col("piece")])
        return rows.where(F.col("_file_id").isin(mine))


class BySpark(Beginning):
    """No file of it is forgotten, waits for a retry, or ends its task."""

    def begun(self, claim: Claim, to_read: Sorted) -> Begun:
        with ExitStack() as cached:
            return self._begun(claim, to_read, cached)

    def _begun(self, claim: Claim, to_read: Sorted, cached: ExitStack) -> Begun:
        read = self.by_spark(to_read.fresh, cached)
        split = decide_files(claim, read.landed)
        dedupe = self.dedupe(split, self.last_try())
        landed = {file.file_id for file in split.fresh} & read.landed.keys()
        read = Read(until(cached, read.landing(landed)), [e for e in read.ends if e.file in split.fresh])
        if dedupe.wanted:
            pieces = [piece for end in read.ends if end.lands for piece in end.lines_before]
            read = replace(read, rows=until(cached, without_duplicates(dedupe, read.rows, pieces, cached, landed)))
        fates, to_stage = read.fates, _Rows(self.writing, read.rows, split)
        staged = to_stage.staged(read.ends, fates, partial(ids_of_rows, dedupe) if dedupe.wanted else None)
        return Begun(self.plan_of(claim.files, split, read.ends, fates, dedupe, staged), split)

    def by_spark(self, files: Sequence[LandedFile], cached: ExitStack) -> Read:
        pieces = cut(files, self.parts.one_pass.limits)
        content = self.content(pieces).withColumn("_piece", F.col("piece"))
        columns = "_piece int, _file_id string, bucket string, key string, version_id string, _landed_at timestamp"
        known = [
            (p.number, p.file.file_id, p.file.bucket, p.file.key, p.file.version_id, p.file.event_time) for p in pieces
        ]
        content = content.join(self.parts.spark.createDataFrame(known, columns), "_piece", "left").drop("_piece")
        rows = until(cached, with_final_fates(checked(routed(self.sealed(content), self.service), self.service)))
        ends = [
            PieceEnd.from_row(*(r[name] for name in END)) for r in rows.where("_fate = 'end'").select(*END).collect()
        ]
        return Read(rows, file_ends(pieces, ends))

    def content(self, pieces: Sequence[Piece]) -> DataFrame:
        metadata: Any = {} if self.service.asks_for_metadata else None
        limits = self.parts.one_pass.limits
        get = reader.source(limits, metadata)
        batches: Iterable[pa.RecordBatch] = read_pieces(pieces, get, limits, metadata, self.service.forms)
        columns = f"{COLUMNS}, {COLUMN}" if self.service.forms.have_a_vault else COLUMNS
        names = [column.split()[0] for column in COLUMNS.split(", ")] + ["personal"] * (columns != COLUMNS)
        found = [tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist()]
        return self.parts.spark.createDataFrame(found, columns)

    def sealed(self, content: DataFrame) -> DataFrame:
        """With the personal values encrypted."""
        if "personal" not in content.columns:
            return content
        found = F.col("personal")
        bound_to = F.concat(F.lit(value_data(self.service.name, "")), found["key_id"])
        encrypted = encrypted_values(found["values"], found["key"], bound_to)
        vault = F.struct(
            *(found[name].alias(name) for name in ("subjects", "key_id", "salt")), encrypted.alias("content")
        )
        return content.withColumn("_vault", F.when(found.isNotNull(), vault)).drop("personal")


class _Rows:
    """Of one batch, on their way into data files."""

    def __init__(self, writing: Writing, rows: DataFrame, split: Sorted) -> None:
        self.writing, self.rows, self.split = writing, rows, split
        self.stand: Standing = standing(split.leaving)
        self.shared = writing.shared_beside

    def staged(self, ends: Sequence[FileEnd], fates: Sequence[Fate], ids_of: Any) -> Staged:
        writing, leaving = self.writing, self.writing.leaving_tables(self.split)
        unwritten = writing.not_to_write(fates, writing.origins(by_table(fates).keys() | leaving.keys()))
        tables: dict[str, StagedTable] = {}
        for declared, wanted in by_declaration(fates).items():
            asked = {table: count for table, count in wanted.items() if table not in unwritten}
            for name, one in self.tables(declared, asked).items():
                assert not isinstance(one, Failed), one
                if isinstance(one, StagedTable):
                    tables[name] = replace(one, replaces=name in leaving)
        beside = {
            QUARANTINE: self.quarantined(ends, unwritten, fates),
            PARKED: self.beside(PARKED, self.held(self.rows.where("_fate = 'park'")), rows_of(fates, "park")),
            VAULT: self.vaulted(),
            IDS: None,
        }
        if ids_of is not None:
            ids = ids_of(self.rows, unwritten)
            beside[IDS] = self.beside(IDS, ids, ids.count(), bool(self.split.leaving))
        return Staged(unwritten, tables, {name: one for name, one in beside.items() if one is not None})

    def tables(self, number: int, wanted: Mapping[str, int]) -> Mapping[str, StagedTable | Skipped | Failed]:
        """One job for all tables of a declaration: they share their columns."""
        if not wanted:
            return {}
        writing, declared = self.writing, self.writing.service.tables[number]
        chosen = self.rows.where((F.col("_fate") == "write") & F.col("_table").isin(sorted(wanted)))
        rows = with_table_columns(chosen, writing.service, declared, batch=writing.txn.version, at=writing.began_at)
        staging = StagingFromSpark(writing.logs, rows, writing.txn, writing.emit, wanted)
        return staging.run([writing.destination(name, declared) for name in sorted(wanted)], 1)

    def beside(self, name: str, rows: DataFrame, count: int, replaces: bool = False) -> StagedTable | None:
        return self.writing.stage_beside(self.writing.own(name), rows, count, replaces=replaces) if count else None

    def quarantined(
        self, ends: Sequence[FileEnd], unwritten: Mapping[str, str], fates: Sequence[Fate]
    ) -> StagedTable | None:
        files = [end for end in ends if end.outcome == "unreadable"]
        count = quarantined_rows(arriving(fates, unwritten, self.stand), unwritten) + len(files)
        why: Expression = F.lit(None).cast("string")
        if unwritten:
            named = F.create_map(*[F.lit(word) for pair in unwritten.items() for word in pair])
            why = F.when((F.col("_fate") == "write") & ~self._stands(unwritten), named[F.col("_table")])
        rows = self.rows.where((F.col("_fate") == "quarantine") | why.isNotNull())
        rows = self.held(rows.withColumn("_reason", F.coalesce(why, F.col("_reason"))))
        whole = self.writing.spark.createDataFrame(whole_files(files, self.shared).to_pylist(), HELD)
        rows = rows.unionByName(whole) if files else rows
        return self.beside(QUARANTINE, rows, count, bool(self.split.leaving_quarantine))

    def _stands(self, unwritten: Collection[str]) -> Expression:
        found = F.lit(False)
        for file_id, tables in self.stand.items():
            mine = sorted(tables.keys() & {*unwritten})
            found = found | ((F.col("_file_id") == file_id) & F.col("_table").isin(mine))
        return found

    def held(self, rows: DataFrame) -> DataFrame:
        return rows.select(*self._columns(HELD, OF_HELD))

    def vaulted(self) -> StagedTable | None:
        if "_vault" not in self.rows.columns:
            return None
        rows = self.rows.where(F.col("_vault").isNotNull() & F.col("_fate").isin("write", "quarantine", "park"))
        of_vault = {name: f"_vault.{name}" for name in ("subjects", "key_id", "salt", "content")}
        kept = rows.select(*self._columns(VAULTED, {"file_id": "_file_id", **of_vault}))
        return self.beside(VAULT, kept, kept.count(), bool(self.split.leaving))

    def _columns(self, ddl: str, of_rows: Mapping[str, str]) -> list[Expression]:
        made = []
        for name, kind in (column.split(" ", 1) for column in ddl.split(", ")):
            value = F.lit(self.shared[name]) if name in self.shared else F.col(of_rows.get(name, name))
            made.append(value.cast(kind).alias(name))
        return made
